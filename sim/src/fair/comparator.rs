//! The earlier systems by their names.

use anyhow::{Error, bail};

use super::Balancer;
use super::baseline::Spread;
use super::pas::{Policy, PowerAware};
use super::pst::{Buddies, Full};
use super::sched_mc::SchedMc;
use crate::machine::Machine;

/// One of the earlier systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Linux 3.9.
    Baseline,
    /// Runnable-load balance v4.
    RunnableLoad,
    /// Power-aware scheduling v7: its policies, and powersaving by capacity.
    PasPerformance,
    PasBalance,
    PasPowersaving,
    PasCapacity,
    /// Its last tree.
    PasFinal,
    /// Packing small tasks.
    PstV3,
    PstV4,
    /// sched_mc_power_savings, 0 to 5.
    SchedMc(u8),
}

impl Comparator {
    /// All of them, by the names in which they are asked for.
    pub const ALL: [(&str, Comparator); 15] = [
        ("3.9", Comparator::Baseline),
        ("rlb-v4", Comparator::RunnableLoad),
        ("pas-v7-performance", Comparator::PasPerformance),
        ("pas-v7-balance", Comparator::PasBalance),
        ("pas-v7", Comparator::PasPowersaving),
        ("pas-v7-capacity", Comparator::PasCapacity),
        ("pas-final", Comparator::PasFinal),
        ("pst-v3", Comparator::PstV3),
        ("pst-v4", Comparator::PstV4),
        ("sched_mc=0", Comparator::SchedMc(0)),
        ("sched_mc=1", Comparator::SchedMc(1)),
        ("sched_mc=2", Comparator::SchedMc(2)),
        ("sched_mc=3", Comparator::SchedMc(3)),
        ("sched_mc=4", Comparator::SchedMc(4)),
        ("sched_mc=5", Comparator::SchedMc(5)),
    ];

    pub(crate) fn balancer(self, machine: &Machine) -> Box<dyn Balancer> {
        let spread = Spread { runnable: self == Comparator::RunnableLoad };
        let policy = match self {
            Comparator::Baseline | Comparator::RunnableLoad | Comparator::PasPerformance => {
                return Box::new(spread);
            }
            Comparator::PstV3 => return Box::new(Buddies::new(spread, machine)),
            Comparator::PstV4 => return Box::new(Full { spread }),
            Comparator::SchedMc(level) => {
                return Box::new(SchedMc::new(spread, level, machine));
            }
            Comparator::PasPowersaving => Policy::POWERSAVING,
            Comparator::PasBalance => Policy::BALANCE,
            Comparator::PasCapacity => Policy::CAPACITY,
            Comparator::PasFinal => Policy::FINAL,
        };
        Box::new(PowerAware::new(spread, policy, machine))
    }
}

impl std::str::FromStr for Comparator {
    type Err = Error;

    /// Fails with a sentence that lists them.
    fn from_str(text: &str) -> Result<Self, Error> {
        match Self::ALL.iter().find(|(name, _)| *name == text) {
            Some((_, comparator)) => Ok(*comparator),
            None => bail!(
                "unknown scheduler '{text}': choose one of {}",
                Self::ALL.map(|(name, _)| name).join(", ")
            ),
        }
    }
}
