//! What is known of one kind of load, and what is being found out.

use std::collections::BTreeSet;

use super::Block;
use super::judge::{self, Interval, ROUNDS_MAX};
use super::kind::Kind;
use super::round::EvenRound;
use super::verdict::{Finding, Level, Margin, Verdict};
use crate::settings::mode::Mode;
use crate::statistics::mean;

/// Rounds that are begun, all together: a load of which two in three are of no use is not steady.
const TRIES_MAX: usize = 3 * ROUNDS_MAX;
/// So many contrary blocks in a row and it is compared again. Each time twice as many are needed: two loads that have
/// the same work and take turns are no reason to compare all day.
const CONTRARY_BLOCKS: u32 = 3;

/// One kind of load.
#[derive(Clone, Debug)]
pub struct Case {
    /// What was found last; it is the choice also while modes are compared again.
    pub verdict: Option<Verdict>,
    /// Modes are, or are to be, compared.
    is_open: bool,
    /// When it was given up, as the load is not steady (seconds of the Unix clock).
    given_up_s: Option<u64>,
    /// Those that are not beaten yet.
    pub left: Vec<Mode>,
    /// All rounds that count: a block each of those that were left then.
    rounds: Vec<EvenRound>,
    tries: usize,
    /// Who has surely taken less than whom.
    beats: BTreeSet<(Mode, Mode)>,
    /// The order of the last round, which the next one reverses.
    last_order: Option<Vec<Mode>>,
    contrary: u32,
    contrary_needed: u32,
}

impl Case {
    /// Nothing is known.
    pub fn new(candidates: &[Mode]) -> Self {
        Case {
            verdict: None,
            is_open: true,
            given_up_s: None,
            left: candidates.to_vec(),
            rounds: vec![],
            tries: 0,
            beats: BTreeSet::new(),
            last_order: None,
            contrary: 0,
            contrary_needed: CONTRARY_BLOCKS,
        }
    }

    /// As it was kept.
    pub fn recalled(candidates: &[Mode], verdict: Verdict) -> Self {
        Case { verdict: Some(verdict), is_open: false, ..Case::new(candidates) }
    }

    /// What is known and not being found out again.
    pub fn settled(&self) -> Option<&Verdict> {
        self.verdict.as_ref().filter(|_| !self.is_open)
    }

    /// Since when nothing has been compared (seconds of the Unix clock); `None`: it is being compared, or is to be.
    pub fn closed_s(&self) -> Option<u64> {
        self.given_up_s.or(self.settled().map(|verdict| verdict.at_s))
    }

    /// Whether it was given up.
    pub fn is_given_up(&self) -> bool {
        self.given_up_s.is_some()
    }

    /// How many rounds count so far.
    pub fn nr_rounds(&self) -> usize {
        self.rounds.len()
    }

    /// The order of the next round, or `None`: it is given up, at time `now_s`. Every second one is the reverse of the
    /// one before, so that what grows steadily, as a load or a temperature, adds to each mode alike (as ABBA does);
    /// the others are shuffled, so that nothing periodic keeps step.
    pub fn next_order(&mut self, random: &mut fastrand::Rng, now_s: u64) -> Option<Vec<Mode>> {
        if self.tries >= TRIES_MAX {
            self.given_up_s = Some(now_s);
            return None;
        }
        self.tries += 1;
        let mut order = self.left.clone();
        match self.last_order.take() {
            Some(last) if last.len() == order.len() => order = last.into_iter().rev().collect(),
            _ => {
                random.shuffle(&mut order);
                self.last_order = Some(order.clone());
            }
        }
        Some(order)
    }

    /// A round is over. Returns whether there is a verdict now, of time `now_s`.
    pub fn take_round(
        &mut self,
        kind: Kind,
        blocks: Vec<Block>,
        (candidates, prior): (&[Mode], Mode),
        now_s: u64,
    ) -> bool {
        let Some(round) = EvenRound::of(kind, blocks) else { return false };
        self.rounds.push(round);
        let nr_pairs = candidates.len() * (candidates.len() - 1) / 2;
        let Some(alpha) = judge::alpha_after(self.rounds.len()) else { return false };
        let alpha = alpha / nr_pairs as f64;
        self.look(alpha);
        let Some(finding) = self.finding(alpha, self.keeper(prior)) else { return false };
        self.settle(kind, finding, (candidates, prior), now_s);
        true
    }

    /// A block of the chosen mode, not compared with another. Returns whether it is to be compared again.
    pub fn watch(&mut self, block: &Block, candidates: &[Mode]) -> bool {
        let Some(verdict) = self.settled() else { return false };
        let is_contrary = verdict.level.is_contrary(block.level());
        self.contrary = if is_contrary { self.contrary + 1 } else { 0 };
        if self.contrary < self.contrary_needed {
            return false;
        }
        self.contrary_needed *= 2;
        self.reopen(candidates);
        true
    }

    /// Begins to compare again.
    pub fn reopen(&mut self, candidates: &[Mode]) {
        let (verdict, contrary_needed) = (self.verdict.take(), self.contrary_needed);
        *self = Case { verdict, contrary_needed, ..Case::new(candidates) };
    }

    /// Energy for the same load of `a` less that of `b`, as logarithms, in each round that has both.
    fn differences(&self, a: Mode, b: Mode) -> Vec<f64> {
        let of = |round: &EvenRound| Some(round.log_energy(a)? - round.log_energy(b)?);
        self.rounds.iter().filter_map(of).collect()
    }

    /// Who is beaten is left out from now on.
    fn look(&mut self, alpha: f64) {
        for &a in &self.left {
            for &b in self.left.iter().filter(|&&b| b != a) {
                if Interval::of(&self.differences(a, b), alpha).is_less() {
                    self.beats.insert((a, b));
                }
            }
        }
        let beaten = |mode| self.beats.iter().any(|&(a, b)| b == mode && self.left.contains(&a));
        self.left = self.left.iter().copied().filter(|&mode| !beaten(mode)).collect();
    }

    /// Who is chosen if it ends now: the model's choice if it is left, else the one that took the least.
    fn keeper(&self, prior: Mode) -> Mode {
        if self.left.contains(&prior) {
            return prior;
        }
        let above_prior = |mode: Mode| mean(&self.differences(mode, prior));
        let by_mean = |a: &Mode, b: &Mode| above_prior(*a).total_cmp(&above_prior(*b));
        self.left.iter().copied().min_by(by_mean).unwrap_or(prior)
    }

    /// How it has ended; `None`: it goes on.
    fn finding(&self, alpha: f64, keeper: Mode) -> Option<Finding> {
        let mut others = self.left.iter().filter(|&&mode| mode != keeper).peekable();
        if others.peek().is_none() {
            return Some(Finding::Least);
        }
        let is_irrelevant =
            |&mode: &Mode| Interval::of(&self.differences(keeper, mode), alpha).is_irrelevant();
        if others.all(is_irrelevant) {
            return Some(Finding::Equal);
        }
        (self.rounds.len() >= ROUNDS_MAX).then_some(Finding::Unclear)
    }

    /// Keeps what was found, and forgets the rounds.
    fn settle(
        &mut self,
        kind: Kind,
        finding: Finding,
        (candidates, prior): (&[Mode], Mode),
        at_s: u64,
    ) {
        let mode = self.keeper(prior);
        let beaten = candidates.iter().copied().filter(|&than| self.beats.contains(&(mode, than)));
        let margin = |than| {
            let differences = self.differences(mode, than);
            let less_pct = (1.0 - mean(&differences).exp()) * 100.0;
            Margin { than, less_pct, pairs: differences.len() }
        };
        let verdict = Verdict {
            kind,
            mode,
            finding,
            margins: beaten.map(margin).collect(),
            beside: self.left.iter().copied().filter(|&left| left != mode).collect(),
            rounds: self.rounds.len(),
            level: self.level(mode),
            at_s,
        };
        let contrary_needed = self.contrary_needed;
        *self = Case { contrary_needed, ..Case::recalled(candidates, verdict) };
    }

    /// The mean of what `mode` took.
    fn level(&self, mode: Mode) -> Level {
        let all = || self.rounds.iter().flat_map(|round| &round.blocks);
        let blocks = || all().filter(|block| block.mode == mode);
        let nr = blocks().count().max(1) as f64;
        let mean = |of: fn(Level) -> f64| blocks().map(|block| of(block.level())).sum::<f64>() / nr;
        Level { power_w: mean(|level| level.power_w), work_share: mean(|level| level.work_share) }
    }
}
