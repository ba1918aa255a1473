//! What `results.json` holds: every run, and what it was made with. docs/results.schema.json
//! is made from these types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::metric::Metric;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// All of a benchmark.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Of this format: 1. Files of another one are not read.
    pub format: u32,
    /// The version of scx_powerpack.
    pub version: String,
    /// When it began, as in RFC 3339.
    pub started: String,
    pub machine: Machine,
    /// The suite's name, and what it is for.
    pub suite: String,
    pub about: String,
    /// How often each load was to run under each system.
    pub runs_wanted: usize,
    /// Whether each system ran between two runs of the first, with whose mean it is compared.
    #[serde(default)]
    pub pairs: bool,
    /// Whether all of that was done.
    pub complete: bool,
    /// Additions that a CPU does in a second at its best: fixed work is measured in them.
    pub additions_per_s: u64,
    /// What was compared, in order; the first is what the others are compared with.
    pub systems: Vec<SystemInfo>,
    /// What they were given to do, in order.
    pub loads: Vec<LoadInfo>,
    pub runs: Vec<Run>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// What measured power: of one meter it is another power than of another. None: nothing did, or it is not known.
    #[serde(default)]
    pub power_meter: Option<String>,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    pub kernel: String,
    /// The CPUs' name.
    pub model: String,
    /// CPUs online, and in how many cores, last-level caches and packages.
    pub cpus: usize,
    pub cores: usize,
    pub llcs: usize,
    pub packages: usize,
    /// The virtual machine that it is, if it is one.
    pub virtual_machine: Option<String>,
}

/// A scheduler with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemInfo {
    pub name: String,
    /// What was run for it; none for the kernel's own.
    pub command: Option<String>,
    /// Why it was not measured, or not to the end.
    pub failed: Option<String>,
}

/// What is run under each system.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadInfo {
    pub name: String,
    pub about: String,
    /// Loads that are shown in one table.
    pub group: Option<String>,
    /// What that table shows of each.
    pub figures: Vec<Metric>,
    /// What figures of it must be.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Duration of the measurement (s); none: until it ends by itself.
    pub seconds: Option<f64>,
    /// The ceiling of cores: only for what takes one.
    pub max_cores: Option<usize>,
}

/// A load under a system, once.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Names of the load and the system.
    pub load: String,
    pub system: String,
    /// The round, from 0.
    pub round: usize,
    /// Why there are no figures.
    pub failed: Option<String>,
    /// What was measured; what the machine cannot measure is not there.
    pub figures: BTreeMap<Metric, f64>,
    /// Share of the time in which each CPU ran something (%).
    pub non_idle_pct: Vec<f64>,
    /// Share of time in each idle state, mean over the CPUs (%).
    pub idle_states_pct: BTreeMap<String, f64>,
    /// How often each CPU left an idle state, and its interrupts, in a second; empty where that is not counted.
    #[serde(default)]
    pub wake_ups_per_s: Vec<f64>,
    #[serde(default)]
    pub interrupts_per_s: Vec<f64>,
    /// Share of time in each idle state of a package, mean over the packages (%).
    #[serde(default)]
    pub package_states_pct: BTreeMap<String, f64>,
    /// Of each kind of task.
    pub tasks: Vec<TaskFigures>,
    /// The latencies at 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9 and 100 % (us).
    pub wake_curve_us: Vec<f64>,
    pub response_curve_us: Vec<f64>,
    /// Which CPUs were busy when; of the first round alone.
    pub heat: Option<Heat>,
}

/// A kind of task in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskFigures {
    pub task: String,
    pub activations: usize,
    pub overruns: usize,
    /// CPU time of its threads (s).
    pub cpu_s: f64,
    pub records_per_s: Option<f64>,
    pub response_mean_us: f64,
    pub response_p50_us: f64,
    pub response_p99_us: f64,
    pub response_max_us: f64,
}

/// Non-idle share of each CPU over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heat {
    /// How long each column is (s).
    pub interval_s: f64,
    /// By CPU, then by time (%).
    pub non_idle_pct: Vec<Vec<u8>>,
}

impl Results {
    /// Reads a file. Fails with a sentence when it is none of ours.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let results: Results = serde_json::from_str(&text)
            .with_context(|| format!("{} is no results.json", path.display()))?;
        ensure!(
            results.format == FORMAT,
            "{} is of format {}, this version reads {FORMAT}",
            path.display(),
            results.format
        );
        Ok(results)
    }

    /// Writes it. Fails if it cannot.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// What `system` showed of `load`, in the order of the rounds.
    pub fn values(&self, load: &str, system: &str, metric: Metric) -> Vec<f64> {
        self.of(load, system).filter_map(of_metric(metric)).collect()
    }

    /// In pairs: each of `system`'s figures over the mean of those of `other`, the first system,
    /// before and after it. What changes on the host meanwhile is in all of them.
    pub fn paired_ratios(
        &self,
        load: &str,
        system: &str,
        other: &str,
        figure: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        if !self.pairs || self.systems.first()?.name != other || system == other {
            return None;
        }
        let of_load = self.runs.iter().filter(|run| run.load == load);
        let figures = of_load.filter_map(|run| Some((&*run.system, figure(run)?)));
        let figures: Vec<(&str, f64)> = figures.collect();
        let ratio = |around: &[(&str, f64)]| match *around {
            [(before, a), (name, value), (after, b)]
                if (before, name, after) == (other, system, other) && a + b > 0.0 =>
            {
                Some(value / ((a + b) / 2.0))
            }
            _ => None,
        };
        Some(figures.windows(3).filter_map(ratio).collect())
    }

    /// How many runs of `load` under `system` did not go well.
    pub fn nr_failed(&self, load: &str, system: &str) -> usize {
        let of_both = self.runs.iter().filter(|run| run.load == load && run.system == system);
        of_both.filter(|run| run.failed.is_some()).count()
    }

    /// The runs of `load` under `system` that went well.
    pub fn of(&self, load: &str, system: &str) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(move |run| run.load == load && run.system == system && run.failed.is_none())
    }
}

/// That figure of a run.
pub fn of_metric(metric: Metric) -> impl Fn(&Run) -> Option<f64> {
    move |run| run.figures.get(&metric).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `UPDATE_SCHEMA=1 cargo test the_schema`.
    #[test]
    fn the_schema_in_the_docs_is_that_of_the_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results.schema.json");
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Results)).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(&path, &schema).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), schema);
    }

    #[test]
    fn what_is_no_results_file_is_reported_in_a_sentence() {
        let file = std::env::temp_dir().join(format!("no-results-{}.json", std::process::id()));
        fs::write(&file, "{}").unwrap();
        let text = format!("{:#}", Results::read(&file).unwrap_err());
        assert!(text.contains("is no results.json: missing field"), "{text}");
        fs::remove_file(&file).unwrap();
        assert!(format!("{:#}", Results::read(&file).unwrap_err()).contains("cannot read"));
    }
}
