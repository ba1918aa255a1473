//! A ratio in many draws: its mean, how sure that is, and in how many draws it is on the same side of 1.

use crate::statistics::{mean, quantile, std_dev};

/// Ratios of one thing to another, one for each draw, as logarithms.
#[derive(Clone, Debug)]
pub struct Ratios(Vec<f64>);

impl Ratios {
    pub fn of(logs: Vec<f64>) -> Self {
        Ratios(logs)
    }

    /// Draw by draw, the geometric mean of `several`, which are of equally many draws; `None` of none.
    pub fn mean_of(several: &[Ratios]) -> Option<Self> {
        let draws = several.first()?.0.len();
        let of_draw = |draw: usize| several.iter().map(|of| of.0[draw]).collect::<Vec<_>>();
        Some(Ratios((0..draws).map(|draw| mean(&of_draw(draw))).collect()))
    }

    /// The geometric mean.
    pub fn mean(&self) -> f64 {
        mean(&self.0).exp()
    }

    /// The standard error of the mean (percent of it).
    pub fn error_pct(&self) -> f64 {
        std_dev(&self.0) / (self.0.len() as f64).sqrt() * 100.0
    }

    /// In how many draws the ratio is on the side of 1 where the mean is.
    pub fn holds(&self) -> usize {
        let mean = mean(&self.0);
        self.0.iter().filter(|log| **log * mean > 0.0).count()
    }

    /// The ratio that `share` (0..1) of the draws are below.
    pub fn quantile(&self, share: f64) -> f64 {
        quantile(&self.0, share).exp()
    }

    /// In how many draws the ratio is at most `limit`.
    pub fn at_most(&self, limit: f64) -> usize {
        self.0.iter().filter(|log| **log <= limit.ln()).count()
    }

    /// The larger one in each draw.
    pub fn max(self, other: &Ratios) -> Self {
        Ratios(self.0.iter().zip(&other.0).map(|(a, b)| a.max(*b)).collect())
    }

    /// "0.873 in 198": the mean, and in how many draws its side of 1 holds.
    pub fn show(&self) -> String {
        format!("{:.3} in {}", self.mean(), self.holds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(of: &[f64]) -> Ratios {
        Ratios::of(of.iter().map(|ratio| ratio.ln()).collect())
    }

    #[test]
    fn a_mean_says_in_how_many_draws_its_side_of_one_holds() {
        let mixed = ratios(&[0.25, 0.5, 2.0, 0.25]);
        assert!((mixed.mean() - 0.5).abs() < 1e-9);
        assert_eq!((mixed.holds(), mixed.show().as_str()), (3, "0.500 in 3"));
        assert_eq!(ratios(&[4.0, 1.0, 0.9]).holds(), 1, "neither 1 nor what is below it");
        assert_eq!(mixed.at_most(0.5), 3);
        assert!(
            (mixed.quantile(0.0) - 0.25).abs() < 1e-9 && (mixed.quantile(1.0) - 2.0).abs() < 1e-9
        );
    }

    #[test]
    fn an_error_falls_with_the_root_of_how_many_there_are() {
        let few = ratios(&[0.8, 1.25]).error_pct();
        let many: Vec<f64> = [0.8, 1.25].repeat(100);
        // The deviation of a sample of 2 is a root of two more than that of all there are.
        let expected = few / 2.0_f64.sqrt() / 10.0;
        assert!((ratios(&many).error_pct() / expected - 1.0).abs() < 0.01);
    }

    #[test]
    fn several_are_averaged_draw_by_draw() {
        let both = Ratios::mean_of(&[ratios(&[0.5, 2.0]), ratios(&[0.5, 0.125])]).unwrap();
        assert_eq!(both.show(), "0.500 in 2");
        assert!(Ratios::mean_of(&[]).is_none());
    }
}
