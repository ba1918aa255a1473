//! Which idle state a CPU chooses: models of the kernel's menu and teo
//! (drivers/cpuidle/governors/), from their published descriptions.

use crate::machine::{IdleGovernor, IdleState};

/// As many intervals as menu looks at (INTERVALS in menu.c).
const INTERVALS: usize = 8;
/// What teo adds for an event, and how fast it forgets: an eighth each time.
const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
/// menu trusts an average this much longer than its deviation, or this close (us).
const MENU_RATIO: f64 = 6.0;
const MENU_DEVIATION_US: f64 = 20.0;

/// What is known of a CPU's idle periods.
#[derive(Clone, Debug)]
pub struct Predictor {
    governor: IdleGovernor,
    /// teo: by state, timers that were waited for, and wakeups before them.
    hits: Vec<u32>,
    intercepts: Vec<u32>,
    /// menu: the last intervals (us), and the next to be replaced.
    recent_us: [f64; INTERVALS],
    next: usize,
}

/// The deepest state whose residency fits; the shallowest if none does.
fn deepest(states: &[IdleState], length_us: f64) -> usize {
    states.iter().rposition(|state| state.residency_us <= length_us).unwrap_or(0)
}

impl Predictor {
    pub fn new(governor: IdleGovernor, states: usize) -> Self {
        Predictor {
            governor,
            hits: vec![0; states],
            intercepts: vec![0; states],
            recent_us: [f64::INFINITY; INTERVALS],
            next: 0,
        }
    }

    /// The state for an idle period that ends with a timer in `timer_ns` at the
    /// latest, and whether it is a guess: then the tick goes on.
    pub fn select(&self, states: &[IdleState], timer_ns: u64) -> (usize, bool) {
        if states.is_empty() {
            return (0, false);
        }
        let by_timer = deepest(states, timer_ns as f64 / 1e3);
        let state = match self.governor {
            IdleGovernor::Teo => self.teo(by_timer),
            IdleGovernor::Menu => by_timer.min(deepest(states, self.typical_us())),
        };
        (state, state < by_timer)
    }

    /// Shallower than the timer allows if most of the recent wakeups came earlier:
    /// the deepest state that half of those would have been long enough for.
    fn teo(&self, by_timer: usize) -> usize {
        let early: u32 = self.intercepts[..by_timer].iter().sum();
        let all: u32 = self.hits.iter().chain(&self.intercepts).sum();
        if 2 * early <= all {
            return by_timer;
        }
        let mut sum = 0;
        for state in (0..by_timer).rev() {
            sum += self.intercepts[state];
            if 2 * sum >= early {
                return state;
            }
        }
        0
    }

    /// get_typical_interval(): the average of the last intervals, without the
    /// longest of them while they differ too much.
    fn typical_us(&self) -> f64 {
        let mut sorted = self.recent_us;
        sorted.sort_by(f64::total_cmp);
        for kept in (INTERVALS * 3 / 4..=INTERVALS).rev() {
            let some = &sorted[..kept];
            let mean = some.iter().sum::<f64>() / kept as f64;
            let variance = some.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / kept as f64;
            let deviation = variance.sqrt();
            if deviation <= MENU_DEVIATION_US || mean > MENU_RATIO * deviation {
                return mean;
            }
        }
        f64::INFINITY
    }

    /// A period of `idle_ns` has ended that a timer would have ended at `timer_ns`.
    pub fn reflect(&mut self, states: &[IdleState], idle_ns: u64, timer_ns: u64) {
        if states.is_empty() {
            return;
        }
        let idle_us = idle_ns as f64 / 1e3;
        self.recent_us[self.next] = idle_us;
        self.next = (self.next + 1) % INTERVALS;
        for bin in self.hits.iter_mut().chain(&mut self.intercepts) {
            *bin -= *bin >> DECAY_SHIFT;
        }
        let (was, planned) = (deepest(states, idle_us), deepest(states, timer_ns as f64 / 1e3));
        if was >= planned {
            self.hits[planned] += PULSE;
        } else {
            self.intercepts[was] += PULSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<IdleState> {
        let state = |name: &str, residency_us| IdleState {
            name: name.into(),
            residency_us,
            exit_us: residency_us / 3.0,
            mw: 100.0 - residency_us / 10.0,
            enter_uj: 0.0,
        };
        vec![state("C1", 1.0), state("C6", 600.0)]
    }

    #[test]
    fn both_learn_that_a_cpu_is_woken_before_its_timer() {
        for governor in [IdleGovernor::Menu, IdleGovernor::Teo] {
            let mut cpu = Predictor::new(governor, 2);
            assert_eq!(cpu.select(&states(), 10_000_000), (1, false), "{governor:?}");
            for _ in 0..20 {
                cpu.reflect(&states(), 100_000, 10_000_000);
            }
            assert_eq!(cpu.select(&states(), 10_000_000), (0, true), "{governor:?}");
            for _ in 0..20 {
                cpu.reflect(&states(), 9_999_000, 10_000_000);
            }
            assert_eq!(cpu.select(&states(), 10_000_000), (1, false), "{governor:?}");
        }
    }
}
