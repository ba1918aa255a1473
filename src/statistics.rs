//! What a sample says: its mean, spread and quantiles, and Student's t.

use special::Beta;

/// The mean; not a number of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The variance of that of which the values are a sample; not a number of fewer than two, which say nothing of it.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// The square root of [`variance`].
pub fn std_dev(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// The middle one, or the mean of both; not a number of nothing.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => f64::NAN,
        (middle, 0) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (middle, _) => sorted[middle],
    }
}

/// What `share` (0..1) of that of which the values are a sample is below; not a number of no values. Nearly unbiased
/// for the median of each share, whatever the distribution: number 8 of Hyndman and Fan (Am. Stat. 50, 1996).
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    // Values are counted from 0 here, from 1 there.
    let place = share * (sorted.len() as f64 + 1.0 / 3.0) - 2.0 / 3.0;
    let place = place.clamp(0.0, last as f64);
    let below = place as usize;
    let above = sorted[(below + 1).min(last)];
    sorted[below] + (place - below as f64) * (above - sorted[below])
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The chance that Student's t of so much `freedom` (degrees, more than 0) is as far from 0 as `t`, on either side.
pub fn student_chance(t: f64, freedom: f64) -> f64 {
    let (half, ln_beta) = half_freedom(freedom);
    (freedom / (freedom + t * t)).inc_beta(half, 0.5, ln_beta)
}

/// How far from 0 Student's t of so much `freedom` is with this `chance`, on either side: [`student_chance`] backwards.
pub fn student_bound(chance: f64, freedom: f64) -> f64 {
    let (half, ln_beta) = half_freedom(freedom);
    let share = chance.inv_inc_beta(half, 0.5, ln_beta);
    (freedom * (1.0 - share) / share).sqrt()
}

/// The parameter of the beta distribution behind Student's t, and the logarithm of the beta function there.
fn half_freedom(freedom: f64) -> (f64, f64) {
    (freedom / 2.0, (freedom / 2.0).ln_beta(0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() < share, "{found}, not {expected}");
    }

    #[test]
    fn means_and_spreads_by_hand() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!((mean(&values), variance(&values)), (5.0, 32.0 / 7.0));
        close(std_dev(&values).powi(2), 32.0 / 7.0, 1e-14);
        assert!(mean(&[]).is_nan() && variance(&[1.0]).is_nan() && median(&[]).is_nan());
    }

    #[test]
    fn quantiles_are_between_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let values = [30.0, 10.0, 50.0, 20.0, 40.0];
        assert_eq!([0.0, 0.05, 1.0].map(|share| quantile(&values, share)), [10.0, 10.0, 50.0]);
        // The place is (5 + 1/3) share + 1/3, counted from 1.
        close(quantile(&values, 0.25), 10.0 + 20.0 / 3.0, 1e-14);
        close(quantile(&values, 0.9), 50.0, 1e-14);
        close(quantile(&values, 0.5), 30.0, 1e-14);
        assert!(quantile(&[], 0.5).is_nan());
    }

    /// Both ways, by figures that were computed with fifty digits.
    #[test]
    fn students_t_is_that_of_tables() {
        close(student_chance(1.0, 1.0), 0.5, 1e-14);
        close(student_chance(3.182_446_305_283_71, 3.0), 0.05, 1e-12);
        close(student_chance(0.7, 2.5), 0.543_404_943_189_548_1, 1e-13);
        close(student_chance(-4.2, 7.3), 0.003_675_057_001_648_913, 1e-12);
        close(student_chance(3.5, 39.0), 0.001_180_627_000_338_731, 1e-12);
        close(student_chance(1.0, 198.0), 0.318_531_037_908_734_8, 1e-12);
        close(student_bound(0.05, 3.0), 3.182_446_305_283_71, 1e-9);
        close(student_bound(0.0005, 3.0), 16.326_334_609_802_5, 1e-9);
        close(student_bound(0.0003, 12.0), 5.018_267_693_284_091, 1e-9);
        close(student_bound(0.001, 39.0), 3.558_120_081_332_732, 1e-9);
    }
}
