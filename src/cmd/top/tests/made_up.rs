//! Made-up replies.

use crate::cmd::top::model::{Machine, Sample, Task};
use crate::control::status::{CpuStatus, Status};
use crate::scheduler::counters::Counters;
use crate::scheduler::latency::Latency;
use crate::settings::policy::Pack;

fn nr_active(cpus: usize) -> usize {
    (cpus / 4).max(1)
}

fn cpu(rank: usize, cpus: usize, now_ns: u64) -> CpuStatus {
    CpuStatus {
        cpu: (rank % 2) * cpus / 2 + rank / 2,
        rank,
        active: rank < nr_active(cpus),
        isolated: false,
        online: rank + 2 != cpus,
        capacity: 1024,
        util: 0,
        perf_target: None,
        non_idle_pct: 0.0,
        busy_ns: match rank {
            0 => now_ns / 2,
            rank if rank == cpus - 1 => now_ns / 10,
            _ => 0,
        },
        waiting: u32::from(rank == 0) * 3,
        core: rank / 2,
        llc: rank / 32,
        package: rank / 64,
        node: 0,
    }
}

/// A machine of `cpus` CPUs, two a core, in caches of 32, two of these a package, after
/// `second` seconds: of the active ones (the first quarter) the first is busy for half of
/// the time, and the last surplus one for a tenth.
pub fn status(cpus: usize, second: u64) -> Status {
    let now_ns = second * 1_000_000_000;
    let mut counts = vec![0; 18];
    (counts[4], counts[6]) = (90 * second, 9 * second);
    Status {
        version: "0.1.0".into(),
        mode: "packing".into(),
        auto: false,
        reason: None,
        max_cores: cpus / 2,
        pack: Pack::All,
        fill_pct: 80,
        latency_budget_ms: 5,
        workloads: 0,
        ignored_cpu_max: vec![],
        limits: vec![],
        above_ceiling: vec![],
        energy_compared: vec![],
        ranks: vec![],
        uptime_s: second as f64,
        interval_s: 1.0,
        now_ns,
        enable_seq: Some(1),
        reloads: Default::default(),
        cpus: (0..cpus).map(|rank| cpu(rank, cpus, now_ns)).collect(),
        waiting: (0..cpus.div_ceil(32)).map(|llc| llc as u32 * 2).collect(),
        wake_latency: Latency { sum_ns: 0, counts },
        counters: Counters {
            active_cpus: nr_active(cpus) as u64,
            demand: 512,
            spill: 7 * second,
            ..Counters::default()
        },
    }
}

/// With fifty tasks.
pub fn sample(cpus: usize, second: u64) -> Sample {
    let task = |nr: u32| Task {
        pid: 1000 + nr,
        tgid: 1000,
        cpu: nr as usize % cpus,
        util: 1000 - nr,
        name: format!("task-{nr}"),
    };
    let tasks = (0..50).map(task).collect();
    Sample { status: status(cpus, second), tasks, machine: Machine::default() }
}
