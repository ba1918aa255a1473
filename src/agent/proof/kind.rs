//! Kinds of load: what wins for one need not win for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Upper ends of the bands of load (% of what all CPUs can do), each about twice the one before: what is asleep,
/// and for how long, changes with the order of magnitude.
const BANDS_PCT: [u32; 6] = [2, 5, 10, 20, 40, 100];
/// A load has left its band after this many looks in a row outside of it.
const LOOKS_TO_LEAVE: u32 = 3;

/// A kind of load, by what it needs and by what the machine is fed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    pub on_battery: bool,
    /// The upper end of its band, one of [`BANDS_PCT`].
    to_pct: u32,
}

impl Kind {
    /// The kind of a load that needs `work_share` (0..=1) of what all CPUs can do.
    pub fn of(on_battery: bool, work_share: f64) -> Self {
        let is_in = |to_pct: &u32| work_share * 100.0 < f64::from(*to_pct);
        let to_pct = BANDS_PCT.into_iter().find(is_in).unwrap_or(100);
        Kind { on_battery, to_pct }
    }

    /// Whether the work is enough to be divided by: of an almost idle machine's the next few seconds have twice as
    /// much or half.
    pub fn is_comparable(self) -> bool {
        self.to_pct > BANDS_PCT[0]
    }

    /// Whether it is one that [`Kind::of`] makes: a file may say anything.
    pub fn is_known(self) -> bool {
        BANDS_PCT.contains(&self.to_pct)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nth = BANDS_PCT.iter().position(|&pct| pct == self.to_pct).unwrap_or(0);
        let from_pct = if nth == 0 { 0 } else { BANDS_PCT[nth - 1] };
        let source = if self.on_battery { " on battery" } else { "" };
        write!(f, "at {from_pct}-{} % load{source}", self.to_pct)
    }
}

/// Which kind of load it is, not to and fro at the edge of a band.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    kind: Option<Kind>,
    looks_outside: u32,
}

impl Follower {
    /// The kind as of the last look.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The kind after one more look at the load; `None` until there were enough looks.
    pub fn follow(&mut self, now: Kind) -> Option<Kind> {
        self.looks_outside = if self.kind == Some(now) { 0 } else { self.looks_outside + 1 };
        if self.looks_outside >= LOOKS_TO_LEAVE {
            *self = Follower { kind: Some(now), looks_outside: 0 };
        }
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_have_edges_and_names() {
        let name = |share| Kind::of(false, share).to_string();
        assert_eq!(name(0.0), "at 0-2 % load");
        assert_eq!(name(0.0999), "at 5-10 % load");
        assert_eq!(name(0.1), "at 10-20 % load");
        assert_eq!(name(1.2), "at 40-100 % load");
        assert_eq!(Kind::of(true, 0.03).to_string(), "at 2-5 % load on battery");
        assert!(!Kind::of(false, 0.01).is_comparable() && Kind::of(false, 0.02).is_comparable());
        assert!(Kind::of(false, 0.3).is_known());
        assert!(!Kind { on_battery: false, to_pct: 7 }.is_known());
    }

    #[test]
    fn a_load_at_an_edge_stays_of_its_kind() {
        let mut follower = Follower::default();
        let [low, high] = [0.09, 0.11].map(|share| Kind::of(false, share));
        let kinds = [low; 3].map(|kind| follower.follow(kind));
        assert_eq!(kinds, [None, None, Some(low)]);
        for _ in 0..9 {
            for now in [high, high, low] {
                assert_eq!(follower.follow(now), Some(low));
            }
        }
        let other = Kind::of(false, 0.3);
        let kinds = [high, other, high].map(|kind| follower.follow(kind));
        assert_eq!(
            kinds,
            [Some(low), Some(low), Some(high)],
            "what is outside need not be one kind"
        );
    }
}
