//! The cgroups of a load: what a suite says of them, and making and removing them.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use log::warn;
use powerpack_workload::parse_cpu_list;
use serde::Deserialize;

use super::meter::online_cpus;

/// Where cgroups are, as directories.
const ROOT: &str = "/sys/fs/cgroup";
/// All of ours are in this one, so that one look finds what a benchmark that was killed has left.
const OWN: &str = "scx_powerpack-bench";
/// The root, as a load names it.
const THE_ROOT: &str = "/";
/// What is killed may be throttled, and has this time to end.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A cgroup, as a suite describes it; what it does not say is as the kernel makes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// "a/b": those above it are made too.
    pub path: String,
    #[serde(rename = "cpu.max")]
    cpu_max: Option<String>,
    #[serde(rename = "cpu.weight")]
    cpu_weight: Option<u32>,
    #[serde(rename = "cpuset.cpus")]
    cpuset_cpus: Option<String>,
    /// Commands that run in it as long as the load does.
    #[serde(default)]
    pub beside: Vec<String>,
}

/// The cgroups of a load.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    /// That of the load itself: below ours, or the root.
    load: Option<String>,
    all: Vec<Cgroup>,
}

/// They exist; dropping it kills what is in them, and removes them.
#[derive(Debug)]
pub struct Made {
    own: PathBuf,
    /// The controllers of the root that were off.
    enabled: Vec<&'static str>,
    /// Held, so that no other benchmark takes them for leftovers.
    _lock: File,
}

impl Cgroup {
    fn check(&self) -> Result<()> {
        check_path(&self.path)?;
        if let Some(max) = &self.cpu_max {
            let words: Vec<&str> = max.split_whitespace().collect();
            let is_us = |word: &&str| word.parse::<u64>().is_ok_and(|us| us > 0);
            let (quota, rest) = words.split_first().context("cpu.max is empty")?;
            ensure!(
                (*quota == "max" || is_us(quota)) && rest.len() < 2 && rest.iter().all(is_us),
                "cpu.max is QUOTA PERIOD in us, not '{max}'"
            );
        }
        let in_range = |weight: &u32| (1..=10_000).contains(weight);
        ensure!(self.cpu_weight.as_ref().is_none_or(in_range), "cpu.weight is 1 to 10000");
        let cpus = self.cpuset_cpus.as_deref().map(parse_cpu_list).transpose();
        let cpus = cpus.context("cpuset.cpus")?;
        ensure!(cpus.is_none_or(|cpus| !cpus.is_empty()), "cpuset.cpus is empty");
        Ok(())
    }

    /// Which files are to hold what.
    fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let weight = self.cpu_weight.map(|weight| weight.to_string());
        [
            ("cpuset.cpus", self.cpuset_cpus.clone()),
            ("cpu.weight", weight),
            ("cpu.max", self.cpu_max.clone()),
        ]
        .into_iter()
        .filter_map(|(file, value)| Some((file, value?)))
    }

    fn is_above(&self, path: &str) -> bool {
        Path::new(path).starts_with(&self.path) && path != self.path
    }
}

impl Cgroups {
    /// Of a load in `load`, with `described` ones. Fails with a sentence if that cannot be.
    pub fn new(load: Option<&str>, described: &[Cgroup]) -> Result<Self> {
        for (nth, cgroup) in described.iter().enumerate() {
            let what = || format!("cgroup '{}'", cgroup.path);
            cgroup.check().with_context(what)?;
            let twice = described[..nth].iter().any(|other| other.path == cgroup.path);
            ensure!(!twice, "cgroup '{}' is in it twice", cgroup.path);
        }
        let mut all = described.to_vec();
        let below = load.filter(|path| *path != THE_ROOT);
        if let Some(path) = below.filter(|path| described.iter().all(|other| other.path != **path))
        {
            check_path(path).with_context(|| format!("cgroup '{path}'"))?;
            all.push(Cgroup { path: path.to_owned(), ..Cgroup::default() });
        }
        for cgroup in &all {
            let has_tasks = load == Some(&cgroup.path) || !cgroup.beside.is_empty();
            let inner = all.iter().find(|other| cgroup.is_above(&other.path));
            if let Some(inner) = inner.filter(|_| has_tasks) {
                bail!(
                    "cgroup '{}' has tasks and '{}' in it: the kernel allows only one of both",
                    cgroup.path,
                    inner.path
                );
            }
        }
        // Those above first, as the kernel holds a cpuset to what is above it.
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Cgroups { load: load.map(str::to_owned), all })
    }

    /// Makes them. `None` without any. Fails with a sentence, and leaves nothing.
    pub fn make(&self) -> Result<Option<Made>> {
        if self.all.is_empty() {
            return Ok(None);
        }
        let mut made = Made::begin(Path::new(ROOT))?;
        made.fill(Path::new(ROOT), &self.all)?;
        Ok(Some(made))
    }

    /// The directory of the cgroup at `path`.
    pub fn dir(path: &str) -> PathBuf {
        let root = Path::new(ROOT);
        if path == THE_ROOT { root.to_owned() } else { root.join(OWN).join(path) }
    }

    /// That of the load; `None`: the one that this program is in.
    pub fn load_dir(&self) -> Option<PathBuf> {
        self.load.as_deref().map(Self::dir)
    }

    /// The one whose CPU time is that of the load alone, with what runs beside it there.
    pub fn metered_dir(&self) -> Option<PathBuf> {
        self.load.as_deref().filter(|path| *path != THE_ROOT).map(Self::dir)
    }
}

impl Made {
    /// The one that holds all, and nothing of an earlier benchmark.
    fn begin(root: &Path) -> Result<Self> {
        ensure!(
            root.join("cgroup.controllers").exists(),
            "there are no cgroups of version 2 at {}",
            root.display()
        );
        let own = root.join(OWN);
        let lock = match fs::create_dir(&own) {
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                let lock = lock(&own)?;
                empty(&own)?;
                lock
            }
            created => {
                created.with_context(|| format!("cannot make {}", own.display()))?;
                lock(&own)?
            }
        };
        Ok(Made { own, enabled: vec![], _lock: lock })
    }

    fn fill(&mut self, root: &Path, all: &[Cgroup]) -> Result<()> {
        let with_cpuset = all.iter().any(|cgroup| cgroup.cpuset_cpus.is_some());
        let controllers: &[&str] = if with_cpuset { &["cpu", "cpuset"] } else { &["cpu"] };
        for &controller in controllers {
            if enable(root, controller)? {
                self.enabled.push(controller);
            }
        }
        for cgroup in all {
            let mut dir = self.own.clone();
            for name in Path::new(&cgroup.path) {
                for controller in controllers {
                    enable(&dir, controller)?;
                }
                dir.push(name);
                if !dir.exists() {
                    fs::create_dir(&dir)
                        .with_context(|| format!("cannot make {}", dir.display()))?;
                }
            }
            cgroup.cpuset_cpus.as_ref().map_or(Ok(()), |cpus| check_online(cpus))?;
            for (file, value) in cgroup.settings() {
                write(&dir.join(file), &value)?;
            }
            cgroup.cpuset_cpus.as_ref().map_or(Ok(()), |cpus| check_cpus(&dir, cpus))?;
        }
        Ok(())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let removed = empty(&self.own).and_then(|()| {
            fs::remove_dir(&self.own)
                .with_context(|| format!("cannot remove {}", self.own.display()))
        });
        if let Err(err) = removed {
            warn!("{err:#}");
        }
        let Some(root) = self.own.parent() else { return };
        for controller in &self.enabled {
            // Somebody else may need it by now.
            let _ = fs::write(root.join("cgroup.subtree_control"), format!("-{controller}"));
        }
    }
}

/// Removes what a benchmark that was killed has left. Fails with a sentence.
pub fn remove_leftovers() -> Result<()> {
    let own = Path::new(ROOT).join(OWN);
    if own.exists() {
        let _lock = lock(&own)?;
        empty(&own)?;
        fs::remove_dir(&own).with_context(|| format!("cannot remove {}", own.display()))?;
    }
    Ok(())
}

/// What the cgroup at `dir` has used so far (us).
pub fn usage_us(dir: &Path) -> Option<u64> {
    let text = fs::read_to_string(dir.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()
}

/// Names, and nothing that leads out of where it is.
fn check_path(path: &str) -> Result<()> {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_plain && !path.is_empty(), "a cgroup is named as a/b, from the benchmark's own on");
    Ok(())
}

/// Ends with the process that holds it, however that ends.
fn lock(own: &Path) -> Result<File> {
    let dir = File::open(own).with_context(|| format!("cannot open {}", own.display()))?;
    ensure!(dir.try_lock().is_ok(), "another benchmark has its cgroups in {}", own.display());
    Ok(dir)
}

/// Whether `controller` was off for what is in `dir`. Fails if it cannot be had there.
fn enable(dir: &Path, controller: &str) -> Result<bool> {
    let has = |file: &str| {
        let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
        text.split_whitespace().any(|word| word == controller)
    };
    if has("cgroup.subtree_control") {
        return Ok(false);
    }
    ensure!(
        has("cgroup.controllers"),
        "the controller {controller} is not to be had: it is not in {}",
        dir.join("cgroup.controllers").display()
    );
    write(&dir.join("cgroup.subtree_control"), &format!("+{controller}"))?;
    Ok(true)
}

fn write(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("cannot write {value} to {}", file.display()))
}

/// Of CPUs that cannot be there the kernel says that the number is out of range.
fn check_online(wanted: &str) -> Result<()> {
    let online = online_cpus()?;
    let all_online = parse_cpu_list(wanted)?.iter().all(|cpu| online.contains(cpu));
    ensure!(all_online, "a cpuset of CPUs {wanted} needs some that are not online here");
    Ok(())
}

/// The kernel takes CPUs that those above do not have, and goes without them.
fn check_cpus(dir: &Path, wanted: &str) -> Result<()> {
    let text = fs::read_to_string(dir.join("cpuset.cpus.effective"))?;
    ensure!(
        parse_cpu_list(text.trim())? == parse_cpu_list(wanted)?,
        "a cpuset of CPUs {wanted} would have CPUs {} here",
        text.trim()
    );
    Ok(())
}

/// Kills what is in `own`, and removes what is below.
fn empty(own: &Path) -> Result<()> {
    write(&own.join("cgroup.kill"), "1")?;
    let begin = Instant::now();
    while let Err(err) = remove_below(own) {
        if begin.elapsed() > REMOVE_TIMEOUT {
            return Err(err).with_context(|| format!("cannot remove what is in {}", own.display()));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn remove_below(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_below(&entry.path())?;
            fs::remove_dir(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup(text: &str) -> Cgroup {
        toml::from_str(text).unwrap()
    }

    fn said(load: Option<&str>, described: &[&str]) -> String {
        let described: Vec<Cgroup> = described.iter().map(|text| cgroup(text)).collect();
        format!("{:#}", Cgroups::new(load, &described).unwrap_err())
    }

    #[test]
    fn what_cannot_be_is_reported_in_a_sentence() {
        for (text, words) in [
            ("path = '../a'", "cgroup '../a': a cgroup is named as a/b"),
            ("path = '/a'", "cgroup '/a': a cgroup is named as a/b"),
            ("path = ''", "cgroup '': a cgroup is named as a/b"),
            (
                "path = 'a'\n'cpu.max' = 'half'",
                "cgroup 'a': cpu.max is QUOTA PERIOD in us, not 'half'",
            ),
            ("path = 'a'\n'cpu.max' = '1 2 3'", "cgroup 'a': cpu.max is QUOTA"),
            ("path = 'a'\n'cpu.max' = ' '", "cgroup 'a': cpu.max is empty"),
            ("path = 'a'\n'cpu.weight' = 0", "cgroup 'a': cpu.weight is 1 to 10000"),
            ("path = 'a'\n'cpuset.cpus' = '3-x'", "cgroup 'a': cpuset.cpus: "),
        ] {
            let text = said(None, &[text]);
            assert!(text.starts_with(words), "{text}");
        }
        assert_eq!(said(None, &["path = 'a'", "path = 'a'"]), "cgroup 'a' is in it twice");
        let both = "cgroup 'a' has tasks and 'a/b' in it: the kernel allows only one of both";
        assert_eq!(said(Some("a"), &["path = 'a/b'"]), both);
        assert_eq!(said(None, &["path = 'a'\nbeside = ['x']", "path = 'a/b'"]), both);
        assert!(said(Some("/a"), &[]).starts_with("cgroup '/a': a cgroup is named"));
    }

    #[test]
    fn a_load_may_be_in_a_cgroup_of_which_nothing_is_said() {
        let cgroups =
            Cgroups::new(Some("a/b"), &[cgroup("path = 'a'\n'cpu.weight' = 50")]).unwrap();
        let paths: Vec<&str> = cgroups.all.iter().map(|cgroup| cgroup.path.as_str()).collect();
        assert_eq!(paths, ["a", "a/b"]);
        assert!(cgroups.load_dir().unwrap().ends_with("scx_powerpack-bench/a/b"));
        assert_eq!(cgroups.load_dir(), cgroups.metered_dir());
    }

    #[test]
    fn the_root_is_used_and_not_metered() {
        let root = Cgroups::new(Some("/"), &[]).unwrap();
        assert_eq!((root.load_dir(), root.metered_dir()), (Some(ROOT.into()), None));
        assert!(root.make().unwrap().is_none());
        assert_eq!(Cgroups::default().load_dir(), None);
    }

    #[test]
    fn settings_are_written_to_the_kernels_files() {
        let text =
            "path = 'a'\n'cpu.max' = '20000 100000'\n'cpu.weight' = 7\n'cpuset.cpus' = '0-2'";
        let settings: Vec<_> = cgroup(text).settings().collect();
        let want = [("cpuset.cpus", "0-2"), ("cpu.weight", "7"), ("cpu.max", "20000 100000")];
        assert_eq!(settings, want.map(|(file, value)| (file, value.to_owned())));
    }

    #[test]
    fn where_there_are_no_cgroups_that_is_said() {
        let dir = std::env::temp_dir().join(format!("no-cgroups-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let text = format!("{:#}", Made::begin(&dir).unwrap_err());
        assert!(text.starts_with("there are no cgroups of version 2 at "), "{text}");
        fs::write(dir.join("cgroup.controllers"), "memory pids\n").unwrap();
        let text = format!("{:#}", enable(&dir, "cpu").unwrap_err());
        assert!(text.starts_with("the controller cpu is not to be had: it is not in "), "{text}");
        fs::remove_dir_all(dir).unwrap();
    }
}
