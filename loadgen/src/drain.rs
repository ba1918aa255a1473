//! How long a live switch takes: from the command to the moment from which the
//! surplus CPUs are left alone.

use std::process::{Command, Output};
use std::thread;

use anyhow::{Context, Result, bail};
use powerpack_workload::Workload;
use serde::Serialize;

use crate::clock::{self, NS_PER_MS, NS_PER_S};
use crate::engine::{self, Course};
use crate::schedstat::{self, NonIdle, Reading};
use crate::workload;

/// How often the CPUs' run times are read (ms): finer, and reading them would
/// be most of the load.
const WINDOW_MS: u64 = 10;
/// A CPU that ran for longer in a window was used (ns). Shorter is the
/// housekeeping of its own kernel threads; the shortest task runs for 0.1 ms.
const USED_NS: u64 = 50_000;

/// What the switch did.
#[derive(Debug, Serialize)]
pub struct Report {
    /// From the start of the command to its end, as a user sees it (ms).
    pub command_ms: f64,
    /// What it printed.
    pub command_output: String,
    /// From the start of the command until each CPU was left alone (ms); null
    /// where it never was.
    pub cpu_drained_ms: Vec<Option<u64>>,
    /// The same for all CPUs but the busiest together.
    pub drained_ms: Option<u64>,
    /// Overruns of the load, before and after.
    pub overruns: usize,
    /// From the start of the command to the end of the load.
    #[serde(flatten)]
    pub non_idle: NonIdle,
}

/// Runs the load for `seconds` and, in the middle, `command`.
pub fn run(load: &Workload, seconds: f64, settle_ms: u64, command: &[String]) -> Result<Report> {
    let end = clock::now_ns() + (seconds * NS_PER_S) as u64;
    let load = {
        let kinds = workload::kinds(load)?;
        let course = Course { seconds, phases: load.phases, ..Course::default() };
        thread::spawn(move || engine::run(&kinds, course))
    };
    clock::sleep_until(end - (seconds / 2.0 * NS_PER_S) as u64);
    let begin = clock::now_ns();
    let switch = {
        let command = command.to_vec();
        thread::spawn(move || execute(&command))
    };
    let before = Reading::now()?;
    let readings = watch(begin, end)?;
    let non_idle = before.non_idle_until(&Reading::now()?);
    let (output, command_ms) = switch.join().expect("the switching thread panicked")?;
    if !output.status.success() {
        bail!("'{}' failed: {}", command.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    let load = load.join().expect("the load panicked")?;
    let (cpu_drained_ms, drained_ms) = drained(&readings, settle_ms / WINDOW_MS);
    Ok(Report {
        command_ms,
        command_output: String::from_utf8_lossy(&output.stdout).trim().to_string(),
        cpu_drained_ms,
        drained_ms,
        overruns: load.overruns,
        non_idle,
    })
}

fn execute(command: &[String]) -> Result<(Output, f64)> {
    let begin = clock::now_ns();
    let output = Command::new(&command[0])
        .args(&command[1..])
        .output()
        .with_context(|| format!("cannot run '{}'", command[0]))?;
    Ok((output, (clock::now_ns() - begin) as f64 / NS_PER_MS))
}

/// The CPUs' run times, as their tasks leave them, every `WINDOW_MS` from `begin` to `end`.
fn watch(begin: u64, end: u64) -> Result<Vec<Vec<u64>>> {
    clock::exact_timers();
    let mut readings = vec![schedstat::counted_ns()?];
    let mut next = begin;
    loop {
        next += WINDOW_MS * NS_PER_MS as u64;
        if next > end {
            return Ok(readings);
        }
        clock::sleep_until(next);
        readings.push(schedstat::counted_ns()?);
    }
}

/// When (ms) each CPU, and all but the busiest together, were left alone for
/// `settle` windows for the first time.
fn drained(readings: &[Vec<u64>], settle: u64) -> (Vec<Option<u64>>, Option<u64>) {
    let cpus = readings[0].len();
    let total = |cpu: usize| readings[readings.len() - 1][cpu] - readings[0][cpu];
    let busiest = (0..cpus).max_by_key(|&cpu| total(cpu)).unwrap_or(0);
    let used = |cpu: usize| readings.windows(2).map(move |w| w[1][cpu] - w[0][cpu] > USED_NS);
    let each = (0..cpus).map(|cpu| first_quiet(used(cpu), settle)).collect();
    let any = readings
        .windows(2)
        .map(|w| (0..cpus).any(|cpu| cpu != busiest && w[1][cpu] - w[0][cpu] > USED_NS));
    (each, first_quiet(any, settle))
}

/// The beginning (ms) of the first `settle` windows in a row without use.
fn first_quiet(used: impl Iterator<Item = bool>, settle: u64) -> Option<u64> {
    let mut quiet = 0;
    for (window, used) in (1..).zip(used) {
        quiet = if used { 0 } else { quiet + 1 };
        if quiet == settle.max(1) {
            return Some((window - quiet) * WINDOW_MS);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drained_is_when_the_quiet_begins_not_when_it_is_noticed() {
        // CPU 0 works on; CPU 1 stops after two windows, with a hiccup before;
        // CPU 2 never rests for two windows. The last step is housekeeping.
        let ms = 1_000_000;
        let readings = [
            vec![0, 0, 0],
            vec![9 * ms, 0, ms],
            vec![18 * ms, ms, ms],
            vec![27 * ms, ms, 2 * ms],
            vec![36 * ms, ms + 1000, 2 * ms],
            vec![45 * ms, ms + 2000, 3 * ms],
        ];
        let (each, all) = drained(&readings, 2);
        assert_eq!(each, [None, Some(20), None]);
        assert_eq!(all, None);
        let without_two: Vec<_> = readings.iter().map(|r| r[..2].to_vec()).collect();
        assert_eq!(drained(&without_two, 2).1, Some(20));
    }
}
