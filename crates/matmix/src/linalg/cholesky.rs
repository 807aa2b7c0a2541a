//! Cholesky factors of symmetric positive definite matrices, and what they solve.

use pulp::{Simd, WithSimd};

use super::eigen::eigen_symmetric;
use super::panel::View;
use super::product::add_product;
use super::tile::Part;
use super::vector::add_combination;
use super::{BEST, Matrix};

/// Rows of the factor that are made at a time.
const BLOCK: usize = 64;

/// The lower Cholesky factor of a symmetric positive definite matrix, or `None` if it is not. Only the diagonal and what is
/// below it are looked at.
pub fn cholesky_lower(a: &Matrix) -> Option<Matrix> {
    SymmetricFactor::new(a).map(|factor| factor.upper.transpose())
}

/// The Cholesky factorisation of a symmetric positive definite matrix, for solving and for its determinant.
#[derive(Debug)]
pub struct SymmetricFactor {
    /// A = UᵀU.
    upper: Matrix,
}

impl SymmetricFactor {
    /// Factorises, or `None` if the matrix is not positive definite. Only the diagonal and what is below it are looked at.
    pub fn new(a: &Matrix) -> Option<Self> {
        let n = a.rows();
        let mut upper = Matrix::from_fn(n, n, |i, j| if j < i { 0.0 } else { a[(j, i)] });
        for first in (0..n).step_by(BLOCK) {
            let last = (first + BLOCK).min(n);
            let (block, rest) = upper.as_mut_slice()[first * n..].split_at_mut((last - first) * n);
            if !BEST.run::<f64, _>(FactorRows { rows: block, n, first }) {
                return None;
            }
            if last < n {
                let explained = View::new(&block[last..], last - first, n - last, n);
                let minus: Vec<f64> = block.iter().map(|x| -x).collect();
                let minus = View::new(&minus[last..], last - first, n - last, n);
                add_product(explained, minus, Part::Upper, &mut rest[last..], n);
            }
        }
        Some(Self { upper }).filter(|factor| factor.upper.is_finite())
    }

    /// ln det A.
    pub fn log_determinant(&self) -> f64 {
        (0..self.upper.rows()).map(|i| 2.0 * self.upper[(i, i)].ln()).sum()
    }

    /// A⁻¹·B.
    pub fn solve(&self, b: &Matrix) -> Matrix {
        assert_eq!(self.upper.rows(), b.rows(), "inner dimensions agree");
        let mut x = b.clone();
        if b.cols() > 0 {
            BEST.run::<f64, _>(Solve { upper: &self.upper, x: &mut x });
        }
        x
    }
}

/// Makes rows of the factor from what those before have left of them: the row numbered `first` and those that follow. Whether the
/// matrix is positive definite so far.
struct FactorRows<'a> {
    rows: &'a mut [f64],
    n: usize,
    first: usize,
}

impl WithSimd for FactorRows<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { rows, n, first } = self;
        for k in 0..rows.len() / n {
            let (done, own) = rows.split_at_mut(k * n);
            let at = first + k;
            let own = &mut own[at..n];
            add_combination(own, k, |l| -done[l * n + at], |l| &done[l * n + at..(l + 1) * n]);
            let pivot = own[0];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return false;
            }
            let scale = 1.0 / pivot.sqrt();
            own.iter_mut().for_each(|x| *x *= scale);
        }
        true
    }
}

/// Solves UᵀU X = B, where X is B at first.
struct Solve<'a> {
    upper: &'a Matrix,
    x: &'a mut Matrix,
}

impl WithSimd for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { upper, x } = self;
        let (n, cols) = (x.rows(), x.cols());
        // Uᵀ Y = B downwards, U X = Y upwards, whole rows at a time.
        for i in 0..n {
            let (above, own) = x.as_mut_slice().split_at_mut(i * cols);
            let own = &mut own[..cols];
            add_combination(own, i, |j| -upper[(j, i)], |j| &above[j * cols..][..cols]);
            own.iter_mut().for_each(|x| *x /= upper[(i, i)]);
        }
        for i in (0..n).rev() {
            let (own, below) = x.as_mut_slice().split_at_mut((i + 1) * cols);
            let (own, u) = (&mut own[i * cols..], &upper.row(i)[i..]);
            add_combination(own, n - i - 1, |j| -u[j + 1], |j| &below[j * cols..][..cols]);
            own.iter_mut().for_each(|x| *x /= u[0]);
        }
    }
}

/// X with X·H = A for symmetric positive semi-definite H: Cholesky where that works, otherwise the solution of least norm,
/// its unknowns taken relative to the diagonal of H (A lies in the range of H wherever this is used, so it still solves the
/// normal equations).
pub fn solve_symmetric_right(a: &Matrix, h: &Matrix) -> Option<Matrix> {
    if !(a.is_finite() && h.is_finite()) {
        return None;
    }
    // Jacobi scaling: the diagonal of H spans many orders of magnitude when trailing loadings fade out.
    let n = h.rows();
    let scale: Vec<f64> =
        (0..n).map(|i| if h[(i, i)] > 0.0 { 1.0 / h[(i, i)].sqrt() } else { 0.0 }).collect();
    let scaled = Matrix::from_fn(n, n, |i, j| 0.5 * (h[(i, j)] + h[(j, i)]) * scale[i] * scale[j]);
    let right = Matrix::from_fn(n, a.rows(), |i, j| a[(j, i)] * scale[i]);
    let solved = match SymmetricFactor::new(&scaled) {
        Some(factor) => factor.solve(&right),
        None => {
            let eigen = eigen_symmetric(&scaled)?;
            let cut = eigen.values[0].max(0.0) * n as f64 * f64::EPSILON;
            let mut in_basis = eigen.vectors.transpose_times(&right);
            for i in 0..n {
                let factor = if eigen.values[i] > cut { 1.0 / eigen.values[i] } else { 0.0 };
                for j in 0..a.rows() {
                    in_basis[(i, j)] *= factor;
                }
            }
            eigen.vectors.times(&in_basis)
        }
    };
    Some(Matrix::from_fn(a.rows(), n, |i, j| solved[(j, i)] * scale[j])).filter(Matrix::is_finite)
}

#[cfg(test)]
mod tests {
    use super::super::made::{difference, matrix, plain_product, symmetric};
    use super::*;

    fn definite(n: usize, seed: u64) -> Matrix {
        let b = matrix(n, n + 3, seed);
        plain_product(&b, &b.transpose())
    }

    /// The textbook, element by element.
    fn plain_cholesky(a: &Matrix) -> Matrix {
        let mut l = Matrix::zeros(a.rows(), a.rows());
        for i in 0..a.rows() {
            for j in 0..=i {
                let rest = a[(i, j)] - (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum::<f64>();
                l[(i, j)] = if i == j { rest.sqrt() } else { rest / l[(j, j)] };
            }
        }
        l
    }

    #[test]
    fn the_factor_is_that_of_the_textbook() {
        for n in [1, 2, 3, 4, 5, 16, 63, 64, 65, 128, 200] {
            let a = definite(n, 1);
            let l = cholesky_lower(&a).unwrap();
            assert!(difference(&plain_product(&l, &l.transpose()), &a) < 1e-13 * n as f64);
            assert!(difference(&l, &plain_cholesky(&a)) < 1e-11, "{n}");
            // What is above the diagonal is not looked at.
            let lower = Matrix::from_fn(n, n, |i, j| if j > i { f64::NAN } else { a[(i, j)] });
            assert_eq!(cholesky_lower(&lower).unwrap(), l);
        }
        assert_eq!(cholesky_lower(&Matrix::zeros(0, 0)), Some(Matrix::zeros(0, 0)));
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        for n in [1, 3, 70, 150] {
            let good = definite(n, 2);
            for (at, value) in
                [(0, 0.0), (n / 2, -1.0), (n - 1, -1e-3), (n - 1, f64::NAN), (0, f64::INFINITY)]
            {
                let mut a = good.clone();
                a[(at, at)] = value;
                assert!(
                    cholesky_lower(&a).is_none() && SymmetricFactor::new(&a).is_none(),
                    "{n} {at} {value}"
                );
            }
            let mut a = good.clone();
            a[(n - 1, 0)] = f64::NAN;
            assert!(cholesky_lower(&a).is_none());
        }
        assert!(cholesky_lower(&Matrix::zeros(3, 3)).is_none());
    }

    #[test]
    fn factors_of_any_scale_solve_and_have_the_determinant() {
        for n in [1, 2, 7, 64, 65, 130] {
            let values: Vec<f64> = (0..n).map(|i| 1.0 + (i % 5) as f64).collect();
            let (a, x) = (symmetric(&values, 3), matrix(n, 5, 4));
            for scale in [1e-150, 1.0, 1e150] {
                let mut scaled = a.clone();
                scaled.scale(scale);
                let factor = SymmetricFactor::new(&scaled).unwrap();
                let mut found = factor.solve(&plain_product(&a, &x));
                found.scale(scale);
                assert!(difference(&found, &x) < 1e-12, "{n} {scale}");
                let expected: f64 = values.iter().map(|v| v.ln() + scale.ln()).sum();
                assert!((factor.log_determinant() - expected).abs() < 1e-11 * expected.abs().max(1.0));
            }
            let factor = SymmetricFactor::new(&a).unwrap();
            assert_eq!(factor.solve(&Matrix::zeros(n, 0)).cols(), 0);
        }
    }

    #[test]
    fn solving_from_the_right_works_for_definite_and_for_singular_matrices() {
        let close = |a: &Matrix, b: &Matrix| difference(a, b) < 1e-10;
        let b = Matrix::from_fn(3, 3, |i, j| ((i * 5 + j * 3) % 7) as f64 - 2.2);
        let h = b.times_transpose(&b);
        let x = Matrix::from_fn(5, 3, |i, j| i as f64 - 2.0 * j as f64);
        assert!(close(&solve_symmetric_right(&x.times(&h), &h).unwrap(), &x));

        let thin = Matrix::from_fn(3, 1, |i, _| 1.0 + i as f64);
        let singular = thin.times_transpose(&thin);
        let a = x.times(&singular);
        let solution = solve_symmetric_right(&a, &singular).unwrap();
        assert!(close(&solution.times(&singular), &a));
        // The least of all solutions, once the unknowns are of equal scale.
        for i in 0..5 {
            assert!((1..3).all(|j| (solution[(i, j)] * (1.0 + j as f64) - solution[(i, 0)]).abs() < 1e-12));
        }

        let mut bad = h.clone();
        bad[(0, 1)] = f64::NAN;
        assert!(solve_symmetric_right(&x, &bad).is_none());
        assert_eq!(solve_symmetric_right(&x, &Matrix::zeros(3, 3)), Some(Matrix::zeros(5, 3)));
    }

    /// H = D·G·D with a D that spans two hundred orders of magnitude: what fades out is solved to as many digits.
    #[test]
    fn solving_does_not_care_for_the_scales_of_the_unknowns() {
        let n = 5;
        let g = symmetric(&[3.0, 2.0, 1.5, 1.0, 0.5], 6);
        let d: Vec<f64> = (0..n).map(|i| 10f64.powi(-25 * i as i32)).collect();
        let h = Matrix::from_fn(n, n, |i, j| d[i] * g[(i, j)] * d[j]);
        let y = matrix(7, n, 7);
        let a = Matrix::from_fn(7, n, |i, j| (0..n).map(|l| y[(i, l)] * g[(l, j)]).sum::<f64>() * d[j]);
        let x = solve_symmetric_right(&a, &h).unwrap();
        for i in 0..7 {
            for j in 0..n {
                assert!((x[(i, j)] * d[j] - y[(i, j)]).abs() < 1e-13);
            }
        }
    }
}
