//! Modes and policies: their names, their ranges, and the bytes that the BPF
//! side reads.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bpf_intf as intf;
use crate::machine::topology::Ranks;
pub use crate::settings::mode::{Choice, Mode};
use crate::settings::number_or_word;

/// How long a task may wait for an active CPU before it spills: a tick at
/// HZ=250, at which the running slice ends, and a millisecond for what goes
/// first; less than a third of a video frame.
pub const LATENCY_BUDGET: Duration = Duration::from_millis(5);
/// A lower need must hold for two half-lives of the average before the active
/// set shrinks, so that on/off loads with shorter periods do not make it flap.
const SHRINK_HOLD: Duration = Duration::from_millis(64);
/// util x 1.25 < capacity, the margin with which the kernel decides that a task
/// fits a CPU (fits_capacity() in kernel/sched/fair.c), in percent.
const FILL_PCT: u32 = 80;
/// Fuller than full makes no sense; less than a tenth wakes ten times what is needed.
pub const FILL_PCT_RANGE: RangeInclusive<u32> = 10..=100;
/// Below a millisecond ticks are too coarse to keep it; a tenth of a second is noticed.
pub const BUDGET_MS_RANGE: RangeInclusive<u32> = 1..=100;
/// A fifth of the fastest CPU, as in "packing small tasks" (2013).
const SMALL_UTIL: u32 = 205;

/// Which tasks packing packs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pack {
    /// All of them.
    #[default]
    All,
    /// Those that need less than a fifth of the fastest CPU; larger ones may use any CPU.
    Small,
}

/// How many cores may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxCores {
    All,
    /// At most this number.
    Cores(usize),
}

impl FromStr for MaxCores {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "all" => Ok(MaxCores::All),
            Ok(cores) => Ok(MaxCores::Cores(cores)),
            Err(_) => bail!("'{text}' is neither a number of cores nor 'all'"),
        }
    }
}

/// A mode and its knobs: all that the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    /// At most this many cores for tasks that are free to move; `None`: all.
    pub max_cores: Option<usize>,
    pub pack: Pack,
    /// The active set is sized so that it is no fuller (%).
    pub fill_pct: u32,
    /// How long a task may wait for an active CPU before it spills.
    pub latency_budget: Duration,
}

impl Policy {
    /// A mode with its defaults.
    pub fn of(mode: Mode) -> Self {
        Policy {
            mode,
            max_cores: None,
            pack: Pack::All,
            fill_pct: FILL_PCT,
            latency_budget: LATENCY_BUDGET,
        }
    }

    /// The policy when `args` are given while this one is in force. What is not given
    /// stays, but another mode begins with its own defaults; the ceiling always stays.
    pub fn with(self, mode: Mode, args: &PolicyArgs) -> Self {
        let max_cores = self.max_cores;
        let base = if mode == self.mode { self } else { Policy { max_cores, ..Policy::of(mode) } };
        Policy {
            mode: base.mode,
            max_cores: match args.max_cores {
                Some(MaxCores::All) => None,
                Some(MaxCores::Cores(cores)) => Some(cores),
                None => base.max_cores,
            },
            pack: args.pack.unwrap_or(base.pack),
            fill_pct: args.fill_pct.unwrap_or(base.fill_pct),
            latency_budget: args
                .latency_budget_ms
                .map_or(base.latency_budget, |ms| Duration::from_millis(ms.into())),
        }
    }

    /// Checks the knobs against their ranges and the machine. Fails with a sentence.
    pub fn checked(self, ranks: &Ranks) -> Result<Self> {
        let cores = ranks.nr_cores();
        if let Some(n) = self.max_cores {
            ensure!(
                (1..=cores).contains(&n),
                "--max-cores {n} is out of range: this machine has {cores} cores, so 1..{cores}"
            );
        }
        ensure!(
            FILL_PCT_RANGE.contains(&self.fill_pct),
            "--fill-pct {} is out of range: {}..{}",
            self.fill_pct,
            FILL_PCT_RANGE.start(),
            FILL_PCT_RANGE.end()
        );
        let budget_ms = self.latency_budget.as_millis() as u32;
        ensure!(
            BUDGET_MS_RANGE.contains(&budget_ms),
            "--latency-budget-ms {budget_ms} is out of range: {}..{}",
            BUDGET_MS_RANGE.start(),
            BUDGET_MS_RANGE.end()
        );
        ensure!(
            self.pack == Pack::All || self.mode == Mode::Packing,
            "--pack small is for mode packing: {} packs nothing task by task",
            self.mode
        );
        Ok(self)
    }

    /// As the user would say it, nothing left out.
    pub fn to_args(self) -> PolicyArgs {
        PolicyArgs {
            max_cores: Some(self.max_cores.map_or(MaxCores::All, MaxCores::Cores)),
            pack: Some(self.pack),
            fill_pct: Some(self.fill_pct),
            latency_budget_ms: Some(self.latency_budget.as_millis() as u32),
        }
    }

    /// The row of parameters that the BPF side reads.
    pub fn to_bpf(self, ranks: &Ranks) -> intf::pp_policy {
        // Without a ceiling those that are offline now are counted too: they may come.
        let nr_free = ranks.nr_free();
        let ceiling = self.max_cores.map_or(nr_free, |cores| ranks.ranks_in_cores(cores));
        let max_cores = self.max_cores.unwrap_or(nr_free) as u32;
        let spread = self.mode == Mode::Spread;
        let largest_kind = ranks.kinds().into_iter().max().unwrap_or(0) as u32;
        intf::pp_policy {
            latency_budget_ns: self.latency_budget.as_nanos() as u64,
            shrink_hold_ns: SHRINK_HOLD.as_nanos() as u64,
            mode: self.mode.to_bpf(),
            fill_pct: self.fill_pct,
            // A set that cannot shrink has nothing to size.
            all_active: (spread || ceiling == 1).into(),
            max_cores,
            // Two threads of a core are each slower than alone.
            idle_core_first: 1,
            sync_stacks: matches!(self.mode, Mode::Packing | Mode::Energy).into(),
            whole_llcs: (self.mode == Mode::Balance).into(),
            small_util: match self.pack {
                Pack::All => intf::pp_limits_PP_CAPACITY_MAX,
                Pack::Small => SMALL_UTIL,
            },
            // The fastest first: no task waits to save energy in spread.
            min_kind: if spread { largest_kind } else { 0 },
            whole_groups: (self.mode == Mode::Energy).into(),
        }
    }
}

/// What the user may set of the policy: on the command line, of the running scheduler, or in
/// the configuration file. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyArgs {
    /// Use at most N cores, the most efficient ones, for all tasks that are free to move; or `all`
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cores: Option<MaxCores>,

    /// Which tasks packing packs: all, or only those that need less than a fifth of a CPU
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Pack>,

    /// How full the active CPUs may be before another one is used, in percent (10..100)
    /// [default: 80]
    #[arg(long, value_name = "PCT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_pct: Option<u32>,

    /// How long a task may wait for an active CPU before it gets another one, in milliseconds
    /// (1..100) [default: 5]
    #[arg(long, value_name = "MS")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_budget_ms: Option<u32>,
}

impl PolicyArgs {
    /// What of it makes sense in `mode`.
    pub fn for_mode(&self, mode: Mode) -> PolicyArgs {
        let pack = self.pack.filter(|_| mode == Mode::Packing);
        PolicyArgs { pack, ..self.clone() }
    }

    /// The same with a ceiling that a machine of `cores` cores can have, and a sentence if it
    /// is another one: they may be offline, or the file be that of several machines.
    pub fn within(&self, cores: usize) -> (PolicyArgs, Option<String>) {
        match self.max_cores {
            Some(MaxCores::Cores(n)) if n > cores => {
                let lack = format!(
                    "max_cores {n} is more than the {cores} cores that are online: it is {cores} until the \
                     scheduler is loaded again"
                );
                (PolicyArgs { max_cores: Some(MaxCores::Cores(cores)), ..self.clone() }, Some(lack))
            }
            _ => (self.clone(), None),
        }
    }

    /// What is given here, and for the rest what `other` gives.
    pub fn or(&self, other: &PolicyArgs) -> PolicyArgs {
        PolicyArgs {
            max_cores: self.max_cores.or(other.max_cores),
            pack: self.pack.or(other.pack),
            fill_pct: self.fill_pct.or(other.fill_pct),
            latency_budget_ms: self.latency_budget_ms.or(other.latency_budget_ms),
        }
    }
}

/// As a number of cores, or the word `all`.
impl Serialize for MaxCores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            MaxCores::All => serializer.serialize_str("all"),
            MaxCores::Cores(cores) => serializer.serialize_u64(*cores as u64),
        }
    }
}

impl<'de> Deserialize<'de> for MaxCores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number_or_word::parse(deserializer, "expected a number of cores, or \"all\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::tests::flat;

    fn given(max_cores: usize) -> PolicyArgs {
        PolicyArgs { max_cores: Some(MaxCores::Cores(max_cores)), ..PolicyArgs::default() }
    }

    #[test]
    fn surplus_is_counted_by_the_default_fill_level() {
        assert_eq!(powerpack_load::schedstat::FILL_PCT, f64::from(FILL_PCT));
    }

    #[test]
    fn max_cores_is_checked_against_the_machine() {
        let ranks = flat(4, 2);
        let of = |mode, cores| Policy::of(mode).with(mode, &given(cores)).checked(&ranks);
        for bad in [0, 5] {
            assert!(of(Mode::Packing, bad).is_err());
        }
        let policy = of(Mode::Packing, 3).unwrap().to_bpf(&ranks);
        assert_eq!((policy.max_cores, policy.all_active), (3, 0));
        assert_eq!(of(Mode::Spread, 3).unwrap().to_bpf(&ranks).all_active, 1);
        assert_eq!(Policy::of(Mode::Packing).to_bpf(&ranks).max_cores, 8, "more may come");
    }

    #[test]
    fn a_ceiling_above_the_machine_is_the_machine() {
        let (args, lack) = given(5).within(4);
        assert_eq!(args, given(4));
        assert!(lack.unwrap().starts_with("max_cores 5 is more than the 4 cores"));
        for right in [given(4), given(0), PolicyArgs::default()] {
            assert_eq!(right.within(4), (right.clone(), None), "what is wrong in itself stays so");
        }
    }

    #[test]
    fn knobs_have_ranges_and_small_is_for_packing() {
        let ranks = flat(4, 1);
        let packing = Policy::of(Mode::Packing);
        let ms = Duration::from_millis;
        for bad in [
            Policy { fill_pct: 9, ..packing },
            Policy { fill_pct: 101, ..packing },
            Policy { latency_budget: ms(0), ..packing },
            Policy { latency_budget: ms(101), ..packing },
            Policy { pack: Pack::Small, ..Policy::of(Mode::Spread) },
        ] {
            let text = bad.checked(&ranks).unwrap_err().to_string();
            assert!(text.starts_with("--") && text.contains(['.', ':']), "{text}");
        }
        let small = Policy { pack: Pack::Small, ..packing }.checked(&ranks).unwrap();
        assert_eq!(
            (small.to_bpf(&ranks).small_util, packing.to_bpf(&ranks).small_util),
            (205, 1024)
        );
    }

    #[test]
    fn what_is_not_said_stays_but_a_mode_brings_its_own_knobs() {
        let args = PolicyArgs { pack: Some(Pack::Small), fill_pct: Some(60), ..given(2) };
        let packing = Policy::of(Mode::Packing).with(Mode::Packing, &args);
        let same = packing.with(Mode::Packing, &PolicyArgs::default());
        assert_eq!(packing, same);
        let spread = packing.with(Mode::Spread, &PolicyArgs::default());
        assert_eq!(spread, Policy { max_cores: Some(2), ..Policy::of(Mode::Spread) });
        let all = PolicyArgs { max_cores: Some(MaxCores::All), ..PolicyArgs::default() };
        assert_eq!(spread.with(Mode::Spread, &all).max_cores, None);
    }

    #[test]
    fn arguments_read_as_they_are_written() {
        let args: PolicyArgs = serde_json::from_str(r#"{"max_cores":4,"pack":"small"}"#).unwrap();
        assert_eq!(args, PolicyArgs { pack: Some(Pack::Small), ..given(4) });
        for text in [r#"{"max_cores":"all"}"#, "{}"] {
            let args: PolicyArgs = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&args).unwrap(), text);
        }
        for bad in [r#"{"max_cores":"few"}"#, r#"{"pack":"big"}"#, r#"{"fill":80}"#] {
            assert!(serde_json::from_str::<PolicyArgs>(bad).is_err(), "{bad} was accepted");
        }
    }
}
