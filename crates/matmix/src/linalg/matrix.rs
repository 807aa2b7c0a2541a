//! A small row-major matrix of doubles.

use std::ops::{Index, IndexMut, Range};

use super::panel::View;
use super::vector::dot;

/// A row-major matrix of doubles.
///
/// ```
/// use matmix::Matrix;
///
/// let a = Matrix::from_vec(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// assert_eq!((a.rows(), a.cols(), a[(1, 0)]), (2, 3, 4.0));
/// assert_eq!(a.times(&Matrix::identity(3, 1)).col(0), [1.0, 4.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// The identity, or its first columns.
    pub fn identity(rows: usize, cols: usize) -> Self {
        Self::from_fn(rows, cols, |i, j| f64::from(u8::from(i == j)))
    }

    /// A matrix of the values of a function of row and column.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                data.push(f(i, j));
            }
        }
        Self { rows, cols, data }
    }

    /// A matrix from its elements, row after row.
    ///
    /// # Panics
    /// If there are not rows × cols elements.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<f64>) -> Self {
        assert_eq!(data.len(), rows * cols, "rows × cols elements");
        Self { rows, cols, data }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The elements, row after row.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// The elements, row after row.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`.
    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Rows i < j.
    pub(super) fn two_rows_mut(&mut self, i: usize, j: usize) -> (&mut [f64], &mut [f64]) {
        let (before, after) = self.data.split_at_mut(j * self.cols);
        (&mut before[i * self.cols..(i + 1) * self.cols], &mut after[..self.cols])
    }

    /// All of it, for a product.
    pub(super) fn view(&self) -> View<'_, f64> {
        View::new(&self.data, self.rows, self.cols, self.cols)
    }

    /// Some of its rows, for a product.
    pub(super) fn rows_view(&self, rows: Range<usize>) -> View<'_, f64> {
        View::new(&self.data[rows.start * self.cols..], rows.len(), self.cols, self.cols)
    }

    /// Column `j` as a vector of its own.
    pub fn col(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self[(i, j)]).collect()
    }

    /// The first `cols` columns.
    pub fn first_cols(&self, cols: usize) -> Self {
        Self::from_fn(self.rows, cols, |i, j| self[(i, j)])
    }

    /// Aᵀ.
    pub fn transpose(&self) -> Self {
        let mut out = Self::zeros(self.cols, self.rows);
        // Block by block: a line of the cache is not read, or written, a second time.
        const BLOCK: usize = 8;
        for i0 in (0..self.rows).step_by(BLOCK) {
            for j0 in (0..self.cols).step_by(BLOCK) {
                for i in i0..self.rows.min(i0 + BLOCK) {
                    for j in j0..self.cols.min(j0 + BLOCK) {
                        out.data[j * self.rows + i] = self.data[i * self.cols + j];
                    }
                }
            }
        }
        out
    }

    /// A·B.
    pub fn times(&self, b: &Matrix) -> Self {
        self.view().times(b.view())
    }

    /// Aᵀ·B.
    pub fn transpose_times(&self, b: &Matrix) -> Self {
        self.view().transpose_times(b.view())
    }

    /// A·Bᵀ.
    pub fn times_transpose(&self, b: &Matrix) -> Self {
        self.view().times(b.view().transpose())
    }

    /// Makes a symmetric matrix of its lower triangle.
    pub(crate) fn mirror_lower(&mut self) {
        for i in 0..self.rows {
            for j in 0..i {
                self[(j, i)] = self[(i, j)];
            }
        }
    }

    /// Multiplies every element.
    pub fn scale(&mut self, factor: f64) {
        self.data.iter_mut().for_each(|x| *x *= factor);
    }

    /// Adds `factor` · B.
    pub fn add_scaled(&mut self, factor: f64, b: &Matrix) {
        assert_eq!((self.rows, self.cols), (b.rows, b.cols), "equal shapes");
        for (x, &y) in self.data.iter_mut().zip(&b.data) {
            *x += factor * y;
        }
    }

    /// Σ_i A_ii.
    pub fn trace(&self) -> f64 {
        (0..self.rows.min(self.cols)).map(|i| self[(i, i)]).sum()
    }

    /// Σ_ij A_ij B_ij = tr(AᵀB).
    pub fn inner(&self, b: &Matrix) -> f64 {
        assert_eq!((self.rows, self.cols), (b.rows, b.cols), "equal shapes");
        dot(&self.data, &b.data)
    }

    /// The squared length of every column.
    pub fn column_norms_squared(&self) -> Vec<f64> {
        let mut norms = vec![0.0; self.cols];
        for i in 0..self.rows {
            for (n, &x) in norms.iter_mut().zip(self.row(i)) {
                *n += x * x;
            }
        }
        norms
    }

    /// The largest magnitude of an element.
    pub(crate) fn largest(&self) -> f64 {
        self.data.iter().fold(0.0, |largest, x| largest.max(x.abs()))
    }

    /// The power of two beneath the largest magnitude: to be divided by it costs no digits.
    pub(super) fn unit(&self) -> f64 {
        f64::from_bits(self.largest().to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE)
    }

    /// ½ (A + Aᵀ) · factor.
    pub(super) fn symmetric_part(&self, factor: f64) -> Self {
        let mut out = self.transpose();
        out.data.iter_mut().zip(&self.data).for_each(|(y, x)| *y = 0.5 * (*y * factor + x * factor));
        out
    }

    /// Whether no element is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|x| x.is_finite())
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        debug_assert!(j < self.cols);
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        debug_assert!(j < self.cols);
        &mut self.data[i * self.cols + j]
    }
}
