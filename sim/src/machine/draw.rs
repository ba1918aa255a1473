//! A machine whose figures are as uncertain as they are: most are estimates.

use super::{Core, IdleState, Machine, Opp, Uncore, ranges::Ranges};

/// Draws factors.
struct Draw {
    random: fastrand::Rng,
    ranges: Ranges,
}

impl Draw {
    /// Between 1 / `range` and `range`, evenly in the logarithm.
    fn factor(&mut self, range: f64) -> f64 {
        range.powf(2.0 * self.random.f64() - 1.0)
    }

    /// One factor for each column, so that deeper states stay deeper.
    fn idle(&mut self, states: &mut [IdleState]) {
        let Ranges { idle_us, idle_mw, .. } = self.ranges;
        let (residency, exit) = (self.factor(idle_us), self.factor(idle_us));
        let power = self.factor(idle_mw);
        for state in states {
            state.residency_us *= residency;
            state.exit_us *= exit;
            state.mw *= power;
        }
    }

    /// All by one factor, and what a higher frequency takes more by another one.
    fn opps(&mut self, opps: &mut [Opp]) {
        let Some(first) = opps.first().map(|opp| opp.mw) else { return };
        let (all, more) = (self.factor(self.ranges.core_mw), self.factor(self.ranges.core_mw));
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
        let awake = self.factor(self.ranges.uncore_mw);
        *active_mw *= awake;
        self.idle(idle);
        idle.iter_mut().for_each(|state| state.mw = state.mw.min(*active_mw));
    }

    fn entering(&mut self, states: &mut [IdleState]) {
        let factor = self.factor(self.ranges.idle_mw);
        states.iter_mut().for_each(|state| state.enter_uj *= factor);
    }
}

impl Machine {
    /// The machine with figures of power, idle states and costs drawn at random from their ranges,
    /// the same for the same `seed`.
    pub fn drawn(&self, seed: u64) -> Machine {
        let mut machine = self.clone();
        let mut draw = Draw { random: fastrand::Rng::with_seed(seed), ranges: self.ranges };
        machine.core.values_mut().for_each(|core| draw.core(core));
        for llc in &mut machine.llc {
            draw.uncore(&mut llc.active_mw, &mut llc.idle);
        }
        let Uncore { active_mw, idle } = &mut machine.package;
        draw.uncore(active_mw, idle);
        for cost in machine.costs.drawn() {
            *cost *= draw.factor(self.ranges.costs);
        }
        machine.core.values_mut().for_each(|core| draw.entering(&mut core.idle));
        machine.llc.iter_mut().for_each(|llc| draw.entering(&mut llc.idle));
        draw.entering(&mut machine.package.idle);
        for interrupt in &mut machine.interrupt {
            interrupt.busy_us *= draw.factor(self.ranges.costs);
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
            assert!(is_near(drawn.package.active_mw, machine.package.active_mw, 1.5));
        }
    }

    /// Up to rounding.
    fn is_near(is: f64, was: f64, factor: f64) -> bool {
        is > was / factor * 0.999_999 && is < was * factor * 1.000_001
    }

    #[test]
    fn a_figure_is_as_far_from_the_files_as_this_says() {
        let text = "name = 'x'\nabout = ''\n[costs]\nhz = 250\nswitch_us = 1\nwake_us = 1\n\
                    freq_change_us = 10\nfreq_change_uj = 5\n[ranges]\ncosts = 3\nuncore_mw = 1\n\
                    [package]\nactive_mw = 700\nidle = [{ name = 'off', residency_us = 9, \
                    exit_us = 3, mw = 100, enter_uj = 40 }]\n[[llc]]\ncores = 1\n";
        let machine = Machine::parse(text).unwrap();
        let (mut widest, mut entered) = (1.0_f64, Vec::new());
        for seed in 0..200 {
            let drawn = machine.drawn(seed);
            assert_eq!(drawn.package.active_mw, 700.0);
            assert!(is_near(drawn.costs.freq_change_us, 10.0, 3.0));
            assert!(is_near(drawn.costs.freq_change_uj, 5.0, 3.0));
            widest = widest.max(drawn.costs.freq_change_us / 10.0);
            assert!(is_near(drawn.package.idle[0].enter_uj, 40.0, 1.5));
            entered.push(drawn.package.idle[0].enter_uj);
        }
        assert!(widest > 2.5 && entered.iter().any(|&uj| uj != 40.0), "{widest}, {entered:?}");
    }
}
