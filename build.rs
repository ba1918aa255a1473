//! Compiles the BPF side into a skeleton.

use std::env;
use std::process::{Command, Stdio};

/// Looked for, in this order, where `BPF_CLANG` is not set: Debian 12's plain
/// `clang` is too old for the BPF side and its newer ones carry the version.
const CLANGS: [&str; 4] = ["clang-21", "clang-20", "clang-19", "clang"];

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    if env::var_os("BPF_CLANG").is_none()
        && let Some(clang) = CLANGS.into_iter().find(|clang| runs(clang))
    {
        // SAFETY: a build script has one thread here.
        unsafe { env::set_var("BPF_CLANG", clang) };
    }
    // SAFETY: as above.
    unsafe { env::set_var("BPF_EXTRA_CFLAGS_PRE_INCL", "-Wall -Werror") };
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

fn runs(program: &str) -> bool {
    let run =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
