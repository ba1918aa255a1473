//! Modes and policies: their names, their ranges, and the bytes that the BPF
//! side reads.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::bpf::intf;
use crate::topology::Ranks;

/// How long a task may wait for an active CPU before it spills: a tick at
/// HZ=250, at which the running slice ends, and a millisecond for what goes
/// first; less than a third of a video frame.
const LATENCY_BUDGET: Duration = Duration::from_millis(5);
/// A lower need must hold for two half-lives of the average before the active
/// set shrinks, so that on/off loads with shorter periods do not make it flap.
const SHRINK_HOLD: Duration = Duration::from_millis(64);
/// util x 1.25 < capacity, the margin with which the kernel decides that a task
/// fits a CPU (fits_capacity() in kernel/sched/fair.c), in percent.
const FILL_PCT: u32 = 80;

/// What the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The idlest CPU: idle cores before SMT siblings, near in cache.
    Spread,
    /// The fewest CPUs whose capacity carries the load.
    Packing,
}

impl Mode {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Mode; 2] = [Mode::Spread, Mode::Packing];

    /// The mode's name, the same everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Spread => "spread",
            Mode::Packing => "packing",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    /// Fails with a sentence that lists the modes.
    fn from_str(text: &str) -> Result<Self> {
        match Mode::ALL.into_iter().find(|mode| mode.name() == text) {
            Some(mode) => Ok(mode),
            None => bail!(
                "unknown mode '{text}': choose one of {}",
                Mode::ALL.map(Mode::name).join(", ")
            ),
        }
    }
}

/// A mode and its ceiling: all that the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    /// At most this many cores for tasks that are free to move; `None`: all.
    pub max_cores: Option<usize>,
}

impl Policy {
    /// Checks `max_cores` against the machine: 1..=number of cores.
    pub fn new(mode: Mode, max_cores: Option<usize>, ranks: &Ranks) -> Result<Self> {
        let cores = ranks.nr_cores();
        if let Some(n) = max_cores
            && !(1..=cores).contains(&n)
        {
            bail!("--max-cores {n} is out of range: this machine has {cores} cores, so 1..{cores}");
        }
        Ok(Policy { mode, max_cores })
    }

    /// The row of parameters that the BPF side reads.
    pub fn to_bpf(self, ranks: &Ranks) -> intf::pp_policy {
        let ceiling = ranks.ranks_in_cores(self.max_cores.unwrap_or(ranks.nr_cores())) as u32;
        let spread = self.mode == Mode::Spread;
        intf::pp_policy {
            latency_budget_ns: LATENCY_BUDGET.as_nanos() as u64,
            shrink_hold_ns: SHRINK_HOLD.as_nanos() as u64,
            mode: match self.mode {
                Mode::Spread => intf::pp_mode_PP_MODE_SPREAD,
                Mode::Packing => intf::pp_mode_PP_MODE_PACKING,
            },
            fill_pct: FILL_PCT,
            min_ranks: if spread { ceiling } else { 1 },
            max_ranks: ceiling,
            // Two threads of a core are each slower than alone.
            idle_core_first: 1,
            sync_stacks: (!spread).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::flat;

    #[test]
    fn modes_parse_by_the_name_they_print() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse::<Mode>().unwrap(), mode);
        }
        let err = "turbo".parse::<Mode>().unwrap_err().to_string();
        assert!(err.contains("spread, packing"), "{err}");
    }

    #[test]
    fn max_cores_is_checked_against_the_machine() {
        let ranks = flat(4, 2);
        for bad in [0, 5] {
            assert!(Policy::new(Mode::Packing, Some(bad), &ranks).is_err());
        }
        let policy = Policy::new(Mode::Packing, Some(3), &ranks).unwrap();
        assert_eq!(policy.to_bpf(&ranks).max_ranks, 6, "cores count, not threads");
        assert_eq!(policy.to_bpf(&ranks).min_ranks, 1);
        let policy = Policy::new(Mode::Spread, Some(3), &ranks).unwrap();
        assert_eq!(policy.to_bpf(&ranks).min_ranks, 6);
    }
}
