//! Times of many activations, summed up.

use serde::Serialize;

/// Mean and upper percentiles, in microseconds.
#[derive(Debug, Default, Serialize, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// Sums up times in ns; all zero for none.
pub fn summarize(mut samples_ns: Vec<u64>) -> Summary {
    if samples_ns.is_empty() {
        return Summary::default();
    }
    samples_ns.sort_unstable();
    let us = |ns: u64| ns as f64 / 1e3;
    let at = |pct: usize| us(samples_ns[(samples_ns.len() * pct / 100).min(samples_ns.len() - 1)]);
    Summary {
        count: samples_ns.len(),
        mean_us: us(samples_ns.iter().sum::<u64>()) / samples_ns.len() as f64,
        p50_us: at(50),
        p99_us: at(99),
        max_us: at(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let summary = summarize((1..=100).rev().map(|ms| ms * 1000).collect());
        assert_eq!((summary.p50_us, summary.p99_us, summary.max_us), (51.0, 100.0, 100.0));
        assert_eq!(summary.mean_us, 50.5);
        assert_eq!(summarize(vec![]).count, 0);
    }
}
