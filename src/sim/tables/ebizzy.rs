//! ebizzy on a 2-socket, 16-core, SMT4 Power machine under power-aware scheduling
//! v7, powersaving ("Re: [patch v7 0/21] sched: power aware scheduling", 17 May 2013):
//! A, B, C are the drops of power efficiency, performance and power, relative to the
//! scheduler without the patch.

use anyhow::Result;
use powerpack_sim::Machine;
use powerpack_workload::Workload;

use super::{head, modes, notes, off_cell, row, simulate};
use crate::published::{Ebizzy, published};

/// "Each of the above run is for 30s."
const SECONDS: f64 = 30.0;

/// Earlier systems: "powersaving" and "balance" of v7, "powersaving" by capacity as the mail asks for it,
/// and the last tree.
const EARLIER: [&str; 4] = ["pas-v7", "pas-v7-balance", "pas-v7-capacity", "pas-final"];

const NOTES: [&str; 5] = [
    "Fitted: the speed of a thread beside others of its core, to the performance of 2 threads under an \
     earlier model of pas-v7. What the machine takes is an estimate.",
    "2, 4, 8: how many share a core is decided where threads are started, and at each wake-up by what runs then. How long \
     ebizzy's threads run before they wait is an estimate, and so is what starting one takes: with half or twice \
     of the one, or 3 ms for the other, 4 and 8 threads lose up to 10 points more or less. Two threads are at times put \
     on one thread of a core, which has room for a task while what runs there has not filled it.",
    "pas-v7 counts threads (group_weight), and fills a core's four before the next; so would \
     any that takes a second thread of a core for a CPU.",
    "By capacity the mail has nearly nothing lost, and tasks on both sockets. Here threads stay on the core on which \
     they were started: a single task that runs is not pushed to an idle core (active balance is not in the model).",
    "That \"balance\" packs tasks below an eighth of a CPU is from memory.",
];

pub fn print() -> Result<()> {
    let machine = Machine::find("power7")?;
    let systems: Vec<String> = EARLIER.map(str::to_owned).into_iter().chain(modes()).collect();
    let mut cells = vec!["threads", "published: A B C"];
    cells.extend(systems.iter().map(String::as_str));
    cells.push("pas-v7 off by at most");
    head(&cells);
    for of_mail in &published().ebizzy {
        let &Ebizzy { threads, efficiency, performance, power } = of_mail;
        let mut cells =
            vec![threads.to_string(), format!("{efficiency:.0} {performance:.0} {power:.0}")];
        let drops = |system: &String| drops_pct(&machine, threads, system);
        let drops = systems.iter().map(drops).collect::<Result<Vec<_>>>()?;
        // Not "-0".
        let three = |pct: &[f64; 3]| pct.map(|pct| (pct.round() + 0.0).to_string()).join(" ");
        cells.extend(drops.iter().map(three));
        cells.push(off_cell(off_by(of_mail, &drops[0]), &threads.to_string(), &NOTES));
        row(cells);
    }
    notes(&NOTES);
    Ok(())
}

/// A, B, C of a system, in percent; what has grown is below zero.
fn drops_pct(machine: &Machine, threads: usize, system: &str) -> Result<[f64; 3]> {
    let workload = Workload::find(&format!("ebizzy-{threads}"))?;
    let run = |system: &str| simulate(machine, &workload, SECONDS, system);
    let (base, outcome) = (run("3.9")?, run(system)?);
    let drop = |base: f64, now: f64| (1.0 - now / base) * 100.0;
    Ok([
        drop(base.throughput / base.power_mw, outcome.throughput / outcome.power_mw),
        drop(base.throughput, outcome.throughput),
        drop(base.power_mw, outcome.power_mw),
    ])
}

fn off_by(of_mail: &Ebizzy, drops_pct: &[f64; 3]) -> f64 {
    let published = [of_mail.efficiency, of_mail.performance, of_mail.power];
    published.iter().zip(drops_pct).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// How far pas-v7 is off in each row.
#[cfg(test)]
pub(super) fn offs() -> Result<super::Offs> {
    let machine = Machine::find("power7")?;
    let of = |row: &Ebizzy| {
        let drops = drops_pct(&machine, row.threads, EARLIER[0])?;
        Ok((row.threads.to_string(), off_by(row, &drops)))
    };
    Ok(("ebizzy", published().ebizzy.iter().map(of).collect::<Result<_>>()?, &NOTES))
}
