//! What `scx_powerpack sim` prints.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome, TaskOutcome};
use powerpack_workload::Workload;

use super::system::{Named, rank};

/// More CPUs than this are not listed one by one.
const CPUS_LISTED: usize = 16;
/// A CPU is used if it is busy for more than this (percent).
const USED_PCT: f64 = 1.0;

/// One row for each system, then what each kind of task saw of it. `work/s` is the work
/// done in a second, in seconds of the fastest CPU.
pub fn print(machine: &Machine, workload: &Workload, rows: &[(Named, Outcome)]) -> Result<()> {
    let ranks = rank(machine)?;
    let width = rows.iter().map(|(system, _)| system.to_string().len()).max().unwrap_or(0).max(8);
    println!(
        "{:<width$} {:>8} {:>9} {:>5} {:>7} {:>9} {:>9} {:>8} {:>11}  non-idle % of each CPU, by rank",
        "system",
        "total %",
        "beyond %",
        "used",
        "work/s",
        "switch/s",
        "migrat/s",
        "overruns",
        "longest us"
    );
    for (system, outcome) in rows {
        let by_rank: Vec<f64> =
            ranks.cpus().iter().map(|cpu| outcome.non_idle_pct[cpu.cpu]).collect();
        let longest = outcome.tasks.iter().map(|task| task.max_us).fold(0.0, f64::max);
        let seconds = outcome.seconds;
        println!(
            "{system:<width$} {:>8.1} {:>9.3} {:>5} {:>7.3} {:>9.0} {:>9.0} {:>8} {longest:>11.0}  {}",
            by_rank.iter().sum::<f64>(),
            outcome.beyond_busiest_pct,
            by_rank.iter().filter(|&&pct| pct > USED_PCT).count(),
            outcome.throughput,
            outcome.switches as f64 / seconds,
            outcome.migrations as f64 / seconds,
            outcome.overruns,
            list(&by_rank),
        );
    }
    print_energy(rows, width);
    print_tasks(workload, rows, width);
    println!("\n{} events", rows.iter().map(|(_, outcome)| outcome.events).sum::<u64>());
    Ok(())
}

fn list(by_rank: &[f64]) -> String {
    let listed = by_rank.iter().take(CPUS_LISTED).map(|pct| format!("{pct:.1}"));
    let more = if by_rank.len() > CPUS_LISTED { " .." } else { "" };
    format!("{}{more}", listed.collect::<Vec<_>>().join(" "))
}

/// Where the machine file says what things need: power is normalised by time, work/J by what was done (as
/// `work/s`, in seconds of the fastest CPU).
fn print_energy(rows: &[(Named, Outcome)], width: usize) {
    if rows.iter().all(|(_, outcome)| outcome.energy.total_mj() == 0.0) {
        return;
    }
    println!(
        "\n{:<width$} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}  share of time awake, then in each idle state, %: cores | LLCs and packages",
        "system", "mean W", "work/J", "cores J", "LLCs J", "pack. J", "all J", "freq/s"
    );
    for (system, outcome) in rows {
        let energy = outcome.energy;
        let states =
            |pct: &[f64]| pct.iter().map(|pct| format!("{pct:.1}")).collect::<Vec<_>>().join(" ");
        println!(
            "{system:<width$} {:>10.3} {:>9.4} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>8.1}  {} | {}",
            outcome.power_mw / 1e3,
            outcome.work_per_j(),
            energy.cores_mj / 1e3,
            energy.llcs_mj / 1e3,
            energy.packages_mj / 1e3,
            energy.total_mj() / 1e3,
            outcome.frequency_changes as f64 / outcome.seconds,
            states(&outcome.core_states_pct),
            states(&outcome.uncore_states_pct),
        );
    }
}

fn print_tasks(workload: &Workload, rows: &[(Named, Outcome)], width: usize) {
    let kinds = workload.kinds();
    println!(
        "\n{:<width$} {:<14} {:>9} {:>10} {:>10} {:>10} {:>11}",
        "system", "tasks", "runs", "mean us", "p99 us", "longest", "delay"
    );
    for (system, outcome) in rows {
        for (kind, task) in kinds.iter().zip(&outcome.tasks) {
            print_task(&system.to_string(), kind, task, width);
        }
    }
}

fn print_task(system: &str, kind: &str, task: &TaskOutcome, width: usize) {
    if task.activations == 0 {
        return;
    }
    println!(
        "{system:<width$} {kind:<14} {:>9} {:>10.0} {:>10.0} {:>10.0} {:>11.0}",
        task.activations, task.mean_us, task.p99_us, task.max_us, task.max_delay_us
    );
}
