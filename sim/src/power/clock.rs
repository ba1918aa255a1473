//! CPUs that share a clock, and its frequency.

use super::governor::{Governor, SCHEDFREQ_UP_US, State};
use super::pstate::{Counters, Range, by_pstate};
use crate::machine::Opp;

/// Of the highest frequency.
pub const FULL: u64 = 1024;

/// CPUs that share a clock.
pub struct Domain {
    pub cpus: Vec<usize>,
    opps: Vec<Opp>,
    /// Which of these are not chosen.
    skipped: Vec<bool>,
    /// What has been chosen,
    chosen: usize,
    /// the most that turbo allows,
    limit: usize,
    /// and what it runs at.
    current: usize,
    /// Its CPUs stand still until then, after a change (ns).
    pub(crate) stalled_until_ns: u64,
    /// How often it has changed its frequency.
    pub changes: u64,
    pub governor: Governor,
    pub(crate) state: State,
}

impl Domain {
    pub fn new(cpus: Vec<usize>, opps: Vec<Opp>, governor: Governor, rate_limit_us: f64) -> Self {
        let opps = if governor == Governor::IntelPstate { by_pstate(&opps) } else { opps };
        let chosen = if governor.begins_lowest() { 0 } else { opps.len().saturating_sub(1) };
        let rate_limit_us =
            if governor == Governor::Schedfreq { SCHEDFREQ_UP_US } else { rate_limit_us };
        let state = State::new((rate_limit_us * 1e3) as u64);
        let skipped = vec![false; opps.len()];
        Domain {
            cpus,
            skipped,
            chosen,
            limit: opps.len().saturating_sub(1),
            current: chosen,
            opps,
            stalled_until_ns: 0,
            changes: 0,
            governor,
            state,
        }
    }

    /// From now on no point is chosen that takes as much for the same work as a faster one does:
    /// em_cpufreq_update_efficiencies(), since Linux 5.16.
    pub fn skip_inefficient(&mut self) {
        let mut least = f64::INFINITY;
        for (opp, skipped) in self.opps.iter().zip(&mut self.skipped).rev() {
            let cost = opp.mw / f64::from(opp.mhz);
            *skipped = cost >= least;
            least = least.min(cost);
        }
    }

    /// The points that may be chosen, slowest first: MHz and mW.
    pub fn opps_chosen(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let chosen = self.opps.iter().zip(&self.skipped).filter(|(_, skipped)| !**skipped);
        chosen.map(|(opp, _)| (opp.mhz, opp.mw))
    }

    /// What it runs at over the highest one, 1..=1024.
    pub fn freq(&self) -> u64 {
        self.over_highest(self.current)
    }

    /// The same of what has been chosen.
    pub fn chosen_freq(&self) -> u64 {
        self.over_highest(self.chosen)
    }

    fn over_highest(&self, point: usize) -> u64 {
        match (self.opps.get(point), self.opps.last()) {
            (Some(opp), Some(last)) => u64::from(opp.mhz) * FULL / u64::from(last.mhz),
            _ => FULL,
        }
    }

    /// The current one (MHz), if the machine file has any.
    pub fn mhz(&self) -> Option<u32> {
        self.opps.get(self.current).map(|opp| opp.mhz)
    }

    /// Whether it has a choice, and a governor that makes it.
    pub fn scales(&self) -> bool {
        self.opps.len() > 1 && !matches!(self.governor, Governor::Performance | Governor::Powersave)
    }

    /// The lowest frequency over the highest, 0..=1.
    pub fn lowest(&self) -> f64 {
        match (self.opps.first(), self.opps.last()) {
            (Some(first), Some(last)) => f64::from(first.mhz) / f64::from(last.mhz),
            _ => 1.0,
        }
    }

    /// Of a core that runs without a pause (mW).
    pub fn power_mw(&self) -> f64 {
        self.opps.get(self.current).map_or(0.0, |opp| opp.mw)
    }

    /// Chooses the lowest frequency that is at least `wanted` of the highest one;
    /// whether that is another one.
    pub fn set(&mut self, wanted: f64) -> bool {
        let next = self.point_for(wanted);
        std::mem::replace(&mut self.chosen, next) != next
    }

    /// Whether `set` would choose another one than it has.
    pub(crate) fn would_change(&self, wanted: f64) -> bool {
        self.point_for(wanted) != self.chosen
    }

    fn point_for(&self, wanted: f64) -> usize {
        let Some(last) = self.opps.last() else { return self.chosen };
        let mhz = wanted * f64::from(last.mhz) - 1e-6;
        let fits = |(opp, skipped): (&Opp, &bool)| !skipped && f64::from(opp.mhz) >= mhz;
        let next = self.opps.iter().zip(&self.skipped).position(fits);
        next.unwrap_or(self.opps.len() - 1)
    }

    /// intel_pstate: `cpu`, of its own CPUs, has these counters now. What those that `vote`, and `cpu`,
    /// request, over the highest frequency: a clock follows the highest request.
    pub(crate) fn requested(
        &mut self,
        cpu: usize,
        now: Counters,
        vote: impl Fn(usize) -> bool,
    ) -> f64 {
        let (Some(first), Some(last)) = (self.opps.first(), self.opps.last()) else { return 1.0 };
        let range = Range::of_mhz(first.mhz, last.mhz);
        let pstates = &mut self.state.pstates;
        pstates.resize(self.cpus.len(), Default::default());
        let mut highest = 0;
        for (of, pstate) in self.cpus.iter().zip(pstates) {
            if *of == cpu {
                highest = highest.max(pstate.update(now, range));
            } else if vote(*of) {
                highest = highest.max(pstate.request());
            }
        }
        f64::from(highest) / f64::from(range.turbo)
    }

    /// The highest point that turbo allows, counted from the slowest.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The highest point up to `mhz`, counted from the slowest.
    pub(crate) fn point_up_to(&self, mhz: u32) -> usize {
        self.opps.iter().rposition(|opp| opp.mhz <= mhz).unwrap_or(0)
    }

    /// Turbo allows no point above that one from now on; whether it allowed another one before.
    pub(crate) fn set_limit(&mut self, limit: usize) -> bool {
        std::mem::replace(&mut self.limit, limit) != limit
    }

    /// What has been chosen, as far as turbo allows it.
    fn target(&self) -> usize {
        self.chosen.min(self.limit)
    }

    /// Whether what has been chosen needs a higher voltage than what it runs at.
    pub(crate) fn rises(&self) -> bool {
        self.target() > self.current
    }

    /// Runs at what has been chosen from now on; whether that is a change.
    pub(crate) fn switch(&mut self) -> bool {
        let target = self.target();
        let changed = std::mem::replace(&mut self.current, target) != target;
        self.changes += u64::from(changed);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_takes_more_for_the_same_work_is_skipped() {
        // 0.30, 0.20, 0.25, 0.30 mW for each MHz.
        let opps = [(100, 30.0), (200, 40.0), (300, 75.0), (400, 120.0)];
        let opps = opps.map(|(mhz, mw)| Opp { mhz, mw });
        let mut clock = Domain::new(vec![0], opps.to_vec(), Governor::Schedutil, 0.0);
        clock.set(0.1);
        assert!(clock.switch());
        assert_eq!(clock.mhz(), Some(100));
        clock.skip_inefficient();
        clock.set(0.1);
        assert!(clock.switch());
        assert_eq!(clock.mhz(), Some(200));
        assert_eq!(clock.opps_chosen().map(|(mhz, _)| mhz).collect::<Vec<_>>(), [200, 300, 400]);
    }
}
