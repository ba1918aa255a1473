//! Hints to the rest of the kernel: how soon the CPUs that work must be awake, what the
//! hardware prefers in each mode, and where interrupts come. Whatever is written to sysfs or
//! procfs is recorded before and put back in the end; after a SIGKILL by the next one that starts.

mod irqs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use log::{debug, info, warn};
use powerpack_workload::parse_cpu_list;

use crate::machine::cpufreq::{fixes_preference, hears_preference};
use crate::machine::interrupts::AFFINITY_FILE;
use crate::machine::power_supply;
use crate::machine::record::{self, Entries, Entry, PutBack, Record};
use crate::settings::hints::{
    EPP_FILE, EPP_KEEP, Hints, IdleLatency, LATENCY_FILE, default_epp, entries, has_epp,
};
use crate::settings::mode::Mode;
use irqs::{Active, Irqs, Target};

/// The files that hints are written to.
const FILES: [&str; 3] = [LATENCY_FILE, EPP_FILE, AFFINITY_FILE];

/// Puts back what a predecessor left that was killed, as the record at `record` (see
/// [`record::HINTS`]) says; what another program has changed since is left alone, and reported. Only
/// for the agent that holds the control socket: a record may be that of a running agent.
pub fn recover(record: &Path) -> PutBack {
    record::recover(record, &FILES, "hints of a killed predecessor")
}

/// What a file is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Want {
    AtMostUs(u32),
    Epp(String),
    /// In place of what machines come with: who has set another one meant it.
    EppIfUnset(&'static str),
    Irq(Target),
}

/// What firmware, drivers and distributions set.
const EPP_UNSET: [&str; 2] = ["default", "balance_performance"];

/// What the governor `performance` fixes it at.
const EPP_FIXED: &str = "performance";

impl Want {
    /// The value, where it was `original` before: another program that asked for a lower latency keeps it.
    fn value(&self, original: &str) -> String {
        match self {
            Want::Epp(value) => value.clone(),
            Want::EppIfUnset(value) if EPP_UNSET.contains(&original) => (*value).to_owned(),
            Want::EppIfUnset(_) => original.to_owned(),
            Want::Irq(target) => target.cpu.to_string(),
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
    irqs: Irqs,
    /// Whether the preference goes with the mode where none is asked for, on battery.
    defaults: bool,
    /// Whether a preference that is asked for waits for another governor.
    waits: bool,
    /// That something could not be put back was said.
    has_said_failed: bool,
    /// How many CPUs had come and gone when interrupts were last looked at; `None`: not known.
    hotplugs: Option<String>,
}

impl InForce {
    /// Nothing is written yet. What the machine below `root` does not have is left out until
    /// it has. Fails with a sentence if a hint is wrong in itself. To be called after
    /// [`recover`] for the same record; what that could not put back will be tried again.
    pub fn new(hints: Hints, root: &Path, record: &Path) -> Result<Self> {
        hints.lacks(root, record)?;
        let record = Record::open(record, &FILES);
        let held = record.entries().clone();
        Ok(InForce {
            hints,
            root: root.to_owned(),
            record,
            held,
            asked: BTreeMap::new(),
            irqs: Irqs::default(),
            defaults: false,
            waits: false,
            has_said_failed: false,
            hotplugs: hotplugs(root),
        })
    }

    /// From the next `apply` on other hints. Fails with a sentence, and then those from
    /// before stay.
    pub fn set(&mut self, hints: Hints) -> Result<()> {
        hints.lacks(&self.root, self.record.path())?;
        self.hints = hints;
        Ok(())
    }

    /// From the next `apply` on: whether the energy/performance preference goes with the mode where
    /// none is asked for, on battery. It must not while another service sets it.
    pub fn set_defaults(&mut self, defaults: bool) {
        let is_of_use = || {
            !power_supply::batteries(&self.root).is_empty()
                && entries(&self.root, "policy").iter().any(|policy| hears_preference(policy))
        };
        self.defaults = defaults && is_of_use();
    }

    /// Whether what is hinted in `mode` changes by itself: with the active set, as the machine goes on battery, or as
    /// another governor comes.
    pub fn change_unasked(&self, mode: Mode) -> bool {
        let may_save = self.defaults && default_epp(mode).is_some();
        self.hints.follow_active_set() || may_save || self.waits
    }

    /// From the next `apply` on interrupts come to these CPUs, if that is asked for: those of them that
    /// were in the last call too.
    pub fn set_active(&mut self, active: &[Active]) {
        self.take_over_what_hotplug_moved();
        if self.hints.moves_irqs() {
            let held = &self.held;
            self.irqs.look(&self.root, active, |path| held.contains_key(path));
        } else {
            self.irqs.clear();
        }
    }

    /// Whether anything is wanted, or is to be put back.
    pub fn is_in_use(&self) -> bool {
        self.hints != Hints::default() || self.defaults || !self.held.is_empty()
    }

    /// Whether a preference is set by us: what is read then is no evidence of what anyone wants.
    pub fn holds_epp(&self) -> bool {
        self.held.keys().any(|path| path.ends_with(EPP_FILE))
    }

    /// Puts the hints for `mode` in force: the latency for `cpus`, which are to be kept at
    /// work, and for all others what it was before. CPUs that are offline are passed over.
    /// Fails with a sentence: if it could not be recorded, what was in force until now is put
    /// back, and nothing else is written; if a write fails, the others are done and the first
    /// failure is returned.
    pub fn apply(&mut self, mode: Mode, cpus: &[usize]) -> Result<()> {
        self.leave_foreign_irqs();
        let wanted = self.wanted(mode, cpus);
        self.note_fixed(&wanted);
        let changes: Vec<Change> =
            wanted.iter().filter_map(|(path, want)| self.change(path, want)).collect();
        let mut needed = self.held.clone();
        needed.extend(changes.iter().map(|change| (change.path.clone(), change.entry.clone())));
        let recorded = self.record.cover(needed);
        let is_over = |path: &Path| {
            let changes = || changes.iter().any(|change| change.path == path);
            !wanted.contains_key(path) || recorded.is_err() && changes()
        };
        self.release(is_over);
        recorded?;
        let failures: Vec<_> =
            changes.into_iter().filter_map(|change| self.write(change).err()).collect();
        self.tidy();
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// Puts everything back that is not somebody else's by now, and removes the record. What
    /// fails is said, and stays recorded.
    pub fn restore(&mut self) -> PutBack {
        self.take_over_what_hotplug_moved();
        self.has_said_failed = false;
        let done = self.release(|_| true);
        if let Err(err) = self.record.replace(self.held.clone()) {
            warn!("{err:#}");
        }
        done
    }

    /// An interrupt that somebody has moved since is theirs from then on. Looked at each time, so that it is known
    /// before the kernel moves it too.
    fn leave_foreign_irqs(&mut self) {
        let targets = self.irqs.targets().keys();
        let is_foreign = |path: &Path| {
            let held = self.held.get(path);
            held.is_some_and(|held| record::read(path).is_ok_and(|now| !held.ours.contains(&now)))
        };
        let foreign: Vec<_> = targets.filter(|path| is_foreign(path)).cloned().collect();
        foreign.iter().for_each(|path| self.irqs.refuse(path));
    }

    /// The kernel moves an interrupt away from a CPU that goes, to all that are left or that there are, and leaves it
    /// there when the CPU comes back, as after a suspend: nobody has asked for that. What it has set counts as ours, and
    /// ours is written again.
    fn take_over_what_hotplug_moved(&mut self) {
        let now = hotplugs(&self.root);
        if std::mem::replace(&mut self.hotplugs, now.clone()) == now {
            return;
        }
        // Those that we have not moved may come elsewhere too.
        self.irqs.look_again();
        for (path, entry) in &mut self.held {
            let Some(Want::Irq(target)) = self.asked.get(path) else { continue };
            let Ok(now) = record::read(path) else { continue };
            let has_lost = || parse_cpu_list(&now).is_ok_and(|cpus| !cpus.contains(&target.cpu));
            if !entry.ours.contains(&now) && (now == entry.original || has_lost()) {
                entry.ours.insert(now);
                self.asked.remove(path);
            }
        }
    }

    fn wanted(&self, mode: Mode, cpus: &[usize]) -> BTreeMap<PathBuf, Want> {
        let mut wanted = BTreeMap::new();
        if let Some(IdleLatency::AtMostUs(us)) = self.hints.idle_latency_us {
            let power = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/power");
            let path = |cpu| self.root.join(power(cpu)).join(LATENCY_FILE);
            wanted.extend(cpus.iter().map(|cpu| (path(cpu), Want::AtMostUs(us))));
        }
        let saves = self.defaults && power_supply::on_battery(&self.root) == Some(true);
        for policy in entries(&self.root, "policy") {
            if let Some(want) = self.epp_of(mode, &policy, saves) {
                wanted.insert(policy.join(EPP_FILE), want);
            }
        }
        if self.hints.moves_irqs() {
            let targets = self.irqs.targets().iter();
            wanted.extend(targets.map(|(path, target)| (path.clone(), Want::Irq(target.clone()))));
        }
        wanted
    }

    /// The preference of a policy in a mode, if it is not to stay as it was; that of the mode itself only if it `saves`.
    fn epp_of(&self, mode: Mode, policy: &Path, saves: bool) -> Option<Want> {
        match self.hints.epp.of(mode) {
            Some(EPP_KEEP) => None,
            Some(value) => Some(Want::Epp(value.to_owned())),
            None if !saves || !hears_preference(policy) => None,
            None => default_epp(mode).filter(|value| has_epp(policy, value)).map(Want::EppIfUnset),
        }
    }

    /// Says once that a preference waits for another governor.
    fn note_fixed(&mut self, wanted: &BTreeMap<PathBuf, Want>) {
        let waits =
            wanted.iter().any(|(path, want)| self.is_due(path, want) && is_fixed(path, want));
        if waits && !self.waits {
            info!(
                "the governor performance fixes the energy/performance preference: it is set as another one comes"
            );
        }
        self.waits = waits;
    }

    fn is_due(&self, path: &Path, want: &Want) -> bool {
        self.asked.get(path) != Some(want)
    }

    /// What is to be written so that `path` is as wanted, if anything.
    fn change(&self, path: &Path, want: &Want) -> Option<Change> {
        if !self.is_due(path, want) || is_offline(path) || is_fixed(path, want) {
            return None;
        }
        // Unreadable: gone, or a policy all of whose CPUs are offline.
        let now = record::read(path).ok()?;
        let mut entry = match self.held.get(path) {
            Some(held) if held.ours.contains(&now) => held.clone(),
            _ => Entry::found(now.clone()),
        };
        if let Want::Irq(target) = want {
            let home = target.home.map(|cpu| cpu.to_string());
            entry.by_way_of = entry.by_way_of.or(home);
        }
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
            // Not every interrupt that seems to may be moved, and that is no news.
            Err(err) if matches!(want, Want::Irq(_)) => {
                debug!("{} stays as it is: {err}", path.display());
                self.irqs.refuse(&path);
                return Ok(());
            }
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
        done.warn_of_foreign();
        // It is tried again at each look, and may fail for weeks.
        if !self.has_said_failed {
            done.warn_of_failed();
        }
        self.has_said_failed = !done.failed.is_empty();
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

/// The kernel's count of CPUs that have come or gone.
fn hotplugs(root: &Path) -> Option<String> {
    record::read(&root.join("sys/kernel/sched_ext/hotplug_seq")).ok()
}

/// Whether `path` is below a CPU that is offline; CPU 0 often has no such file.
fn is_offline(path: &Path) -> bool {
    let cpu = path.ancestors().nth(2).unwrap_or(path);
    record::read(&cpu.join("online")).is_ok_and(|online| online == "0")
}

/// Whether the governor refuses what is wanted of a policy for the moment.
fn is_fixed(path: &Path, want: &Want) -> bool {
    matches!(want, Want::Epp(value) if value != EPP_FIXED)
        && path.parent().is_some_and(fixes_preference)
}
