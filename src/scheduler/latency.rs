//! Wake-up latencies, as BPF counts them.

use serde::{Deserialize, Serialize};

use crate::bpf_intf as intf;

/// Times in buckets of powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    pub sum_ns: u64,
    /// `[n]`: those up to 2^n us that are in none before; the last one: all beyond.
    pub counts: Vec<u64>,
}

impl Latency {
    /// Adds what one CPU has counted.
    pub fn add(&mut self, of: &intf::pp_latency) {
        self.sum_ns += of.sum_ns;
        self.counts.resize(of.counts.len(), 0);
        for (sum, count) in self.counts.iter_mut().zip(of.counts) {
            *sum += count;
        }
    }

    /// How many wake-ups were counted.
    pub fn nr(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What has come since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let was = |n: usize| earlier.counts.get(n).copied().unwrap_or(0);
        Latency {
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            counts: self
                .counts
                .iter()
                .enumerate()
                .map(|(n, &is)| is.saturating_sub(was(n)))
                .collect(),
        }
    }

    /// The bound of the bucket in which the `pct`th percentile is (us): it is at most that,
    /// and more than half of it. `None` if there is nothing, or if it is beyond all bounds.
    pub fn percentile_us(&self, pct: f64) -> Option<u64> {
        let wanted = (self.nr() as f64 * pct / 100.0).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.counts.iter().position(|&count| {
            sum += count;
            sum >= wanted
        })?;
        (bucket + 1 < self.counts.len()).then_some(1 << bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_bounds_of_buckets() {
        let mut latency = Latency::default();
        assert_eq!(latency.percentile_us(50.0), None);
        latency.counts = vec![50, 0, 0, 40, 0, 9, 1];
        assert_eq!(latency.percentile_us(50.0), Some(1));
        assert_eq!(latency.percentile_us(51.0), Some(8));
        assert_eq!(latency.percentile_us(99.0), Some(32));
        assert_eq!(latency.percentile_us(100.0), None, "beyond all bounds");
        let later = Latency { sum_ns: 7, counts: vec![51, 0, 0, 40, 0, 9, 3] };
        assert_eq!(later.since(&latency).counts, [1, 0, 0, 0, 0, 0, 2]);
    }
}
