//! Large symmetric products, through faer.

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

/// A number type that large matrices can be multiplied in.
pub(crate) trait Product: faer::traits::ComplexField {}

impl Product for f32 {}
impl Product for f64 {}

/// Adds x xᵀ to the lower triangle of `sum` (rows × rows, row-major).
pub(crate) fn add_rows_gram<T: Product>(x: &[T], rows: usize, sum: &mut [T]) {
    let x = MatRef::from_row_major_slice(x, rows, x.len() / rows);
    let sum = MatMut::from_row_major_slice_mut(sum, rows, rows);
    let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    // Sequential: chunks of samples already run in parallel, and the order of the sum must not change.
    matmul(sum, lower, Accum::Add, x, whole, x.transpose(), whole, T::one_impl(), Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_that_written_out() {
        let (rows, columns) = (5, 7);
        let x: Vec<f64> = (0..rows * columns).map(|i| ((i * 29) % 13) as f64 - 6.0).collect();
        let mut by_rows = vec![1.0; rows * rows];
        add_rows_gram(&x, rows, &mut by_rows);
        for i in 0..rows {
            for j in 0..=i {
                let sum: f64 = (0..columns).map(|c| x[i * columns + c] * x[j * columns + c]).sum();
                assert_eq!(by_rows[i * rows + j], 1.0 + sum);
            }
        }
    }
}
