//! Our modes beside the kernel's own class in the geometric mean: energy for the same work, and power.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};

use super::{head, modes, row};
use crate::sim::system::KERNEL;

/// The kernel's own class by name.
pub fn kernel() -> impl Iterator<Item = String> {
    KERNEL.into_iter().map(|(name, _)| name.to_owned())
}

/// The geometric mean of ratios whose logarithms have the sum `sum`.
pub fn geometric(sum: f64, nr: usize) -> f64 {
    (sum / nr as f64).exp()
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Normalised {
    /// Energy for the same work.
    ByWork,
    /// Power: energy in the same time.
    ByTime,
}

/// A machine and a load.
struct Case {
    /// Whether a kernel places by energy there.
    by_energy: bool,
    /// By system: the logarithms of energy for the same work, and of power.
    logs: Vec<(f64, f64)>,
}

/// Energy for the same work, power, and overruns, of systems over many cases.
pub struct Means {
    systems: Vec<String>,
    cases: Vec<Case>,
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
            logs.push((outcome.mj_for_work().ln(), outcome.power_mw.ln()));
            *overruns += outcome.overruns;
        }
        self.cases.push(Case { by_energy: machine.has_energy_model(), logs });
        Ok(())
    }

    /// The nth system's over the other one's, in the geometric mean.
    fn over(&self, nth: usize, other: usize, only_by_energy: bool, what: Normalised) -> f64 {
        let cases = self.cases.iter().filter(|case| case.by_energy || !only_by_energy);
        let of = |log: (f64, f64)| if what == Normalised::ByWork { log.0 } else { log.1 };
        let logs: Vec<f64> = cases.map(|case| of(case.logs[nth]) - of(case.logs[other])).collect();
        geometric(logs.iter().sum(), logs.len())
    }

    /// A row for each system.
    pub fn print(&self) {
        let find = |name: &str| self.systems.iter().position(|system| system == name);
        let others: Vec<usize> = kernel().filter_map(|name| find(&name)).collect();
        let by_energy = self.cases.iter().filter(|case| case.by_energy).count();
        let groups =
            [(false, self.cases.len(), "cases"), (true, by_energy, "with several kinds of cores")];
        let of = |what| groups.iter().map(move |group| (what, group));
        let columns: Vec<_> = of(Normalised::ByWork).chain(of(Normalised::ByTime)).collect();
        let mut cells = vec!["geometric mean".to_owned()];
        for (what, (_, nr, kind)) in &columns {
            let what = match what {
                Normalised::ByWork => "energy for the same work",
                Normalised::ByTime => "power",
            };
            let over = others.iter().map(|&nth| &self.systems[nth]);
            cells.extend(over.map(|other| format!("{what} over {other}, {nr} {kind}")));
        }
        cells.push("overruns".into());
        head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
        for (nth, system) in self.systems.iter().enumerate() {
            let mut cells = vec![system.clone()];
            for (what, (only, ..)) in &columns {
                let over = others.iter().map(|&other| self.over(nth, other, *only, *what));
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
        assert_eq!(outcome(300.0, 0.5).mj_for_work(), 600.0);
        assert_eq!(outcome(250.0, 0.5).work_per_j(), 2.0);
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
        let over = |only, what| means.over(0, eevdf, only, what);
        assert!((over(false, Normalised::ByWork) - 2.0).abs() < 1e-9);
        assert!((over(true, Normalised::ByWork) - 1.0).abs() < 1e-9);
        assert!((over(false, Normalised::ByTime) - 4.0).abs() < 1e-9);
    }
}
