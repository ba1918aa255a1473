//! Whether the blocks of a round had the same load, and what each of them took for the same of it.

use super::Block;
use super::kind::Kind;
use crate::settings::mode::Mode;

/// Blocks have the same load if their work differs by at most this share: the clock and the capacity of a CPU say that
/// well of what it does, and the rest of the difference is in the result.
const WORK_APART_MAX: f64 = 0.15;
/// And if tasks woke as often, within this share, while runs are short. It is in the result as well, but small, as
/// what wakes by a clock does so as often in any mode.
const WAKE_UPS_APART_MAX: f64 = 0.05;
/// A run of less work than this, in time of the fastest CPU (us), is short: some tens of microseconds of each run are
/// of the waking itself, as caches are filled again and a clock goes up, more or less of them in another mode. They
/// count as work, but nobody asked for them.
const SHORT_RUN_US: f64 = 1000.0;

/// What energy is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Work,
    WakeUps,
}

/// A round whose blocks all had the same load.
#[derive(Clone, Debug)]
pub struct EvenRound {
    pub blocks: Vec<Block>,
    measure: Measure,
}

impl EvenRound {
    /// Of these blocks; `None`: they did not have the same load, of that kind.
    pub fn of(kind: Kind, blocks: Vec<Block>) -> Option<Self> {
        let makes_sense = |block: &Block| block.joules > 0.0 && block.work_share > 0.0;
        let work = |block: &Block| block.work_share;
        let mean = blocks.iter().map(work).sum::<f64>() / blocks.len() as f64;
        if !blocks.iter().all(makes_sense) || Kind::of(kind.on_battery, mean) != kind {
            return None;
        }
        let is_short = |block: &Block| block.run_us().is_some_and(|us| us < SHORT_RUN_US);
        let measure = if blocks.iter().all(is_short)
            && apart(&blocks, Block::wake_ups_per_s) <= WAKE_UPS_APART_MAX
        {
            Measure::WakeUps
        } else if apart(&blocks, work) <= WORK_APART_MAX {
            Measure::Work
        } else {
            return None;
        };
        Some(EvenRound { blocks, measure })
    }

    /// The logarithm of what `mode` took for the same load; `None`: it had no block.
    pub fn log_energy(&self, mode: Mode) -> Option<f64> {
        let block = self.blocks.iter().find(|block| block.mode == mode)?;
        let per_s = match self.measure {
            Measure::Work => block.work_share,
            Measure::WakeUps => block.wake_ups_per_s(),
        };
        Some((block.joules / block.seconds / per_s).ln())
    }
}

/// By which share the largest is above the smallest.
fn apart(blocks: &[Block], of: impl Fn(&Block) -> f64) -> f64 {
    let each = || blocks.iter().map(&of);
    each().fold(0.0, f64::max) / each().fold(f64::INFINITY, f64::min) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.04;

    /// Packing, and spread, whose work is `work` times as much and whose wake-ups are `wake_ups` times as many, of runs
    /// of `run_us`; spread takes 1.2 times the power.
    fn round(run_us: f64, work: f64, wake_ups: f64) -> Option<EvenRound> {
        let of = |mode, joules, work: f64, wake_ups: f64| {
            let (seconds, capacity) = (5.0, 4.0);
            let nr = SHARE * seconds * capacity * 1e6 / run_us;
            let wake_ups = (nr * wake_ups) as u64;
            Block { mode, seconds, joules, work_share: SHARE * work, capacity, wake_ups }
        };
        let blocks = vec![of(Mode::Packing, 5.0, 1.0, 1.0), of(Mode::Spread, 6.0, work, wake_ups)];
        EvenRound::of(Kind::of(false, SHARE), blocks)
    }

    /// How much more spread took for the same.
    fn more(round: &EvenRound) -> f64 {
        (round.log_energy(Mode::Spread).unwrap() - round.log_energy(Mode::Packing).unwrap()).exp()
    }

    #[test]
    fn short_runs_that_wake_as_often_are_the_same_load_whatever_waking_costs() {
        let round = round(100.0, 1.2, 1.0).expect("an even round");
        assert!((more(&round) - 1.2).abs() < 1e-6, "power alone: {}", more(&round));
        assert_eq!(round.log_energy(Mode::Energy), None);
    }

    #[test]
    fn long_runs_are_the_same_load_by_their_work() {
        assert!(round(5000.0, 1.2, 1.0).is_none());
        let round = round(5000.0, 1.1, 1.0).expect("an even round");
        assert!((more(&round) - 1.2 / 1.1).abs() < 1e-6, "energy for work: {}", more(&round));
    }

    #[test]
    fn what_wakes_more_often_in_a_mode_is_compared_by_its_work() {
        assert!(round(100.0, 1.2, 1.1).is_none());
        let by_work = round(100.0, 1.1, 1.1).expect("an even round");
        assert!((more(&by_work) - 1.2 / 1.1).abs() < 1e-6);
        let by_work = round(f64::INFINITY, 1.1, 1.0).expect("no wake-up was counted");
        assert!((more(&by_work) - 1.2 / 1.1).abs() < 1e-6);
    }
}
