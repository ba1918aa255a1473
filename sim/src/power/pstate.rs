//! Frequencies that the scheduler does not request: intel_pstate and amd_pstate in their active modes.
//! Without hardware-managed P-states intel_pstate has a rule of its own, which is here as it is in the
//! kernel. With them (HWP, and amd-pstate-epp) the processor's firmware chooses, and all that it is given is
//! the energy/performance preference (EPP); its rule is not published, and what is here is a model.

use crate::machine::Opp;
use crate::power::FULL;

/// intel_pstate samples a CPU no more often (INTEL_PSTATE_SAMPLING_INTERVAL).
const SAMPLING_NS: u64 = 10_000_000;
/// Its fractions have as many bits (FRAC_BITS).
const FRACTION_BITS: u32 = 8;
/// What a P-state is, of the processors called "core" there.
const PSTATE_MHZ: u32 = 100;

/// The firmware looks every millisecond: Intel's own figure for Speed Shift, beside 20 to 30 ms where the
/// operating system chooses (anandtech.com/show/9751). AMD's Zen 2 takes up requests as often (Schöne et
/// al., arXiv:2108.00808).
pub const EPP_PERIOD_NS: u64 = 1_000_000;
/// Half of what it has seen is forgotten after this time. Fitted: from idle to the highest frequency it
/// takes 35 ms, Intel's figure at the same place.
const EPP_HALF_LIFE_NS: f64 = 15_000_000.0;
/// A CPU that is never idle runs at this EPP over its own of the highest frequency. Assumed: at 128 a
/// quarter more than the share of time in which it is busy, as in intel_pstate's own rule, and in proportion
/// to EPP. So up to 160 the highest frequency is reached, as it is at 128 (the kernel's commit
/// b6e6f8beec98, which has 102 for the laptops of Alder Lake); beyond it is clipped.
const EPP_SCALE: f64 = 160.0;

/// `HWP_EPP_*` of the kernel's msr-index.h, by their names in sysfs. amd_pstate has 191 for `balance_power`.
const EPP_NAMES: [(&str, u8); 4] =
    [("performance", 0), ("balance_performance", 128), ("balance_power", 192), ("power", 255)];
/// What firmware and distributions set.
pub const EPP_DEFAULT: u8 = 128;

/// The EPP that sysfs calls `name`, 0..=255; `None`: it has no such name.
pub fn epp_of(name: &str) -> Option<u8> {
    EPP_NAMES.iter().find(|(known, _)| *known == name).map(|(_, epp)| *epp)
}

/// All P-states from the first of `opps` to the last: one between two of them takes what is on the line
/// between. (At the next point above what is requested a CPU would never be slower than half-way to it.)
pub fn by_pstate(opps: &[Opp]) -> Vec<Opp> {
    let mut all = Vec::new();
    for pair in opps.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let slope = (high.mw - low.mw) / f64::from(high.mhz - low.mhz);
        let between = (low.mhz / PSTATE_MHZ + 1..).map(|nr| nr * PSTATE_MHZ);
        let between = between.take_while(|&mhz| mhz < high.mhz);
        all.push(low);
        all.extend(between.map(|mhz| Opp { mhz, mw: low.mw + slope * f64::from(mhz - low.mhz) }));
    }
    all.extend(opps.last());
    all
}

/// Counters of a CPU, as the registers that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time (ns): TSC.
    pub now_ns: u64,
    /// Time in which it was busy (ns): MPERF.
    pub busy_ns: u64,
    /// The same, each ns times the frequency, 1024 = the highest: APERF.
    pub busy_freq: u64,
}

/// What intel_pstate keeps of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pstate {
    sampled: Option<Counters>,
    /// The P-state that it has requested last.
    request: u32,
}

/// The lowest and the highest P-state of a clock; turbo is among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub min: u32,
    pub turbo: u32,
}

impl Range {
    /// Of operating points from `min_mhz` to `max_mhz`.
    pub fn of_mhz(min_mhz: u32, max_mhz: u32) -> Self {
        Range { min: min_mhz / PSTATE_MHZ, turbo: max_mhz / PSTATE_MHZ }
    }
}

impl Pstate {
    /// intel_pstate_update_util(): samples the CPU if that is due. The P-state that it requests from then on.
    pub fn update(&mut self, now: Counters, range: Range) -> u32 {
        let Some(last) = self.sampled else {
            // It has been idle until now, and was sampled then.
            self.sampled = Some(now);
            self.request = range.min;
            return self.request;
        };
        if now.now_ns - last.now_ns >= SAMPLING_NS && now.busy_ns > last.busy_ns {
            self.sampled = Some(now);
            self.request = target(last, now, range);
        }
        self.request
    }

    /// The P-state that it has requested last; 0: none yet.
    pub fn request(&self) -> u32 {
        self.request
    }
}

/// get_target_pstate() and intel_pstate_prepare_request(), Linux 6.12: a quarter more than the share of
/// time in which it was busy, of the highest P-state, and half-way back to the average of the time in
/// which it was busy, if that was more. In integers, as there. Nothing waits for I/O in the simulator, for
/// which there would be a boost.
fn target(last: Counters, now: Counters, range: Range) -> u32 {
    let (passed_ns, busy_ns) = (now.now_ns - last.now_ns, now.busy_ns - last.busy_ns);
    let busy = (busy_ns << FRACTION_BITS) / passed_ns;
    let target = (u64::from(range.turbo + range.turbo / 4) * busy) >> FRACTION_BITS;
    let target = target.max(u64::from(range.min));
    let average = u64::from(range.turbo) * (now.busy_freq - last.busy_freq) / (busy_ns * FULL);
    let target = target + average.saturating_sub(target) / 2;
    target.min(u64::from(range.turbo)) as u32
}

/// The share of time in which a CPU is busy, 0..=1, as the firmware remembers it: it was `share`, and in
/// the last `passed_ns` it was `busy`.
pub fn epp_remember(share: f64, busy: f64, passed_ns: u64) -> f64 {
    busy + (share - busy) * (-(passed_ns as f64) / EPP_HALF_LIFE_NS).exp2()
}

/// The frequency over the highest one, 0..=1, that the firmware chooses at `epp`, 0..=255, for a CPU that is
/// busy for `share` of the time.
pub fn epp_wanted(share: f64, epp: u8) -> f64 {
    match epp {
        0 => 1.0,
        _ => (share * EPP_SCALE / f64::from(epp)).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RANGE: Range = Range { min: 8, turbo: 40 };

    fn at(ms: u64, busy_ms: u64, freq: u64) -> Counters {
        Counters { now_ns: ms * MS, busy_ns: busy_ms * MS, busy_freq: busy_ms * MS * freq }
    }

    /// A CPU that has been sampled once, at the beginning.
    fn sampled() -> Pstate {
        let mut pstate = Pstate::default();
        assert_eq!(pstate.update(at(0, 0, 0), RANGE), 8, "it was idle");
        pstate
    }

    #[test]
    fn a_quarter_more_than_the_share_of_time_that_it_was_busy() {
        // 40 + 10, of which 128/256 of the time, then 25; and it ran at 8, 8 * 1024 / 40 = 204.8.
        assert_eq!(sampled().update(at(10, 5, 204), RANGE), 25);
        // 50 * (51/256), truncated to 9.
        assert_eq!(sampled().update(at(20, 4, 204), RANGE), 9);
        // 50 * 230/256 is 44: no more than there is.
        assert_eq!(sampled().update(at(10, 9, 204), RANGE), 40);
        assert_eq!(sampled().update(at(100, 1, 102), RANGE), 8, "no less than there is");
    }

    #[test]
    fn it_falls_half_way_from_the_average() {
        // 25, and it ran at 40: (40 - 25) / 2 is 7.
        assert_eq!(sampled().update(at(10, 5, FULL), RANGE), 32);
        // Then 9, and it ran at 32: 32 * 1024 / 40 = 819.2, of which 31 is left: (31 - 9) / 2 is 11.
        let mut pstate = sampled();
        let first = at(10, 5, FULL);
        pstate.update(first, RANGE);
        let then = Counters {
            now_ns: 30 * MS,
            busy_ns: first.busy_ns + 4 * MS,
            busy_freq: first.busy_freq + 4 * MS * 819,
        };
        assert_eq!(pstate.update(then, RANGE), 20);
    }

    #[test]
    fn it_is_sampled_every_ten_ms_and_not_if_it_was_idle_since() {
        let mut pstate = sampled();
        assert_eq!(pstate.update(at(9, 9, 204), RANGE), 8, "too soon");
        assert_eq!(pstate.update(at(20, 10, 204), RANGE), 25, "of 20 ms");
        assert_eq!(pstate.update(at(29, 19, 204), RANGE), 25, "too soon");
        let mut idle = sampled();
        assert_eq!(idle.update(at(10, 0, 0), RANGE), 8, "MPERF stands still");
        assert_eq!(idle.update(at(20, 10, 204), RANGE), 25, "of 20 ms: it was not sampled");
    }

    #[test]
    fn p_states_between_two_points_are_on_their_line() {
        let opps = [(400, 100.0), (550, 250.0), (800, 500.0)].map(|(mhz, mw)| Opp { mhz, mw });
        let all: Vec<(u32, f64)> = by_pstate(&opps).iter().map(|opp| (opp.mhz, opp.mw)).collect();
        let expected =
            [(400, 100.0), (500, 200.0), (550, 250.0), (600, 300.0), (700, 400.0), (800, 500.0)];
        assert_eq!(all, expected);
        assert!(by_pstate(&[]).is_empty());
    }

    #[test]
    fn firmware_goes_by_the_share_of_time_and_by_its_preference() {
        for (share, epp, wanted) in [
            (0.01, 0, 1.0),
            (0.0, 128, 0.0),
            (0.5, 128, 0.625),
            (0.8, 128, 1.0),
            (1.0, 128, 1.0),
            (0.6, 192, 0.5),
            (1.0, 192, 160.0 / 192.0),
            (0.51, 255, 0.32),
        ] {
            let found = epp_wanted(share, epp);
            assert!((found - wanted).abs() < 1e-9, "{share} at {epp}: {found}");
        }
    }

    /// What the half-life is fitted to.
    #[test]
    fn firmware_reaches_the_highest_frequency_in_35_ms() {
        let mut share = 0.0;
        let mut passed_ns = 0;
        while epp_wanted(share, EPP_DEFAULT) < 1.0 {
            share = epp_remember(share, 1.0, EPP_PERIOD_NS);
            passed_ns += EPP_PERIOD_NS;
        }
        assert_eq!(passed_ns / MS, 35);
        assert!((epp_remember(0.8, 0.0, 30 * MS) - 0.2).abs() < 1e-9, "two half-lives");
    }

    #[test]
    fn preferences_have_the_kernels_names() {
        assert_eq!((epp_of("balance_power"), epp_of("performance")), (Some(192), Some(0)));
        assert_eq!((epp_of("balance_performance"), epp_of("default")), (Some(EPP_DEFAULT), None));
    }
}
