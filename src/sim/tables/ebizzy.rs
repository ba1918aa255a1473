//! ebizzy on a 2-socket, 16-core, SMT4 Power machine under power-aware scheduling
//! v7, powersaving ("Re: [patch v7 0/21] sched: power aware scheduling", 17 May 2013):
//! A, B, C are the drops of power efficiency, performance and power, relative to the
//! scheduler without the patch.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, row, simulate};
use crate::published::{Ebizzy, published};

/// "Each of the above run is for 30s."
const SECONDS: f64 = 30.0;

pub fn print() -> Result<()> {
    let machine = Machine::find("power7")?;
    let systems = ["pas-v7".to_owned(), "pas-v7-capacity".to_owned()].into_iter().chain(modes());
    let systems: Vec<String> = systems.collect();
    let mut cells = vec!["threads".to_owned(), "published: A B C".to_owned()];
    cells.extend(systems.iter().cloned());
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    for &Ebizzy { threads, efficiency, performance, power } in &published().ebizzy {
        let workload = Workload::find(&format!("ebizzy-{threads}"))?;
        let base = simulate(&machine, &workload, SECONDS, "3.9")?;
        let drops_pct = format!("{efficiency:.0} {performance:.0} {power:.0}");
        let mut cells = vec![threads.to_string(), drops_pct];
        for system in &systems {
            cells.push(drops(&base, &simulate(&machine, &workload, SECONDS, system)?));
        }
        row(cells);
    }
    notes(&[
        "Fitted: the speed of a thread beside others of its core, to the performance of 2 threads.",
        "pas-v7 counts threads (group_weight), and fills a core's four before the next; so would \
         any that takes a second thread of a core for a CPU.",
    ]);
    Ok(())
}

/// A, B, C, in percent; what has grown is below zero.
fn drops(base: &Outcome, outcome: &Outcome) -> String {
    let drop = |base: f64, now: f64| (1.0 - now / base) * 100.0;
    let performance = drop(base.throughput, outcome.throughput);
    let power = drop(base.power_mw, outcome.power_mw);
    let efficiency = drop(base.throughput / base.power_mw, outcome.throughput / outcome.power_mw);
    // Not "-0".
    let round = |pct: f64| pct.round() + 0.0;
    format!("{} {} {}", round(efficiency), round(performance), round(power))
}
