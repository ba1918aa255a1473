//! Per-CPU run time, exact: `/proc/schedstat` counts what ran, where `/proc/stat` samples by
//! tick and lies for periodic loads.
//!
//! It counts a task's time as the task leaves its CPU: a hog that is alone there is not in it
//! until something else runs, and then all at once. So a [`Reading`] has what `/proc/stat`
//! sampled too, to which each tick of such a hog adds. Each time that a task comes that may be
//! wrong by a tick: it counts only where the two disagree by more than that, where few tasks
//! came and one of them stayed for long. Not the idle time of `/proc/stat`: Linux 6.12 has lost
//! seconds of it, of CPUs that slept for seconds.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::clock;

/// The field of a `cpuN` line, after its name, that holds the ns of tasks run.
const RUN_TIME_FIELD: usize = 6;
/// The fields of a `cpuN` line of `/proc/stat`, after its name, that are not idle time: user,
/// nice, system, irq, softirq, and steal, which a task is billed for.
const BUSY_FIELDS: [usize; 6] = [0, 1, 2, 5, 6, 7];
/// The field of a `cpuN` line of `/proc/schedstat` that says how often a task began to run.
const ARRIVALS_FIELD: usize = 8;
/// The unit of `/proc/stat`: USER_HZ is 100 for all programs on all machines of ours.
const STAT_STEP_NS: u64 = 10_000_000;
/// What was sampled may be off by: a step for each field,
const SLACK_NS: u64 = STAT_STEP_NS * BUSY_FIELDS.len() as u64;
/// the longest tick there is (CONFIG_HZ_100) for each task that came,
const SLACK_PER_ARRIVAL_NS: u64 = 10_000_000;
/// and this share of the time for interrupts and the way out of idle and back (1/n).
const SLACK_SHARE: u64 = 50;

/// Filled so far, the needed CPUs carry the load (%): the default of `--fill-pct`, which a test of
/// that compares.
pub const FILL_PCT: f64 = 80.0;

/// How busy the CPUs were over some time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct NonIdle {
    /// Share of the time in which each CPU ran something (%).
    pub non_idle_pct: Vec<f64>,
    /// The sum of all but the needed ones' (%), see [`surplus_pct`].
    pub surplus_non_idle_pct: f64,
}

/// The file, missing without CONFIG_SCHEDSTATS.
const PATH: &str = "/proc/schedstat";
/// The file with what ticks sampled.
const STAT_PATH: &str = "/proc/stat";

/// What the CPUs have done since boot.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When it was read, on CLOCK_MONOTONIC (ns).
    pub at_ns: u64,
    /// The run time of the tasks that have left each CPU (ns), in the order of the file.
    counted_ns: Vec<u64>,
    /// How often a task began to run, in the same order.
    arrivals: Vec<u64>,
    /// For how long each CPU was busy at a tick (ns), in the same order.
    sampled_ns: Vec<u64>,
}

impl Reading {
    /// Fails with a sentence on a kernel that does not count.
    pub fn now() -> Result<Self> {
        let at_ns = clock::now_ns();
        let stat = fs::read_to_string(STAT_PATH).context("cannot read /proc/stat")?;
        let counts = read_counts()?;
        Ok(Reading {
            at_ns,
            counted_ns: parse_field(&counts, RUN_TIME_FIELD)?,
            arrivals: parse_field(&counts, ARRIVALS_FIELD)?,
            sampled_ns: parse_busy(&stat)?,
        })
    }

    /// What each CPU has run from this reading to a later one (ns), with what runs on.
    pub fn ran_until(&self, later: &Self) -> Vec<u64> {
        let elapsed_ns = later.at_ns - self.at_ns;
        let since = |later: &[u64], before: &[u64], cpu: usize| {
            later[cpu].saturating_sub(*before.get(cpu).unwrap_or(&later[cpu]))
        };
        // A CPU that went offline meanwhile is not in the later one.
        (0..later.counted_ns.len().min(later.sampled_ns.len()))
            .map(|cpu| {
                let counted_ns = since(&later.counted_ns, &self.counted_ns, cpu);
                let arrivals = since(&later.arrivals, &self.arrivals, cpu);
                let sampled_ns = since(&later.sampled_ns, &self.sampled_ns, cpu);
                ran_ns(counted_ns, arrivals, sampled_ns, elapsed_ns)
            })
            .collect()
    }

    /// How busy the CPUs were from this reading to a later one.
    pub fn non_idle_until(&self, later: &Self) -> NonIdle {
        non_idle(&self.ran_until(later), later.at_ns - self.at_ns)
    }
}

/// What a CPU has run (ns): what was counted, unless that cannot be all, as a task still runs
/// there, or is too much, as one began before.
fn ran_ns(counted_ns: u64, arrivals: u64, sampled_ns: u64, elapsed_ns: u64) -> u64 {
    let slack_ns = SLACK_NS + arrivals * SLACK_PER_ARRIVAL_NS + elapsed_ns / SLACK_SHARE;
    if sampled_ns.abs_diff(counted_ns) <= slack_ns {
        counted_ns
    } else {
        sampled_ns.min(elapsed_ns)
    }
}

/// Run time of the tasks that have left each CPU since boot (ns), in the order of the file.
/// For intervals that are too short for ticks.
pub fn counted_ns() -> Result<Vec<u64>> {
    parse_field(&read_counts()?, RUN_TIME_FIELD)
}

fn read_counts() -> Result<String> {
    fs::read_to_string(PATH)
        .with_context(|| format!("cannot read {PATH}: the kernel needs CONFIG_SCHEDSTATS"))
}

/// Measures from a start to an end; nothing on a kernel that does not count,
/// where the loads are still good for their times.
pub struct Meter(Option<Reading>);

impl Meter {
    pub fn start() -> Result<Self> {
        Ok(Meter(if fs::exists(PATH)? { Some(Reading::now()?) } else { None }))
    }

    pub fn stop(self) -> Result<Option<NonIdle>> {
        let Some(begin) = self.0 else { return Ok(None) };
        Ok(Some(begin.non_idle_until(&Reading::now()?)))
    }
}

/// The lines of single CPUs, as words.
fn cpu_lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_one = |name: &str| name.strip_prefix("cpu").is_some_and(|nr| !nr.is_empty());
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(move |words| words.first().is_some_and(|name| is_one(name)))
}

/// The number in that field of a CPU's line.
fn field(words: &[&str], nr: usize, path: &str) -> Result<u64> {
    let word = words.get(1 + nr).with_context(|| format!("a short line in {path}"))?;
    word.parse().with_context(|| format!("no number in {path}: {word}"))
}

/// That field of each CPU's line in `/proc/schedstat`.
fn parse_field(text: &str, nr: usize) -> Result<Vec<u64>> {
    cpu_lines(text).map(|words| field(&words, nr, PATH)).collect()
}

fn parse_busy(text: &str) -> Result<Vec<u64>> {
    let busy_ns = |words: Vec<&str>| {
        let fields = BUSY_FIELDS.iter().map(|&nr| field(&words, nr, STAT_PATH));
        Ok(fields.sum::<Result<u64>>()? * STAT_STEP_NS)
    };
    cpu_lines(text).map(busy_ns).collect()
}

/// What run times over `elapsed_ns` are as shares.
fn non_idle(ran_ns: &[u64], elapsed_ns: u64) -> NonIdle {
    let pct = |&ran_ns: &u64| ran_ns as f64 / elapsed_ns as f64 * 100.0;
    let non_idle_pct: Vec<f64> = ran_ns.iter().map(pct).collect();
    NonIdle { surplus_non_idle_pct: surplus_pct(&non_idle_pct), non_idle_pct }
}

/// What all CPUs but the needed ones are non-idle (%, summed).
pub fn surplus_pct(non_idle_pct: &[f64]) -> f64 {
    // Not sum(): that of nothing is -0.
    surplus_cpus(non_idle_pct).into_iter().fold(0.0, |sum, cpu| sum + non_idle_pct[cpu])
}

/// All CPUs but the needed ones, by their places in `non_idle_pct` (%), the busiest first: as few of the
/// busiest are needed as carry the load when they are filled.
pub fn surplus_cpus(non_idle_pct: &[f64]) -> Vec<usize> {
    let needed = ((non_idle_pct.iter().sum::<f64>() / FILL_PCT).ceil() as usize).max(1);
    let mut cpus: Vec<usize> = (0..non_idle_pct.len()).collect();
    cpus.sort_by(|&a, &b| non_idle_pct[b].total_cmp(&non_idle_pct[a]));
    cpus.into_iter().skip(needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_seventh_number_counts() {
        let text = "version 17\ntimestamp 1\ncpu0 0 1 2 3 4 5 600 7 8\ndomain0 MC 3 1\ncpu1 0 0 0 0 0 0 9 0 0\n";
        assert_eq!(parse_field(text, RUN_TIME_FIELD).unwrap(), [600, 9]);
        assert_eq!(parse_field(text, ARRIVALS_FIELD).unwrap(), [8, 0]);
        assert!(parse_field("cpu0 1 2", RUN_TIME_FIELD).is_err());
    }

    #[test]
    fn neither_idle_nor_guest_time_is_added() {
        let text = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 4 99 99 8 16 32 99 99\ncpu1 0 0 0 7 7 0 0 1\n";
        assert_eq!(parse_busy(text).unwrap(), [630 * MS, 10 * MS]);
        assert!(parse_busy("cpu0 1 2 3 4 5 6 7").is_err());
    }

    #[test]
    fn surplus_is_what_the_needed_cpus_do_not_do() {
        let non_idle = non_idle(&[20, 50, 10], 100);
        assert_eq!(non_idle.non_idle_pct, [20.0, 50.0, 10.0]);
        assert_eq!(non_idle.surplus_non_idle_pct, 30.0);
        // 105.4 % needs two CPUs at 80 %.
        assert_eq!(surplus_pct(&[5.0, 60.0, 0.4, 40.0]), 5.4);
        assert_eq!(surplus_cpus(&[5.0, 60.0, 0.4, 40.0]), [0, 2]);
        assert_eq!(surplus_pct(&[0.0, 0.0]), 0.0);
    }

    fn reading(
        at_ms: u64,
        counted_ms: [u64; 4],
        arrivals: [u64; 4],
        sampled_ms: [u64; 4],
    ) -> Reading {
        let ns = |ms: [u64; 4]| ms.map(|ms| ms * MS).to_vec();
        Reading {
            at_ns: at_ms * MS,
            counted_ns: ns(counted_ms),
            arrivals: arrivals.to_vec(),
            sampled_ns: ns(sampled_ms),
        }
    }

    #[test]
    fn a_task_that_is_never_switched_out_has_run() {
        // CPU 0: a hog alone, all the time. CPU 1: one that had run for 5 s before, and left
        // half way. CPU 2 and 3: nothing, and a little, at every tick.
        let before = reading(1000, [7, 0, 3, 3], [1, 1, 1, 1], [600, 5000, 100, 100]);
        let after = reading(4000, [7, 6500, 3, 63], [2, 3, 1, 4], [3600, 6500, 120, 180]);
        assert_eq!(before.ran_until(&after), [3000 * MS, 1500 * MS, 0, 60 * MS]);
        let pct = before.non_idle_until(&after).non_idle_pct;
        assert_eq!(pct, [100.0, 50.0, 0.0, 2.0]);
    }

    #[test]
    fn what_is_sampled_does_not_count_where_tasks_come_and_go() {
        // A task of 1 ms in 4: never seen if the tick comes after it, always if with it; 750
        // times. One of 12 ms in 40, of which the tick sees three or all.
        let before = reading(1000, [0; 4], [0; 4], [0; 4]);
        let after = reading(4000, [750, 750, 900, 900], [750, 750, 75, 75], [0, 3000, 900, 1500]);
        assert_eq!(before.ran_until(&after), [750 * MS, 750 * MS, 900 * MS, 900 * MS]);
    }

    #[test]
    fn a_thread_that_still_runs_here_is_seen() {
        let Ok(begin) = Reading::now() else { return };
        crate::clock::burn(400 * MS);
        let ran_ns: u64 = begin.ran_until(&Reading::now().unwrap()).iter().sum();
        assert!(ran_ns >= 300 * MS, "{ran_ns}");
    }
}
