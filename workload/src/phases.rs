//! When the tasks of a kind begin, within their period.

use std::str::FromStr;

use anyhow::bail;
use serde::Deserialize;

/// How far apart the tasks of a kind begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// All at the same instant.
    #[default]
    Together,
    /// Evenly apart in their period.
    Even,
    /// Anywhere in their period, as on a machine whose programs know nothing of each other.
    Random,
}

impl Phases {
    /// When the `nth` of `count` tasks of the kind `name` begins (ns, below `period_ns`).
    /// Random phases are the same each time that the `seed` is.
    pub fn offset_ns(self, period_ns: u64, nth: u64, count: u64, name: &str, seed: u64) -> u64 {
        match self {
            Phases::Together => 0,
            Phases::Even => period_ns * nth / count,
            Phases::Random => {
                // Kinds of equal periods and counts begin apart from each other too.
                let of_kind = name.bytes().fold(seed, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
                fastrand::Rng::with_seed(of_kind.wrapping_add(nth)).u64(0..period_ns.max(1))
            }
        }
    }
}

impl FromStr for Phases {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "together" => Phases::Together,
            "even" => Phases::Even,
            "random" => Phases::Random,
            _ => bail!("unknown phases '{text}': choose together, even or random"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_phases_are_all_over_the_period_and_the_same_again() {
        let phases = |name, seed| -> Vec<u64> {
            (0..1000).map(|nth| Phases::Random.offset_ns(1000, nth, 1000, name, seed)).collect()
        };
        let once = phases("a", 1);
        assert_eq!(once, phases("a", 1));
        assert_ne!(once, phases("b", 1));
        assert_ne!(once, phases("a", 2));
        for quarter in 0..4 {
            let inside = once.iter().filter(|&&ns| ns / 250 == quarter).count();
            assert!((200..300).contains(&inside), "{inside} of 1000 in quarter {quarter}");
        }
    }
}
