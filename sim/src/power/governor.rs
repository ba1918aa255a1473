//! Frequency governors, as models written from their published descriptions.

use anyhow::{Error, bail};
use serde::Deserialize;

use super::clock::{Domain, FULL};

/// What chooses the frequency.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Governor {
    Performance,
    Powersave,
    Ondemand,
    Interactive,
    /// As the scheduler's utilization or target says, scaled by frequency.
    #[default]
    Schedutil,
    /// The same where the kernel does not know the frequency, as first posted in 2016.
    SchedutilRaw,
}

/// schedutil asks for a quarter more than is used (map_util_perf()).
pub const HEADROOM: f64 = 1.25;
/// ondemand looks every 10 ms, and above this share of it goes to the highest
/// frequency (MICRO_FREQUENCY_UP_THRESHOLD).
const ONDEMAND_PERIOD_NS: u64 = 10_000_000;
const ONDEMAND_UP: f64 = 0.95;
/// interactive (Android's): every 20 ms; from this load on the highest frequency;
/// else so that the load would be 90 %; a higher one is kept for 80 ms.
const INTERACTIVE_PERIOD_NS: u64 = 20_000_000;
const INTERACTIVE_HIGH: f64 = 0.99;
const INTERACTIVE_TARGET: f64 = 0.90;
const INTERACTIVE_HOLD_NS: u64 = 80_000_000;

impl Governor {
    pub const ALL: [(&str, Governor); 6] = [
        ("performance", Governor::Performance),
        ("powersave", Governor::Powersave),
        ("ondemand", Governor::Ondemand),
        ("interactive", Governor::Interactive),
        ("schedutil", Governor::Schedutil),
        ("schedutil-raw", Governor::SchedutilRaw),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, governor)| *governor == self).map_or("", |(name, _)| name)
    }

    /// The time between two looks (ns), of those that look from time to time.
    pub fn period_ns(self) -> Option<u64> {
        match self {
            Governor::Ondemand => Some(ONDEMAND_PERIOD_NS),
            Governor::Interactive => Some(INTERACTIVE_PERIOD_NS),
            _ => None,
        }
    }
}

impl std::str::FromStr for Governor {
    type Err = Error;

    /// Fails with a sentence that lists them.
    fn from_str(text: &str) -> Result<Self, Error> {
        match Self::ALL.iter().find(|(name, _)| *name == text) {
            Some((_, governor)) => Ok(*governor),
            None => bail!(
                "there is no frequency governor '{text}': choose one of {}",
                Self::ALL.map(|(name, _)| name).join(", ")
            ),
        }
    }
}

/// What a governor remembers of its domain.
#[derive(Clone, Debug)]
pub struct State {
    rate_limit_ns: u64,
    changed_ns: Option<u64>,
    /// The last look: when, and by CPU the time it had been busy (ns).
    pub looked_ns: u64,
    pub busy_ns: Vec<u64>,
    /// A look is planned.
    pub armed: bool,
    raised_ns: u64,
}

impl State {
    pub fn new(rate_limit_ns: u64) -> Self {
        State {
            rate_limit_ns,
            changed_ns: None,
            looked_ns: 0,
            busy_ns: Vec::new(),
            armed: false,
            raised_ns: 0,
        }
    }

    /// schedutil: whether it may look again.
    pub fn may_change(&self, now_ns: u64) -> bool {
        self.changed_ns.is_none_or(|changed_ns| now_ns - changed_ns >= self.rate_limit_ns)
    }
}

impl Domain {
    /// schedutil: `util` is the highest of the domain's CPUs, 0..=1 of their capacity.
    /// It falls only if it `may_fall`. Whether it has chosen another frequency.
    pub fn follow(&mut self, util: f64, may_fall: bool, now_ns: u64) -> bool {
        let wanted = HEADROOM * util;
        let rises = wanted * FULL as f64 > self.chosen_freq() as f64;
        let changed = (may_fall || rises) && self.set(wanted);
        if changed {
            self.state.changed_ns = Some(now_ns);
        }
        changed
    }

    /// ondemand and interactive: the busiest CPU was busy for `load` of the time.
    /// Whether it has chosen another frequency.
    pub fn look(&mut self, load: f64, now_ns: u64) -> bool {
        let current = self.freq() as f64 / FULL as f64;
        let wanted = match self.governor {
            Governor::Ondemand if load > ONDEMAND_UP => 1.0,
            Governor::Ondemand => self.lowest() + load * (1.0 - self.lowest()),
            _ if load >= INTERACTIVE_HIGH => 1.0,
            _ => load * current / INTERACTIVE_TARGET,
        };
        let holds = self.governor == Governor::Interactive;
        if holds && wanted < current && now_ns - self.state.raised_ns < INTERACTIVE_HOLD_NS {
            return false;
        }
        if wanted >= current {
            self.state.raised_ns = now_ns;
        }
        self.set(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Opp;

    fn domain(governor: Governor) -> Domain {
        let opps = [200, 400, 800, 1200, 1600, 2000];
        let opps = opps.map(|mhz| Opp { mhz, mw: f64::from(mhz) });
        Domain::new(vec![0], opps.to_vec(), governor, 1000.0)
    }

    #[test]
    fn schedutil_follows_with_headroom_and_not_too_often() {
        let mut schedutil = domain(Governor::Schedutil);
        assert!(schedutil.follow(0.5, true, 0) && schedutil.switch());
        assert_eq!(schedutil.mhz(), Some(1600), "1250 MHz, at the next point");
        assert!(!schedutil.state.may_change(999_999) && schedutil.state.may_change(1_000_000));
        assert!(!schedutil.follow(0.1, false, 2_000_000), "it has not been idle");
        assert!(schedutil.follow(0.7, false, 2_000_000), "but it may rise");
    }

    #[test]
    fn ondemand_jumps_and_interactive_holds() {
        let mut ondemand = domain(Governor::Ondemand);
        assert!(ondemand.look(0.1, 0) && ondemand.switch());
        assert_eq!(ondemand.mhz(), Some(400));
        assert!(ondemand.look(0.96, 0) && ondemand.switch());
        assert_eq!(ondemand.mhz(), Some(2000));
        let mut interactive = domain(Governor::Interactive);
        interactive.look(1.0, 100_000_000);
        assert!(!interactive.look(0.0, 179_000_000));
        assert!(interactive.look(0.0, 180_000_000) && interactive.switch());
        assert_eq!(interactive.mhz(), Some(200));
    }
}
