//! The cgroups that there are, and which of them have a limit that we do not enforce.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use powerpack_workload::parse_cpu_list;

use crate::machine::kernel::{self, KernelNames};
use crate::machine::names::printable;

/// Where cgroups are, as directories.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// More than these in one sentence nobody reads.
const LISTED_MAX: usize = 5;

/// For how long a walk's result is good: anyone may ask for the status, many times a second.
const WALK_PERIOD: Duration = Duration::from_secs(1);

/// A cgroup that is there.
#[derive(Clone, Debug)]
pub struct Cgroup {
    /// From the root on, without a leading `/`.
    pub path: String,
    /// The kernel's number of it.
    pub id: u64,
}

impl Cgroup {
    /// Whether it is the one that is still there, and not another one of that path.
    pub fn is_there(&self) -> bool {
        let meta = fs::metadata(Path::new(CGROUP_ROOT).join(&self.path));
        meta.is_ok_and(|meta| meta.ino() == self.id)
    }
}

/// Whether cgroups can be found by their path: those of cgroup v1 are elsewhere, with numbers that mean
/// nothing to the scheduler.
pub fn are_unified() -> bool {
    Path::new(CGROUP_ROOT).join("cgroup.controllers").exists()
}

/// Whether cgroup v1 has the cpu controller, whose limits and shares are not followed then: the BPF side goes by
/// the cgroup that a task has in the unified hierarchy.
pub fn is_cpu_v1() -> bool {
    has_cpu_controller(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// Whether `/proc/self/cgroup`, with a line for each hierarchy, has one of cgroup v1 with the cpu controller: in that of
/// the unified one no controllers are named.
fn has_cpu_controller(hierarchies: &str) -> bool {
    let mut controllers = hierarchies.lines().filter_map(|line| line.split(':').nth(1));
    controllers.any(|names| names.split(',').any(|name| name == "cpu"))
}

/// The sentence for a user with cgroup v1.
pub const IGNORED_V1: &str = "limits and shares of cgroups are not kept while this scheduler \
     runs, as cgroup v1 has the cpu controller: boot with systemd.unified_cgroup_hierarchy=1";

/// How many cgroups there are: what changes when one comes or goes. Cheap, unlike a walk.
pub fn count() -> usize {
    let text = fs::read_to_string(Path::new(CGROUP_ROOT).join("cgroup.stat")).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("nr_descendants "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// All cgroups below the root; those that vanish meanwhile are left out. None where [`are_unified`] says no.
pub fn all() -> Vec<Cgroup> {
    let root = Path::new(CGROUP_ROOT);
    if !are_unified() {
        return vec![];
    }
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::from(root)]);
    while let Some(dir) = open.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            // A cgroup has dozens of files, and their type is known without asking for more.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(Cgroup { path: path.to_owned(), id: meta.ino() });
            }
            open.push(path);
        }
    }
    found
}

/// The cgroups with a cpuset of their own, the outermost ones: their paths, sorted, and the CPUs
/// that their tasks may use.
fn confined() -> Vec<(String, Vec<usize>)> {
    let mut found: Vec<_> =
        all().into_iter().filter_map(|cgroup| confined_to(cgroup.path)).collect();
    found.sort_unstable();
    let outer: Vec<String> = found.iter().map(|(path, _)| format!("{path}/")).collect();
    found.retain(|(path, _)| !outer.iter().any(|outer| path.starts_with(outer.as_str())));
    found
}

fn confined_to(path: String) -> Option<(String, Vec<usize>)> {
    let read = |file| fs::read_to_string(Path::new(CGROUP_ROOT).join(&path).join(file)).ok();
    if read("cpuset.cpus")?.trim().is_empty() {
        return None;
    }
    let cpus = parse_cpu_list(read("cpuset.cpus.effective")?.trim()).ok()?;
    Some((path, cpus))
}

/// What was found at most [`WALK_PERIOD`] ago.
#[derive(Debug)]
struct Recent<T>(Option<(Instant, T)>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent(None)
    }
}

impl<T> Recent<T> {
    /// Found by `walk` if it is older.
    fn or_by(&mut self, walk: impl FnOnce() -> T) -> &T {
        if self.0.as_ref().is_some_and(|(when, _)| when.elapsed() >= WALK_PERIOD) {
            self.0 = None;
        }
        &self.0.get_or_insert_with(|| (Instant::now(), walk())).1
    }
}

/// What a status says of cgroups, looked for once a second at most: thousands take a tenth of a second.
#[derive(Debug, Default)]
pub struct Walks {
    all: Recent<Vec<Cgroup>>,
    confined: Recent<Vec<(String, Vec<usize>)>>,
    with_cpu_max: Recent<Vec<String>>,
}

impl Walks {
    /// [`all`].
    pub fn all(&mut self) -> &[Cgroup] {
        self.all.or_by(all)
    }

    /// [`confined`].
    pub fn confined(&mut self) -> &[(String, Vec<usize>)] {
        self.confined.or_by(confined)
    }

    /// [`with_cpu_max`].
    pub fn with_cpu_max(&mut self) -> &[String] {
        self.with_cpu_max.or_by(with_cpu_max)
    }
}

/// The cgroups with a `cpu.max` that is not enforced, looked for once a second at most.
#[derive(Debug)]
pub struct CpuMaxLimits {
    /// The kernel reports cgroups, so that the scheduler enforces all limits.
    enforced: bool,
    found: Recent<Vec<String>>,
}

impl CpuMaxLimits {
    /// Of this kernel. Fails where it has no BTF.
    pub fn of_kernel() -> Result<Self> {
        let enforced = kernel::reports_cgroups(&KernelNames::read()?);
        Ok(CpuMaxLimits { enforced, found: Recent::default() })
    }

    /// Their paths, at most a second old, sorted.
    pub fn paths(&mut self) -> &[String] {
        if self.enforced {
            return &[];
        }
        self.found.or_by(with_cpu_max)
    }
}

/// The paths of all cgroups with a limit in `cpu.max`, sorted.
fn with_cpu_max() -> Vec<String> {
    let mut paths: Vec<_> = all().into_iter().map(|cgroup| cgroup.path).collect();
    paths.retain(|path| has_cpu_max(path));
    paths.sort_unstable();
    paths
}

/// Whether the cgroup at `path` has a limit in `cpu.max`.
pub fn has_cpu_max(path: &str) -> bool {
    let file = Path::new(CGROUP_ROOT).join(path).join("cpu.max");
    fs::read_to_string(file).is_ok_and(|text| is_limit(&text))
}

/// Whether `cpu.max` says a quota: `QUOTA PERIOD` in us, or `max PERIOD`.
fn is_limit(cpu_max: &str) -> bool {
    cpu_max.split_whitespace().next().is_some_and(|quota| quota != "max")
}

/// The sentence for a user whose cgroups `paths` have a `cpu.max`; `None` without any.
pub fn ignored_cpu_max(paths: &[String]) -> Option<String> {
    let listed = printable(&paths[..paths.len().min(LISTED_MAX)].join(", "));
    let more = match paths.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        nr => format!(" and {nr} more"),
    };
    (!paths.is_empty())
        .then(|| format!("cpu.max of {listed}{more} is not enforced while this scheduler runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_good_for_a_while() {
        let mut recent = Recent::default();
        assert_eq!((*recent.or_by(|| 1), *recent.or_by(|| 2)), (1, 1));
        if let Some((when, _)) = &mut recent.0 {
            *when -= WALK_PERIOD;
        }
        assert_eq!(*recent.or_by(|| 3), 3);
    }

    #[test]
    fn a_quota_is_a_limit_and_max_is_none() {
        for (text, limit) in [("max 100000\n", false), ("20000 100000\n", true), ("", false)] {
            assert_eq!(is_limit(text), limit, "{text}");
        }
    }

    #[test]
    fn the_cpu_controller_is_one_of_v1_where_a_hierarchy_names_it() {
        assert!(!has_cpu_controller("0::/user.slice\n"));
        assert!(!has_cpu_controller("3:cpuset:/\n1:name=systemd:/cpu\n0::/\n"));
        assert!(has_cpu_controller("4:cpu,cpuacct:/\n0::/\n"));
    }

    #[test]
    fn a_sentence_names_a_few_and_counts_the_rest() {
        let paths: Vec<String> = (1..=7).map(|nr| format!("c{nr}")).collect();
        assert_eq!(ignored_cpu_max(&[]), None);
        assert!(ignored_cpu_max(&paths[..5]).unwrap().contains(" c1, c2, c3, c4, c5 is "));
        assert!(ignored_cpu_max(&paths).unwrap().contains(" c5 and 2 more is "));
    }
}
