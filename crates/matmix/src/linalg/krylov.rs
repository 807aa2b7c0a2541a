//! A few leading eigenpairs from a Krylov space: to ten digits, or only roughly.

use std::ops::Range;

use faer::{Mat, MatRef, Side};
use rayon::prelude::*;

use super::Matrix;
use super::decompose::{Eigen, matrix, view};

/// By how much the blocks are wider than what is looked for, so that eigenvalues of any multiplicity are found.
const WIDER: usize = 4;

/// After so many blocks of the Krylov space the eigenpairs are looked at for the first time, and then every few blocks.
const KRYLOV_BLOCKS: usize = 8;
const KRYLOV_STEP: usize = 2;

/// How much larger a matrix is than its Krylov space, at least: beyond, all eigenpairs cost less.
const KRYLOV_SHARE: usize = 3;

/// ‖A v − λ v‖ of an eigenpair that is found, relative to the largest eigenvalue.
const KRYLOV_RESIDUAL: f64 = 1e-10;

/// The blocks of the Krylov space that eigenpairs are found in roughly, and how much smaller than both sides of the
/// matrix it is, at least.
const ROUGH_BLOCKS: usize = 3;
const ROUGH_SHARE: usize = 2;

/// Rows of a product that one thread makes at a time.
const PRODUCT_ROWS: usize = 128;

/// Block Lanczos with full orthogonalisation from a fixed start: `None` if the eigenpairs are not found to ten digits in
/// a space that is small beside the matrix.
pub(super) fn krylov_eigen(a: &Matrix, count: usize) -> Option<Eigen> {
    let (n, width) = (a.rows(), count + WIDER);
    let blocks = n / (KRYLOV_SHARE * width);
    let largest = a.largest();
    if largest == 0.0 || blocks < KRYLOV_BLOCKS {
        return None;
    }
    let a = Mat::from_fn(n, n, |i, j| 0.5 * (a[(i, j)] + a[(j, i)]) / largest);
    let mut space = Krylov::new(patternless(n, width), blocks);
    for b in 0..blocks {
        space.grow(|block| product(&a, block));
        if b + 1 >= KRYLOV_BLOCKS && (b + 1 - KRYLOV_BLOCKS).is_multiple_of(KRYLOV_STEP) {
            let (eigen, residual) = space.leading(count)?;
            if residual <= KRYLOV_RESIDUAL {
                let values = eigen.values.iter().map(|v| v * largest).collect();
                return Some(Eigen { values, ..eigen });
            }
        }
    }
    None
}

/// The `count` leading eigenpairs of XᵀX, roughly and without forming it: the eigenvectors are orthonormal and capture
/// nearly as much of X as any, but need not be single eigenvectors to more than a digit or two.
///
/// `None` if X is so small that all eigenpairs of XᵀX or of XXᵀ cost no more, or if there is nothing in it.
pub(crate) fn rough_eigen_of_rows(mut x: Matrix, count: usize) -> Option<Eigen> {
    let width = count + WIDER;
    if x.rows().min(x.cols()) < ROUGH_SHARE * ROUGH_BLOCKS * width {
        return None;
    }
    // Squares of huge and of tiny numbers are no numbers.
    let largest = x.largest();
    if !(largest.is_normal() && x.is_finite()) {
        return None;
    }
    x.scale(1.0 / largest);
    let x = view(&x);
    // Mixtures of all rows: half a step ahead of numbers that know nothing of X.
    let mixing = patternless(x.nrows(), width);
    let start = sum_of_stretches(x.nrows(), |stretch| {
        x.get(stretch.clone(), ..).transpose() * mixing.get(stretch, ..)
    });
    let mut space = Krylov::new(start, ROUGH_BLOCKS);
    for _ in 0..ROUGH_BLOCKS {
        space.grow(|block| {
            sum_of_stretches(x.nrows(), |stretch| {
                let rows = x.get(stretch, ..);
                rows.transpose() * (rows * block)
            })
        });
    }
    let (eigen, _) = space.leading(count)?;
    let values = eigen.values.iter().map(|v| v * largest * largest).collect();
    Some(Eigen { values, ..eigen }).filter(|eigen| eigen.vectors.is_finite())
}

/// The same numbers every time, without a pattern: not orthogonal to anything that is looked for.
fn patternless(rows: usize, cols: usize) -> Mat<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    Mat::from_fn(rows, cols, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    })
}

/// An orthonormal basis of the space of B, A·B, A²·B, … for a symmetric A and a start B, and its image under A.
struct Krylov {
    basis: Mat<f64>,
    image: Mat<f64>,
    /// How many of their columns are filled.
    size: usize,
    /// The next block, not yet orthogonal to those before it.
    next: Mat<f64>,
}

impl Krylov {
    fn new(start: Mat<f64>, blocks: usize) -> Self {
        let empty = || Mat::zeros(start.nrows(), start.ncols() * blocks);
        Self { basis: empty(), image: empty(), size: 0, next: start }
    }

    /// Adds a block.
    fn grow(&mut self, times_a: impl Fn(&Mat<f64>) -> Mat<f64>) {
        let (done, size) = (self.size, self.size + self.next.ncols());
        // Twice is enough.
        for _ in 0..2 {
            let before = self.basis.get(.., ..done);
            self.next = &self.next - before * (before.transpose() * &self.next);
            self.next = self.next.qr().compute_thin_Q();
        }
        let image = times_a(&self.next);
        self.basis.get_mut(.., done..size).copy_from(&self.next);
        self.image.get_mut(.., done..size).copy_from(&image);
        (self.size, self.next) = (size, image);
    }

    /// The `count` leading eigenpairs of A in this space, and the largest ‖A v − λ v‖ relative to the largest eigenvalue.
    fn leading(&self, count: usize) -> Option<(Eigen, f64)> {
        ritz(self.basis.get(.., ..self.size), self.image.get(.., ..self.size), count)
    }
}

/// A·B for symmetric A, a stretch of its columns, which are its rows, after the other: each number is one sum whoever
/// makes it.
fn product(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    let stretches: Vec<usize> = (0..a.ncols()).step_by(PRODUCT_ROWS).collect();
    let parts: Vec<Mat<f64>> = stretches
        .par_iter()
        .map(|&from| a.get(.., from..(from + PRODUCT_ROWS).min(a.ncols())).transpose() * b)
        .collect();
    let mut whole = Mat::zeros(a.ncols(), b.ncols());
    for (&from, part) in stretches.iter().zip(&parts) {
        whole.get_mut(from..from + part.nrows(), ..).copy_from(part);
    }
    whole
}

/// Σ of a term for every stretch of so many rows: in the order of the stretches, whoever makes them.
fn sum_of_stretches(rows: usize, term: impl Fn(Range<usize>) -> Mat<f64> + Sync) -> Mat<f64> {
    let stretches = (0..rows.div_ceil(PRODUCT_ROWS)).into_par_iter();
    let stretch = |s: usize| s * PRODUCT_ROWS..((s + 1) * PRODUCT_ROWS).min(rows);
    let terms: Vec<Mat<f64>> = stretches.map(|s| term(stretch(s))).collect();
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or_else(Mat::new)
}

/// The `count` leading eigenpairs of A in the space of an orthonormal basis, from the basis and its image under A, and
/// the largest ‖A v − λ v‖ relative to the largest eigenvalue.
fn ritz(basis: MatRef<'_, f64>, image: MatRef<'_, f64>, count: usize) -> Option<(Eigen, f64)> {
    let small = basis.transpose() * image;
    let size = small.nrows();
    let small = Mat::from_fn(size, size, |i, j| 0.5 * (small[(i, j)] + small[(j, i)]));
    let eigen = small.self_adjoint_eigen(Side::Lower).ok()?;
    let leading = Mat::from_fn(size, count, |i, j| eigen.U()[(i, size - 1 - j)]);
    let (vectors, images) = (basis * &leading, image * &leading);
    let values: Vec<f64> = (0..count).map(|j| eigen.S()[size - 1 - j]).collect();
    let square = |j: usize, i: usize| (images[(i, j)] - values[j] * vectors[(i, j)]).powi(2);
    let mut residual = 0.0;
    for j in 0..count {
        let norm = (0..basis.nrows()).map(|i| square(j, i)).sum::<f64>().sqrt();
        if norm.is_nan() {
            return None;
        }
        residual = f64::max(residual, norm / values[0]);
    }
    Some((Eigen { values, vectors: matrix(vectors.as_ref()) }, residual))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{leading_eigen, orthonormal_basis};

    /// N × P of given singular values, with singular vectors without a pattern.
    fn with_singular_values(n: usize, p: usize, value: impl Fn(usize) -> f64) -> Matrix {
        let number = |i: usize| ((i as f64 + 1.0) * 0.754_877_666).fract() - 0.5;
        let k = n.min(p);
        let left = orthonormal_basis(&Matrix::from_fn(n, k, |i, j| number(i * k + 7 * j * j)));
        let right = orthonormal_basis(&Matrix::from_fn(p, k, |i, j| number(3 * i * k + 5 * j * j + i)));
        Matrix::from_fn(n, k, |i, j| left[(i, j)] * value(j)).times_transpose(&right)
    }

    #[test]
    fn rough_eigenvectors_capture_nearly_as_much_as_those_to_ten_digits() {
        // Fewer rows than columns and more; a few strong directions over noise, and a spectrum that only falls slowly.
        let planted = |j: usize| if j < 6 { 10.0 - j as f64 } else { 1.0 - 1e-3 * j as f64 };
        let slow = |j: usize| 1.0 / (1.0 + 0.1 * j as f64);
        for (n, p) in [(130, 300), (300, 130)] {
            for (x, captured, common) in [
                (with_singular_values(n, p, planted), 1.0 - 1e-6, 1.0 - 1e-6),
                (with_singular_values(n, p, slow), 0.98, 0.8),
            ] {
                let exact = leading_eigen(&x.transpose_times(&x), 6).unwrap();
                for scale in [1.0, 1e-150, 1e150] {
                    let mut scaled = x.clone();
                    scaled.scale(scale);
                    let rough = rough_eigen_of_rows(scaled, 6).unwrap();
                    let sum = |values: &[f64]| values.iter().sum::<f64>();
                    let share = sum(&rough.values) / scale / scale / sum(&exact.values);
                    assert!(share > captured && share < 1.0 + 1e-12, "{n} × {p}: {share}");
                    let off = rough.vectors.transpose_times(&rough.vectors);
                    for (i, o) in off.as_slice().iter().enumerate() {
                        assert!((o - f64::from(u8::from(i % 7 == 0))).abs() < 1e-12, "{o}");
                    }
                    // How much of the one space is in the other.
                    let both = rough.vectors.transpose_times(&exact.vectors);
                    assert!(both.inner(&both) / 6.0 > common, "{n} × {p}: {}", both.inner(&both) / 6.0);
                }
            }
        }
    }

    #[test]
    fn rough_eigenvectors_are_the_same_on_any_number_of_threads() {
        let x = with_singular_values(400, 150, |j| 0.9f64.powi(j as i32));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let eigen = pool.install(|| rough_eigen_of_rows(x.clone(), 5)).unwrap();
            (eigen.values, eigen.vectors)
        };
        let one = run(1);
        assert!(run(2) == one && run(8) == one);
    }

    #[test]
    fn what_is_too_small_or_empty_is_not_looked_at_roughly() {
        assert!(rough_eigen_of_rows(Matrix::zeros(200, 200), 3).is_none());
        let mut x = Matrix::from_fn(200, 200, |i, j| ((i * 31 + j * 17) % 23) as f64);
        assert!(rough_eigen_of_rows(x.clone(), 3).is_some());
        assert!(rough_eigen_of_rows(x.clone(), 100).is_none());
        x[(3, 4)] = f64::NAN;
        assert!(rough_eigen_of_rows(x, 3).is_none());
    }

    /// Three directions where six are asked for: the others are orthonormal all the same, and hold nothing.
    #[test]
    fn directions_without_variance_are_completed() {
        let x = with_singular_values(100, 120, |j| if j < 3 { 2.0 } else { 0.0 });
        let rough = rough_eigen_of_rows(x, 6).unwrap();
        for (j, value) in rough.values.iter().enumerate() {
            assert!((value - if j < 3 { 4.0 } else { 0.0 }).abs() < 1e-10, "{value}");
        }
        let gram = rough.vectors.transpose_times(&rough.vectors);
        for (i, g) in gram.as_slice().iter().enumerate() {
            assert!((g - f64::from(u8::from(i % 7 == 0))).abs() < 1e-12, "{g}");
        }
    }
}
