//! Periodic threads: each wakes on an absolute clock, burns its run time, and
//! notes how late it began and ended.

use std::str::FromStr;
use std::thread;

use anyhow::Result;
use serde::Serialize;

use crate::clock::{self, NS_PER_MS, NS_PER_S};
use crate::samples::{Summary, summarize};
use crate::schedstat::{Meter, NonIdle};

/// Time for the threads to get going before the clock starts.
const START_DELAY_NS: u64 = 50_000_000;
/// The measurement begins this much before the load, so as not to be part of it.
const METER_LEAD_NS: u64 = 1_000_000;

/// `RUN/PERIOD[*COUNT]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    run_ns: u64,
    period_ns: u64,
    count: usize,
    text: String,
}

impl FromStr for TaskSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not RUN/PERIOD[*COUNT] in ms with RUN below PERIOD");
        let (times, count) = text.split_once('*').unwrap_or((text, "1"));
        let (run, period) = times.split_once('/').ok_or_else(wrong)?;
        let ns = |ms: &str| ms.parse::<f64>().map(|ms| (ms * NS_PER_MS) as u64);
        let spec = TaskSpec {
            run_ns: ns(run).map_err(|_| wrong())?,
            period_ns: ns(period).map_err(|_| wrong())?,
            count: count.parse().map_err(|_| wrong())?,
            text: times.to_string(),
        };
        if spec.run_ns == 0 || spec.run_ns >= spec.period_ns || spec.count == 0 {
            return Err(wrong());
        }
        Ok(spec)
    }
}

impl TaskSpec {
    /// What its threads need of one CPU (%).
    #[cfg(test)]
    pub fn cpu_pct(&self) -> f64 {
        100.0 * self.run_ns as f64 * self.count as f64 / self.period_ns as f64
    }
}

/// What the threads of one kind met.
#[derive(Debug, Serialize)]
pub struct TaskReport {
    /// RUN/PERIOD in ms.
    pub task: String,
    pub threads: usize,
    pub activations: usize,
    /// Activations that were not finished at their next planned wake.
    pub overruns: usize,
    /// First instruction minus planned wake.
    pub wake_latency: Summary,
    /// End of the work minus planned wake.
    pub response: Summary,
    /// The longest response beyond the task's own run time (us).
    pub max_delay_us: f64,
}

/// What all of them met. The kinds come first, so that whoever looks for the
/// last of a name in the JSON finds the total.
#[derive(Debug, Serialize)]
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
    #[serde(flatten)]
    pub non_idle: Option<NonIdle>,
}

#[derive(Default)]
struct Record {
    latency_ns: Vec<u64>,
    response_ns: Vec<u64>,
    overruns: usize,
    settling_overruns: usize,
    settling_max_ns: u64,
}

impl Record {
    /// Room for `len` activations.
    fn of(len: usize) -> Self {
        Record { latency_ns: touched(len), response_ns: touched(len), ..Record::default() }
    }

    /// An activation that began `latency_ns` late and ended after `response_ns`.
    fn note(&mut self, latency_ns: u64, response_ns: u64, period_ns: u64, settled: bool) {
        let late = usize::from(response_ns > period_ns);
        if settled {
            self.latency_ns.push(latency_ns);
            self.response_ns.push(response_ns);
            self.overruns += late;
        } else {
            self.settling_overruns += late;
            self.settling_max_ns = self.settling_max_ns.max(response_ns);
        }
    }

    fn merge(&mut self, other: Record) {
        self.latency_ns.extend(other.latency_ns);
        self.response_ns.extend(other.response_ns);
        self.overruns += other.overruns;
        self.settling_overruns += other.settling_overruns;
        self.settling_max_ns = self.settling_max_ns.max(other.settling_max_ns);
    }
}

/// How a load is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// So long in all (s).
    pub seconds: f64,
    /// Of which the first so many are not measured (s).
    pub settle: f64,
    /// Each thread begins a little later in its period than the one before, else all at
    /// the same instant.
    pub stagger: bool,
}

/// Runs the threads.
pub fn run(specs: &[TaskSpec], course: Course) -> Result<Report> {
    let Course { seconds, settle, stagger } = course;
    let start = clock::now_ns() + START_DELAY_NS;
    let end = start + (seconds * NS_PER_S) as u64;
    let settled = start + (settle * NS_PER_S) as u64;
    let threads: Vec<Vec<_>> = specs
        .iter()
        .map(|spec| {
            (0..spec.count)
                .map(|i| {
                    let phase =
                        if stagger { spec.period_ns * i as u64 / spec.count as u64 } else { 0 };
                    let (run_ns, period_ns) = (spec.run_ns, spec.period_ns);
                    thread::spawn(move || activate(run_ns, period_ns, start + phase, settled, end))
                })
                .collect()
        })
        .collect();
    clock::sleep_until(settled - METER_LEAD_NS);
    let meter = Meter::start()?;
    clock::sleep_until(end);
    let non_idle = meter.stop()?;
    let mut records = Vec::new();
    for (spec, threads) in specs.iter().zip(threads) {
        let mut record = Record::default();
        for thread in threads {
            record.merge(thread.join().expect("a load thread panicked"));
        }
        records.push((spec, record));
    }
    Ok(report(records, seconds - settle, non_idle))
}

/// Room for `len` numbers whose page faults are over.
fn touched(len: usize) -> Vec<u64> {
    let mut numbers = vec![u64::MAX; len];
    numbers.clear();
    numbers
}

/// One thread: wake at `next`, burn, note, until `end`; from `settled` on it counts.
fn activate(run_ns: u64, period_ns: u64, mut next: u64, settled: u64, end: u64) -> Record {
    let mut record = Record::of(((end - next) / period_ns + 1) as usize);
    clock::exact_timers();
    while next < end {
        clock::sleep_until(next);
        let latency = clock::now_ns() - next;
        clock::burn(run_ns);
        let response = clock::now_ns() - next;
        record.note(latency, response, period_ns, next >= settled);
        // What was missed is skipped, as a player drops frames.
        next += period_ns * (response / period_ns + 1);
    }
    record
}

fn report(records: Vec<(&TaskSpec, Record)>, seconds: f64, non_idle: Option<NonIdle>) -> Report {
    let mut all = Record::default();
    let mut tasks = Vec::new();
    for (spec, record) in records {
        let longest = record.response_ns.iter().copied().max().unwrap_or(0);
        tasks.push(TaskReport {
            task: spec.text.clone(),
            threads: spec.count,
            activations: record.response_ns.len(),
            overruns: record.overruns,
            wake_latency: summarize(record.latency_ns.clone()),
            response: summarize(record.response_ns.clone()),
            max_delay_us: longest.saturating_sub(spec.run_ns) as f64 / 1e3,
        });
        all.merge(record);
    }
    Report {
        seconds,
        activations: all.response_ns.len(),
        overruns: all.overruns,
        wake_latency: summarize(all.latency_ns),
        response: summarize(all.response_ns),
        max_delay_us: tasks.iter().map(|task| task.max_delay_us).fold(0.0, f64::max),
        settling_overruns: all.settling_overruns,
        settling_max_us: all.settling_max_ns as f64 / 1e3,
        non_idle,
        tasks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_parse_and_mistakes_are_told() {
        let spec: TaskSpec = "0.5/33*2".parse().unwrap();
        assert_eq!((spec.run_ns, spec.period_ns, spec.count), (500_000, 33_000_000, 2));
        for bad in ["", "3", "3/", "3/2", "0/5", "1/2*0", "1/2*x", "a/b"] {
            assert!(bad.parse::<TaskSpec>().is_err(), "'{bad}' was taken");
        }
    }

    /// Alone, a thread burns what it was told in every period.
    #[test]
    fn all_activations_happen() {
        let begin = clock::now_ns() + 10_000_000;
        let record = activate(100_000, 10_000_000, begin, begin, begin + 200_000_000);
        assert!(record.latency_ns.len() + record.overruns >= 20, "{}", record.latency_ns.len());
        assert!(record.response_ns.iter().all(|&ns| ns >= 100_000));
    }
}
