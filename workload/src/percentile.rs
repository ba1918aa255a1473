//! What percentiles are, for what is measured and what is simulated.

/// Shares are exact to a thousandth of a percent.
const PARTS_OF_PCT: f64 = 1000.0;

/// The nearest rank: the least of `sorted` that `pct` (above 0, at most 100) of them do not exceed; `None` of nothing.
pub fn percentile(sorted: &[u64], pct: f64) -> Option<u64> {
    // In whole numbers: 99.9 % of 1000 are 999, and not a rounding error more.
    let parts = (pct * PARTS_OF_PCT).round() as usize;
    let rank = (sorted.len() * parts).div_ceil((100.0 * PARTS_OF_PCT) as usize);
    sorted.get(rank.max(1) - 1).copied()
}

/// Whether one of so many samples is beyond that percentile: of fewer it is but the longest.
pub fn has_percentile(samples: usize, pct: f64) -> bool {
    samples as f64 * (100.0 - pct) / 100.0 > 1.0 - 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let of = |len: u64, pct| percentile(&(1..=len).collect::<Vec<u64>>(), pct);
        assert_eq!([50.0, 99.0, 99.9, 100.0].map(|pct| of(100, pct)), [50, 99, 100, 100].map(Some));
        assert_eq!([99.9, 99.5, 0.05].map(|pct| of(1000, pct)), [999, 995, 1].map(Some));
        assert_eq!((of(3, 50.0), of(1, 1.0), of(0, 50.0)), (Some(2), Some(1), None));
    }

    #[test]
    fn few_samples_have_no_high_percentile() {
        assert_eq!([99, 100].map(|samples| has_percentile(samples, 99.0)), [false, true]);
        assert_eq!([999, 1000].map(|samples| has_percentile(samples, 99.9)), [false, true]);
        assert!(has_percentile(2, 50.0) && !has_percentile(0, 50.0));
    }
}
