//! Least squares of small systems, by Householder's reflections of a matrix whose columns are taken in the order of
//! what is left of them (Businger and Golub, Numer. Math. 7, 1965).

/// What explains the right side best.
#[derive(Debug)]
pub struct Solution {
    /// Of each column.
    pub values: Vec<f64>,
    /// The diagonal of (A^T A)^-1: the variances of the values, for a right side whose rows have errors of variance 1.
    pub variances: Vec<f64>,
}

/// A column of which a smaller share is left, in the norm of the longest, is a sum of those before it.
const LEFT_SHARE: f64 = 1e-9;

/// Solves `columns` x = `right`, which has at least as many rows as there are columns. If columns are sums of others,
/// fails with how many are not.
pub fn solve(mut columns: Vec<Vec<f64>>, mut right: Vec<f64>) -> Result<Solution, usize> {
    let nr = columns.len();
    let mut order: Vec<usize> = (0..nr).collect();
    let mut least = 0.0;
    for step in 0..nr {
        let left = |column: usize| norm(&columns[column][step..]);
        let longest = (step..nr).max_by(|&a, &b| left(a).total_cmp(&left(b))).unwrap_or(step);
        let length = left(longest);
        if step == 0 {
            least = length * LEFT_SHARE;
        }
        if length <= least {
            return Err(step);
        }
        columns.swap(step, longest);
        order.swap(step, longest);
        let (done, rest) = columns.split_at_mut(step + 1);
        let mirror = Mirror::of(&mut done[step][step..], length);
        let others = rest.iter_mut().chain([&mut right]);
        others.for_each(|column| mirror.reflect(&mut column[step..]));
    }
    Ok(of_triangle(&columns, &order, &right))
}

/// The solution in the original order, of a triangle and what has become of the right side.
fn of_triangle(columns: &[Vec<f64>], order: &[usize], right: &[f64]) -> Solution {
    let nr = columns.len();
    let (mut values, mut variances) = (vec![0.0; nr], vec![0.0; nr]);
    for (value, &column) in upwards(columns, right).into_iter().zip(order) {
        values[column] = value;
    }
    // With R^-1 R^-T = (A^T A)^-1 they are the squares in each row of R^-1.
    for nth in 0..nr {
        let mut unit = vec![0.0; nr];
        unit[nth] = 1.0;
        for (part, &column) in upwards(columns, &unit).into_iter().zip(order) {
            variances[column] += part * part;
        }
    }
    Solution { values, variances }
}

/// Solves R x = `right`, from the last row upwards, where R is the upper triangle of `columns`.
fn upwards(columns: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut values = right[..columns.len()].to_vec();
    for (row, column) in columns.iter().enumerate().rev() {
        values[row] /= column[row];
        let (above, rest) = values.split_at_mut(row);
        above.iter_mut().zip(column).for_each(|(value, factor)| *value -= factor * rest[0]);
    }
    values
}

/// A plane in which vectors are reflected: I - 2 v v^T / (v^T v).
struct Mirror {
    normal: Vec<f64>,
    /// 2 / (v^T v).
    scale: f64,
}

impl Mirror {
    /// That which leaves of `column`, of this `length`, the first row alone; `column` is reflected.
    fn of(column: &mut [f64], length: f64) -> Self {
        // Away from the plane, so that no digits cancel.
        let first = -length.copysign(column[0]);
        let mut normal = column.to_vec();
        normal[0] -= first;
        column.fill(0.0);
        column[0] = first;
        Mirror { scale: 2.0 / dot(&normal, &normal), normal }
    }

    fn reflect(&self, column: &mut [f64]) {
        let by = self.scale * dot(&self.normal, column);
        column.iter_mut().zip(&self.normal).for_each(|(value, normal)| *value -= by * normal);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(of: &[f64]) -> f64 {
    dot(of, of).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() < share, "{found}, not {expected}");
    }

    /// Longley's employment by six figures of the economy, which nearly depend on each other: data and certified
    /// values of NIST's Statistical Reference Datasets; two of the figures are in thousands.
    #[test]
    fn the_certified_values_of_longley_are_found() {
        const ROWS: [[f64; 7]; 16] = [
            [83.0, 234.289, 2356.0, 1590.0, 107.608, 1947.0, 60323.0],
            [88.5, 259.426, 2325.0, 1456.0, 108.632, 1948.0, 61122.0],
            [88.2, 258.054, 3682.0, 1616.0, 109.773, 1949.0, 60171.0],
            [89.5, 284.599, 3351.0, 1650.0, 110.929, 1950.0, 61187.0],
            [96.2, 328.975, 2099.0, 3099.0, 112.075, 1951.0, 63221.0],
            [98.1, 346.999, 1932.0, 3594.0, 113.27, 1952.0, 63639.0],
            [99.0, 365.385, 1870.0, 3547.0, 115.094, 1953.0, 64989.0],
            [100.0, 363.112, 3578.0, 3350.0, 116.219, 1954.0, 63761.0],
            [101.2, 397.469, 2904.0, 3048.0, 117.388, 1955.0, 66019.0],
            [104.6, 419.18, 2822.0, 2857.0, 118.734, 1956.0, 67857.0],
            [108.4, 442.769, 2936.0, 2798.0, 120.445, 1957.0, 68169.0],
            [110.8, 444.546, 4681.0, 2637.0, 121.95, 1958.0, 66513.0],
            [112.6, 482.704, 3813.0, 2552.0, 123.366, 1959.0, 68655.0],
            [114.2, 502.601, 3931.0, 2514.0, 125.368, 1960.0, 69564.0],
            [115.7, 518.173, 4806.0, 2572.0, 127.852, 1961.0, 69331.0],
            [116.9, 554.894, 4007.0, 2827.0, 130.081, 1962.0, 70551.0],
        ];
        /// What was found of each, and its standard error; the first is the constant.
        const CERTIFIED: [(f64, f64); 7] = [
            (-3482258.63459582, 890420.383607373),
            (15.0618722713733, 84.9149257747669),
            (-35.8191792925910, 33.4910077722432),
            (-2.02022980381683, 0.488399681651699),
            (-1.03322686717359, 0.214274163161675),
            (-51.1041056535807, 226.073200069370),
            (1829.15146461355, 455.478499142212),
        ];
        /// Of what is left, by row beyond the number of figures.
        const DEVIATION: f64 = 304.854073561965;
        let mut columns = vec![vec![1.0; ROWS.len()]];
        columns.extend((0..6).map(|nth| ROWS.iter().map(|row| row[nth]).collect()));
        let employed = ROWS.iter().map(|row| row[6]).collect();
        let found = solve(columns, employed).unwrap();
        for (nth, (value, error)) in CERTIFIED.into_iter().enumerate() {
            close(found.values[nth], value, 1e-8);
            close(DEVIATION * found.variances[nth].sqrt(), error, 1e-8);
        }
    }

    /// Läuchli's matrix, of which A^T A is singular in floating point and A is not.
    #[test]
    fn columns_that_differ_by_little_are_distinguished() {
        const LITTLE: f64 = 1e-8;
        let columns = vec![vec![1.0, LITTLE, 0.0], vec![1.0, 0.0, LITTLE]];
        let found = solve(columns, vec![2.0, LITTLE, LITTLE]).unwrap();
        found.values.iter().for_each(|&value| close(value, 1.0, 1e-7));
    }

    #[test]
    fn as_many_rows_as_columns_are_solved_exactly() {
        let found = solve(vec![vec![0.0, 2.0], vec![4.0, 1.0]], vec![8.0, 8.0]).unwrap();
        close(found.values[0], 3.0, 1e-14);
        close(found.values[1], 2.0, 1e-14);
        // By hand: A^T A is (4 2; 2 17), its determinant 64.
        close(found.variances[0], 17.0 / 64.0, 1e-14);
        close(found.variances[1], 4.0 / 64.0, 1e-14);
    }

    #[test]
    fn sums_of_other_columns_are_counted() {
        let (a, b) = (vec![1.0, 0.1, 7.0, 3.0], vec![1e-3, 5e-3, 0.0, 1e-3]);
        let sum = a.iter().zip(&b).map(|(a, b)| 3.0 * a - 0.7 * b).collect();
        let columns = vec![a.clone(), sum, a, b, vec![0.0; 4]];
        assert_eq!(solve(columns, vec![1.0; 4]).unwrap_err(), 2);
        assert_eq!(solve(vec![vec![0.0; 3]], vec![1.0; 3]).unwrap_err(), 0);
    }
}
