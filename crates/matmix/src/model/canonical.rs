//! The canonical form of a component's loadings (maths.md, eq. 4).
//!
//! Rotating the latent axes and moving scale between the modes changes nothing about the model, so one
//! representative is chosen: U^(d)ᵀU^(d) diagonal and descending, equal scale in every mode but for a power of two, fixed signs.
//! Everything else in the library relies on it: the posterior is diagonal only in this form.

use super::density::power_of_four;
use crate::linalg::{Matrix, svd_thin};

/// Rotates, balances, sorts and fixes the signs of the loadings of one component.
pub(crate) fn canonicalize(loadings: &mut [Matrix]) {
    for u in loadings.iter_mut() {
        *u = orthogonal_columns(u);
    }
    balance(loadings);
}

/// U·V with UᵀU = V Λ Vᵀ: columns orthogonal and descending. From the singular value decomposition and not
/// from UᵀU, which would lose the small columns to rounding.
fn orthogonal_columns(u: &Matrix) -> Matrix {
    let Some((w, sigma, _)) = svd_thin(u) else {
        // Not finite: left for the constructor's validation to name.
        return u.clone();
    };
    let mut out = Matrix::from_fn(u.rows(), u.cols(), |i, j| w[(i, j)] * sigma[j]);
    for j in 0..out.cols() {
        fix_sign(&mut out, j);
    }
    out
}

/// The entry of largest magnitude becomes positive; among near-equal ones the first decides, so that
/// rounding does not flip the sign.
pub(crate) fn fix_sign(u: &mut Matrix, j: usize) {
    let largest = (0..u.rows()).map(|i| u[(i, j)].abs()).fold(0.0, f64::max);
    let first = (0..u.rows()).find(|&i| u[(i, j)].abs() >= largest * (1.0 - 1e-9));
    if first.is_some_and(|i| u[(i, j)] < 0.0) {
        for i in 0..u.rows() {
            u[(i, j)] = -u[(i, j)];
        }
    }
}

/// Σ_i λ_i becomes the same in every mode, or a power of four times as large in the first; the products of the λ over the modes do not
/// change. The unit of the data comes and goes in powers of two, which round nothing.
fn balance(loadings: &mut [Matrix]) {
    let traces: Vec<f64> = loadings.iter().map(|u| u.column_norms_squared().iter().sum()).collect();
    if traces.iter().any(|&t| !(t.is_finite() && t > 0.0)) {
        return;
    }
    let units: Vec<f64> = traces.iter().map(|&t| power_of_four(t)).collect();
    let exponents: Vec<i32> = units.iter().map(|unit| unit.log2().round() as i32 / 2).collect();
    let logs: Vec<f64> = traces.iter().zip(&units).map(|(t, unit)| (t / unit).ln()).collect();
    let order = traces.len() as i32;
    let mean_log = logs.iter().sum::<f64>() / f64::from(order);
    let total: i32 = exponents.iter().sum();
    let (each, rest) = (total.div_euclid(order), total.rem_euclid(order));
    for (d, (u, (log, exponent))) in loadings.iter_mut().zip(logs.iter().zip(&exponents)).enumerate() {
        let power = if d == 0 { each + rest } else { each } - exponent;
        u.scale((0.5 * (mean_log - log)).exp() * 2f64.powi(power));
    }
}

/// Whether the loadings are canonical up to rounding, so that a stored model keeps its bits when it is read.
pub(crate) fn is_canonical(loadings: &[Matrix]) -> bool {
    loadings.iter().all(|u| {
        let gram = u.transpose_times(u);
        (0..u.cols()).all(|i| {
            (0..i).all(|j| {
                let bound = (gram[(i, i)] * gram[(j, j)]).sqrt();
                gram[(i, j)].abs() <= 1e-10 * bound && gram[(j, j)] >= gram[(i, i)] * (1.0 - 1e-10)
            })
        })
    })
}

/// Whether the loadings are as canonical as rounding leaves them when columns of very different length are rotated: then a model
/// that is read has the bits that were written.
pub(crate) fn is_nearly_canonical(loadings: &[Matrix]) -> bool {
    const ROUNDING: f64 = 1e-9;
    loadings.iter().all(|u| {
        let gram = u.transpose_times(u);
        let largest = (0..u.cols()).map(|i| gram[(i, i)]).fold(0.0, f64::max);
        (0..u.cols()).all(|i| {
            (0..i).all(|j| {
                gram[(i, j)].abs() <= ROUNDING * largest && gram[(j, j)] >= gram[(i, i)] - ROUNDING * largest
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::expand;

    #[test]
    fn the_covariance_does_not_change() {
        let mut u = vec![
            Matrix::from_fn(4, 2, |i, j| ((i * 3 + j * 5) % 7) as f64 - 2.0),
            Matrix::from_fn(3, 3, |i, j| ((i * 2 + j * 4) % 5) as f64 * 10.0 - 11.0),
        ];
        let before: Vec<Matrix> = u.iter().map(|u| u.times_transpose(u)).collect();
        canonicalize(&mut u);
        assert!(is_canonical(&u));
        // U^(1)U^(1)ᵀ ⊗ U^(2)U^(2)ᵀ is what the model means; the modes' own scales may move.
        let after: Vec<Matrix> = u.iter().map(|u| u.times_transpose(u)).collect();
        let ratio = before[0][(0, 0)] / after[0][(0, 0)];
        for (i, factor) in [(0, ratio), (1, 1.0 / ratio)] {
            for (x, y) in before[i].as_slice().iter().zip(after[i].as_slice()) {
                assert!((x - y * factor).abs() < 1e-9 * x.abs().max(1.0));
            }
        }
        let traces: Vec<f64> = u.iter().map(|u| u.inner(u)).collect();
        let ratio = traces[0] / traces[1];
        assert!((ratio - 1.0).abs() < 1e-9 || (ratio - 4.0).abs() < 1e-9, "{ratio}");
        assert_eq!(expand(&[0.0; 6], &u), vec![0.0; 12]);
    }
}
