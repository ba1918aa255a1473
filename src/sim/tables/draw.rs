//! A machine and a load of a table of draws. Each is simulated in a process of its own: the scheduler's
//! variables are there once in each, so that its modes are simulated one after the other.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;
use serde::{Deserialize, Serialize};

use super::SETTLE_S;
use super::ratios::Ratios;
use crate::sim::system::Named;

/// As in the energy table, where loads that vary repeat their pattern (s).
const SECONDS: f64 = 5.0;
/// The kernel's, where it places by energy; elsewhere it is the same as without.
pub const BY_ENERGY: &str = "eas";

/// A table of machines that are drawn.
pub struct Drawn {
    pub table: &'static str,
    /// How many machines, each with another seed of its load.
    pub draws: usize,
    /// All that is compared on a machine.
    pub systems: fn(&Machine) -> Vec<String>,
    /// What is not in the names of the systems: `+GOVERNOR`, or nothing.
    pub governor: &'static str,
}

/// What came out. The same draws are of all systems: they differ in nothing else.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    pub machine: String,
    pub load: String,
    pub systems: Vec<String>,
    /// By system and draw: the logarithm of the energy for the same work.
    logs: Vec<Vec<f64>>,
    /// By system, of all draws.
    overruns: Vec<u64>,
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

    /// The overruns of a system in all draws; 0 if it was not simulated.
    pub fn overruns_of(&self, system: &str) -> u64 {
        let nth = self.systems.iter().position(|known| known == system);
        nth.map_or(0, |nth| self.overruns[nth])
    }

    /// "packing 3, eevdf 1": the overruns of all draws, of those systems that have any and that `shows`.
    pub fn overruns(&self, shows: impl Fn(&str) -> bool) -> String {
        let all = self.systems.iter().zip(&self.overruns);
        let shown = all.filter(|(system, overruns)| **overruns > 0 && shows(system));
        shown
            .map(|(system, overruns)| format!("{system} {overruns}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Drawn {
    /// Simulates all systems on each of `draws` machines. Fails if there is no such machine or load.
    pub fn simulate(&self, machine: &str, load: &str, draws: usize) -> Result<Case> {
        let (file, workload) = (Machine::find(machine)?, Workload::find(load)?);
        let systems = (self.systems)(&file);
        let mut logs = vec![Vec::new(); systems.len()];
        let mut overruns = vec![0; systems.len()];
        for seed in 1..=draws as u64 {
            let drawn = file.drawn(seed);
            for (nth, system) in systems.iter().enumerate() {
                let outcome = run(&drawn, &workload, seed, &format!("{system}{}", self.governor))
                    .with_context(|| {
                    format!("{system} under {load} on {machine}, draw {seed}")
                })?;
                logs[nth].push(outcome.mj_for_work().ln());
                overruns[nth] += outcome.overruns;
            }
        }
        Ok(Case { machine: machine.to_owned(), load: load.to_owned(), systems, logs, overruns })
    }

    /// As many at a time as there are CPUs, each in a process; in the order of `names`: machines and loads.
    pub fn simulate_all(&self, names: &[(&str, &str)]) -> Result<Vec<Case>> {
        let next = AtomicUsize::new(0);
        let worker = || -> Result<Vec<(usize, Case)>> {
            let mut found = Vec::new();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                let Some((machine, load)) = names.get(nth) else { return Ok(found) };
                found.push((nth, self.in_a_process(machine, load)?));
            }
        };
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let found: Result<Vec<_>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut cases: Vec<(usize, Case)> = found?.into_iter().flatten().collect();
        cases.sort_by_key(|(nth, _)| *nth);
        Ok(cases.into_iter().map(|(_, case)| case).collect())
    }

    fn in_a_process(&self, machine: &str, load: &str) -> Result<Case> {
        let program = env::current_exe().context("cannot find this program")?;
        let output =
            Command::new(program).args(["sim", "draw", self.table, machine, load]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{load} on {machine}: {}", said.trim());
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// `system` over `other` in the mean of those cases that have both, and how many these are.
pub fn over_all<'a>(
    cases: impl IntoIterator<Item = &'a Case>,
    system: &str,
    other: &str,
) -> Option<(Ratios, usize)> {
    let of_cases: Vec<Ratios> =
        cases.into_iter().filter_map(|case| case.over(system, other)).collect();
    Some((Ratios::mean_of(&of_cases)?, of_cases.len()))
}

fn run(machine: &Machine, load: &Workload, seed: u64, system: &str) -> Result<Outcome> {
    let setup = Setup { settle_s: SETTLE_S, ..Setup::new(machine, load, SECONDS, seed) };
    let system: Named = system.parse()?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}

#[cfg(test)]
mod tests {
    use super::super::draws::DRAWN;
    use super::*;

    #[test]
    fn a_case_is_the_same_each_time_and_survives_as_json() {
        let simulate = || DRAWN.simulate("chromebook2", "audio", 3).unwrap();
        let case = simulate();
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(text, serde_json::to_string(&simulate()).unwrap());
        let read: Case = serde_json::from_str(&text).unwrap();
        let over = |case: &Case| case.over("packing", "eevdf").unwrap().mean();
        assert_eq!(over(&read), over(&case));
        assert!(over(&case) < 1.0, "{}", over(&case));
    }

    #[test]
    fn overruns_are_shown_of_those_that_have_any() {
        let systems = ["packing", "energy", "eevdf"].map(str::to_owned).to_vec();
        let (machine, load, logs) = (String::new(), String::new(), Vec::new());
        let case = Case { machine, load, systems, logs, overruns: vec![3, 0, 1] };
        assert_eq!(case.overruns(|_| true), "packing 3, eevdf 1");
        assert_eq!(case.overruns(|system| system != "packing"), "eevdf 1");
        assert_eq!((case.overruns_of("packing"), case.overruns_of("3.9")), (3, 0));
    }
}
