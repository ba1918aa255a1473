//! Compiles the BPF side into skeletons.

#[path = "src/scheduler/event_table.rs"]
mod event_table;

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    // SAFETY: a build script has one thread here.
    unsafe { env::set_var("BPF_EXTRA_CFLAGS_PRE_INCL", "-Wall -Werror -fno-unroll-loops") };
    build_bpf("src/bpf/intf.h", "src/bpf/main.bpf.c", "bpf");
    // Objects of their own: the scheduler does not take longer to load for them.
    build_bpf("src/wakes/intf.h", "src/wakes/wakes.bpf.c", "wakes");
    build_bpf("src/wakes/count.h", "src/wakes/count.bpf.c", "count");
    build_native();
    write_counters();
}

/// The skeleton of `source`, NAME_skel.rs, and the types of `header`, NAME_intf.rs.
fn build_bpf(header: &str, source: &str, name: &str) {
    scx_cargo::BpfBuilder::new()
        .expect("a clang that can build BPF (set BPF_CLANG)")
        .enable_intf(header, &format!("{name}_intf.rs"))
        .enable_skel(source, name)
        .build()
        .unwrap_or_else(|err| panic!("building {source}: {err:#}"));
}

/// The same decisions for src/pure.rs, which tests them.
fn build_native() {
    println!("cargo:rerun-if-changed=tests/native/pure.c");
    println!("cargo:rerun-if-changed=src/bpf");
    cc::Build::new()
        .file("tests/native/pure.c")
        .include("src/bpf")
        .warnings_into_errors(true)
        .extra_warnings(false)
        .compile("powerpack_pure");
}

/// The counters, for src/scheduler/counters.rs.
fn write_counters() {
    let header = fs::read_to_string("src/bpf/events.h").expect("the table of events");
    let events = event_table::parse(&header).expect("the table of events");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("counters.rs");
    fs::write(out, event_table::to_rust(&events)).expect("writing the counters");
}
