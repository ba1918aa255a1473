//! What is known of a kind of load, and by what evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::judge::{ALPHA, RELEVANT};
use super::kind::Kind;
use crate::settings::mode::Mode;

/// How much another share of idle power can explain: power follows the work in proportion, or not at all, or
/// anything between. Beyond that by this share, and it is not the load that was measured.
const CONTRARY_SHARE: f64 = 0.1;

/// How a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// All other modes were beaten.
    Least,
    /// The modes that are left differ too little to matter: the model's choice stays.
    Equal,
    /// The noise was larger than what there is to be found: the model's choice stays.
    Unclear,
}

/// By how much a mode was beaten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margin {
    pub than: Mode,
    /// Energy for the same load, less by this (%).
    pub less_pct: f64,
    pub pairs: usize,
}

/// What the chosen mode took while it was compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    pub power_w: f64,
    /// Of what all CPUs can do, 0..=1.
    pub work_share: f64,
}

impl Level {
    /// Whether no share of idle power explains that the same mode takes what `now` says.
    pub fn is_contrary(self, now: Level) -> bool {
        let in_proportion = self.power_w * now.work_share / self.work_share;
        let low = self.power_w.min(in_proportion) * (1.0 - CONTRARY_SHARE);
        let high = self.power_w.max(in_proportion) * (1.0 + CONTRARY_SHARE);
        !(low..=high).contains(&now.power_w)
    }
}

/// What is kept of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub kind: Kind,
    pub mode: Mode,
    pub finding: Finding,
    /// What it was proven to take less than.
    pub margins: Vec<Margin>,
    /// What else was in the comparison to its end.
    pub beside: Vec<Mode>,
    /// How many rounds there were.
    pub rounds: usize,
    pub level: Level,
    /// When (seconds of the Unix clock).
    pub at_s: u64,
}

/// As in "energy: 8.2 % less than spread at 10-20 % load, 19 pairs, p < 0.01".
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { kind, mode, rounds, .. } = self;
        let beside = list(&self.beside);
        let relevant_pct = RELEVANT * 100.0;
        let mut parts = vec![];
        if let Some((last, others)) = self.margins.split_last() {
            let one =
                |margin: &Margin| format!("{:.1} % less than {}", margin.less_pct, margin.than);
            let mut all: String =
                others.iter().map(|m| format!("{} ({} pairs), ", one(m), m.pairs)).collect();
            all += &format!("{} {kind}, {} pairs, p < {ALPHA}", one(last), last.pairs);
            parts.push(all);
        }
        match self.finding {
            Finding::Least => {}
            Finding::Equal => {
                parts.push(format!("within {relevant_pct} % of {beside} {kind}, {rounds} pairs"));
            }
            Finding::Unclear => parts.push(format!(
                "not distinguished from {beside} {kind} in {rounds} pairs, and kept"
            )),
        }
        write!(f, "{mode}: {}", parts.join("; "))
    }
}

/// "a, b and c".
pub fn list(modes: &[Mode]) -> String {
    let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(finding: Finding, margins: &[(Mode, f64, usize)], beside: &[Mode]) -> Verdict {
        let margin = |&(than, less_pct, pairs)| Margin { than, less_pct, pairs };
        Verdict {
            kind: Kind::of(false, 0.12),
            mode: Mode::Energy,
            finding,
            margins: margins.iter().map(margin).collect(),
            beside: beside.to_vec(),
            rounds: 40,
            level: Level { power_w: 1.0, work_share: 0.1 },
            at_s: 0,
        }
    }

    #[test]
    fn evidence_is_a_sentence() {
        let spread = (Mode::Spread, 8.21, 19);
        for (verdict, said) in [
            (
                verdict(Finding::Least, &[spread], &[]),
                "energy: 8.2 % less than spread at 10-20 % load, 19 pairs, p < 0.01",
            ),
            (
                verdict(Finding::Least, &[(Mode::Packing, 3.5, 40), spread], &[]),
                "energy: 3.5 % less than packing (40 pairs), 8.2 % less than spread at 10-20 % load, 19 pairs, \
                 p < 0.01",
            ),
            (
                verdict(Finding::Equal, &[spread], &[Mode::Packing]),
                "energy: 8.2 % less than spread at 10-20 % load, 19 pairs, p < 0.01; within 3 % of packing at \
                 10-20 % load, 40 pairs",
            ),
            (
                verdict(Finding::Unclear, &[], &[Mode::Packing, Mode::Spread]),
                "energy: not distinguished from packing and spread at 10-20 % load in 40 pairs, and kept",
            ),
        ] {
            assert_eq!(verdict.to_string(), said);
        }
    }

    #[test]
    fn another_load_of_the_same_work_is_contrary_and_more_work_is_not() {
        let known = Level { power_w: 2.0, work_share: 0.1 };
        let now = |power_w, work_share| known.is_contrary(Level { power_w, work_share });
        assert!(!now(2.1, 0.1) && now(2.3, 0.1) && now(1.7, 0.1));
        assert!(
            !now(2.0, 0.2) && !now(3.0, 0.2) && !now(4.3, 0.2),
            "all is idle power, half, none"
        );
        assert!(now(4.5, 0.2) && now(1.7, 0.2));
    }
}
