//! `scx_powerpack sim table NAME`: the published tables made again, each number
//! beside the published one, and our modes below the systems that they come from.

mod ebizzy;
mod energy;
mod non_idle;
mod reality;
mod run_period;
mod sched_mc;

use anyhow::{Context, Result, bail};
use powerpack_sim::{Machine, Outcome, Setup, Workload};

use super::system::Named;
use crate::policy::Mode;

/// Of all tables, unless they say otherwise.
const SEED: u64 = 1;

/// A table by its name, and how it is made.
type Table = (&'static str, &'static str, fn() -> Result<()>);

const TABLES: [Table; 9] = [
    ("audio", "non-idle % of three CPUs, audio playback (2013)", non_idle::audio),
    ("web-audio", "the same, web pages rendered during audio playback", non_idle::web_audio),
    ("native8", "the same, eight threads that compute", non_idle::native8),
    ("cyclictest", "the same, short periodic tasks", non_idle::cyclictest),
    ("ebizzy", "what power-aware scheduling cost ebizzy (2013)", ebizzy::print),
    ("sched_mc", "performance and power at each level of sched_mc (2009)", sched_mc::print),
    ("run-period", "overruns and overhead of frequency governors (2016)", run_period::print),
    ("energy", "energy of our modes beside the best static placement", energy::print),
    ("reality", "the test VM's measured tables beside simulated ones", reality::print),
];

/// Prints table `name`, or the list of tables. Fails with a sentence if there is
/// no such table.
pub fn run(name: Option<&str>) -> Result<()> {
    let Some(name) = name else {
        TABLES.iter().for_each(|(name, about, _)| println!("{name:<12} {about}"));
        return Ok(());
    };
    match TABLES.iter().find(|(known, ..)| *known == name) {
        Some((_, _, print)) => print(),
        None => {
            let names = TABLES.map(|(name, ..)| name).join(", ");
            bail!("there is no table '{name}': choose one of {names}")
        }
    }
}

/// Simulates a system by its name.
fn simulate(machine: &Machine, workload: &Workload, seconds: f64, system: &str) -> Result<Outcome> {
    let setup = Setup::new(machine, workload, seconds, SEED);
    let system: Named = system.parse().with_context(|| format!("system {system}"))?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}

/// The names of our modes: a table grows with them by itself.
fn modes() -> impl Iterator<Item = String> {
    Mode::ALL.into_iter().map(|mode| mode.name().to_owned())
}

/// A row of a Markdown table.
fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

/// The head of one.
fn head(cells: &[&str]) {
    row(cells.iter().map(|cell| (*cell).to_owned()));
    row(cells.iter().map(|_| "---".to_owned()));
}
