//! What is said where not as many threads can be had as are asked for.

use std::process::Command;

/// Of 2 GB of address space two thousand threads, with a stack of 64 MB each, are too many; what is left when no stack
/// fits is enough for those that have begun.
#[test]
fn that_there_are_no_more_threads_is_said() {
    for load in [
        &["periodic", "--seconds", "60", "1/1000*2000"][..],
        &["hogs", "--seconds", "60", "--count", "2000"],
    ] {
        let output = Command::new("sh")
            .args([
                "-c",
                "ulimit -v 2000000; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_powerpack-load"),
            ])
            .args(load)
            .env("RUST_MIN_STACK", (64 << 20).to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no thread can be started any more: ask for fewer"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
