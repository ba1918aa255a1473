//! Idle and frequency hints: how soon the CPUs that work must be awake, and what the
//! hardware prefers in each mode. Whatever is written to sysfs is recorded before and put
//! back in the end; after a SIGKILL by the next one that starts.

mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use log::{info, warn};
use scx_utils::compat::ROOT_PREFIX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::policy::Mode;
use record::{EPP_FILE, Entries, Entry, LATENCY_FILE, PutBack, Record};

/// Where the record is, beside the control socket.
pub const RECORD: &str = "/run/scx_powerpack/hints.json";
/// Below a microsecond there is only polling; no idle state takes a tenth of a second to leave.
const LATENCY_US_RANGE: RangeInclusive<u32> = 1..=100_000;

/// How long the active CPUs may take to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleLatency {
    /// As long as they were allowed to before.
    Any,
    /// At most so many microseconds, 1..=100000.
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
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number of microseconds, or \"any\"")]
        enum Form {
            Us(i64),
            Text(String),
        }
        let text = match Form::deserialize(deserializer)? {
            Form::Us(us) => us.to_string(),
            Form::Text(text) => text,
        };
        text.parse().map_err(de::Error::custom)
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

/// The energy/performance preference while a mode is in force, as the machine names it
/// (`energy_performance_available_preferences`); `None`: not touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EppByMode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
}

impl EppByMode {
    fn of(&self, mode: Mode) -> Option<&str> {
        match mode {
            Mode::Packing => self.packing.as_deref(),
            Mode::Balance => self.balance.as_deref(),
            Mode::Spread => self.spread.as_deref(),
        }
    }
}

/// The table `[hints]` of the configuration file; what is left out is not touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// For the CPUs that are kept at work; the surplus ones sleep as deep as they like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_latency_us: Option<IdleLatency>,
    #[serde(default)]
    pub epp: EppByMode,
}

/// Where sysfs is: `/`, or what `SCX_SYSFS_PREFIX` names.
pub fn root() -> PathBuf {
    PathBuf::from(format!("{}/", *ROOT_PREFIX))
}

impl Hints {
    /// Checks what is asked for against the machine below `root`. Fails with a sentence.
    pub fn check(&self, root: &Path) -> Result<()> {
        if let Some(IdleLatency::AtMostUs(_)) = self.idle_latency_us {
            ensure!(
                entries(root, "cpu")
                    .iter()
                    .any(|cpu| cpu.join("power").join(LATENCY_FILE).exists()),
                "this machine has no bound on idle latencies (power/{LATENCY_FILE}): leave \
                 idle_latency_us out"
            );
        }
        for mode in Mode::ALL {
            if let Some(value) = self.epp.of(mode) {
                check_epp(root, mode, value)?;
            }
        }
        Ok(())
    }

    /// Puts back what a predecessor left that was killed, as the record at `record` (see
    /// `RECORD`) tells; what somebody else has changed since is left alone, and said. Only
    /// for the one that holds the control socket: a record may be that of a running agent.
    pub fn recover(record: &Path) -> PutBack {
        let mut record = Record::open(record);
        let mut left = record.entries().clone();
        let done = record::put_back(&mut left, |_| true);
        if done.restored > 0 {
            info!("{} idle and frequency hints of a killed predecessor are undone", done.restored);
        }
        done.warn();
        if let Err(err) = record.replace(left) {
            warn!("{err:#}");
        }
        done
    }
}

/// CPUs or policies in the order of their names: `cpu0`, `policy0`.
fn entries(root: &Path, what: &str) -> Vec<PathBuf> {
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

/// Fails if a policy does not have `value`, or none has any.
fn check_epp(root: &Path, mode: Mode, value: &str) -> Result<()> {
    // Those whose CPUs are offline cannot be read.
    let available: Vec<String> = entries(root, "policy")
        .iter()
        .filter_map(|policy| {
            record::read(&policy.join("energy_performance_available_preferences")).ok()
        })
        .collect();
    ensure!(
        !available.is_empty(),
        "this machine has no energy/performance preference (cpufreq {EPP_FILE}): leave epp out"
    );
    for available in available {
        ensure!(
            available.split_whitespace().any(|other| other == value),
            "epp.{mode} '{value}' is not available on this machine: choose one of {}",
            available.split_whitespace().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(())
}

/// What a file is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Want {
    AtMostUs(u32),
    Epp(String),
}

impl Want {
    /// The value, where it was `original` before: whoever asked for a lower latency keeps it.
    fn value(&self, original: &str) -> String {
        match self {
            Want::Epp(value) => value.clone(),
            // In this file 0 is no bound at all, and n/a that there be no latency.
            Want::AtMostUs(us) => match original.parse::<u32>() {
                Ok(before) if before == 0 || before > *us => us.to_string(),
                Ok(_) => original.to_owned(),
                Err(_) if original == "n/a" => original.to_owned(),
                Err(_) => us.to_string(),
            },
        }
    }
}

/// A write that is due.
struct Change {
    path: PathBuf,
    want: Want,
    value: String,
    entry: Entry,
}

/// Hints that are applied; dropping it puts everything back.
pub struct InForce {
    hints: Hints,
    root: PathBuf,
    record: Record,
    /// The files that hold something of ours.
    held: Entries,
    /// Why they do. They are not looked at again until something else is wanted of them: who
    /// changes one meanwhile has the last word.
    asked: BTreeMap<PathBuf, Want>,
}

impl InForce {
    /// Nothing is written yet. Fails with a sentence if this machine below `root` has not
    /// what is asked for. To be called after `Hints::recover` for the same record; what that
    /// could not put back will be tried again.
    pub fn new(hints: Hints, root: &Path, record: &Path) -> Result<Self> {
        hints.check(root)?;
        let record = Record::open(record);
        let held = record.entries().clone();
        Ok(InForce { hints, root: root.to_owned(), record, held, asked: BTreeMap::new() })
    }

    /// From the next `apply` on other hints. Fails with a sentence, and then those from
    /// before stay.
    pub fn set(&mut self, hints: Hints) -> Result<()> {
        hints.check(&self.root)?;
        self.hints = hints;
        Ok(())
    }

    /// Whether anything is wanted, or is to be put back.
    pub fn is_in_use(&self) -> bool {
        self.hints != Hints::default() || !self.held.is_empty()
    }

    /// Puts the hints for `mode` in force: the latency for `cpus`, which are to be kept at
    /// work, and for all others what it was before. CPUs that are offline are passed over.
    /// Fails with a sentence: nothing is written if it could not be recorded; if a write
    /// fails, the others are done and the first failure is told.
    pub fn apply(&mut self, mode: Mode, cpus: &[usize]) -> Result<()> {
        let wanted = self.wanted(mode, cpus);
        let changes: Vec<Change> =
            wanted.iter().filter_map(|(path, want)| self.change(path, want)).collect();
        let mut needed = self.held.clone();
        needed.extend(changes.iter().map(|change| (change.path.clone(), change.entry.clone())));
        self.record.cover(needed)?;
        self.release(|path| !wanted.contains_key(path));
        let failures: Vec<_> =
            changes.into_iter().filter_map(|change| self.write(change).err()).collect();
        self.tidy();
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// Puts everything back that is not somebody else's by now, and removes the record. What
    /// fails is said, and stays recorded.
    pub fn restore(&mut self) -> PutBack {
        let done = self.release(|_| true);
        if let Err(err) = self.record.replace(self.held.clone()) {
            warn!("{err:#}");
        }
        done
    }

    fn wanted(&self, mode: Mode, cpus: &[usize]) -> BTreeMap<PathBuf, Want> {
        let mut wanted = BTreeMap::new();
        if let Some(IdleLatency::AtMostUs(us)) = self.hints.idle_latency_us {
            let power = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/power");
            let path = |cpu| self.root.join(power(cpu)).join(LATENCY_FILE);
            wanted.extend(cpus.iter().map(|cpu| (path(cpu), Want::AtMostUs(us))));
        }
        if let Some(value) = self.hints.epp.of(mode) {
            let path = |policy: PathBuf| policy.join(EPP_FILE);
            let policies = entries(&self.root, "policy").into_iter();
            wanted.extend(policies.map(|policy| (path(policy), Want::Epp(value.to_owned()))));
        }
        wanted
    }

    /// What is to be written so that `path` is as wanted, if anything.
    fn change(&self, path: &Path, want: &Want) -> Option<Change> {
        if self.asked.get(path) == Some(want) || is_offline(path) {
            return None;
        }
        // Unreadable: gone, or a policy all of whose CPUs are offline.
        let now = record::read(path).ok()?;
        let mut entry = match self.held.get(path) {
            Some(held) if held.ours.contains(&now) => held.clone(),
            _ => Entry::found(now.clone()),
        };
        let value = want.value(&entry.original);
        if value == now && entry.ours.is_empty() {
            return None;
        }
        entry.ours.insert(value.clone());
        Some(Change { path: path.to_owned(), want: want.clone(), value, entry })
    }

    /// Writes what has been recorded.
    fn write(&mut self, change: Change) -> Result<()> {
        let Change { path, want, value, mut entry } = change;
        match record::write(&path, &value) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(()),
            written => {
                written.with_context(|| format!("cannot write {value} to {}", path.display()))?;
            }
        }
        // A name may stand for another: "default" reads as what it means.
        entry.ours.extend(record::read(&path));
        self.held.insert(path.clone(), entry);
        self.asked.insert(path, want);
        self.record.cover(self.held.clone())
    }

    fn release(&mut self, which: impl Fn(&Path) -> bool) -> PutBack {
        let done = record::put_back(&mut self.held, which);
        self.asked.retain(|path, _| self.held.contains_key(path));
        done.warn();
        done
    }

    /// No record without anything to put back.
    fn tidy(&mut self) {
        if self.held.is_empty()
            && let Err(err) = self.record.replace(Entries::new())
        {
            warn!("{err:#}");
        }
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Whether `path` is below a CPU that is offline; CPU 0 often has no such file.
fn is_offline(path: &Path) -> bool {
    let cpu = path.ancestors().nth(2).unwrap_or(path);
    record::read(&cpu.join("online")).is_ok_and(|online| online == "0")
}
