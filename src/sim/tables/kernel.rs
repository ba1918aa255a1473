//! The kernel's own class in the laboratory (docs/powerlab.md), which places by energy there, beside
//! its model: what `scripts/measure-reality` measured (sim/reality.toml), and the same in the
//! simulator.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};

use super::reality::{BACKGROUND, KERNEL, NEAR_PCT, Run, background_mw, measured, simulated};
use super::run_period::overhead_pct;
use super::{head, notes, row, simulate_settled};

pub fn print() -> Result<()> {
    head(&[
        "machine",
        "load",
        "power, mW: laboratory",
        "simulated, with the background",
        "off by, %",
        "changes of frequency a second: laboratory",
        "simulated",
        "overruns: laboratory",
        "simulated",
        "overhead (OH), %: laboratory",
        "simulated",
    ]);
    let runs: Vec<Run> = measured(true)?.into_iter().filter(|run| run.mode == KERNEL).collect();
    let mut near = Vec::new();
    for run in runs.iter().filter(|run| run.workload != BACKGROUND) {
        near.push(print_row(&runs, run)?.abs() <= NEAR_PCT);
    }
    println!(
        "\nPower is within {NEAR_PCT} % in {} of {} rows.",
        near.iter().filter(|near| **near).count(),
        near.len()
    );
    notes(&[
        "The background is what next to no load needs beside its simulation. A load with CPUs is one \
         periodic task on these, and OH is between `performance` (0) and `powersave` (100).",
    ]);
    Ok(())
}

/// By how much power is off (%).
fn print_row(runs: &[Run], run: &Run) -> Result<f64> {
    let outcome = simulated(run)?;
    let (real_mw, mw) = (run.power_mw.unwrap_or(0.0), outcome.power_mw + background_mw(runs, run)?);
    let off_pct = (mw / real_mw - 1.0) * 100.0;
    let load = match &run.cpus {
        Some(cpus) => format!("{} on {cpus}", run.workload),
        None => run.workload.clone(),
    };
    let figure = |figure: Option<f64>| figure.map_or(String::new(), |value| format!("{value:.1}"));
    row([
        run.machine.clone(),
        load,
        format!("{real_mw:.1}"),
        format!("{mw:.1}"),
        format!("{off_pct:+.1}"),
        figure(run.frequency_changes_per_s),
        format!("{:.1}", outcome.frequency_changes as f64 / outcome.seconds),
        run.overruns.to_string(),
        outcome.overruns.to_string(),
        figure(run.overhead_pct),
        figure(run.overhead_pct.map(|_| overhead(run, &outcome)).transpose()?),
    ]);
    Ok(off_pct)
}

/// Of the load in the simulator (%).
fn overhead(run: &Run, outcome: &Outcome) -> Result<f64> {
    let (machine, workload) = (Machine::find(&run.machine)?, run.workload()?);
    let governed = |governor: &str| {
        let system = format!("{}+{governor}", run.mode);
        simulate_settled(&machine.clone().in_laboratory(), &workload, run.seconds, &system)
    };
    Ok(overhead_pct(outcome, &governed("performance")?, &governed("powersave")?))
}
