//! The machine that is measured: its groups of cores, the frequencies and idle states of each kind, and
//! the files that set these.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use powerpack_workload::parse_cpu_list;

use crate::machine::borrowed::{DISABLE_FILE, KHZ_MAX_FILE, KHZ_MIN_FILE};
use crate::machine::layout::{self, Group};
use crate::machine::sensors::entries;
use crate::machine::topology::Ranks;

/// At how many frequencies each kind is measured.
const NR_KHZ: usize = 5;
/// The state that is no idle state: the CPU computes, and waits.
const POLL: &str = "POLL";

/// An idle state of a kind, as cpuidle has it.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleState {
    pub name: String,
    /// The number in the name of its directory.
    pub index: usize,
    pub residency_us: f64,
    pub exit_us: f64,
}

/// A kind of core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kind {
    pub capacity: usize,
    pub threads: usize,
    /// Those that are measured, lowest first; none: no cpufreq.
    pub khz: Vec<u64>,
    /// Shallowest first; without those that somebody has disabled.
    pub idle: Vec<IdleState>,
}

impl Kind {
    /// How long it is idle at least in its deepest state (us).
    pub fn deepest_residency_us(&self) -> f64 {
        self.idle.last().map_or(0.0, |state| state.residency_us)
    }
}

/// CPUs that share a clock.
#[derive(Clone, Debug)]
struct Policy {
    dir: PathBuf,
    cpus: Vec<usize>,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Subject {
    pub groups: Vec<Group>,
    /// A kind of core by number, as the groups name it here.
    pub kinds: Vec<Kind>,
    cpu_root: PathBuf,
    policies: Vec<Policy>,
}

impl Subject {
    /// This machine, its sysfs below `root`. Fails with a sentence if that cannot be read.
    pub fn read(ranks: &Ranks, root: &Path) -> Result<Self> {
        let cpu_root = root.join("sys/devices/system/cpu");
        let mut groups = layout::of(ranks);
        let kinds = kinds_of(&mut groups, |group| Kind {
            capacity: group.capacity,
            threads: group.threads,
            khz: khz_of(&cpu_root.join(format!("cpu{}/cpufreq", group.cores[0][0]))),
            idle: idle_of(&cpu_root.join(format!("cpu{}/cpuidle", group.cores[0][0]))),
        });
        let policies = entries(&cpu_root.join("cpufreq")).into_iter().filter_map(policy_of);
        Ok(Subject { groups, kinds, policies: policies.collect(), cpu_root })
    }

    /// The LLC of each group, numbered from 0 on.
    pub fn llcs(&self) -> Vec<usize> {
        let mut nr = 0;
        (0..self.groups.len())
            .map(|nth| {
                nr += usize::from(nth > 0 && !layout::is_joined(&self.groups, nth));
                nr
            })
            .collect()
    }

    /// Of each LLC which class it is of: those of the same kinds of cores, as many of each.
    pub fn class_of_llc(&self) -> Vec<usize> {
        let mut members: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (group, llc) in self.groups.iter().zip(self.llcs()) {
            members.entry(llc).or_default().push((group.kind, group.cores.len()));
        }
        classes(&members.into_values().collect::<Vec<_>>())
    }

    /// Of each group which class it is of: those of as many cores of the same kind.
    pub fn class_of_group(&self) -> Vec<usize> {
        let members = self.groups.iter().map(|group| (group.kind, group.cores.len()));
        classes(&members.collect::<Vec<_>>())
    }

    /// The groups of each LLC, by their number.
    pub fn groups_of_llc(&self) -> Vec<Vec<usize>> {
        let llcs = self.llcs();
        let of = |llc| (0..self.groups.len()).filter(|&nth| llcs[nth] == llc).collect();
        (0..=llcs.last().copied().unwrap_or(0)).map(of).collect()
    }

    /// The LLCs of the package that the `nth` group is in.
    pub fn llcs_of_package(&self, nth: usize) -> Vec<usize> {
        let package = self.groups[nth].package;
        let groups = self.groups.iter().zip(self.llcs());
        let mut llcs: Vec<usize> =
            groups.filter(|(group, _)| group.package == package).map(|(_, llc)| llc).collect();
        llcs.dedup();
        llcs
    }

    /// What the files of idle states have to hold where each CPU may go as deep as its number in
    /// `limits` among the states of its kind, and all others as deep as they like.
    pub fn idle_files(&self, limits: &BTreeMap<usize, usize>) -> Vec<(PathBuf, String)> {
        let mut wanted = vec![];
        for group in &self.groups {
            for cpu in group.cpus() {
                for (nth, state) in self.kinds[group.kind].idle.iter().enumerate() {
                    let disabled = limits.get(&cpu).is_some_and(|&deepest| nth > deepest);
                    let path = self.state_dir(cpu, state).join(DISABLE_FILE);
                    wanted.push((path, u8::from(disabled).to_string()));
                }
            }
        }
        wanted
    }

    /// The directory of an idle state of a CPU.
    pub fn state_dir(&self, cpu: usize, state: &IdleState) -> PathBuf {
        self.cpu_root.join(format!("cpu{cpu}/cpuidle/state{}", state.index))
    }

    /// What the files of clocks have to hold where each kind is at the frequency that `chosen` has, of those
    /// that are measured. Fails if one cannot be read.
    pub fn clock_files(&self, chosen: &[usize]) -> Result<Vec<(PathBuf, String)>> {
        let mut wanted = vec![];
        for policy in &self.policies {
            let of_policy = |group: &&Group| group.cpus().any(|cpu| policy.cpus.contains(&cpu));
            let khz = |group: &Group| self.kinds[group.kind].khz.get(chosen[group.kind]).copied();
            // Kinds that share a clock have one frequency.
            let Some(khz) = self.groups.iter().filter(of_policy).filter_map(khz).max() else {
                continue;
            };
            let (low, high) = (policy.dir.join(KHZ_MIN_FILE), policy.dir.join(KHZ_MAX_FILE));
            let is_lower = khz < number(&high)?;
            let mut both = [(high, khz.to_string()), (low, khz.to_string())];
            // The lower bound is never above the upper one.
            if is_lower {
                both.reverse();
            }
            wanted.extend(both);
        }
        Ok(wanted)
    }

    /// The mean frequency of these CPUs now (MHz); `None` without cpufreq.
    pub fn mhz_now(&self, cpus: &[usize]) -> Option<f64> {
        let khz = |cpu: &usize| {
            number(&self.cpu_root.join(format!("cpu{cpu}/cpufreq/scaling_cur_freq"))).ok()
        };
        let all: Vec<u64> = cpus.iter().filter_map(khz).collect();
        (!all.is_empty()).then(|| all.iter().sum::<u64>() as f64 / all.len() as f64 / 1e3)
    }

    /// Which CPUs share a clock, as a machine file says it.
    pub fn clock(&self) -> &'static str {
        let inside = |set: &dyn Fn(&Group) -> Vec<Vec<usize>>| {
            let sets: Vec<Vec<usize>> = self.groups.iter().flat_map(set).collect();
            self.policies.iter().all(|policy| {
                sets.iter().any(|set| policy.cpus.iter().all(|cpu| set.contains(cpu)))
            })
        };
        if inside(&|group| group.cores.clone()) {
            return "core";
        }
        let has_joined = (0..self.groups.len()).any(|nth| layout::is_joined(&self.groups, nth));
        match inside(&|group| vec![group.cpus().collect()]) {
            true if has_joined => "kind",
            true => "llc",
            false => "package",
        }
    }

    /// What is read of the first clock: a file of its directory.
    pub fn clock_setting(&self, file: &str) -> Option<String> {
        let path = self.policies.first()?.dir.join(file);
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    }

    /// What predicts the length of idle periods; empty without cpuidle.
    pub fn idle_governor(&self) -> String {
        let path = self.cpu_root.join("cpuidle/current_governor");
        fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    }

    /// A machine of these groups and kinds, without files.
    #[cfg(test)]
    pub fn made_up(mut groups: Vec<Group>, kind: impl Fn(&Group) -> Kind) -> Self {
        let kinds = kinds_of(&mut groups, kind);
        Subject { groups, kinds, cpu_root: PathBuf::from("/nowhere"), policies: vec![] }
    }
}

/// Numbers equal ones alike.
fn classes<T: Ord>(all: &[T]) -> Vec<usize> {
    let mut distinct: Vec<&T> = all.iter().collect();
    distinct.sort();
    distinct.dedup();
    all.iter().map(|one| distinct.partition_point(|other| *other < one)).collect()
}

/// Kinds by capacity and number of threads; the groups are changed to name these.
fn kinds_of(groups: &mut [Group], kind: impl Fn(&Group) -> Kind) -> Vec<Kind> {
    let mut kinds: Vec<((usize, usize), Kind)> = vec![];
    for group in groups {
        let key = (group.kind, group.threads);
        let known = kinds.iter().position(|(other, _)| *other == key);
        group.kind = known.unwrap_or_else(|| {
            kinds.push((key, kind(group)));
            kinds.len() - 1
        });
        let kind = &mut kinds[group.kind].1;
        kind.capacity = kind.capacity.max(group.capacity);
    }
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

/// Evenly from the lowest to the highest, of those that there are.
fn khz_of(dir: &Path) -> Vec<u64> {
    let listed = fs::read_to_string(dir.join("scaling_available_frequencies")).unwrap_or_default();
    let mut all: Vec<u64> = listed.split_whitespace().filter_map(|khz| khz.parse().ok()).collect();
    if all.is_empty() {
        let ends = ["cpuinfo_min_freq", "cpuinfo_max_freq"].map(|file| number(&dir.join(file)));
        let [Ok(low), Ok(high)] = ends else { return vec![] };
        let step = |nth: usize| low + (high - low) * nth as u64 / (NR_KHZ as u64 - 1);
        all = (0..NR_KHZ).map(step).collect();
    }
    all.sort_unstable();
    all.dedup();
    let nr = all.len().min(NR_KHZ);
    (0..nr).map(|nth| all[nth * (all.len() - 1) / (nr - 1).max(1)]).collect()
}

fn idle_of(dir: &Path) -> Vec<IdleState> {
    let state = |index: usize| {
        let dir = dir.join(format!("state{index}"));
        let name = fs::read_to_string(dir.join("name")).ok()?.trim().to_owned();
        let us = |file| number(&dir.join(file)).map(|us| us as f64);
        let disabled = number(&dir.join(DISABLE_FILE)).unwrap_or(0) != 0;
        let (residency_us, exit_us) = (us("residency").ok()?, us("latency").ok()?);
        Some((disabled, IdleState { name, index, residency_us, exit_us }))
    };
    let states = (0..).map_while(state);
    states.filter(|(off, state)| !off && state.name != POLL).map(|(_, state)| state).collect()
}

fn policy_of(dir: PathBuf) -> Option<Policy> {
    let text = fs::read_to_string(dir.join("affected_cpus")).ok()?;
    let cpus = parse_cpu_list(&text.trim().replace(' ', ",")).ok()?;
    Some(Policy { dir, cpus })
}

/// The number in a file of sysfs. Fails with a sentence.
pub fn number(path: &Path) -> Result<u64> {
    let text = fs::read_to_string(path);
    let text = match text {
        Err(err) if err.kind() == ErrorKind::NotFound => bail!("there is no {}", path.display()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    text.trim().parse().with_context(|| format!("{} holds no number", path.display()))
}
