//! ebizzy with 8 threads at each level of sched_mc on a dual-socket quad-core machine
//! ("Re: [RFC PATCH v1 0/3] Saving power by cpu evacuation using sched_mc=n", 27 April
//! 2009), relative to level 0; and our modes at as many cores.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, row, simulate};
use crate::published::{SchedMc, published};

const SECONDS: f64 = 30.0;
/// A core is used if it is busy for more than this (percent).
const USED_PCT: f64 = 1.0;

pub fn print() -> Result<()> {
    let (machine, workload) = (Machine::find("dual-quad")?, Workload::find("ebizzy-8")?);
    let run = |system: &str| simulate(&machine, &workload, SECONDS, system);
    let base = run("sched_mc=0")?;
    head(&[
        "system",
        "cores used: published",
        "simulated",
        "performance: published",
        "simulated",
        "power: published",
        "simulated",
    ]);
    for (level, &SchedMc { cores, performance, power }) in published().sched_mc.iter().enumerate() {
        let system = format!("sched_mc={level}");
        let outcome = run(&system)?;
        let published = [cores.to_string(), format!("{performance:.2}"), format!("{power:.2}")];
        print_row(system, &published, &base, &outcome);
    }
    let dash = ["-".to_owned(), "-".to_owned(), "-".to_owned()];
    for mode in modes() {
        for cores in [8, 7, 6, 4] {
            let system = if cores == 8 { mode.clone() } else { format!("{mode}@{cores}") };
            print_row(system.clone(), &dash, &base, &run(&system)?);
        }
    }
    notes(&[
        "Fitted to the row of sched_mc=5: the speed of threads that share data across packages, and \
         what the machine needs beside its processors.",
        "sched_mc=2 is off by a tenth: wakeups go to the first CPU of a half-idle package, also if \
         it is busy, and the balancer has to bring them back; that takes longer on the real machine.",
    ]);
    Ok(())
}

fn print_row(system: String, published: &[String; 3], base: &Outcome, outcome: &Outcome) {
    let used = outcome.non_idle_pct.iter().filter(|&&pct| pct > USED_PCT).count();
    let [cores, performance, power] = published.clone();
    row([
        system,
        cores,
        used.to_string(),
        performance,
        format!("{:.2}", outcome.throughput / base.throughput),
        power,
        format!("{:.2}", outcome.power_mw / base.power_mw),
    ]);
}
