//! How often an idle machine is woken.

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::clock::{self, NS_PER_S};

/// Interrupts a second, summed over the CPUs.
#[derive(Debug, Serialize)]
pub struct Report {
    pub timer_per_s: f64,
    pub resched_per_s: f64,
}

/// Sleeps for `seconds` and counts.
pub fn run(seconds: f64) -> Result<Report> {
    let before = read()?;
    clock::sleep_until(clock::now_ns() + (seconds * NS_PER_S) as u64);
    let after = read()?;
    Ok(Report {
        timer_per_s: (after.0 - before.0) as f64 / seconds,
        resched_per_s: (after.1 - before.1) as f64 / seconds,
    })
}

fn read() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/interrupts").context("cannot read /proc/interrupts")?;
    Ok((sum(&text, "LOC:"), sum(&text, "RES:")))
}

/// The sum over the CPUs of the line that begins with `name`.
fn sum(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or("");
    line.split_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_summed_up_to_its_words() {
        let text = "      CPU0 CPU1\n LOC:  10  20   Local timer interrupts\n RES: 1 2 Resched 9\n";
        assert_eq!((sum(text, "LOC:"), sum(text, "RES:"), sum(text, "X:")), (30, 3, 0));
    }
}
