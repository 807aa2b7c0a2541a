//! The singular value decomposition by Jacobi's rotations, from one side.
//!
//! Slower than others for large matrices, but small singular values keep their digits beside large ones, and so do their
//! vectors: loadings that fade out are next to nothing, yet they are all that is left of their direction.

use pulp::{Simd, WithSimd};

use super::qr::{Qr, orthonormal_basis};
use super::vector::{norm, rotate, split_dot};
use super::{BEST, Matrix};

/// Sweeps over all pairs of rows, at most; six to eleven are needed.
const SWEEPS: usize = 60;

/// A = W·diag(σ)·Vᵀ with σ descending; (W, σ, V). `None` if it holds NaN or infinity.
pub fn svd_thin(a: &Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    if !a.is_finite() {
        return None;
    }
    // Either way no more columns than rows.
    if a.rows() < a.cols() {
        let (v, values, w) = svd_of_columns(a.clone());
        Some((w, values, v))
    } else {
        Some(svd_of_columns(a.transpose()))
    }
}

/// Of a matrix with no more columns than rows, given by its columns as rows.
fn svd_of_columns(mut columns: Matrix) -> (Matrix, Vec<f64>, Matrix) {
    let (n, m) = (columns.rows(), columns.cols());
    let unit = columns.unit();
    columns.scale(1.0 / unit);
    // A = Q·R; the rows of R, turned until they are orthogonal, are diag(σ)·Vᵀ, and what turned them is Wᵀ·Q.
    let Qr { reflectors, r: mut rows, order } = Qr::new(columns, true);
    let mut turn = Matrix::identity(n, n);
    BEST.run::<f64, _>(Orthogonalize { rows: &mut rows, turn: &mut turn });
    let lengths: Vec<f64> = (0..n).map(|i| norm(rows.row(i))).collect();
    let mut sorted: Vec<usize> = (0..n).collect();
    sorted.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let (mut w, mut v) = (Matrix::zeros(m, n), Matrix::zeros(n, n));
    for (j, &from) in sorted.iter().enumerate() {
        for (i, &x) in turn.row(from).iter().enumerate() {
            w[(i, j)] = x;
        }
        for (&i, x) in order.iter().zip(rows.row(from)) {
            v[(i, j)] = x / lengths[from];
        }
    }
    reflectors.apply(&mut w);
    let values: Vec<f64> = sorted.iter().map(|&i| lengths[i] * unit).collect();
    // What is left of a row without a length is no direction: any that is orthogonal to the others will do.
    let found = sorted.iter().take_while(|&&i| lengths[i] > f64::MIN_POSITIVE / f64::EPSILON).count();
    if found < n {
        let completed =
            orthonormal_basis(&Matrix::from_fn(n, n, |i, j| if j < found { v[(i, j)] } else { 0.0 }));
        for i in 0..n {
            for j in found..n {
                v[(i, j)] = completed[(i, j)];
            }
        }
    }
    (w, values, v)
}

/// Turns pairs of rows, and the same ones of `turn`, until all are orthogonal to each other.
struct Orthogonalize<'a> {
    rows: &'a mut Matrix,
    turn: &'a mut Matrix,
}

impl WithSimd for Orthogonalize<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let n = self.rows.rows();
        let close = f64::EPSILON * (n as f64).sqrt().max(4.0);
        for _ in 0..SWEEPS {
            let mut turned = false;
            let mut lengths: Vec<f64> = (0..n).map(|i| norm(self.rows.row(i))).collect();
            for i in 0..n {
                for j in i + 1..n {
                    let (x, y) = self.rows.two_rows_mut(i, j);
                    let cosine = cosine(x, y, lengths[i], lengths[j]);
                    if cosine.abs() <= close {
                        continue;
                    }
                    turned = true;
                    let tangent = tangent(cosine, lengths[i], lengths[j]);
                    let c = 1.0 / (1.0 + tangent * tangent).sqrt();
                    rotate(x, y, c, -c * tangent);
                    // ‖x‖² has lost t·x·y, which ‖y‖² has won.
                    let (ratio, change) = (lengths[j] / lengths[i], tangent * cosine);
                    lengths[i] = changed(lengths[i], 1.0 - change * ratio, x);
                    lengths[j] = changed(lengths[j], 1.0 + change / ratio, y);
                    let (x, y) = self.turn.two_rows_mut(i, j);
                    rotate(x, y, c, -c * tangent);
                }
            }
            if !turned {
                break;
            }
        }
    }
}

/// The length of x, whose square has changed by a factor: anew where little is left of it.
#[inline(always)]
fn changed(length: f64, factor: f64, x: &[f64]) -> f64 {
    if (0.1..1e10).contains(&factor) { length * factor.sqrt() } else { norm(x) }
}

/// The cosine between two vectors of known lengths, 0 if one has none.
#[inline(always)]
fn cosine(x: &[f64], y: &[f64], x_length: f64, y_length: f64) -> f64 {
    let product = x_length * y_length;
    if product > 1e-280 {
        split_dot(x, y) / product
    } else if x_length == 0.0 || y_length == 0.0 {
        0.0
    } else {
        x.iter().zip(y).map(|(x, y)| (x / x_length) * (y / y_length)).sum()
    }
}

/// The tangent of the smaller angle by which two vectors have to be turned to be orthogonal.
#[inline(always)]
fn tangent(cosine: f64, x_length: f64, y_length: f64) -> f64 {
    let zeta = (y_length / x_length - x_length / y_length) / (2.0 * cosine);
    // The square of a large one may be no number, and 1 is nothing beside it.
    if zeta.abs() > 1e8 { 0.5 / zeta } else { zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt()) }
}

#[cfg(test)]
mod tests {
    use super::super::made::{
        difference, matrix, off_orthonormal, orthogonal, plain_eigenvalues, plain_product, scaled_columns,
    };
    use super::*;

    /// Orthonormal on both sides, descending, and the matrix to as many digits as its largest element has.
    fn check(a: &Matrix) -> Vec<f64> {
        let (w, values, v) = svd_thin(a).unwrap();
        let k = a.rows().min(a.cols());
        assert_eq!((w.cols(), values.len(), v.cols()), (k, k, k));
        assert!(values.windows(2).all(|w| w[0] >= w[1]) && values.iter().all(|&s| s >= 0.0));
        assert!(off_orthonormal(&w) < 1e-14 * (k + 10) as f64, "{}", off_orthonormal(&w));
        assert!(off_orthonormal(&v) < 1e-14 * (k + 10) as f64, "{}", off_orthonormal(&v));
        let back = plain_product(&scaled_columns(&w, &values), &v.transpose());
        assert!(difference(&back, a) <= 1e-14 * (k + 10) as f64 * a.largest(), "{}", difference(&back, a));
        values
    }

    #[test]
    fn singular_values_are_the_roots_of_the_eigenvalues_of_the_gram_matrix() {
        for (m, n) in [(1, 1), (1, 5), (5, 1), (2, 2), (7, 7), (28, 4), (4, 28), (64, 8), (16, 40), (150, 30)]
        {
            let a = matrix(m, n, 3);
            let values = check(&a);
            let gram =
                if m < n { plain_product(&a, &a.transpose()) } else { plain_product(&a.transpose(), &a) };
            for (value, square) in values.iter().zip(plain_eigenvalues(&gram)) {
                assert!((value * value - square).abs() < 1e-13 * values[0] * values[0], "{m} × {n}");
            }
        }
    }

    #[test]
    fn matrices_of_any_scale_and_of_any_rank_are_done() {
        for scale in [1e-300, 1e-150, 1e150, 1e300] {
            let mut a = matrix(20, 6, 1);
            let expected = check(&a);
            a.scale(scale);
            assert!(check(&a).iter().zip(expected).all(|(x, y)| (x / scale / y - 1.0).abs() < 1e-12));
        }
        for (m, n) in [(9, 6), (6, 9), (40, 40)] {
            for rank in 0..4 {
                let a = plain_product(&matrix(m, rank, 1), &matrix(rank, n, 2));
                let values = check(&a);
                assert!(
                    values[..rank].iter().all(|&s| s > 1e-3) && values[rank..].iter().all(|&s| s < 1e-14)
                );
            }
        }
        // Equal columns, columns of zeros, equal singular values.
        check(&Matrix::from_fn(8, 4, |i, _| i as f64));
        check(&Matrix::from_fn(8, 4, |i, j| if j % 2 == 0 { 0.0 } else { (i + j) as f64 }));
        assert!(check(&orthogonal(20, 3)).iter().all(|s| (s - 1.0).abs() < 1e-14));
        check(&Matrix::zeros(0, 3));
        check(&Matrix::zeros(3, 0));
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(svd_thin(&Matrix::from_vec(2, 2, vec![1.0, bad, 0.0, 1.0])).is_none());
        }
    }

    /// Orthonormal columns times powers of two are known to the last digits: so are the singular values and the vectors, in
    /// whatever order the columns come.
    #[test]
    fn columns_that_fade_out_keep_their_digits() {
        for (m, n, step) in [(28, 4, 40), (64, 8, 30), (30, 30, 9), (100, 16, 18)] {
            let q = orthogonal(m, 2);
            let power = |j: usize| 2f64.powi(-(step * j as i32));
            let shuffled = |j: usize| j * 7 % n;
            let a = Matrix::from_fn(m, n, |i, j| q[(i, shuffled(j))] * power(shuffled(j)));
            let (w, values, _) = svd_thin(&a).unwrap();
            for j in 0..n {
                assert!((values[j] / power(j) - 1.0).abs() < 1e-13, "{m} × {n}: {j}");
                let cosine: f64 = (0..m).map(|i| w[(i, j)] * q[(i, j)]).sum();
                assert!((cosine.abs() - 1.0).abs() < 1e-13, "{m} × {n}: {j} {cosine}");
            }
        }
    }

    /// T·D with a unit triangular T of small whole numbers, whose inverse is known exactly: the smallest singular value is one
    /// over the largest of D⁻¹T⁻¹, and the product of all is the determinant.
    #[test]
    fn small_singular_values_of_graded_matrices_keep_their_digits() {
        let n = 6;
        let t = Matrix::from_fn(n, n, |i, j| match j.checked_sub(i) {
            None => 0.0,
            Some(0) => 1.0,
            Some(right) => [1.0, -1.0, 2.0, 0.0][right * (1 + i * j) % 4],
        });
        let mut inverse = Matrix::identity(n, n);
        for j in 0..n {
            for i in (0..j).rev() {
                inverse[(i, j)] = -(i + 1..=j).map(|l| t[(i, l)] * inverse[(l, j)]).sum::<f64>();
            }
        }
        assert_eq!(plain_product(&t, &inverse), Matrix::identity(n, n));
        for step in [3, 10, 30, 55] {
            let power = |j: usize| 2f64.powi(-(step * j as i32));
            let a = Matrix::from_fn(n, n, |i, j| t[(i, j)] * power(j));
            let of_inverse = Matrix::from_fn(n, n, |i, j| inverse[(i, j)] / power(i));
            for a in [a.clone(), a.transpose()] {
                let values = check(&a);
                let smallest = 1.0 / svd_thin(&of_inverse).unwrap().1[0];
                assert!((values[n - 1] / smallest - 1.0).abs() < 1e-13, "{step}: {values:?} {smallest}");
                let logs: f64 = values.iter().map(|s| s.log2()).sum();
                assert!((logs + f64::from(step * 15)).abs() < 1e-11, "{step}: {logs}");
            }
        }
    }

    /// Columns from 1e-150 to 1e150 at once.
    #[test]
    fn columns_of_all_scales_at_once_are_orthogonal_to_all_digits() {
        let q = matrix(12, 5, 8);
        let a = Matrix::from_fn(12, 5, |i, j| q[(i, j)] * [1e150, 1e-150, 1.0, 1e-75, 1e75][j]);
        let (w, values, v) = svd_thin(&a).unwrap();
        assert!(off_orthonormal(&w) < 1e-14 && off_orthonormal(&v) < 1e-14);
        // Gram–Schmidt from the longest column on gives the same to first order, and the rest is 1e-75 of it.
        let mut rest = q.clone();
        for (rank, &j) in [0usize, 4, 2, 3, 1].iter().enumerate() {
            let length = rest.col(j).iter().map(|x| x * x).sum::<f64>().sqrt();
            let scale = [1e150, 1e75, 1.0, 1e-75, 1e-150][rank];
            assert!((values[rank] / (length * scale) - 1.0).abs() < 1e-12, "{rank}: {values:?}");
            let unit: Vec<f64> = rest.col(j).iter().map(|x| x / length).collect();
            for l in 0..5 {
                let along: f64 = (0..12).map(|i| unit[i] * rest[(i, l)]).sum();
                (0..12).for_each(|i| rest[(i, l)] -= along * unit[i]);
            }
        }
    }
}
