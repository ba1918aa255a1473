//! The language of loads: workloads as TOML files describe them, and when their tasks work.
//! `powerpack-load` runs them with real threads, the simulator simulates them.

mod cpu_list;
mod percentile;
mod phases;
mod rhythm;

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

pub use cpu_list::parse_cpu_list;
pub use percentile::{has_percentile, percentile};
pub use phases::Phases;
pub use rhythm::Rhythm;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Tasks are there for this long before the clock starts.
pub const START_NS: u64 = 50_000_000;

const NS_PER_MS: f64 = 1e6;

/// Milliseconds as nanoseconds.
pub fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS) as u64
}

/// The text of the `what` that is called `name`: one of `shipped`, or a file. Fails with a
/// sentence that lists what there is.
pub fn find_text(name: &str, shipped: &[(&str, &str)], what: &str) -> Result<String> {
    if let Some((_, text)) = shipped.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if name.contains(['/', '.']) {
        return fs::read_to_string(name).with_context(|| format!("cannot read {name}"));
    }
    let names: Vec<&str> = shipped.iter().map(|(name, _)| *name).collect();
    bail!("there is no {what} '{name}': choose one of {}, or a file", names.join(", "))
}

/// A workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub name: String,
    pub about: String,
    #[serde(default)]
    pub phases: Phases,
    /// What it takes the program to start a thread (ms of the fastest CPU), if that is known.
    #[serde(default)]
    pub fork_ms: Option<f64>,
    pub task: Vec<TaskKind>,
}

/// Tasks of one kind: exactly one of `periodic`, `bursts`, `pipeline`, `fork_join`,
/// `client`, `exchange` and `hog` says which.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskKind {
    #[serde(default)]
    pub name: Option<String>,
    /// Tasks, pipelines or teams of this kind.
    #[serde(default = "one")]
    pub count: usize,
    #[serde(default)]
    pub nice: i32,
    /// Where they may run, as the kernel lists CPUs: "0-3,8".
    pub cpus: Option<String>,
    /// `cpu.weight` of their cgroup.
    pub cgroup_weight: Option<u32>,
    /// What the user's table says of their cgroup.
    pub workload: Option<Treatment>,
    /// They are woken by a device's interrupt on this CPU, not by their timer.
    pub irq_cpu: Option<usize>,
    /// They share data: slower when in several packages (the machine says how much).
    #[serde(default)]
    pub shares_data: bool,
    /// What each of them has in its caches: filled again in another cache (the machine says how fast).
    #[serde(default)]
    pub cache_kib: u64,
    /// Run lengths differ by as much (percent).
    #[serde(default)]
    pub jitter_pct: f64,
    /// For real, lengths are work that a fast CPU does in that time, rather than CPU time; in
    /// the simulator they always are.
    #[serde(default)]
    pub fixed_work: bool,
    pub periodic: Option<RunPeriod>,
    /// The same, but only for `on_ms` of every `on_ms + off_ms`.
    pub bursts: Option<Bursts>,
    /// Each stage hands its piece on to the next.
    pub pipeline: Option<Pipeline>,
    /// A leader wakes its workers and waits for all.
    pub fork_join: Option<ForkJoin>,
    /// Asks, and thinks before it asks again.
    pub client: Option<ClientSpec>,
    /// Hand messages on to each other, as fast as they can.
    pub exchange: Option<Exchange>,
    /// Computes without a pause.
    #[serde(default)]
    pub hog: bool,
}

/// As `enum pp_workload` of src/bpf/intf.h.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    Pack = 1,
    Spread,
    Efficient,
}

/// Works on an absolute clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPeriod {
    pub run_ms: f64,
    pub period_ms: f64,
    /// A task that is late begins again at once, and plans from then; else what it missed is
    /// skipped.
    #[serde(default)]
    pub catch_up: bool,
}

/// Works on an absolute clock for a while, then does not.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    pub run_ms: f64,
    pub period_ms: f64,
    pub on_ms: f64,
    pub off_ms: f64,
}

/// Tasks that hand on to each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// By stage.
    pub run_ms: Vec<f64>,
    pub period_ms: f64,
}

/// A leader and its workers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkJoin {
    pub workers: usize,
    /// Of each worker and of the leader.
    pub run_ms: f64,
    pub leader_ms: f64,
    /// From one fork to the next; less than the work: at once.
    pub period_ms: f64,
}

/// Thinks, then works.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    pub run_ms: f64,
    pub think_ms: f64,
}

/// Tasks that hand messages on, each to any of the others.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub tasks: usize,
    /// Messages under way at a time.
    pub messages: usize,
    /// What each does with one before it hands it on.
    pub run_ms: f64,
}

fn one() -> usize {
    1
}

impl Workload {
    /// A shipped one by its name, a task that runs for RUN of every PERIOD ms, as
    /// `9/12`, else a file by its path.
    pub fn find(name: &str) -> Result<Self> {
        if let Some((run_ms, period_ms)) = name.split_once('/')
            && let (Ok(run_ms), Ok(period_ms)) = (run_ms.parse(), period_ms.parse())
        {
            return Self::run_period(run_ms, period_ms, None);
        }
        find_text(name, &SHIPPED, "workload")
            .and_then(|text| Self::parse(&text).context(name.to_owned()))
    }

    /// Fails with a sentence about what is wrong in the file.
    pub fn parse(text: &str) -> Result<Self> {
        let workload: Workload = toml::from_str(text)?;
        ensure!(!workload.task.is_empty(), "a workload needs a [[task]]");
        workload.task.iter().try_for_each(TaskKind::check)?;
        Ok(workload)
    }

    /// One periodic task: `run_ms` of every `period_ms`, on the CPUs listed; if it is
    /// late it begins again at once.
    pub fn run_period(run_ms: f64, period_ms: f64, cpus: Option<&str>) -> Result<Self> {
        let kind = TaskKind {
            count: 1,
            cpus: cpus.map(str::to_owned),
            fixed_work: true,
            periodic: Some(RunPeriod { run_ms, period_ms, catch_up: true }),
            ..TaskKind::default()
        };
        kind.check()?;
        let name = format!("{run_ms}/{period_ms}");
        Ok(Workload {
            about: name.clone(),
            name,
            phases: Phases::Together,
            fork_ms: None,
            task: vec![kind],
        })
    }

    /// How many tasks it makes.
    pub fn nr_tasks(&self) -> usize {
        self.task.iter().map(TaskKind::tasks).sum()
    }

    /// The kind of each task, in the order in which they are made.
    pub fn kind_of_tasks(&self) -> Vec<usize> {
        let kinds = self.task.iter().enumerate();
        kinds.flat_map(|(nr, kind)| vec![nr; kind.tasks()]).collect()
    }

    /// The names of its kinds of tasks.
    pub fn kinds(&self) -> Vec<String> {
        self.task.iter().map(TaskKind::label).collect()
    }
}

impl RunPeriod {
    pub fn rhythm(&self) -> Rhythm {
        Rhythm { catch_up: self.catch_up, ..Rhythm::every(ns(self.period_ms)) }
    }
}

impl Bursts {
    pub fn rhythm(&self) -> Rhythm {
        let (on_ns, off_ns) = (ns(self.on_ms), ns(self.off_ms));
        Rhythm { on_ns, off_ns, ..Rhythm::every(ns(self.period_ms)) }
    }
}

impl TaskKind {
    /// How many tasks they are in all.
    fn tasks(&self) -> usize {
        let stages = self.pipeline.as_ref().map_or(1, |spec| spec.run_ms.len());
        let team = self.fork_join.map_or(1, |spec| spec.workers + 1);
        let exchange = self.exchange.map_or(1, |spec| spec.tasks);
        self.count * stages * team * exchange
    }

    /// Its name, or what kind it is.
    pub fn label(&self) -> String {
        let kind = [
            (self.periodic.is_some(), "periodic"),
            (self.bursts.is_some(), "bursts"),
            (self.pipeline.is_some(), "pipeline"),
            (self.fork_join.is_some(), "fork-join"),
            (self.client.is_some(), "client"),
            (self.exchange.is_some(), "exchange"),
            (self.hog, "hog"),
        ];
        let kind = kind.iter().find(|(is, _)| *is).map_or("", |(_, name)| *name);
        self.name.clone().unwrap_or_else(|| kind.to_owned())
    }

    fn check(&self) -> Result<()> {
        let kinds = [
            self.periodic.is_some(),
            self.bursts.is_some(),
            self.pipeline.is_some(),
            self.fork_join.is_some(),
            self.client.is_some(),
            self.exchange.is_some(),
            self.hog,
        ];
        ensure!(
            kinds.into_iter().filter(|is| *is).count() == 1,
            "a task is one of periodic, bursts, pipeline, fork_join, client, exchange, hog"
        );
        ensure!((-20..20).contains(&self.nice), "nice is -20..19, not {}", self.nice);
        ensure!(
            self.cgroup_weight.is_none_or(|weight| (1..=10_000).contains(&weight)),
            "cgroup_weight is 1..10000"
        );
        ensure!((0.0..100.0).contains(&self.jitter_pct), "jitter_pct is 0..100");
        ensure!(self.count > 0, "count is at least 1");
        self.check_lengths()
    }

    fn check_lengths(&self) -> Result<()> {
        let fits = |run_ms: f64, period_ms: f64| -> Result<()> {
            ensure!(
                run_ms > 0.0 && run_ms < period_ms && period_ms < 1e6,
                "a periodic task runs for less than its period, and that is below 1000 s"
            );
            Ok(())
        };
        if let Some(spec) = self.periodic {
            fits(spec.run_ms, spec.period_ms)?;
        }
        if let Some(spec) = self.bursts {
            fits(spec.run_ms, spec.period_ms)?;
            ensure!(
                spec.on_ms > 0.0 && spec.off_ms >= 0.0,
                "bursts: on_ms is above 0, and off_ms not below"
            );
        }
        if let Some(spec) = &self.pipeline {
            ensure!(!spec.run_ms.is_empty(), "pipeline: run_ms needs a stage");
            spec.run_ms.iter().try_for_each(|&run_ms| fits(run_ms, spec.period_ms))?;
        }
        if let Some(spec) = self.fork_join {
            ensure!(
                spec.run_ms > 0.0 && spec.leader_ms > 0.0 && spec.period_ms >= 0.0,
                "work takes some time"
            );
        }
        if let Some(spec) = self.client {
            ensure!(
                spec.run_ms > 0.0 && spec.think_ms > 0.0,
                "client: run_ms and think_ms are above 0"
            );
        }
        if let Some(spec) = self.exchange {
            ensure!(
                spec.tasks > 1 && (1..=spec.tasks).contains(&spec.messages) && spec.run_ms > 0.0,
                "an exchange is of two tasks at least, with a message for each at most, and some work"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the periodic tasks of a workload need of one CPU (%).
    fn cpu_pct(name: &str) -> f64 {
        let workload = Workload::find(name).unwrap();
        let of_kind = |kind: &TaskKind| {
            let spec = kind.periodic.unwrap();
            100.0 * kind.count as f64 * spec.run_ms / spec.period_ms
        };
        workload.task.iter().map(of_kind).sum()
    }

    #[test]
    fn loads_with_published_figures_are_what_they_were() {
        assert!((cpu_pct("light") - 28.03).abs() < 0.01, "{}", cpu_pct("light"));
        assert!((cpu_pct("tiny") - 10.0).abs() < 0.01, "{}", cpu_pct("tiny"));
    }
}
