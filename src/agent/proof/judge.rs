//! What rounds of blocks say of two modes: a group-sequential t-test of paired differences.
//!
//! The difference of two modes in a round is that of the logarithms of their energy for the same load, so that it is a share,
//! and what both blocks have in common cancels. It is looked at after a fixed number of rounds several times, and each
//! look would find something by chance: so each has a part of the chance of a wrong claim, by Lan and DeMets'
//! spending function for bounds of Pocock's type (Biometrika 70, 1983). The parts add up to [`ALPHA`], whatever the
//! dependence of the looks, and each is divided by the number of pairs of modes that are compared (Bonferroni).
//! The interval of a look is a repeated confidence interval (Jennison and Turnbull, J. R. Statist. Soc. B 51, 1989):
//! all of them together hold the truth but for [`ALPHA`], so that comparing may end at any of them, for a
//! difference or for none, without being wrong more often.

use std::f64::consts::E;

use crate::statistics::{mean, std_dev, student_bound};

/// The chance of claiming, for one kind of load, any difference that is none.
pub const ALPHA: f64 = 0.01;
/// Smaller differences are not worth another mode than the model's.
pub const RELEVANT: f64 = 0.03;
/// After how many rounds it is looked: soon, as spreading often takes half as much again, and then ever less often.
/// Fewer than four say nothing of their noise. The last is what three modes do in ten minutes.
const LOOKS: [usize; 7] = [4, 6, 9, 13, 19, 28, ROUNDS_MAX];
/// The number of rounds after which there is no more to be had.
pub const ROUNDS_MAX: usize = 40;

/// What pairs of blocks say of a difference, as a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    /// The truth is within this of the mean.
    half: f64,
}

impl Interval {
    /// Of these differences, at least two, wrong with a chance of `alpha`.
    pub fn of(differences: &[f64], alpha: f64) -> Self {
        let nr = differences.len() as f64;
        let error = std_dev(differences) / nr.sqrt();
        Interval { mean: mean(differences), half: student_bound(alpha, nr - 1.0) * error }
    }

    /// It is surely less than nothing.
    pub fn is_less(self) -> bool {
        self.mean + self.half < 0.0
    }

    /// It is surely too small to matter.
    pub fn is_irrelevant(self) -> bool {
        self.mean.abs() + self.half < RELEVANT
    }
}

/// The part of [`ALPHA`] that the look after `rounds` rounds has; `None`: it is not looked then.
pub fn alpha_after(rounds: usize) -> Option<f64> {
    let nth = LOOKS.iter().position(|&look| look == rounds)?;
    let before = if nth == 0 { 0.0 } else { spent(LOOKS[nth - 1]) };
    Some(spent(rounds) - before)
}

/// What is spent of [`ALPHA`] after so many rounds.
fn spent(rounds: usize) -> f64 {
    ALPHA * (1.0 + (E - 1.0) * rounds as f64 / ROUNDS_MAX as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_share_the_chance_of_a_wrong_claim() {
        let parts: Vec<f64> = (0..=ROUNDS_MAX).filter_map(alpha_after).collect();
        assert_eq!(parts.len(), LOOKS.len());
        assert!(parts.iter().all(|&part| part > ALPHA / 20.0), "{parts:?}");
        assert!((parts.iter().sum::<f64>() - ALPHA).abs() < 1e-12);
    }

    #[test]
    fn an_interval_is_that_of_students_t() {
        // By any table: t of 3 degrees of freedom, 5 % two-sided, is 3.182; the standard error here is 0.5.
        let interval = Interval::of(&[1.0, 2.0, 2.0, 3.0], 0.05);
        assert_eq!(interval.mean, 2.0);
        let error = (2.0f64 / 3.0).sqrt() / 2.0;
        assert!((interval.half - 3.182_446 * error).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn less_and_irrelevant_are_by_the_whole_interval() {
        let of = |mean, half| Interval { mean, half };
        assert!(of(-0.02, 0.019).is_less() && !of(-0.02, 0.021).is_less());
        assert!(of(0.01, 0.019).is_irrelevant() && !of(0.01, 0.021).is_irrelevant());
        assert!(of(-0.01, 0.019).is_irrelevant() && !of(-0.04, 0.001).is_irrelevant());
    }
}
