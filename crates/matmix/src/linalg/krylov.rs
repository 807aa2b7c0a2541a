//! A few leading eigenpairs from a Krylov space: to ten digits, or only roughly.

use super::Matrix;
use super::eigen::{Eigen, eigen_symmetric};
use super::panel::View;
use super::product::add_product;
use super::qr::orthonormal_basis;
use super::stretches::over_stretches;
use super::tile::Part;
use super::vector::{add_scaled, norm};

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

/// Rows that are read at a time, and the stretches of them whose sums are made side by side, at most.
const ROWS: usize = 128;
const STRETCHES: usize = 32;

/// Block Lanczos with full orthogonalisation from a fixed start: `None` if the eigenpairs are not found to ten digits in
/// a space that is small beside the matrix.
pub(super) fn krylov_eigen(a: &Matrix, count: usize) -> Option<Eigen> {
    let (n, width) = (a.rows(), count + WIDER);
    let blocks = n / (KRYLOV_SHARE * width);
    if a.largest() == 0.0 || blocks < KRYLOV_BLOCKS {
        return None;
    }
    let unit = a.unit();
    let a = a.symmetric_part(1.0 / unit);
    let mut space = Krylov::new(patternless(n, width), blocks);
    for b in 0..blocks {
        space.grow(|block| a.times(block));
        if b + 1 >= KRYLOV_BLOCKS && (b + 1 - KRYLOV_BLOCKS).is_multiple_of(KRYLOV_STEP) {
            let (eigen, residual) = space.leading(count)?;
            if residual <= KRYLOV_RESIDUAL {
                let values = eigen.values.iter().map(|v| v * unit).collect();
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
    if !(x.largest().is_normal() && x.is_finite()) {
        return None;
    }
    let unit = x.unit();
    x.scale(1.0 / unit);
    // Mixtures of all rows: half a step ahead of numbers that know nothing of X.
    let start = x.transpose_times(&patternless(x.rows(), width));
    let mut space = Krylov::new(start, ROUGH_BLOCKS);
    for _ in 0..ROUGH_BLOCKS {
        space.grow(|block| gram_times(&x, block));
    }
    let (eigen, _) = space.leading(count)?;
    let values = eigen.values.iter().map(|v| v * unit * unit).collect();
    Some(Eigen { values, ..eigen }).filter(|eigen| eigen.vectors.is_finite())
}

/// The same numbers every time, without a pattern: not orthogonal to anything that is looked for.
fn patternless(rows: usize, cols: usize) -> Matrix {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    Matrix::from_fn(rows, cols, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    })
}

/// An orthonormal basis of the space of B, A·B, A²·B, … for a symmetric A and a start B, and its image under A.
struct Krylov {
    /// One vector per row, as in the image: blocks follow each other.
    basis: Vec<f64>,
    image: Vec<f64>,
    /// The next block, one vector per column, not yet orthogonal to those before it.
    next: Matrix,
}

impl Krylov {
    fn new(start: Matrix, blocks: usize) -> Self {
        let empty = || Vec::with_capacity(start.rows() * start.cols() * blocks);
        Self { basis: empty(), image: empty(), next: start }
    }

    /// Adds a block.
    fn grow(&mut self, times_a: impl Fn(&Matrix) -> Matrix) {
        // Twice is enough.
        for _ in 0..2 {
            let before = self.vectors(&self.basis);
            let mut along = before.times(self.next.view());
            along.scale(-1.0);
            let width = self.next.cols();
            add_product(before, along.view(), Part::Whole, self.next.as_mut_slice(), width);
            self.next = orthonormal_basis(&self.next);
        }
        let image = times_a(&self.next);
        self.basis.extend(self.next.transpose().as_slice());
        self.image.extend(image.transpose().as_slice());
        self.next = image;
    }

    fn vectors<'a>(&self, data: &'a [f64]) -> View<'a, f64> {
        let length = self.next.rows();
        View::new(data, data.len() / length, length, length)
    }

    /// The `count` leading eigenpairs of A in this space, and the largest ‖A v − λ v‖ relative to the largest eigenvalue.
    fn leading(&self, count: usize) -> Option<(Eigen, f64)> {
        let (basis, image) = (self.vectors(&self.basis), self.vectors(&self.image));
        let Eigen { mut values, vectors } = eigen_symmetric(&basis.times(image.transpose()))?;
        values.truncate(count);
        let leading = vectors.first_cols(count);
        let (vectors, images) =
            (basis.transpose_times(leading.view()), image.transpose_times(leading.view()));
        let mut residual = 0.0;
        for (j, value) in values.iter().enumerate() {
            let differences: Vec<f64> =
                (0..vectors.rows()).map(|i| images[(i, j)] - value * vectors[(i, j)]).collect();
            let norm = norm(&differences);
            if norm.is_nan() {
                return None;
            }
            residual = f64::max(residual, norm / values[0]);
        }
        Some((Eigen { values, vectors }, residual))
    }
}

/// XᵀX·B, a few rows of X at a time: X is read once.
fn gram_times(x: &Matrix, b: &Matrix) -> Matrix {
    let size = x.cols() * b.cols();
    let stretch = x.rows().div_ceil(STRETCHES).next_multiple_of(ROWS);
    let mut sums = vec![0.0; x.rows().div_ceil(stretch) * size];
    over_stretches(&mut sums, size, &|number, sum| {
        let end = ((number + 1) * stretch).min(x.rows());
        for first in (number * stretch..end).step_by(ROWS) {
            let rows = x.rows_view(first..(first + ROWS).min(end));
            add_product(rows, rows.times(b.view()).view(), Part::Whole, sum, b.cols());
        }
    });
    let (sum, others) = sums.split_at_mut(size);
    others.chunks_exact(size).for_each(|other| add_scaled(sum, 1.0, other));
    sums.truncate(size);
    Matrix::from_vec(x.cols(), b.cols(), sums)
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
