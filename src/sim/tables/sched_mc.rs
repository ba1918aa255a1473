//! ebizzy with 8 threads at each level of sched_mc on a dual-socket quad-core machine
//! ("Re: [RFC PATCH v1 0/3] Saving power by cpu evacuation using sched_mc=n", 27 April
//! 2009), relative to level 0; and our modes at as many cores.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, off_cell, row, simulate};
use crate::published::{SchedMc, published};

const SECONDS: f64 = 30.0;
/// A core is used if it is busy for more than this (percent).
const USED_PCT: f64 = 1.0;

const NOTES: [&str; 4] = [
    "Fitted to the row of sched_mc=5: the speed of threads that share data across packages, and \
     what the machine needs beside its processors.",
    "Cores used: those that were busy for more than 1 %. At levels 3 to 5 no core is forbidden: a \
     package takes a further task on an idle core while fewer of its cores work than the user wants used; no code of \
     them was found, and this is an approximation.",
    "sched_mc=2, sched_mc=3, sched_mc=4: what wakes while its CPU and the waker's are idle goes to the first CPU of the \
     package that is filled, also if that is busy, and idle CPUs have to pull it from there. How much that costs depends on \
     how often threads wait, an estimate (waits that are half as long and twice as often cost \
     half as much again), and on how soon a CPU that becomes idle pulls: without that nearly all stay on one.",
    "Level 2 here does not push the single running task of a package to another (active balance).",
];

pub fn print() -> Result<()> {
    let table = Table::new()?;
    head(&[
        "system",
        "cores used: published",
        "simulated",
        "performance: published",
        "simulated",
        "power: published",
        "simulated",
        "off by at most, points",
    ]);
    for (level, of_mail) in published().sched_mc.iter().enumerate() {
        table.print_row(format!("sched_mc={level}"), Some(of_mail))?;
    }
    for mode in modes() {
        for cores in [8, 7, 6, 4] {
            let system = if cores == 8 { mode.clone() } else { format!("{mode}@{cores}") };
            table.print_row(system, None)?;
        }
    }
    notes(&NOTES);
    Ok(())
}

struct Table {
    machine: Machine,
    workload: Workload,
    /// At level 0.
    base: Outcome,
}

impl Table {
    fn new() -> Result<Self> {
        let (machine, workload) = (Machine::find("dual-quad")?, Workload::find("ebizzy-8")?);
        let base = simulate(&machine, &workload, SECONDS, "sched_mc=0")?;
        Ok(Table { machine, workload, base })
    }

    fn run(&self, system: &str) -> Result<SchedMc> {
        let outcome = simulate(&self.machine, &self.workload, SECONDS, system)?;
        Ok(SchedMc {
            cores: outcome.non_idle_pct.iter().filter(|&&pct| pct > USED_PCT).count(),
            performance: outcome.throughput / self.base.throughput,
            power: outcome.power_mw / self.base.power_mw,
        })
    }

    fn print_row(&self, system: String, of_mail: Option<&SchedMc>) -> Result<()> {
        let simulated = self.run(&system)?;
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let off = of_mail.map(|row| off_cell(off_by(row, &simulated), &system, &NOTES));
        row([
            system,
            or_dash(of_mail.map(|row| row.cores.to_string())),
            simulated.cores.to_string(),
            or_dash(of_mail.map(|row| format!("{:.2}", row.performance))),
            format!("{:.2}", simulated.performance),
            or_dash(of_mail.map(|row| format!("{:.2}", row.power))),
            format!("{:.2}", simulated.power),
            or_dash(off),
        ]);
        Ok(())
    }
}

/// In hundredths of level 0; a core more or less is an eighth of them.
fn off_by(of_mail: &SchedMc, simulated: &SchedMc) -> f64 {
    let cores = of_mail.cores.abs_diff(simulated.cores) as f64 / 8.0;
    let performance = (of_mail.performance - simulated.performance).abs();
    let power = (of_mail.power - simulated.power).abs();
    cores.max(performance).max(power) * 100.0
}

/// How far each level is off.
#[cfg(test)]
pub(super) fn offs() -> Result<super::Offs> {
    let table = Table::new()?;
    let of = |(level, row): (usize, &SchedMc)| {
        let name = format!("sched_mc={level}");
        let off = off_by(row, &table.run(&name)?);
        Ok((name, off))
    };
    let rows = published().sched_mc.iter().enumerate().map(of).collect::<Result<_>>()?;
    Ok(("sched_mc", rows, &NOTES))
}
