//! Threads that compute without a pause, in pieces of fixed work.

use std::thread;

use anyhow::Result;
use serde::Serialize;

use crate::clock::{self, NS_PER_S};
use crate::schedstat::{self, NonIdle};

/// Additions in a piece of work: tens of microseconds.
const PIECE: u64 = 20_000;

/// What the hogs did.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Pieces of work of each.
    work: Vec<u64>,
    total_work: u64,
    /// CPU time of each (s).
    cpu_s: Vec<f64>,
    #[serde(flatten)]
    non_idle: NonIdle,
}

/// Runs `count` hogs for `seconds`, with `nice` values in turn, bound to `pin`.
pub fn run(seconds: f64, count: usize, nice: &[i32], pin: Option<usize>) -> Result<Report> {
    let start = clock::now_ns();
    let end = start + (seconds * NS_PER_S) as u64;
    let before = schedstat::read()?;
    let threads: Vec<_> = (0..count)
        .map(|i| {
            let nice = if nice.is_empty() { 0 } else { nice[i % nice.len()] };
            thread::spawn(move || hog(end, nice, pin))
        })
        .collect();
    let mut done = Vec::new();
    for thread in threads {
        done.push(thread.join().expect("a hog panicked")?);
    }
    let non_idle = schedstat::between(&before, &schedstat::read()?, clock::now_ns() - start);
    let work: Vec<u64> = done.iter().map(|(work, _)| *work).collect();
    Ok(Report {
        total_work: work.iter().sum(),
        work,
        cpu_s: done.iter().map(|(_, ns)| *ns as f64 / NS_PER_S).collect(),
        non_idle,
    })
}

fn hog(end: u64, nice: i32, pin: Option<usize>) -> Result<(u64, u64)> {
    if let Some(cpu) = pin {
        clock::pin(cpu)?;
    }
    // SAFETY: changes a number of the calling thread; refused without root.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    let begin = clock::thread_cpu_ns();
    let mut work = 0;
    while clock::now_ns() < end {
        let mut sum = 0u64;
        for i in 0..PIECE {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        work += 1;
    }
    Ok((work, clock::thread_cpu_ns() - begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hog_works_and_the_sum_is_theirs() {
        let report = run(0.2, 3, &[], None).unwrap();
        assert!(report.work.iter().all(|&work| work > 0));
        assert_eq!(report.total_work, report.work.iter().sum::<u64>());
    }
}
