//! Compiles the BPF side into a skeleton.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    // SAFETY: a build script has one thread here.
    unsafe { env::set_var("BPF_EXTRA_CFLAGS_PRE_INCL", "-Wall -Werror -fno-unroll-loops") };
    scx_cargo::BpfBuilder::new()
        .expect("a clang that can build BPF (set BPF_CLANG)")
        .enable_intf("src/bpf/intf.h", "bpf_intf.rs")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .expect("building src/bpf/main.bpf.c");
    build_native();
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
