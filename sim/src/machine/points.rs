//! What a CPU takes, and what is awake because it is.

use super::{Machine, MachineCpu, Uncore};

/// How long a lightly loaded machine is idle at a time, in the mean (us): a unit whose idle state
/// pays only after longer is awake whatever its CPUs do. An estimate.
const IDLE_MEAN_US: f64 = 5000.0;

impl Machine {
    /// The working points of `cpu`, slowest first: speed (above 0 and up to 1, of its highest), and
    /// power beyond what it takes when idle (mW).
    pub fn working_points(&self, cpu: &MachineCpu) -> Vec<(f64, f64)> {
        let core = self.core_of(cpu);
        let idle_mw = core.idle.last().map_or(0.0, |state| state.mw);
        let highest = core.opps.last().map_or(1.0, |opp| f64::from(opp.mhz));
        core.opps
            .iter()
            .map(|opp| (f64::from(opp.mhz) / highest, (opp.mw - idle_mw).max(0.0)))
            .collect()
    }

    /// How long `cpu` takes to leave the deepest idle state that saves it anything (us).
    pub fn exit_us(&self, cpu: &MachineCpu) -> f64 {
        // The shallowest of those that take the least.
        let deepest = self.core_of(cpu).idle.iter().min_by(|a, b| a.mw.total_cmp(&b.mw));
        deepest.map_or(0.0, |state| state.exit_us)
    }

    /// What its LLC and its package take more because `cpu` is awake, if it is the only one (mW).
    pub fn kept_awake_mw(&self, cpu: &MachineCpu) -> f64 {
        kept_awake_mw(&self.uncore_of_llc(cpu.llc)) + kept_awake_mw(&self.package)
    }
}

/// The saving of its best idle state in those idle times, exponentially distributed, in which it
/// pays.
fn kept_awake_mw(unit: &Uncore) -> f64 {
    let saved = unit
        .idle
        .iter()
        .map(|state| (unit.active_mw - state.mw) * (-state.residency_us / IDLE_MEAN_US).exp());
    saved.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_sleeps_only_after_long_is_not_kept_awake_by_a_cpu() {
        let machine = |name| Machine::find(name).unwrap();
        let kept = |machine: &Machine| machine.kept_awake_mw(&machine.cpus()[0]);
        // 36 mW after 3 ms, 56 mW after 6.1 ms.
        assert_eq!(kept(&machine("chromebook2")).round(), 20.0);
        assert_eq!(kept(&machine("phone")).round(), 16.0);
        assert_eq!(kept(&machine("vm4")).round(), 100.0, "it sleeps at once");
    }

    #[test]
    fn a_deeper_state_that_saves_nothing_is_not_waited_for() {
        let exit_us = |machine: Machine| machine.exit_us(&machine.cpus()[0]);
        assert_eq!(exit_us(Machine::find("chromebook2").unwrap()), 500.0);
        assert_eq!(exit_us(Machine::find("tc2-a7").unwrap()), 1.0, "WFI, not cluster-sleep");
    }
}
