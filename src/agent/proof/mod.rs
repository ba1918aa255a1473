//! Which mode takes the least energy for a kind of load: found out by running modes in turns, in blocks, and
//! comparing what they took. Nothing here has a clock or reads a file: it is fed with blocks and says what is
//! next.
//!
//! What is compared is energy for work: joules of a block by what the CPUs did in it, which is busy time by the
//! capacity and the present clock of the CPU. Nothing is subtracted: what the idle machine takes is a part of what a
//! load costs. For a load that does as much as it is asked for, in any mode, this is power; for one that does as
//! much as it can it is fair to the mode that does more. Where a capacity is wrong by a share for what runs, so is
//! the comparison of modes that use other CPUs, at most by the share by which work may differ in a round. Where tasks
//! run shortly and wake as often in all blocks of a round it is energy for wake-ups: of their work a part is the
//! waking itself, which differs by mode.

mod case;
mod judge;
mod kind;
mod round;
#[cfg(test)]
pub mod tests;
#[cfg(test)]
mod trials;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;

use crate::settings::mode::Mode;
use case::Case;
pub use kind::{Follower, Kind};
pub use verdict::Verdict;
use verdict::{Level, list};

/// A block of a comparison lasts for one look: what takes turns in seconds has the same load and the same
/// temperature.
const LOOKS_COMPARED: u32 = 1;
/// A block in which the chosen mode is watched.
const LOOKS_WATCHED: u32 = 6;
/// After something suffered nothing is compared for this many looks: a minute.
const LOOKS_HELD_OFF: u32 = 12;
/// What is known is compared again after this time (s): a day. That takes some seconds of the mode that takes most.
const FRESH_S: u64 = 24 * 60 * 60;

/// What a mode took for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    pub mode: Mode,
    pub seconds: f64,
    pub joules: f64,
    /// What the CPUs did, of what all of them can do (0..=1).
    pub work_share: f64,
    /// What all CPUs can do, in that of the fastest one.
    pub capacity: f64,
    /// How often tasks woke; 0: it was not counted.
    pub wake_ups: u64,
}

/// For a log.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Level { power_w, work_share } = self.level();
        let (mode, work_pct, wake_ups) = (self.mode, work_share * 100.0, self.wake_ups_per_s());
        write!(
            f,
            "{mode} took {power_w:.4} W, did {work_pct:.3} % and woke tasks {wake_ups:.1} times a second"
        )
    }
}

impl Block {
    fn level(&self) -> Level {
        Level { power_w: self.joules / self.seconds, work_share: self.work_share }
    }

    fn wake_ups_per_s(&self) -> f64 {
        self.wake_ups as f64 / self.seconds
    }

    /// What was done for a wake-up, as the time that the fastest CPU takes (us); `None`: none was counted.
    fn run_us(&self) -> Option<f64> {
        let work_s = self.work_share * self.capacity * self.seconds;
        (self.wake_ups > 0).then(|| work_s * 1e6 / self.wake_ups as f64)
    }
}

/// What is to run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub mode: Mode,
    /// For how many looks, until a block of it is to be reported; `None`: until the next look, and nothing is to be
    /// reported.
    pub block_looks: Option<u32>,
    /// It runs to be compared with others.
    pub is_comparison: bool,
}

/// What a block has changed of what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A comparison has ended.
    Found,
    /// What the chosen mode takes contradicts what was found: it is to be compared again.
    Contradicted,
}

/// A round: each mode that is left has a block.
#[derive(Clone, Debug)]
struct Round {
    kind: Kind,
    order: Vec<Mode>,
    blocks: Vec<Block>,
}

/// What is known and what is being found out.
#[derive(Clone, Debug)]
pub struct Proof {
    candidates: Vec<Mode>,
    /// What the model or the rules choose.
    prior: Mode,
    cases: BTreeMap<Kind, Case>,
    round: Option<Round>,
    watched: Option<Kind>,
    looks_held_off: u32,
    random: fastrand::Rng,
}

impl Proof {
    /// Of these modes, of which `prior` is chosen unless another is proven to take less; `seed` is of the order in
    /// which they take turns.
    pub fn new(candidates: Vec<Mode>, prior: Mode, seed: u64) -> Self {
        debug_assert!(candidates.contains(&prior));
        Proof {
            candidates,
            prior,
            cases: BTreeMap::new(),
            round: None,
            watched: None,
            looks_held_off: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Takes over what was found out before; what is of modes that are not compared here is left.
    pub fn recall(&mut self, verdicts: Vec<Verdict>) {
        for verdict in verdicts {
            if self.candidates.contains(&verdict.mode) && verdict.kind.is_known() {
                self.cases.insert(verdict.kind, Case::recalled(&self.candidates, verdict));
            }
        }
    }

    /// What is known, by kind.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.cases.values().filter_map(Case::settled)
    }

    /// What is to run now that the load is of that kind; `None`: it is not known yet. Modes may take turns only if
    /// `may_compare`. `now_s` is the time (seconds of the Unix clock).
    pub fn plan(&mut self, kind: Option<Kind>, may_compare: bool, now_s: u64) -> Plan {
        self.looks_held_off = self.looks_held_off.saturating_sub(1);
        if self.round.as_ref().is_some_and(|round| !may_compare || Some(round.kind) != kind) {
            self.drop_block();
        }
        self.watched = None;
        let Some(kind) = kind else { return self.just_run(self.prior) };
        if let Some(round) = &self.round {
            return compare(round);
        }
        let case = self.cases.entry(kind).or_insert_with(|| Case::new(&self.candidates));
        let chosen = case.verdict.as_ref().map_or(self.prior, |verdict| verdict.mode);
        let age_s = case.closed_s().map(|at_s| now_s.checked_sub(at_s));
        let is_fresh = age_s.is_some_and(|age_s| age_s.is_some_and(|age_s| age_s < FRESH_S));
        if is_fresh && !case.is_given_up() {
            self.watched = Some(kind);
            return Plan { mode: chosen, block_looks: Some(LOOKS_WATCHED), is_comparison: false };
        }
        let can_compare = may_compare && kind.is_comparable() && self.looks_held_off == 0;
        if !can_compare || is_fresh || self.candidates.len() < 2 {
            return self.just_run(chosen);
        }
        if age_s.is_some() {
            case.reopen(&self.candidates);
        }
        let Some(order) = case.next_order(&mut self.random, now_s) else {
            return self.just_run(chosen);
        };
        compare(self.round.insert(Round { kind, order, blocks: vec![] }))
    }

    fn just_run(&self, mode: Mode) -> Plan {
        Plan { mode, block_looks: None, is_comparison: false }
    }

    /// A block that was planned is over, at time `now_s`.
    pub fn take(&mut self, block: Block, now_s: u64) -> Option<News> {
        if let Some(kind) = self.watched {
            let case = self.cases.get_mut(&kind)?;
            return case.watch(&block, &self.candidates).then_some(News::Contradicted);
        }
        let round = self.round.as_mut()?;
        round.blocks.push(block);
        if round.blocks.len() < round.order.len() {
            return None;
        }
        let Round { kind, blocks, .. } = self.round.take()?;
        let known = (self.candidates.as_slice(), self.prior);
        let case = self.cases.get_mut(&kind)?;
        case.take_round(kind, blocks, known, now_s).then_some(News::Found)
    }

    /// Something has changed in the midst of a block: it and its round do not count.
    pub fn drop_block(&mut self) {
        self.round = None;
        self.watched = None;
    }

    /// The same, and nothing is compared for a minute.
    pub fn hold_off(&mut self) {
        self.drop_block();
        self.looks_held_off = LOOKS_HELD_OFF;
    }

    /// Whether something was found out of a kind of load, or is just being found out.
    pub fn knows(&self, kind: Option<Kind>) -> bool {
        let case = kind.and_then(|kind| self.cases.get(&kind));
        self.round.is_some() || case.is_some_and(|case| case.verdict.is_some())
    }

    /// Whether nothing but that it has not begun is in the way of comparing modes for a kind of load.
    pub fn is_to_begin(&self, kind: Option<Kind>) -> bool {
        let may = |kind: Kind| {
            let is_given_up = self.cases.get(&kind).is_some_and(Case::is_given_up);
            kind.is_comparable() && !is_given_up
        };
        self.looks_held_off == 0 && !self.knows(kind) && kind.is_some_and(may)
    }

    /// What is known of a kind of load, or is being found out: a sentence.
    pub fn sentence(&self, kind: Option<Kind>) -> String {
        let Some(kind) = kind else { return "the load is not known yet".into() };
        if !kind.is_comparable() {
            return format!("too little runs to compare modes {kind}");
        }
        let Some(case) = self.cases.get(&kind) else { return format!("not compared yet {kind}") };
        if self.round.is_some() {
            let (modes, nth) = (list(&case.left), case.nr_rounds() + 1);
            return format!("{modes} take turns {kind}, to compare their energy: round {nth}");
        }
        match &case.verdict {
            Some(verdict) => verdict.to_string(),
            None if case.is_given_up() => format!("not steady enough to be compared {kind}"),
            None if self.looks_held_off > 0 => {
                format!("not compared {kind} until tasks have not waited for long for a minute")
            }
            None => format!("not compared yet {kind}"),
        }
    }
}

/// The next block of a round.
fn compare(round: &Round) -> Plan {
    let mode = round.order[round.blocks.len()];
    Plan { mode, block_looks: Some(LOOKS_COMPARED), is_comparison: true }
}
