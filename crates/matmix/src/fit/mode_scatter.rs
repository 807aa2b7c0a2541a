//! The scatter of one mode from that of the flattened samples.

use crate::linalg::{Matrix, mode_contraction, sides_around};
use crate::parallel;

/// Σ w Z Zᵀ of mode d from Σ w x xᵀ of the flattened samples: the loadings of the other modes applied on both sides.
pub(super) fn mode_scatter(whole: &Matrix, shape: &[usize], loadings: &[Option<Matrix>], d: usize) -> Matrix {
    let reduce = |x: &[f64]| {
        let (mut x, mut sides) = (x.to_vec(), shape.to_vec());
        for (e, u) in loadings.iter().enumerate() {
            if let Some(u) = u.as_ref().filter(|_| e != d) {
                x = mode_contraction(&x, &sides, e, u);
                sides[e] = u.cols();
            }
        }
        (x, sides)
    };
    let rows = parallel::map(whole.rows(), |i| reduce(whole.row(i)));
    let sides = rows[0].1.clone();
    let (before, after) = sides_around(&sides, d);
    let (p, len) = (shape[d], rows[0].0.len());
    // Element (o, i, m) of the reduced samples with all others: column by column of what the rows became.
    let columns = parallel::map(len, |c| reduce(&rows.iter().map(|(row, _)| row[c]).collect::<Vec<_>>()).0);
    let mut scatter = Matrix::zeros(p, p);
    for o in 0..before {
        for m in 0..after {
            let at = |i: usize| (o * p + i) * after + m;
            for i in 0..p {
                for j in 0..p {
                    scatter[(i, j)] += columns[at(j)][at(i)];
                }
            }
        }
    }
    scatter
}

#[cfg(test)]
mod tests {
    use super::super::passes;
    use super::*;
    use crate::data::Samples;

    #[test]
    fn the_scatters_of_all_modes_come_from_that_of_the_flattened_samples() {
        let shape = [5, 4, 3];
        let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_989).fract() - 0.5;
        let samples = Samples::from_vec(&shape, (0..80 * 60).map(number).collect::<Vec<f64>>()).unwrap();
        let samples = samples.with_weights((0..80).map(|n| 0.5 + f64::from(n % 3)).collect()).unwrap();
        let mean: Vec<f64> = (0..60).map(|i| 0.1 * number(7 * i)).collect();
        let loadings = |d: usize, r: usize| Some(Matrix::from_fn(shape[d], r, |i, j| number(i + 9 * j + d)));
        let whole = passes::whole_scatter(&samples, &mean).unwrap().scatters.remove(0);
        for loadings in [[loadings(0, 2), loadings(1, 3), loadings(2, 1)], [None, loadings(1, 2), None]] {
            for d in 0..3 {
                let expected = passes::scatters(&samples, &mean, &loadings, &[d]).unwrap().scatters.remove(0);
                let found = mode_scatter(&whole, &shape, &loadings, d);
                for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
                    assert!((a - b).abs() < 1e-11, "{a} {b}");
                }
            }
        }
    }
}
