//! Times of many activations, summed up.

use powerpack_workload::percentile;
use serde::{Deserialize, Serialize};

/// The shares of the times (%) of which a curve shows the longest.
pub const CURVE_PCT: [f64; 12] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 100.0];

/// Mean and upper percentiles, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

/// Sums up times in ns; all zero for none.
pub fn summarize(mut samples_ns: Vec<u64>) -> Summary {
    if samples_ns.is_empty() {
        return Summary::default();
    }
    samples_ns.sort_unstable();
    let at = |pct| at_us(&samples_ns, pct);
    Summary {
        count: samples_ns.len(),
        mean_us: samples_ns.iter().sum::<u64>() as f64 / 1e3 / samples_ns.len() as f64,
        p50_us: at(50.0),
        p99_us: at(99.0),
        p999_us: at(99.9),
        max_us: at(100.0),
    }
}

/// The curve of times in ns: [`CURVE_PCT`] of them are as short, each in us; empty for none.
pub fn curve(mut samples_ns: Vec<u64>) -> Vec<f64> {
    samples_ns.sort_unstable();
    let len = if samples_ns.is_empty() { 0 } else { CURVE_PCT.len() };
    CURVE_PCT[..len].iter().map(|&pct| at_us(&samples_ns, pct)).collect()
}

/// What `pct` of sorted times are at most, in us.
fn at_us(sorted_ns: &[u64], pct: f64) -> f64 {
    percentile(sorted_ns, pct).unwrap_or(0) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let summary = summarize((1..=100).rev().map(|ms| ms * 1000).collect());
        assert_eq!((summary.p50_us, summary.p99_us, summary.max_us), (50.0, 99.0, 100.0));
        assert_eq!(summary.mean_us, 50.5);
        assert_eq!(curve(vec![7_000; 3]), [7.0; CURVE_PCT.len()]);
        assert_eq!(summarize(vec![]).count, 0);
        assert!(curve(vec![]).is_empty());
    }
}
