//! Threads that compute without a pause, in pieces of fixed work.

use anyhow::Result;
use serde::Serialize;

use crate::clock::{self, NS_PER_S};
use crate::schedstat::{Meter, NonIdle};
use crate::threads;

/// Additions in a piece of work: tens of microseconds.
const PIECE: u64 = 20_000;

/// What the hogs did.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Pieces of work of each.
    pub work: Vec<u64>,
    pub total_work: u64,
    /// CPU time of each (s).
    pub cpu_s: Vec<f64>,
    #[serde(flatten)]
    pub non_idle: Option<NonIdle>,
}

/// Runs `count` hogs for `seconds`, with `nice` values in turn, bound to `pin`.
pub fn run(seconds: f64, count: usize, nice: &[i32], pin: Option<usize>) -> Result<Report> {
    let end = clock::now_ns() + (seconds * NS_PER_S) as u64;
    let meter = Meter::start()?;
    let threads: Vec<_> = (0..count)
        .map(|i| {
            let nice = if nice.is_empty() { None } else { Some(nice[i % nice.len()]) };
            threads::start(move || hog(end, nice, pin))
        })
        .collect::<Result<_>>()?;
    let mut done = Vec::new();
    for thread in threads {
        done.push(thread.join().expect("a hog panicked")?);
    }
    let non_idle = meter.stop()?;
    let work: Vec<u64> = done.iter().map(|(work, _)| *work).collect();
    Ok(Report {
        total_work: work.iter().sum(),
        work,
        cpu_s: done.iter().map(|(_, ns)| *ns as f64 / NS_PER_S).collect(),
        non_idle,
    })
}

fn hog(end: u64, nice: Option<i32>, pin: Option<usize>) -> Result<(u64, u64)> {
    if let Some(cpu) = pin {
        clock::pin(&[cpu])?;
    }
    if let Some(nice) = nice {
        clock::set_nice(nice)?;
    }
    let begin = clock::thread_cpu_ns();
    let mut work = 0;
    while clock::now_ns() < end {
        clock::work(PIECE);
        work += 1;
    }
    clock::end_run();
    Ok((work, clock::thread_cpu_ns() - begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hog_works_for_the_given_time() {
        let begin = clock::now_ns();
        let (work, cpu_ns) = hog(begin + 200_000_000, None, None).unwrap();
        assert!(work > 0 && cpu_ns > 0 && clock::now_ns() >= begin + 200_000_000);
    }
}
