//! The hints that may be set: how soon the CPUs that work must be awake, what the hardware
//! prefers in each mode, and where interrupts come.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use scx_utils::compat::ROOT_PREFIX;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::mode::Mode;
use super::number_or_word;
use crate::machine::cpufreq::fixes_preference;
use crate::machine::interrupts;

/// How long the CPU may take to leave its idle state (us); below `cpuN/power`.
pub const LATENCY_FILE: &str = "pm_qos_resume_latency_us";
/// Energy or performance; below `cpufreq/policyN`.
pub const EPP_FILE: &str = "energy_performance_preference";

/// Below a microsecond there is only polling; no idle state takes a tenth of a second to leave.
const LATENCY_US_RANGE: RangeInclusive<u32> = 1..=100_000;

/// How long the active CPUs may take to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleLatency {
    /// As long as they were allowed to before.
    Any,
    /// The maximum in microseconds, 1..=100000.
    AtMostUs(u32),
}

impl FromStr for IdleLatency {
    type Err = anyhow::Error;

    /// Fails with a sentence that names the range.
    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "any" => Ok(IdleLatency::Any),
            Ok(us) if LATENCY_US_RANGE.contains(&us) => Ok(IdleLatency::AtMostUs(us)),
            _ => bail!(
                "'{text}' is no idle latency: {}..{} (microseconds), or 'any'",
                LATENCY_US_RANGE.start(),
                LATENCY_US_RANGE.end()
            ),
        }
    }
}

/// As a number, or the word `any`.
impl<'de> Deserialize<'de> for IdleLatency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number_or_word::parse(deserializer, "expected a number of microseconds, or \"any\"")
    }
}

impl Serialize for IdleLatency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            IdleLatency::Any => serializer.serialize_str("any"),
            IdleLatency::AtMostUs(us) => serializer.serialize_u32(*us),
        }
    }
}

/// In place of a preference: what is set stays, in any case.
pub const EPP_KEEP: &str = "keep";
/// Where the hardware chooses the frequency and nobody else sets the preference: one step from
/// what firmware and distributions set, `balance_performance`, which the other modes leave alone. On battery only, as
/// desktops do it: tasks are late more often by it (`scx_powerpack sim table pstate`).
const EPP_SAVES: &str = "balance_power";

/// The preference that goes with a mode on battery where none is asked for; `None`: not touched.
pub fn default_epp(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Packing | Mode::Energy => Some(EPP_SAVES),
        Mode::Balance | Mode::Spread => None,
    }
}

/// The energy/performance preference while a mode is in force, as the machine names it
/// (`energy_performance_available_preferences`), or [`EPP_KEEP`]; `None`: [`default_epp`] where all
/// that the hardware hears is this preference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EppByMode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<String>,
}

impl EppByMode {
    /// What is preferred in a mode, if anything.
    pub fn of(&self, mode: Mode) -> Option<&str> {
        match mode {
            Mode::Packing => self.packing.as_deref(),
            Mode::Balance => self.balance.as_deref(),
            Mode::Spread => self.spread.as_deref(),
            Mode::Energy => self.energy.as_deref(),
        }
    }
}

/// Where the interrupts of devices are to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Irqs {
    /// Where they come without us.
    Keep,
    /// To the active CPUs, if they may move and nobody has bound them.
    Follow,
}

/// The table `[hints]` of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// For the active CPUs; the surplus ones sleep as deep as they like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_latency_us: Option<IdleLatency>,
    #[serde(default)]
    pub epp: EppByMode,
    /// Without: [`Irqs::Keep`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irqs: Option<Irqs>,
}

/// Where sysfs is: `/`, or what `SCX_SYSFS_PREFIX` names.
pub fn root() -> PathBuf {
    PathBuf::from(format!("{}/", *ROOT_PREFIX))
}

impl Hints {
    /// Whether interrupts are to come to the active CPUs.
    pub fn moves_irqs(&self) -> bool {
        self.irqs == Some(Irqs::Follow)
    }

    /// Whether what is hinted changes with the active set.
    pub fn follow_active_set(&self) -> bool {
        self.idle_latency_us.is_some() || self.moves_irqs()
    }

    /// Whether the machine below `root` has preferences, if any is asked for. Fails with a
    /// sentence if it does not know one.
    fn check_epps(&self, root: &Path) -> Result<bool> {
        let asked = Mode::ALL.into_iter().filter_map(|mode| Some((mode, self.epp.of(mode)?)));
        let asked: Vec<_> = asked.filter(|&(_, value)| value != EPP_KEEP).collect();
        if asked.is_empty() {
            return Ok(true);
        }
        let possible = possible_epps(root);
        for (mode, value) in asked {
            check_epp(&possible, mode, value)?;
        }
        Ok(!possible.is_empty())
    }

    /// A sentence for each hint that the machine below `root` cannot follow now, where those
    /// of the record at `record` may be in force. Fails with one if a value is wrong in
    /// itself.
    pub fn lacks(&self, root: &Path, record: &Path) -> Result<Vec<String>> {
        let mut lacks = Vec::new();
        if !self.check_epps(root)? {
            lacks.push(format!(
                "this machine has no energy/performance preference (cpufreq {EPP_FILE}): leave epp out"
            ));
        }
        let has_bound = |cpu: &PathBuf| cpu.join("power").join(LATENCY_FILE).exists();
        if matches!(self.idle_latency_us, Some(IdleLatency::AtMostUs(_)))
            && !entries(root, "cpu").iter().any(has_bound)
        {
            lacks.push(format!(
                "this machine has no bound on idle latencies (power/{LATENCY_FILE}): leave idle_latency_us out"
            ));
        }
        if self.moves_irqs()
            && let Err(err) = interrupts::check(root, record)
        {
            lacks.push(err.to_string());
        }
        Ok(lacks)
    }
}

/// CPUs or policies of the machine below `root`, in the order of their names: `cpu0`, `policy0`.
pub fn entries(root: &Path, what: &str) -> Vec<PathBuf> {
    let cpus = root.join("sys/devices/system/cpu");
    let dir = if what == "policy" { cpus.join("cpufreq") } else { cpus };
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(what).is_some_and(|nr| nr.parse::<usize>().is_ok())
    };
    let found = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = found.filter(is_one).collect();
    paths.sort();
    paths
}

/// Whether `policy` has the preference `value`.
pub fn has_epp(policy: &Path, value: &str) -> bool {
    let available = available_epp(policy).unwrap_or_default();
    available.split_whitespace().any(|other| other == value)
}

/// Those of offline CPUs cannot be read.
fn available_epp(policy: &Path) -> Option<String> {
    fs::read_to_string(policy.join("energy_performance_available_preferences")).ok()
}

/// What the kernel's drivers call preferences.
const EPP_WORDS: &str = "default performance balance_performance balance_power power";

/// What may be asked of the policies, a list for each. One whose governor fixes the preference has
/// no say, as another governor may come; where all do, it is what the kernel knows.
fn possible_epps(root: &Path) -> Vec<String> {
    let (fixed, free): (Vec<PathBuf>, Vec<PathBuf>) =
        entries(root, "policy").into_iter().partition(|policy| fixes_preference(policy));
    let lists: Vec<String> = free.iter().filter_map(|policy| available_epp(policy)).collect();
    if lists.is_empty() && fixed.iter().any(|policy| available_epp(policy).is_some()) {
        return vec![EPP_WORDS.to_owned()];
    }
    lists
}

/// Fails if one of the `possible` policies cannot have `value`; where there is none, if no
/// driver of the kernel's knows it.
fn check_epp(possible: &[String], mode: Mode, value: &str) -> Result<()> {
    let known = [EPP_WORDS.to_owned()];
    for possible in if possible.is_empty() { &known } else { possible } {
        ensure!(
            possible.split_whitespace().any(|other| other == value),
            "epp.{mode} '{value}' is not available on this machine: choose one of {}",
            possible.split_whitespace().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(())
}
