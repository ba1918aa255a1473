//! A machine and a load of the table of draws. Each is simulated in a process of its own: the scheduler's
//! variables are there once in each, so that its modes are simulated one after the other.

use anyhow::{Context, Result};
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;
use serde::{Deserialize, Serialize};

use super::SETTLE_S;
use super::means::kernel;
use super::ratios::Ratios;
use crate::settings::policy::Mode;
use crate::sim::system::Named;

/// How many machines, each with another seed of its load.
pub const DRAWS: usize = 200;
/// As in the energy table, where loads that vary repeat their pattern (s).
const SECONDS: f64 = 5.0;
/// An earlier fair class, whose energy is shown too, beside the kernel's own of today.
pub const EARLIER: &str = "3.9";
/// The kernel's, where it places by energy; elsewhere it is the same as without.
pub const BY_ENERGY: &str = "eas";

/// What came out. The same draws are of all systems: they differ in nothing else.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    pub machine: String,
    pub load: String,
    pub systems: Vec<String>,
    /// By system and draw: the logarithm of the energy for the same work.
    logs: Vec<Vec<f64>>,
    /// By system, of all draws.
    pub overruns: Vec<u64>,
}

impl Case {
    /// Energy of one system over that of another in each draw; `None` if one of them was not simulated.
    pub fn over(&self, system: &str, other: &str) -> Option<Ratios> {
        let logs = |name: &str| {
            self.systems
                .iter()
                .zip(&self.logs)
                .find(|(known, _)| *known == name)
                .map(|(_, logs)| logs)
        };
        let both = logs(system)?.iter().zip(logs(other)?);
        Some(Ratios::of(both.map(|(of, other)| of - other).collect()))
    }
}

/// All that is compared on `machine`, our modes first.
fn systems(machine: &Machine) -> Vec<String> {
    let modes = Mode::ALL.into_iter().map(|mode| mode.name().to_owned());
    let there = |name: &String| name != BY_ENERGY || machine.has_energy_model();
    modes.chain([EARLIER.to_owned()]).chain(kernel().filter(there)).collect()
}

/// Simulates all systems on each of `draws` machines. Fails if there is no such machine or load.
pub fn simulate(machine: &str, load: &str, draws: usize) -> Result<Case> {
    let (file, workload) = (Machine::find(machine)?, Workload::find(load)?);
    let systems = systems(&file);
    let mut logs = vec![Vec::new(); systems.len()];
    let mut overruns = vec![0; systems.len()];
    for seed in 1..=draws as u64 {
        let drawn = file.drawn(seed);
        for (nth, system) in systems.iter().enumerate() {
            let outcome = run(&drawn, &workload, seed, system)
                .with_context(|| format!("{system} under {load} on {machine}, draw {seed}"))?;
            logs[nth].push(outcome.mj_for_work().ln());
            overruns[nth] += outcome.overruns;
        }
    }
    Ok(Case { machine: machine.to_owned(), load: load.to_owned(), systems, logs, overruns })
}

fn run(machine: &Machine, load: &Workload, seed: u64, system: &str) -> Result<Outcome> {
    let setup = Setup { settle_s: SETTLE_S, ..Setup::new(machine, load, SECONDS, seed) };
    let system: Named = format!("{system}+schedutil").parse()?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_same_each_time_and_survives_as_json() {
        let case = simulate("chromebook2", "audio", 3).unwrap();
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(
            text,
            serde_json::to_string(&simulate("chromebook2", "audio", 3).unwrap()).unwrap()
        );
        let read: Case = serde_json::from_str(&text).unwrap();
        let over = |case: &Case| case.over("packing", "eevdf").unwrap().mean();
        assert_eq!(over(&read), over(&case));
        assert!(over(&case) < 1.0, "{}", over(&case));
    }

    #[test]
    fn a_kernel_that_places_by_energy_is_compared_where_there_is_one() {
        let there = |name| systems(&Machine::find(name).unwrap()).contains(&BY_ENERGY.to_owned());
        assert!(there("phone") && !there("handheld"));
    }
}
