//! The promise on which every figure rests, tested on the program itself.

use std::process::Command;

/// CPU time of all ended children (s), user and system.
fn children_cpu_s() -> f64 {
    // SAFETY: plain numbers, and a valid pointer to them.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// CPU time, not wall time: it holds on a machine that is busy otherwise, where
/// activations are skipped but none is cut short.
#[test]
fn periodic_burns_what_it_is_told_within_2_percent() {
    let before = children_cpu_s();
    let output = Command::new(env!("CARGO_BIN_EXE_powerpack-load"))
        .args(["periodic", "--seconds", "3", "30/100*2", "20/100"])
        .output()
        .unwrap();
    let used = children_cpu_s() - before;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let activations = |task: usize| report["tasks"][task]["activations"].as_f64().unwrap();
    let told = activations(0) * 0.030 + activations(1) * 0.020;
    assert!(activations(0) > 10.0, "{report}");
    assert!((used / told - 1.0).abs() < 0.02, "told {told} s, used {used} s");
}
