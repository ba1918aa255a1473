//! CPUs that share a clock, and its frequency.

use super::governor::{Governor, State};
use crate::machine::Opp;

/// Of the highest frequency.
pub const FULL: u64 = 1024;

/// CPUs that share a clock.
pub struct Domain {
    pub cpus: Vec<usize>,
    opps: Vec<Opp>,
    current: usize,
    /// How often it has changed its frequency.
    pub changes: u64,
    pub governor: Governor,
    pub(crate) state: State,
}

impl Domain {
    pub fn new(cpus: Vec<usize>, opps: Vec<Opp>, governor: Governor, rate_limit_us: f64) -> Self {
        let current =
            if governor == Governor::Powersave { 0 } else { opps.len().saturating_sub(1) };
        let state = State::new((rate_limit_us * 1e3) as u64);
        Domain { cpus, opps, current, changes: 0, governor, state }
    }

    /// Over the highest one, 1..=1024.
    pub fn freq(&self) -> u64 {
        match (self.opps.get(self.current), self.opps.last()) {
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

    /// Sets the lowest frequency that is at least `wanted` of the highest one;
    /// whether that is another one.
    pub fn set(&mut self, wanted: f64) -> bool {
        let Some(last) = self.opps.last() else { return false };
        let mhz = wanted * f64::from(last.mhz) - 1e-6;
        let next = self.opps.iter().position(|opp| f64::from(opp.mhz) >= mhz);
        let next = next.unwrap_or(self.opps.len() - 1);
        let changed = next != self.current;
        self.current = next;
        self.changes += u64::from(changed);
        changed
    }
}
