//! Per-CPU run time, exact: `/proc/schedstat` counts what ran, where
//! `/proc/stat` samples by tick and lies for periodic loads.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::clock;

/// The field of a `cpuN` line, after its name, that holds the ns of tasks run.
const RUN_TIME_FIELD: usize = 6;

/// How busy the CPUs were over some time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct NonIdle {
    /// Share of the time in which each CPU ran something (%).
    pub non_idle_pct: Vec<f64>,
    /// The sum of all but the busiest's (%).
    pub beyond_busiest_pct: f64,
}

/// The file, missing without CONFIG_SCHEDSTATS.
const PATH: &str = "/proc/schedstat";

/// Run time of each CPU since boot (ns), in the order of the file.
pub fn read() -> Result<Vec<u64>> {
    let text = fs::read_to_string(PATH)
        .with_context(|| format!("cannot read {PATH}: the kernel needs CONFIG_SCHEDSTATS"))?;
    parse(&text)
}

/// Measures from a start to an end; nothing on a kernel that does not count,
/// where the loads are still good for their times.
pub struct Meter(Option<(Vec<u64>, u64)>);

impl Meter {
    pub fn start() -> Result<Self> {
        let counted = fs::exists(PATH)?;
        Ok(Meter(if counted { Some((read()?, clock::now_ns())) } else { None }))
    }

    pub fn stop(self) -> Result<Option<NonIdle>> {
        let Some((before, begin)) = self.0 else { return Ok(None) };
        let after = read()?;
        Ok(Some(between(&before, &after, clock::now_ns() - begin)))
    }
}

fn parse(text: &str) -> Result<Vec<u64>> {
    text.lines()
        .filter(|line| line.starts_with("cpu"))
        .map(|line| {
            let field = line.split_whitespace().nth(1 + RUN_TIME_FIELD);
            Ok(field.context("a short line in /proc/schedstat")?.parse()?)
        })
        .collect()
}

/// What happened between two readings `elapsed_ns` apart.
pub fn between(before: &[u64], after: &[u64], elapsed_ns: u64) -> NonIdle {
    let pct = |(before, after): (&u64, &u64)| {
        after.saturating_sub(*before) as f64 / elapsed_ns as f64 * 100.0
    };
    let non_idle_pct: Vec<f64> = before.iter().zip(after).map(pct).collect();
    let busiest = non_idle_pct.iter().copied().fold(0.0, f64::max);
    let beyond_busiest_pct = non_idle_pct.iter().sum::<f64>() - busiest;
    NonIdle { non_idle_pct, beyond_busiest_pct }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventh_number_counts() {
        let text = "version 17\ntimestamp 1\ncpu0 0 1 2 3 4 5 600 7 8\ndomain0 MC 3 1\ncpu1 0 0 0 0 0 0 9 0 0\n";
        assert_eq!(parse(text).unwrap(), [600, 9]);
        assert!(parse("cpu0 1 2").is_err());
    }

    #[test]
    fn the_busiest_is_left_out_of_the_rest() {
        let non_idle = between(&[0, 0, 10], &[50, 20, 20], 100);
        assert_eq!(non_idle.non_idle_pct, [50.0, 20.0, 10.0]);
        assert_eq!(non_idle.beyond_busiest_pct, 30.0);
    }
}
