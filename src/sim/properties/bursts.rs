//! Threads that begin together, as those of a parallel program: the last of them ends as soon as under the kernel's class.

use powerpack_sim::Machine;

use super::world::outcomes_of;

/// Until the longest have been done ten times (s).
const RUNS_FOR_S: f64 = 60.0;

/// How much longer than under the kernel's class it may take on average until all are done: what packing may cost where all
/// CPUs are busy; and if each thread has 10 ms, in which packing begins with few CPUs.
const LONGER_MAX: f64 = 1.02;
const SHORT_LONGER_MAX: f64 = 1.05;

/// How long it takes on average until `threads` of `run_ms` each are done that begin together, again and again after a pause (us).
fn mean_us(machine: &str, system: &str, threads: u32, run_ms: u32, cpus: u32) -> f64 {
    let period_ms = run_ms * threads * 2 / cpus;
    let tasks = format!(
        "[[task]]\nfork_join = {{ workers = {threads}, run_ms = {run_ms}, leader_ms = 1, period_ms = {period_ms} }}\n"
    );
    outcomes_of(&Machine::find(machine).unwrap(), system, &tasks, RUNS_FOR_S)[0].mean_us
}

/// As many threads as CPUs, some more, and two and three times as many, of each length.
#[test]
fn threads_that_begin_together_end_as_soon_as_under_eevdf() {
    println!("| machine | threads, ms each | eevdf, ms | packing | spread |");
    for (machine, cpus, part) in [("vm4", 4), ("dual-quad", 8)]
        .iter()
        .flat_map(|&(machine, cpus)| [4, 5, 8, 12].map(|of_4| (machine, cpus, of_4)))
    {
        for run_ms in [10, 100, 1000] {
            let threads = part * cpus / 4;
            let taken_us = |system| mean_us(machine, system, threads, run_ms, cpus);
            let eevdf = taken_us("eevdf");
            let [packing, spread] = ["packing", "spread"].map(|mode| taken_us(mode) / eevdf);
            println!(
                "| {machine} | {threads} of {run_ms} | {:.1} | x {packing:.3} | x {spread:.3} |",
                eevdf / 1000.0
            );
            let longer_max = if run_ms < 100 { SHORT_LONGER_MAX } else { LONGER_MAX };
            let what = format!("{threads} threads of {run_ms} ms on {machine}");
            assert!(
                packing.max(spread) <= longer_max,
                "{what}: {packing:.3}, {spread:.3} x eevdf's time"
            );
        }
    }
}
