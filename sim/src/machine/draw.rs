//! A machine whose figures are as uncertain as they are: most are estimates.

use super::{Core, IdleState, Machine, Opp, Uncore};

/// What a figure may be beside the one in the file: it and its inverse, evenly in the logarithm.
/// Powers of idle states and latencies that are published for one part differ by as much between
/// parts of one series.
const FACTOR: f64 = 1.5;

/// Draws factors.
struct Draw(fastrand::Rng);

impl Draw {
    fn factor(&mut self) -> f64 {
        FACTOR.powf(2.0 * self.0.f64() - 1.0)
    }

    /// One factor for each column, so that deeper states stay deeper.
    fn idle(&mut self, states: &mut [IdleState]) {
        let (residency, exit, power) = (self.factor(), self.factor(), self.factor());
        for state in states {
            state.residency_us *= residency;
            state.exit_us *= exit;
            state.mw *= power;
        }
    }

    /// All by one factor, and what a higher frequency takes more by another one.
    fn opps(&mut self, opps: &mut [Opp]) {
        let Some(first) = opps.first().map(|opp| opp.mw) else { return };
        let (all, more) = (self.factor(), self.factor());
        for opp in opps {
            opp.mw = all * (first + (opp.mw - first) * more);
        }
    }

    fn core(&mut self, core: &mut Core) {
        self.opps(&mut core.opps);
        self.idle(&mut core.idle);
    }

    fn uncore(&mut self, active_mw: &mut f64, idle: &mut [IdleState]) {
        // What it takes asleep stays below what it takes awake.
        let awake = self.factor();
        *active_mw *= awake;
        self.idle(idle);
        idle.iter_mut().for_each(|state| state.mw = state.mw.min(*active_mw));
    }
}

impl Machine {
    /// The machine with figures of power, idle states and costs drawn at random around those in
    /// its file, the same for the same `seed`.
    pub fn drawn(&self, seed: u64) -> Machine {
        let mut machine = self.clone();
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        machine.core.values_mut().for_each(|core| draw.core(core));
        for llc in &mut machine.llc {
            draw.uncore(&mut llc.active_mw, &mut llc.idle);
        }
        let Uncore { active_mw, idle } = &mut machine.package;
        draw.uncore(active_mw, idle);
        let costs = &mut machine.costs;
        for cost in [
            &mut costs.switch_us,
            &mut costs.wake_us,
            &mut costs.migrate_us,
            &mut costs.migrate_far_us,
            &mut costs.idle_us,
            &mut costs.irq_us,
        ] {
            *cost *= draw.factor();
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_another_machine_that_is_valid_and_the_same_each_time() {
        let machine = Machine::find("hybrid-laptop").unwrap();
        let text = |seed| format!("{:?}", machine.drawn(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
        for seed in 1..200 {
            let drawn = machine.drawn(seed);
            drawn.core.values().for_each(|core| core.check().unwrap());
            let far = |is: f64, was: f64| is < was / FACTOR - 1e-9 || is > was * FACTOR + 1e-9;
            assert!(!far(drawn.package.active_mw, machine.package.active_mw));
        }
    }
}
