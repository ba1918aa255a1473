//! The test VM beside its simulation: what `scripts/measure-reality` measured on the
//! real kernel in virtual time (sim/reality.toml), and the same in the simulator.

use anyhow::Result;
use powerpack_sim::{Machine, REALITY as MEASURED};
use powerpack_workload::Workload;
use serde::Deserialize;

use super::{head, notes, row, simulate};

#[derive(Deserialize)]
struct Measured {
    run: Vec<Run>,
}

/// One run on the real kernel.
#[derive(Deserialize)]
struct Run {
    machine: String,
    workload: String,
    mode: String,
    seconds: f64,
    /// By CPU.
    non_idle_pct: Vec<f64>,
    overruns: u64,
    longest_ms: f64,
}

pub fn print() -> Result<()> {
    let measured: Measured = toml::from_str(MEASURED)?;
    head(&[
        "machine",
        "load",
        "mode",
        "non-idle % of CPUs, fullest first: real",
        "simulated",
        "off by at most",
        "overruns: real",
        "simulated",
        "longest, ms: real",
        "simulated",
    ]);
    for run in measured.run {
        let (machine, workload) = (Machine::find(&run.machine)?, Workload::find(&run.workload)?);
        let outcome = simulate(&machine, &workload, run.seconds, &run.mode)?;
        let (real, simulated) = (sorted(&run.non_idle_pct), sorted(&outcome.non_idle_pct));
        let off = real.iter().zip(&simulated).map(|(real, simulated)| (real - simulated).abs());
        let longest = outcome.tasks.iter().map(|task| task.max_us).fold(0.0, f64::max) / 1e3;
        row([
            run.machine,
            run.workload,
            run.mode,
            list(&real),
            list(&simulated),
            format!("{:.1}", off.fold(0.0, f64::max)),
            run.overruns.to_string(),
            outcome.overruns.to_string(),
            format!("{:.1}", run.longest_ms),
            format!("{longest:.1}"),
        ]);
    }
    notes(&[
        "Fitted: how late a timer may be, to `light` in spread on vm4, to stairs-5 on vm8: the VM's \
         CPUs are emulated in turn.",
        "herd-N: all tasks wake at once. stairs-N: the same tasks, evenly apart in their period. \
         There it depends on less than a timer's lateness whether one finds the last one's CPU \
         idle: what is done is the same, and in packing by how many CPUs, but by which of them \
         is not (spread, and the two rows of packing where CPUs share a load).",
    ]);
    Ok(())
}

fn sorted(pct: &[f64]) -> Vec<f64> {
    let mut sorted = pct.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted
}

fn list(pct: &[f64]) -> String {
    pct.iter().map(|pct| format!("{pct:.1}")).collect::<Vec<_>>().join(" ")
}
