//! The canonical form of a component's loadings (maths.md, eq. 4).
//!
//! Rotating the latent axes and moving scale between the modes changes nothing about the model, so one
//! representative is chosen: U^(d)ᵀU^(d) diagonal and descending, equal scale in every mode, fixed signs.
//! Everything else in the library relies on it: the posterior is diagonal only in this form.

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

/// Σ_i λ_i becomes the same in every mode; the products of the λ over the modes stay what they were.
fn balance(loadings: &mut [Matrix]) {
    let traces: Vec<f64> = loadings.iter().map(|u| u.column_norms_squared().iter().sum()).collect();
    if traces.iter().any(|&t| !(t.is_finite() && t > 0.0)) {
        return;
    }
    let mean_log = traces.iter().map(|t| t.ln()).sum::<f64>() / traces.len() as f64;
    for (u, t) in loadings.iter_mut().zip(&traces) {
        u.scale((0.5 * (mean_log - t.ln())).exp());
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
        assert!((traces[0] - traces[1]).abs() < 1e-9 * traces[0]);
        assert_eq!(expand(&[0.0; 6], &u), vec![0.0; 12]);
    }
}
