//! What is run: suites that come with the program, and those in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use powerpack_workload::Workload;
use serde::Deserialize;

use super::cgroups::{Cgroup, Cgroups};
use super::limit::Limit;
use super::metric::Metric;
use super::probe::Probe;
use super::programs::{Beside, Program};
use super::results::LoadInfo;
use crate::settings::config;

const SHIPPED: &[(&str, &str)] = &[
    ("quick", include_str!("suites/quick.toml")),
    ("seeds", include_str!("suites/seeds.toml")),
    ("latency", include_str!("suites/latency.toml")),
    ("throughput", include_str!("suites/throughput.toml")),
    ("waits", include_str!("suites/waits.toml")),
    ("costs", include_str!("suites/costs.toml")),
    ("stairs", include_str!("suites/stairs.toml")),
    ("on-off", include_str!("suites/on-off.toml")),
    ("knobs", include_str!("suites/knobs.toml")),
    ("evacuation", include_str!("suites/evacuation.toml")),
    ("baseline", include_str!("suites/baseline.toml")),
    ("saturation", include_str!("suites/saturation.toml")),
    ("hard", include_str!("suites/hard.toml")),
    ("sizes", include_str!("suites/sizes.toml")),
    ("loading", include_str!("suites/loading.toml")),
    ("containers", include_str!("suites/containers.toml")),
    ("programs", include_str!("suites/programs.toml")),
    ("power", include_str!("suites/power.toml")),
];
/// A workload that is a suite of its own is measured for the first time, after the second (s).
const ALONE_S: (f64, f64) = (10.0, 3.0);
/// The maximum number of ceilings that are tried, evenly apart.
const CEILINGS_MAX: usize = 8;

/// A suite: loads in the order in which they are run.
#[derive(Debug)]
pub struct Suite {
    pub name: String,
    pub about: String,
    /// Each system runs between two runs of the first.
    pub pairs: bool,
    pub loads: Vec<Load>,
}

/// A load of a suite.
#[derive(Clone, Debug)]
pub struct Load {
    pub info: LoadInfo,
    pub what: What,
    /// What runs as long as it does.
    pub beside: Vec<Beside>,
    /// A command that succeeds once what runs beside it can be used.
    pub ready: Option<Beside>,
    /// The cgroups that are there meanwhile.
    pub cgroups: Cgroups,
    /// The governors' overhead is to be shown.
    pub overhead: bool,
    /// Idle states are traced, which costs each wake-up some hundred instructions.
    pub trace_idle: bool,
}

/// What a load consists of.
#[derive(Clone, Debug)]
pub enum What {
    /// A workload, by name or file, after it has run for this time (s).
    Workload {
        name: String,
        settle_s: f64,
    },
    Program(Program),
    Probe(Probe),
}

/// A suite file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    about: String,
    #[serde(default)]
    pairs: bool,
    run: Vec<Entry>,
}

/// An entry in it: a `workload`, a `program` or a `probe`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A workload of the simulator's, RUN/PERIOD in ms, or a file beside the suite's.
    workload: Option<String>,
    /// A command: one whose figures are known, else it is timed.
    program: Option<String>,
    /// What is measured of the scheduler itself.
    probe: Option<Probe>,
    /// What it is called, if not as the workload or the command.
    name: Option<String>,
    /// Commands that run as long as it does, and end with it.
    #[serde(default)]
    beside: Vec<String>,
    /// A command that is repeated before the load begins until it succeeds: a server is up.
    ready: Option<String>,
    /// The cgroup that it runs in: "/", the root, or one of its own.
    cgroup: Option<String>,
    /// What cgroups there are meanwhile, and what runs in them.
    #[serde(default)]
    cgroups: Vec<Cgroup>,
    /// Duration of the measurement (s).
    seconds: Option<f64>,
    /// Duration before it (s).
    #[serde(default)]
    settle: f64,
    /// Shown in one table with others of that name,
    group: Option<String>,
    /// namely these.
    #[serde(default)]
    figures: Vec<Metric>,
    /// What they must be.
    #[serde(default)]
    limits: Vec<Limit>,
    /// Once with every ceiling on the number of cores.
    #[serde(default)]
    each_ceiling: bool,
    /// With this ceiling.
    max_cores: Option<usize>,
    /// Compare with the governors `performance` and `powersave`.
    #[serde(default)]
    overhead: bool,
    /// Count wake-ups, and the time in which all CPUs of a package are idle, by tracing idle states.
    #[serde(default)]
    trace_idle: bool,
}

impl Suite {
    /// A shipped one by its name, else a file: a suite, or a workload alone. Fails with a
    /// sentence that names the file, the line and the field.
    pub fn find(name: &str, cores: usize) -> Result<Self> {
        if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::parse(name, text, Path::new("."), cores);
        }
        let path = Path::new(name);
        if !name.ends_with(".toml") {
            let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            bail!("there is no suite '{name}': choose one of {names}, or a .toml file");
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        let dir = path.parent().unwrap_or(Path::new("."));
        Self::parse(name, &text, dir, cores).with_context(|| format!("in {name}"))
    }

    fn parse(name: &str, text: &str, dir: &Path, cores: usize) -> Result<Self> {
        let is_workload =
            toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("task"));
        if is_workload {
            // The first names the line of a mistake, the second checks what it says.
            let _: Workload = config::parse_toml(text)?;
            let workload = Workload::parse(text)?;
            let (seconds, settle_s) = ALONE_S;
            let what = What::Workload { name: name.to_owned(), settle_s };
            let info = info(workload.name, workload.about.clone(), Some(seconds));
            let loads = vec![Load::of(info, what)];
            return Ok(Suite { name: name.to_owned(), about: workload.about, pairs: false, loads });
        }
        let file: SuiteFile = config::parse_toml(text)?;
        ensure!(!file.run.is_empty(), "a suite has a [[run]]");
        let mut loads = Vec::new();
        for (nth, entry) in file.run.iter().enumerate() {
            let what = || format!("[[run]] number {}", nth + 1);
            loads.extend(entry.loads(dir, cores).with_context(what)?);
        }
        check_names(&loads)?;
        Ok(Suite { name: name.to_owned(), about: file.about, pairs: file.pairs, loads })
    }
}

impl Load {
    fn of(info: LoadInfo, what: What) -> Self {
        let (beside, cgroups) = (vec![], Cgroups::default());
        Load { info, what, beside, ready: None, cgroups, overhead: false, trace_idle: false }
    }

    /// The programs that it needs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let own = match &self.what {
            What::Program(program) => Some(program.name()),
            _ => None,
        };
        let beside = self.beside.iter().chain(&self.ready);
        let beside = beside.filter_map(|beside| beside.command.first());
        own.into_iter().chain(beside.map(String::as_str))
    }

    /// How long it takes, as far as is known (s).
    pub fn seconds(&self) -> f64 {
        match &self.what {
            What::Workload { settle_s, .. } => settle_s + self.info.seconds.unwrap_or(0.0),
            What::Program(program) => program.guess_s(),
            What::Probe(probe) => probe.seconds(),
        }
    }
}

/// Each load is named once, and limits name loads that there are.
fn check_names(loads: &[Load]) -> Result<()> {
    let named = |name: &String| loads.iter().filter(|load| load.info.name == *name).count();
    for Load { info, .. } in loads {
        ensure!(named(&info.name) == 1, "'{}' is in it twice", info.name);
        let mut others = info.limits.iter().filter_map(|limit| limit.times_load.as_ref());
        let unknown = others.find(|other| named(other) == 0);
        ensure!(unknown.is_none(), "a limit of '{}' is of a load that is not in it", info.name);
    }
    Ok(())
}

fn info(name: String, about: String, seconds: Option<f64>) -> LoadInfo {
    LoadInfo { name, about, group: None, figures: vec![], limits: vec![], seconds, max_cores: None }
}

impl Entry {
    fn loads(&self, dir: &Path, cores: usize) -> Result<Vec<Load>> {
        let load = self.plain_load(dir)?;
        ensure!(
            self.workload.is_some() || self.seconds.is_none() && self.settle == 0.0,
            "seconds and settle are a workload's: all else runs until it ends"
        );
        let cgroups = Cgroups::new(self.cgroup.as_deref(), &self.cgroups)?;
        let (overhead, trace_idle) = (self.overhead, self.trace_idle);
        let mut load = Load { overhead, trace_idle, beside: self.beside()?, cgroups, ..load };
        load.ready = self.ready.as_deref().map(|text| Beside::parse(text, None)).transpose()?;
        load.info.name = self.name.clone().unwrap_or(load.info.name);
        load.info.group.clone_from(&self.group);
        load.info.figures.clone_from(&self.figures);
        self.limits.iter().try_for_each(Limit::check)?;
        load.info.limits.clone_from(&self.limits);
        ensure!(
            self.group.is_some() != self.figures.is_empty(),
            "group and figures go together: what the table of the group shows"
        );
        ensure!(
            self.max_cores.is_none_or(|cores| cores >= 1 && !self.each_ceiling),
            "max_cores is a number of cores, and instead of each_ceiling"
        );
        load.info.max_cores = self.max_cores;
        if !self.each_ceiling {
            return Ok(vec![load]);
        }
        let at_most = |cores: usize| {
            let mut load = load.clone();
            load.info.name = format!("{} on {cores}", load.info.name);
            load.info.max_cores = Some(cores);
            load
        };
        Ok(ceilings(cores).into_iter().map(at_most).collect())
    }

    /// What it is, without all else that the entry says.
    fn plain_load(&self, dir: &Path) -> Result<Load> {
        match (&self.workload, &self.program, self.probe) {
            (Some(name), None, None) => self.workload_load(name, dir),
            (None, Some(command), None) => {
                let program = Program::parse(command)?;
                let info = info(command.clone(), format!("`{command}`"), None);
                Ok(Load::of(info, What::Program(program)))
            }
            (None, None, Some(probe)) => {
                let (name, about) = probe.texts();
                Ok(Load::of(info(name.into(), about.into(), None), What::Probe(probe)))
            }
            _ => bail!("it is either a workload, a program or a probe"),
        }
    }

    /// In no cgroup of its own, and in each.
    fn beside(&self) -> Result<Vec<Beside>> {
        let outside = self.beside.iter().map(|text| Beside::parse(text, None));
        let of_cgroup = |cgroup: &Cgroup| -> Vec<_> {
            cgroup.beside.iter().map(|text| Beside::parse(text, Some(&cgroup.path))).collect()
        };
        outside.chain(self.cgroups.iter().flat_map(of_cgroup)).collect()
    }

    fn workload_load(&self, name: &str, dir: &Path) -> Result<Load> {
        let path = dir.join(name);
        let name = if name.ends_with(".toml") { &path.to_string_lossy() } else { name };
        let workload = Workload::find(name)?;
        powerpack_load::workload::kinds(&workload)?;
        let seconds = self.seconds.context("seconds: how long is it measured?")?;
        ensure!((0.1..=3600.0).contains(&seconds), "seconds is 0.1 to 3600, not {seconds}");
        ensure!((0.0..=600.0).contains(&self.settle), "settle is 0 to 600, not {}", self.settle);
        let about = if workload.about == workload.name {
            "one task: run / period (ms)".to_owned()
        } else {
            workload.about
        };
        let what = What::Workload { name: name.to_owned(), settle_s: self.settle };
        Ok(Load::of(info(workload.name, about, Some(seconds)), what))
    }
}

/// Numbers of cores from one to all, [`CEILINGS_MAX`] of them at most.
fn ceilings(cores: usize) -> Vec<usize> {
    let steps = cores.min(CEILINGS_MAX);
    (1..=steps).map(|step| (cores * step).div_ceil(steps)).collect()
}

#[cfg(test)]
mod tests;
