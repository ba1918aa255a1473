//! Our modes beside the kernel's own class: energy for the same work, in the geometric mean.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};

use super::{head, modes, row};
use crate::sim::system::KERNEL;

/// The kernel's own class by name.
pub fn kernel() -> impl Iterator<Item = String> {
    KERNEL.into_iter().map(|(name, _)| name.to_owned())
}

/// Energy for a second's work of the fastest CPU (mJ): what is late and therefore left out is not
/// saved.
pub fn mj_for_work(outcome: &Outcome) -> f64 {
    outcome.power_mw / outcome.throughput
}

/// The geometric mean of ratios whose logarithms have the sum `sum`.
pub fn geometric(sum: f64, nr: usize) -> f64 {
    (sum / nr as f64).exp()
}

/// Energy for the same work, and overruns, of systems over many cases.
pub struct Means {
    systems: Vec<String>,
    /// Of each case: whether a kernel places by energy there, and by system the logarithm of energy.
    cases: Vec<(bool, Vec<f64>)>,
    overruns: Vec<u64>,
}

impl Means {
    /// Of our modes and the kernel's own class.
    pub fn new() -> Self {
        let systems: Vec<String> = modes().chain(kernel()).collect();
        Means { overruns: vec![0; systems.len()], systems, cases: Vec::new() }
    }

    /// One more case; `outcome` runs a system by its name. Fails if that does.
    pub fn add(
        &mut self,
        machine: &Machine,
        outcome: impl Fn(&str) -> Result<Outcome>,
    ) -> Result<()> {
        let mut logs = Vec::new();
        for (system, overruns) in self.systems.iter().zip(&mut self.overruns) {
            let outcome = outcome(system)?;
            logs.push(mj_for_work(&outcome).ln());
            *overruns += outcome.overruns;
        }
        self.cases.push((machine.has_energy_model(), logs));
        Ok(())
    }

    /// Energy of the nth system over the other one's, in the geometric mean.
    fn over(&self, nth: usize, other: usize, only_by_energy: bool) -> f64 {
        let cases = self.cases.iter().filter(|(by_energy, _)| *by_energy || !only_by_energy);
        let logs: Vec<f64> = cases.map(|(_, logs)| logs[nth] - logs[other]).collect();
        geometric(logs.iter().sum(), logs.len())
    }

    /// A row for each system.
    pub fn print(&self) {
        let find = |name: &str| self.systems.iter().position(|system| system == name);
        let others: Vec<usize> = kernel().filter_map(|name| find(&name)).collect();
        let mut cells = vec!["energy for the same work, geometric mean".to_owned()];
        let by_energy = self.cases.iter().filter(|(by_energy, _)| *by_energy).count();
        for (only, nr) in [(false, self.cases.len()), (true, by_energy)] {
            let of = if only { "with several kinds of cores" } else { "cases" };
            cells
                .extend(others.iter().map(|&nth| format!("over {}, {nr} {of}", self.systems[nth])));
        }
        cells.push("overruns".into());
        head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
        for (nth, system) in self.systems.iter().enumerate() {
            let mut cells = vec![system.clone()];
            for only in [false, true] {
                let over = others.iter().map(|&other| self.over(nth, other, only));
                cells.extend(over.map(|ratio| format!("{ratio:.3}")));
            }
            cells.push(self.overruns[nth].to_string());
            row(cells);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_for_the_same_work_and_means_are_geometric() {
        let outcome = |power_mw, throughput| Outcome { power_mw, throughput, ..Outcome::default() };
        assert_eq!(mj_for_work(&outcome(300.0, 0.5)), 600.0);
        let mut means = Means::new();
        let eevdf = means.systems.iter().position(|system| system == "eevdf").unwrap();
        // Four times, and then the same, on a machine with one kind of cores and on one with two;
        // half of the work is not half of the energy.
        for (machine, power_mw) in [("vm4", 400.0), ("chromebook2", 100.0)] {
            let run = |system: &str| match system {
                "eevdf" => Ok(outcome(50.0, 0.5)),
                _ => Ok(outcome(power_mw, 1.0)),
            };
            means.add(&Machine::find(machine).unwrap(), run).unwrap();
        }
        assert!((means.over(0, eevdf, false) - 2.0).abs() < 1e-9);
        assert!((means.over(0, eevdf, true) - 1.0).abs() < 1e-9);
    }
}
