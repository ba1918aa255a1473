//! Frequency governors, as models written from their published descriptions.

use anyhow::{Context, Error, bail};
use serde::Deserialize;

use super::clock::{Domain, FULL};
use super::pstate::{EPP_DEFAULT, EPP_PERIOD_NS, Pstate, epp_remember, epp_wanted};

/// What chooses the frequency.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
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
    /// The scheduler's own of 2016 (RFC v7 of 23 February), which schedutil replaced: an approximation.
    Schedfreq,
    /// intel_pstate's `powersave` in active mode without HWP.
    IntelPstate,
    /// The firmware in the active modes of intel_pstate (with HWP) and amd_pstate, a model: by its
    /// energy/performance preference, 0..=255. `None`: the one that goes with the scheduler.
    Epp(Option<u8>),
}

/// schedutil asks for a quarter more than is used (map_util_perf()); schedfreq too, from memory.
pub const HEADROOM: f64 = 1.25;
/// schedfreq raises a frequency this long after the last change, and lowers it this long after that: its
/// port to Android, kernel/sched/cpufreq_sched.c of common at 0aa38d2da60f.
pub const SCHEDFREQ_UP_US: f64 = 500.0;
const SCHEDFREQ_DOWN_NS: u64 = 50_000_000;
/// Alone, or with `=` and the preference.
const EPP_NAME: &str = "epp";
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
    pub const ALL: [(&str, Governor); 9] = [
        ("performance", Governor::Performance),
        ("powersave", Governor::Powersave),
        ("ondemand", Governor::Ondemand),
        ("interactive", Governor::Interactive),
        ("schedutil", Governor::Schedutil),
        ("schedutil-raw", Governor::SchedutilRaw),
        ("schedfreq", Governor::Schedfreq),
        ("intel-pstate", Governor::IntelPstate),
        (EPP_NAME, Governor::Epp(None)),
    ];

    /// Whatever the preference, if it has one.
    pub fn name(self) -> &'static str {
        let same = |(_, other): &&(&str, Governor)| {
            std::mem::discriminant(other) == std::mem::discriminant(&self)
        };
        Self::ALL.iter().find(same).map_or("", |(name, _)| name)
    }

    /// Whether a machine that has done nothing yet is at its lowest frequency.
    pub fn begins_lowest(self) -> bool {
        matches!(self, Governor::Powersave | Governor::IntelPstate | Governor::Epp(_))
    }

    /// Whether the scheduler asks it as utilization changes.
    pub fn follows(self) -> bool {
        matches!(self, Governor::Schedutil | Governor::SchedutilRaw | Governor::Schedfreq)
    }

    /// The time between two looks (ns), of those that look from time to time.
    pub fn period_ns(self) -> Option<u64> {
        match self {
            Governor::Ondemand => Some(ONDEMAND_PERIOD_NS),
            Governor::Interactive => Some(INTERACTIVE_PERIOD_NS),
            Governor::Epp(_) => Some(EPP_PERIOD_NS),
            _ => None,
        }
    }
}

impl std::str::FromStr for Governor {
    type Err = Error;

    /// Also `epp=N`. Fails with a sentence that lists them.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((EPP_NAME, epp)) = text.split_once('=') {
            let epp = epp.parse().with_context(|| format!("'{epp}' is no EPP: 0..255"))?;
            return Ok(Governor::Epp(Some(epp)));
        }
        match Self::ALL.iter().find(|(name, _)| *name == text) {
            Some((_, governor)) => Ok(*governor),
            None => bail!(
                "there is no frequency governor '{text}': choose one of {}",
                Self::ALL.map(|(name, _)| name).join(", ")
            ),
        }
    }
}

impl TryFrom<String> for Governor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
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
    /// EPP: by CPU the share of time in which it is busy.
    shares: Vec<f64>,
    /// intel_pstate: by CPU.
    pub(super) pstates: Vec<Pstate>,
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
            shares: Vec::new(),
            pstates: Vec::new(),
        }
    }

    /// schedutil and schedfreq: whether they may look again.
    pub fn may_change(&self, now_ns: u64) -> bool {
        self.is_past(now_ns, self.rate_limit_ns)
    }

    /// Whether the last change is `wait_ns` ago.
    fn is_past(&self, now_ns: u64, wait_ns: u64) -> bool {
        self.changed_ns.is_none_or(|changed_ns| now_ns - changed_ns >= wait_ns)
    }
}

impl Domain {
    /// schedutil and schedfreq: `util` is the highest of the domain's CPUs, 0..=1 of their capacity.
    /// It falls only if it `may_fall`. Whether it has chosen another frequency.
    pub fn follow(&mut self, util: f64, may_fall: bool, now_ns: u64) -> bool {
        let wanted = HEADROOM * util;
        let rises = wanted * FULL as f64 > self.chosen_freq() as f64;
        let throttled =
            self.governor == Governor::Schedfreq && !self.state.is_past(now_ns, SCHEDFREQ_DOWN_NS);
        let changed = (may_fall && !throttled || rises) && self.set(wanted);
        if changed {
            self.state.changed_ns = Some(now_ns);
        }
        changed
    }

    /// Whether `util`, as in `follow`, leaves less than a quarter of itself unused at this frequency.
    pub fn lacks_headroom(&self, util: f64) -> bool {
        HEADROOM * util * FULL as f64 > self.freq() as f64
    }

    /// Those that look from time to time: each CPU was busy for its one of `loads`, 0..=1, of the last
    /// `passed_ns`. Whether it has chosen another frequency.
    pub fn look(&mut self, loads: &[f64], passed_ns: u64, now_ns: u64) -> bool {
        if let Governor::Epp(epp) = self.governor {
            return self.look_by_epp(epp.unwrap_or(EPP_DEFAULT), loads, passed_ns);
        }
        self.look_by_load(loads.iter().copied().fold(0.0, f64::max), now_ns)
    }

    /// The highest frequency that any CPU wants: a clock follows the highest request (a model).
    fn look_by_epp(&mut self, epp: u8, loads: &[f64], passed_ns: u64) -> bool {
        let shares = &mut self.state.shares;
        shares.resize(loads.len(), 0.0);
        for (share, load) in shares.iter_mut().zip(loads) {
            *share = epp_remember(*share, *load, passed_ns);
        }
        let busiest = shares.iter().copied().fold(0.0, f64::max);
        self.set(epp_wanted(busiest, epp))
    }

    /// ondemand and interactive: the busiest CPU was busy for `load` of the time.
    fn look_by_load(&mut self, load: f64, now_ns: u64) -> bool {
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
    fn schedfreq_rises_soon_and_falls_late() {
        let mut schedfreq = domain(Governor::Schedfreq);
        assert!(schedfreq.follow(0.5, true, 0) && schedfreq.switch());
        assert!(!schedfreq.state.may_change(499_999) && schedfreq.state.may_change(500_000));
        assert!(schedfreq.follow(0.7, true, 500_000));
        assert!(!schedfreq.follow(0.1, true, 50_400_000), "it has risen less than 50 ms ago");
        assert!(schedfreq.follow(0.1, true, 50_500_000) && schedfreq.switch());
        assert_eq!(schedfreq.mhz(), Some(400), "250 MHz, at the next point");
    }

    #[test]
    fn ondemand_jumps_and_interactive_holds() {
        let mut ondemand = domain(Governor::Ondemand);
        assert!(ondemand.look(&[0.1], 0, 0) && ondemand.switch());
        assert_eq!(ondemand.mhz(), Some(400));
        assert!(ondemand.look(&[0.5, 0.96], 0, 0) && ondemand.switch());
        assert_eq!(ondemand.mhz(), Some(2000));
        let mut interactive = domain(Governor::Interactive);
        interactive.look(&[1.0], 0, 100_000_000);
        assert!(!interactive.look(&[0.0], 0, 179_000_000));
        assert!(interactive.look(&[0.0], 0, 180_000_000) && interactive.switch());
        assert_eq!(interactive.mhz(), Some(200));
    }

    #[test]
    fn firmware_follows_the_busiest_cpu_of_its_clock() {
        let mut firmware = domain(Governor::Epp(Some(128)));
        // 15 ms are a half-life: 0.4 of the time, and a quarter more.
        assert!(firmware.look(&[0.1, 0.8], 15_000_000, 0) && firmware.switch());
        assert_eq!(firmware.mhz(), Some(1200), "1000 MHz, at the next point");
        assert!(firmware.look(&[0.1, 0.0], 30_000_000, 0) && firmware.switch());
        assert_eq!(firmware.mhz(), Some(400), "0.1 of the time: 250 MHz, at the next point");
    }

    #[test]
    fn a_preference_is_named_with_its_governor() {
        for (text, epp) in [("epp", None), ("epp=0", Some(0)), ("epp=192", Some(192))] {
            let governor: Governor = text.parse().unwrap();
            assert_eq!((governor, governor.name()), (Governor::Epp(epp), "epp"));
        }
        for wrong in ["epp=256", "epp=", "epp=power"] {
            let text = wrong.parse::<Governor>().unwrap_err().to_string();
            assert!(text.ends_with("is no EPP: 0..255"), "{text}");
        }
    }
}
