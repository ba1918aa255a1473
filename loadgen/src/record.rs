//! What threads met, and the report of it.

use serde::{Deserialize, Serialize};

use crate::clock::NS_PER_S;
use crate::samples::{Summary, curve, summarize};
use crate::schedstat::NonIdle;

/// What the threads of one kind met.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskReport {
    /// The kind: its name, or RUN/PERIOD in ms.
    pub task: String,
    pub threads: usize,
    pub activations: usize,
    /// Activations that were not finished a period after their planned wake.
    pub overruns: usize,
    /// CPU time of all its threads, from their start to their end (s).
    pub cpu_s: f64,
    /// First instruction minus planned wake.
    pub wake_latency: Summary,
    /// End of the work minus planned wake.
    pub response: Summary,
    /// The longest response beyond the task's own run time (us).
    pub max_delay_us: f64,
    /// What it did in a second, if it does as much as it can.
    pub records_per_s: Option<f64>,
}

/// What all of them met. The kinds come first, so that a script that looks for the
/// last of a name in the JSON finds the total.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub seconds: f64,
    pub tasks: Vec<TaskReport>,
    pub activations: usize,
    pub overruns: usize,
    pub wake_latency: Summary,
    pub response: Summary,
    pub max_delay_us: f64,
    /// In the time before the measurement: while everything is new.
    pub settling_overruns: usize,
    pub settling_max_us: f64,
    /// What all tasks that do as much as they can did in a second.
    pub records_per_s: Option<f64>,
    /// See [`crate::samples::CURVE_PCT`].
    pub wake_curve_us: Vec<f64>,
    pub response_curve_us: Vec<f64>,
    #[serde(flatten)]
    pub non_idle: Option<NonIdle>,
}

/// What one thread met, or several.
#[derive(Default)]
pub struct Record {
    latency_ns: Vec<u64>,
    response_ns: Vec<u64>,
    overruns: usize,
    settling_overruns: usize,
    settling_max_ns: u64,
    pub cpu_ns: u64,
}

impl Record {
    /// Room for `len` activations.
    pub fn of(len: usize) -> Self {
        Record { latency_ns: touched(len), response_ns: touched(len), ..Record::default() }
    }

    /// A thread woke `latency_ns` late.
    pub fn woken(&mut self, latency_ns: u64, settled: bool) {
        if settled {
            self.latency_ns.push(latency_ns);
        }
    }

    /// Work was done `response_ns` after it was planned to begin.
    pub fn done(&mut self, response_ns: u64, settled: bool) {
        if settled {
            self.response_ns.push(response_ns);
        } else {
            self.settling_max_ns = self.settling_max_ns.max(response_ns);
        }
    }

    /// It was not done when it was to begin again.
    pub fn overrun(&mut self, settled: bool) {
        if settled { self.overruns += 1 } else { self.settling_overruns += 1 }
    }

    pub fn merge(&mut self, other: Record) {
        self.latency_ns.extend(other.latency_ns);
        self.response_ns.extend(other.response_ns);
        self.overruns += other.overruns;
        self.settling_overruns += other.settling_overruns;
        self.settling_max_ns = self.settling_max_ns.max(other.settling_max_ns);
        self.cpu_ns += other.cpu_ns;
    }
}

impl KindRecord {
    fn report(&self, seconds: f64) -> TaskReport {
        let record = &self.record;
        let longest = record.response_ns.iter().copied().max().unwrap_or(0);
        let activations = record.response_ns.len();
        TaskReport {
            task: self.name.clone(),
            threads: self.threads,
            activations,
            overruns: record.overruns,
            cpu_s: record.cpu_ns as f64 / NS_PER_S,
            wake_latency: summarize(record.latency_ns.clone()),
            response: summarize(record.response_ns.clone()),
            max_delay_us: longest.saturating_sub(self.run_ns) as f64 / 1e3,
            records_per_s: self.eager.then_some(activations as f64 / seconds),
        }
    }
}

/// Room for `len` numbers whose page faults are over.
fn touched(len: usize) -> Vec<u64> {
    let mut numbers = vec![u64::MAX; len];
    numbers.clear();
    numbers
}

/// What the threads of a kind met.
pub struct KindRecord {
    pub name: String,
    pub threads: usize,
    /// Their own run time (ns), 0 if they have none.
    pub run_ns: u64,
    /// They do as much as they can.
    pub eager: bool,
    pub record: Record,
}

/// The report of all kinds over `seconds`.
pub fn report(kinds: Vec<KindRecord>, seconds: f64, non_idle: Option<NonIdle>) -> Report {
    let mut all = Record::default();
    let mut tasks = Vec::new();
    for kind in kinds {
        tasks.push(kind.report(seconds));
        all.merge(kind.record);
    }
    let records: Vec<f64> = tasks.iter().filter_map(|task| task.records_per_s).collect();
    Report {
        seconds,
        activations: all.response_ns.len(),
        overruns: all.overruns,
        wake_curve_us: curve(all.latency_ns.clone()),
        response_curve_us: curve(all.response_ns.clone()),
        wake_latency: summarize(all.latency_ns),
        response: summarize(all.response_ns),
        max_delay_us: tasks.iter().map(|task| task.max_delay_us).fold(0.0, f64::max),
        settling_overruns: all.settling_overruns,
        settling_max_us: all.settling_max_ns as f64 / 1e3,
        records_per_s: (!records.is_empty()).then(|| records.iter().sum()),
        non_idle,
        tasks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_measurement_is_kept_apart() {
        let mut record = Record::of(2);
        record.done(9_000, false);
        record.overrun(false);
        record.done(3_000, true);
        record.woken(1_000, true);
        let kind = KindRecord { name: "a".into(), threads: 1, run_ns: 2_000, eager: false, record };
        let report = report(vec![kind], 1.0, None);
        assert_eq!((report.activations, report.overruns, report.settling_overruns), (1, 0, 1));
        assert_eq!((report.max_delay_us, report.settling_max_us), (1.0, 9.0));
        assert_eq!(report.wake_latency.max_us, 1.0);
    }
}
