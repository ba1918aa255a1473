//! Several runs as one figure, and whether two such differ.

use super::limit::median_error;
use super::metric::Metric;
use crate::statistics::{mean, median, student_chance, variance};

/// A difference that chance would make as often as this is none.
pub const SIGNIFICANCE: f64 = 0.05;

/// Several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    values: Vec<f64>,
}

/// The median of ratios and its error, "x 1.035 ± 0.022"; of a single one nothing is known of that.
pub fn of_ratios(ratios: Vec<f64>) -> String {
    let error = median_error(&ratios);
    let error = if ratios.len() > 1 { &format!(" ± {error:.3}") } else { "" };
    Summary::of(ratios).map_or(String::new(), |ratio| format!("x {:.3}{error}", ratio.median))
}

/// What may be said of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// There is one.
    Clear,
    /// It is within the noise.
    Noise,
    /// One run each says nothing of the noise.
    Unknown,
}

impl Summary {
    /// `None` of nothing.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let median = median(&values);
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Summary { median, min, max, values })
    }

    /// "28.5", or "28.5 (28.1-28.9)" when runs differ.
    pub fn show(&self, metric: Metric) -> String {
        let (median, range) = self.parts(metric);
        if range.is_empty() { median } else { format!("{median} ({range})") }
    }

    /// The median, and the range if there is one.
    pub fn parts(&self, metric: Metric) -> (String, String) {
        let [median, min, max] =
            [self.median, self.min, self.max].map(|value| metric.format(value));
        let range = if min == max { String::new() } else { format!("{min}-{max}") };
        (median, range)
    }

    /// Whether `other` differs: Welch's t-test, two-sided.
    pub fn differs(&self, other: &Summary, metric: Metric) -> Difference {
        let (a, b) = (&self.values, &other.values);
        if (self.median - other.median).abs() <= metric.negligible() {
            return Difference::Noise;
        }
        if a.len() < 2 || b.len() < 2 {
            return Difference::Unknown;
        }
        let [a_part, b_part] = [a, b].map(|values| variance(values) / values.len() as f64);
        let error = (a_part + b_part).sqrt();
        let gap = (mean(a) - mean(b)).abs();
        if error == 0.0 {
            return if gap > 0.0 { Difference::Clear } else { Difference::Noise };
        }
        // Welch and Satterthwaite's degrees of freedom.
        let freedom = (a_part + b_part).powi(2)
            / (a_part.powi(2) / (a.len() - 1) as f64 + b_part.powi(2) / (b.len() - 1) as f64);
        if student_chance(gap / error, freedom) < SIGNIFICANCE {
            Difference::Clear
        } else {
            Difference::Noise
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Summary {
        Summary::of(values.to_vec()).unwrap()
    }

    #[test]
    fn medians_have_their_spread() {
        assert_eq!(of(&[3.0, 1.0, 2.0]).show(Metric::PowerW), "2.00 (1.00-3.00)");
        assert_eq!(of(&[2.0, 2.001]).show(Metric::PowerW), "2.00");
        assert_eq!(Summary::of(vec![]), None);
    }

    #[test]
    fn noise_is_distinguished_from_a_difference() {
        let differ = |a: &[f64], b: &[f64]| of(a).differs(&of(b), Metric::PowerW);
        assert_eq!(differ(&[10.0, 10.1, 9.9], &[12.0, 12.1, 11.9]), Difference::Clear);
        assert_eq!(differ(&[10.0, 11.0, 9.0], &[10.5, 11.5, 9.4]), Difference::Noise);
        assert_eq!(differ(&[10.0], &[12.0, 12.1]), Difference::Unknown);
        assert_eq!(differ(&[10.0, 10.0], &[10.0, 10.0]), Difference::Noise);
        assert_eq!(differ(&[10.0, 10.0], &[11.0, 11.0]), Difference::Clear);
        // Nobody notices 20 us.
        let [a, b] = [of(&[100.0, 100.0]), of(&[120.0, 120.0])];
        assert_eq!(a.differs(&b, Metric::WakeP99Us), Difference::Noise);
    }
}
