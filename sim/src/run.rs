//! One simulation from beginning to end, and what came out.

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::native::{PolicyBytes, RankedCpu};
use crate::workload::{Record, START_NS, Workload};

/// What a simulation showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By CPU number.
    pub non_idle_pct: Vec<f64>,
    /// All CPUs' but the busiest's.
    pub beyond_busiest_pct: f64,
    pub switches: u64,
    pub overruns: u64,
    /// By kind of task, in the workload's order.
    pub tasks: Vec<TaskOutcome>,
}

/// Responses of the tasks of one kind (us).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOutcome {
    pub activations: usize,
    pub mean_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// The longest response beyond the task's own run time (us).
    pub max_delay_us: f64,
}

/// Runs `workload` on `machine` for `seconds` of its time.
pub fn run(
    machine: &Machine,
    ranked: &[RankedCpu],
    policy: &PolicyBytes,
    workload: &Workload,
    seconds: f64,
) -> Outcome {
    let mut kernel = Kernel::boot(machine, ranked, policy);
    let records = workload.spawn(&mut kernel);
    kernel.run_until(START_NS);
    let before: Vec<(u64, u64)> = counts(&kernel);
    let length_ns = seconds * 1e9;
    kernel.run_until(START_NS + length_ns as u64);
    let after = counts(&kernel);
    let both = || after.iter().zip(&before);
    let non_idle_pct: Vec<f64> =
        both().map(|(after, before)| (after.0 - before.0) as f64 / length_ns * 100.0).collect();
    let busiest = non_idle_pct.iter().copied().fold(0.0, f64::max);
    Outcome {
        beyond_busiest_pct: non_idle_pct.iter().sum::<f64>() - busiest,
        non_idle_pct,
        switches: both().map(|(after, before)| after.1 - before.1).sum(),
        overruns: records.iter().map(|record| record.borrow().overruns).sum(),
        tasks: records.iter().map(|record| summary(&record.borrow())).collect(),
    }
}

fn counts(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel.cpus.iter().map(|cpu| (cpu.non_idle_ns, cpu.switches)).collect()
}

fn summary(record: &Record) -> TaskOutcome {
    let mut sorted = record.responses_ns.clone();
    sorted.sort_unstable();
    let Some(&max) = sorted.last() else { return TaskOutcome::default() };
    let us = |ns: u64| ns as f64 / 1e3;
    TaskOutcome {
        activations: sorted.len(),
        mean_us: us(sorted.iter().sum::<u64>()) / sorted.len() as f64,
        p99_us: us(sorted[(sorted.len() - 1) * 99 / 100]),
        max_us: us(max),
        max_delay_us: us(max - record.run_ns.min(max)),
    }
}
