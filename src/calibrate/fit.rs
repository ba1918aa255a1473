//! Least squares: which figures explain the power of all blocks best, and how well each is known.

use anyhow::{Result, anyhow, ensure};

use super::least_squares::solve;

/// A figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Standard error, in the same unit.
    pub error: f64,
}

/// What was found.
#[derive(Debug)]
pub struct Fit {
    pub figures: Vec<Estimate>,
    /// What is left unexplained: the mean square of the blocks' relative errors.
    pub variance: f64,
    /// The share of what was measured by which the worst block differs from its explanation.
    pub worst_share: f64,
}

/// Of `rows`, each with a factor for each figure, and what was measured: the figures that explain
/// that best. A meter is wrong by a share of what it measures, and so is a model: each row counts by
/// its relative error. Fails with a sentence if the rows do not tell the figures apart.
///
/// For weighted rows A and b: x = (A^T A)^-1 A^T b, variances s^2 diag((A^T A)^-1), where s^2 is what is left,
/// |A x - b|^2, by row beyond the number of figures.
pub fn fit(rows: &[(Vec<f64>, f64)]) -> Result<Fit> {
    let nr = rows.first().map_or(0, |(factors, _)| factors.len());
    ensure!(nr > 0 && rows.len() > nr, "{} blocks are too few for {nr} figures", rows.len());
    ensure!(rows.iter().all(|(_, power)| *power > 0.0), "the meter says that there is no power");
    // What was measured is then 1 in all of them.
    let weighted = |column: usize| rows.iter().map(|(row, power)| row[column] / power).collect();
    let columns: Vec<Vec<f64>> = (0..nr).map(weighted).collect();
    let found = solve(columns.clone(), vec![1.0; rows.len()])
        .map_err(|known| anyhow!("{} of {nr} figures cannot be distinguished here", nr - known))?;
    let is_known = found.values.iter().chain(&found.variances).all(|figure| figure.is_finite());
    ensure!(is_known, "what was measured makes no sense");
    let of_row = |row: usize| columns.iter().zip(&found.values).map(move |(of, x)| of[row] * x);
    let left: Vec<f64> = (0..rows.len()).map(|row| of_row(row).sum::<f64>() - 1.0).collect();
    let squares: f64 = left.iter().map(|left| left.powi(2)).sum();
    let variance = squares / (rows.len() - nr) as f64;
    let figure = |(&value, of): (&f64, &f64)| Estimate { value, error: (variance * of).sqrt() };
    let figures = found.values.iter().zip(&found.variances).map(figure).collect();
    let worst_share = left.iter().fold(0.0, |worst: f64, left| worst.max(left.abs()));
    Ok(Fit { figures, variance, worst_share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_by_hand() {
        // 10 + 5 n, and the last a tenth more.
        let rows: Vec<_> = [(0.0, 10.0), (1.0, 15.0), (2.0, 20.0), (3.0, 27.5)]
            .map(|(n, power)| (vec![1.0, n], power))
            .into();
        let exact = fit(&rows[..3]).unwrap();
        assert!((exact.figures[0].value - 10.0).abs() < 1e-9 && exact.figures[1].error < 1e-9);
        let fit = fit(&rows).unwrap();
        assert!((fit.figures[1].value - 5.0).abs() < 0.5 && fit.figures[1].error > 0.05);
        assert!(fit.worst_share > 0.02 && fit.worst_share < 0.1);
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let same: Vec<_> = (1..6).map(|n| (vec![1.0, 1.0, f64::from(n)], 7.0)).collect();
        let said = fit(&same).unwrap_err().to_string();
        assert!(said.contains("1 of 3 figures cannot be distinguished"), "{said}");
        assert!(fit(&same[..3]).unwrap_err().to_string().contains("too few"));
        assert!(fit(&[(vec![1.0], 0.0), (vec![1.0], 1.0)]).is_err());
        let unknown = [(vec![f64::NAN], 1.0), (vec![1.0], 1.0)];
        assert!(fit(&unknown).unwrap_err().to_string().contains("makes no sense"));
    }

    proptest! {
        /// With errors of up to a percent in what is measured each figure is near the truth, by the error
        /// that it is said to have.
        #[test]
        fn figures_are_found_within_their_errors(
            floor in 10.0..500.0f64,
            shared in 0.0..300.0f64,
            core in 5.0..3000.0f64,
            noise in prop::collection::vec(-0.01..0.01f64, 12),
        ) {
            let mut rows = vec![];
            for (n, noise) in [0, 0, 0, 1, 1, 1, 2, 2, 4, 4, 4, 8].into_iter().zip(noise) {
                let factors = vec![1.0, f64::from(u8::from(n > 0)), f64::from(n)];
                let exact = floor + shared * factors[1] + core * factors[2];
                rows.push((factors, exact * (1.0 + noise)));
            }
            let fit = fit(&rows).unwrap();
            for (figure, truth) in fit.figures.iter().zip([floor, shared, core]) {
                prop_assert!((figure.value - truth).abs() <= 12.0 * figure.error + 1e-9,
                    "{figure:?}, not {truth}");
            }
            prop_assert!((fit.figures[2].value - core).abs() < 0.05 * core + 0.02 * (floor + shared));
        }
    }
}
