//! Symmetric matrices made tridiagonal by reflectors, a few columns at a time.
//!
//! Half of the work is one product of the matrix with a vector per column; the other half is put off until there are enough
//! columns for a product of matrices.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::householder::{Reflectors, reflect};
use super::panel::View;
use super::product::add_product;
use super::tile::Part;
use super::vector::{add_combination, dot_and_add, split_dot};
use super::{BEST, Matrix};

/// Columns that are made tridiagonal before the rest of the matrix is brought up to date.
const BLOCK: usize = 32;

/// A = Q·T·Qᵀ with T tridiagonal.
#[derive(Debug)]
pub(super) struct Tridiagonal {
    pub(super) diagonal: Vec<f64>,
    /// What is beside the diagonal: one number less.
    pub(super) beside: Vec<f64>,
    /// Their product is Q.
    pub(super) reflectors: Reflectors,
}

impl Tridiagonal {
    /// Of a symmetric matrix; only the diagonal and what is above it are looked at.
    pub(super) fn new(mut a: Matrix) -> Self {
        let n = a.rows();
        // The last two columns are tridiagonal as they are.
        let count = n.saturating_sub(2);
        let reflectors = Reflectors { vectors: Matrix::zeros(count, n), tau: vec![0.0; count], offset: 1 };
        let mut t = Self { diagonal: vec![0.0; n], beside: vec![0.0; n.saturating_sub(1)], reflectors };
        for first in (0..count).step_by(BLOCK) {
            let columns = first..(first + BLOCK).min(count);
            let mut w = Matrix::zeros(columns.len(), n);
            BEST.run::<f64, _>(ReduceBlock { a: &a, columns: columns.clone(), w: &mut w, t: &mut t });
            // A − VᵀW − WᵀV, as one product.
            let v = &t.reflectors.vectors.as_slice()[first * n..columns.end * n];
            let stacked = |a: &[f64], b: &[f64], sign: f64| -> Vec<f64> {
                let rows = a.chunks_exact(n).chain(b.chunks_exact(n));
                rows.flat_map(|row| &row[columns.end..]).map(|x| sign * x).collect()
            };
            let (left, right) = (stacked(v, w.as_slice(), 1.0), stacked(w.as_slice(), v, -1.0));
            let rest = n - columns.end;
            let view = |x| View::new(x, 2 * columns.len(), rest, rest);
            let below = &mut a.as_mut_slice()[columns.end * (n + 1)..];
            add_product(view(&left), view(&right), Part::Upper, below, n);
        }
        for j in count..n {
            t.diagonal[j] = a[(j, j)];
            if j + 1 < n {
                t.beside[j] = a[(j, j + 1)];
            }
        }
        t
    }
}

/// Makes a few columns of A tridiagonal. A itself stays as it is: what their reflectors V make of it is A − VᵀW − WᵀV.
struct ReduceBlock<'a> {
    a: &'a Matrix,
    columns: Range<usize>,
    w: &'a mut Matrix,
    t: &'a mut Tridiagonal,
}

impl WithSimd for ReduceBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, columns, w, t } = self;
        let (n, first) = (a.rows(), columns.start);
        let vectors = &mut t.reflectors.vectors;
        for j in columns {
            let mut row = a.row(j)[j..].to_vec();
            // The rows of V and of W so far, one of each in turn.
            let of_both = |k: usize, from: usize| &[vectors.row(first + k / 2), w.row(k / 2)][k % 2][from..];
            let both = 2 * (j - first);
            add_combination(&mut row, both, |k| -of_both(k ^ 1, j)[0], |k| of_both(k, j));
            t.diagonal[j] = row[0];
            let v = &mut row[1..];
            let (beside, tau) = reflect(v);
            // w = τ A v − ½ τ² (vᵀAv) v.
            let below = j + 1;
            let mut image = vec![0.0; n - below];
            for i in below..n {
                let (a, at) = (&a.row(i)[i..], i - below);
                image[at] += a[0] * v[at] + dot_and_add(&a[1..], &v[at + 1..], v[at], &mut image[at + 1..]);
            }
            let mut along = vec![0.0; both];
            for k in 0..both {
                along[k] = split_dot(of_both(k, below), v);
            }
            add_combination(&mut image, both, |k| -along[k ^ 1], |k| of_both(k, below));
            let half = 0.5 * tau * split_dot(&image, v);
            image.iter_mut().zip(&*v).for_each(|(x, v)| *x = tau * (*x - half * v));
            (t.beside[j], t.reflectors.tau[j]) = (beside, tau);
            vectors.row_mut(j)[below..].copy_from_slice(v);
            w.row_mut(j - first)[below..].copy_from_slice(&image);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{difference, matrix, off_orthonormal, plain_product};
    use super::*;

    #[test]
    fn turned_back_it_is_the_matrix() {
        for n in [0, 1, 2, 3, 4, 10, 33, 34, 35, 66, 67, 150] {
            let b = matrix(n, n, 2);
            let a = Matrix::from_fn(n, n, |i, j| b[(i, j)] + b[(j, i)]);
            // What is below the diagonal is not looked at.
            let upper = Matrix::from_fn(n, n, |i, j| if j < i { f64::NAN } else { a[(i, j)] });
            let Tridiagonal { diagonal, beside, reflectors } = Tridiagonal::new(upper);
            let q = reflectors.first_cols(n);
            assert!(off_orthonormal(&q) < 1e-14);
            let t = Matrix::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => diagonal[i],
                1 => beside[i.min(j)],
                _ => 0.0,
            });
            let back = plain_product(&plain_product(&q, &t), &q.transpose());
            assert!(difference(&back, &a) < 1e-14 * (n + 10) as f64, "{n}: {}", difference(&back, &a));
        }
    }
}
