//! Compiles the scheduler natively, against the stand-in for the scx headers.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    for path in ["include", "native", "bpf"] {
        println!("cargo:rerun-if-changed={path}");
    }
    // bpf is a link to ../src/bpf, whose files `cargo package` puts in its place.
    // clang alone puts variables into sections by a pragma.
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    let mut build = cc::Build::new();
    // See src/costs/: of the sanitizers only the calls are used, not what they call.
    if env::var_os("CARGO_FEATURE_COUNT_COSTS").is_some() {
        build.flag("-fsanitize=thread").flag("-fsanitize-coverage=trace-pc");
    }
    build
        .compiler(clang)
        .file("native/scheduler.c")
        .std("gnu23")
        .include("include")
        .include("bpf")
        .warnings_into_errors(true)
        .extra_warnings(false)
        .flag("-Wno-unused-function")
        // What makes libbpf look a field up.
        .flag("-Wno-unknown-attributes")
        .compile("powerpack_native");
}
