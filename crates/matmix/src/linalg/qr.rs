//! QR decomposition by reflectors, also with the columns in the order of what the others leave of them.

use super::Matrix;
use super::householder::{Reflectors, reflect};
use super::vector::{add_scaled, dot, norm};

/// An orthonormal basis of the columns of A (its Q of QR), with as many columns as A, or rows if they are fewer. Where columns depend
/// on each other it is completed.
pub fn orthonormal_basis(a: &Matrix) -> Matrix {
    let qr = Qr::new(a.transpose(), false);
    qr.reflectors.first_cols(a.rows().min(a.cols()))
}

/// A = Q·R, the columns of A taken in some order.
#[derive(Debug)]
pub(super) struct Qr {
    pub(super) reflectors: Reflectors,
    /// Upper triangular.
    pub(super) r: Matrix,
    /// The numbers of the columns of A in the order of those of R.
    pub(super) order: Vec<usize>,
}

impl Qr {
    /// Of a matrix given by its columns as rows; in their own order, or each time the longest of what is left.
    pub(super) fn new(mut columns: Matrix, longest_first: bool) -> Self {
        let (n, m) = (columns.rows(), columns.cols());
        let count = n.min(m);
        let mut r = Matrix::zeros(count, n);
        let mut tau = vec![0.0; count];
        let mut order: Vec<usize> = (0..n).collect();
        let mut lengths: Vec<f64> = columns.as_slice().chunks_exact(m.max(1)).map(norm).collect();
        for k in 0..count {
            if longest_first {
                let longest = (k..n).fold(k, |l, j| if lengths[j] > lengths[l] { j } else { l });
                if longest > k {
                    let (a, b) = columns.two_rows_mut(k, longest);
                    a.swap_with_slice(b);
                }
                order.swap(k, longest);
                lengths.swap(k, longest);
                for i in 0..k {
                    r.as_mut_slice().swap(i * n + k, i * n + longest);
                }
            }
            let (before, after) = columns.as_mut_slice().split_at_mut((k + 1) * m);
            let v = &mut before[k * m..];
            (r[(k, k)], tau[k]) = reflect(&mut v[k..]);
            v[..k].fill(0.0);
            for (j, x) in (k + 1..n).zip(after.chunks_exact_mut(m)) {
                let x = &mut x[k..];
                add_scaled(x, -tau[k] * dot(&v[k..], x), &v[k..]);
                r[(k, j)] = x[0];
                if longest_first {
                    lengths[j] = norm(&x[1..]);
                }
            }
        }
        let vectors = Matrix::from_vec(count, m, columns.as_slice()[..count * m].to_vec());
        Self { reflectors: Reflectors { vectors, tau, offset: 0 }, r, order }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{difference, matrix, off_orthonormal, plain_product};
    use super::*;

    const SHAPES: [(usize, usize); 9] =
        [(1, 1), (4, 1), (1, 4), (5, 5), (28, 4), (4, 28), (100, 40), (70, 71), (200, 6)];

    #[test]
    fn q_times_r_is_the_matrix_in_either_order() {
        for (m, n) in SHAPES {
            for longest_first in [false, true] {
                let a = matrix(m, n, 5);
                let Qr { reflectors, r, order } = Qr::new(a.transpose(), longest_first);
                let q = reflectors.first_cols(m.min(n));
                assert!(off_orthonormal(&q) < 1e-14);
                let ordered = Matrix::from_fn(m, n, |i, j| a[(i, order[j])]);
                assert!(difference(&plain_product(&q, &r), &ordered) < 1e-13, "{m} × {n}");
                for i in 0..r.rows() {
                    assert!(r.row(i)[..i].iter().all(|&x| x == 0.0));
                    // What is left of a column is no longer than what was left of those before it.
                    let left = |j: usize| (i..r.rows().min(j + 1)).map(|l| r[(l, j)].powi(2)).sum::<f64>();
                    assert!(!longest_first || (i..n).all(|j| left(j) <= left(i) * (1.0 + 1e-12)));
                }
                assert!(longest_first || order.iter().copied().eq(0..n));
            }
        }
    }

    #[test]
    fn a_basis_spans_the_columns_and_is_orthonormal_whatever_they_are() {
        for (m, n) in SHAPES {
            for scale in [1e-150, 1.0, 1e150] {
                let mut a = matrix(m, n, 8);
                a.scale(scale);
                let q = orthonormal_basis(&a);
                assert!(off_orthonormal(&q) < 1e-14);
                let mut back = plain_product(&q, &plain_product(&q.transpose(), &a));
                back.add_scaled(-1.0, &a);
                assert!(back.largest() < 1e-13 * scale);
            }
        }
        // Of rank 2, with a column of zeros, and nothing but zeros.
        let thin = plain_product(&matrix(30, 2, 1), &matrix(2, 7, 2));
        let gap = Matrix::from_fn(30, 7, |i, j| if j == 3 { 0.0 } else { thin[(i, j)] });
        for a in [thin, gap, Matrix::zeros(30, 7)] {
            let q = orthonormal_basis(&a);
            assert!(off_orthonormal(&q) < 1e-14);
            assert!(difference(&plain_product(&q, &plain_product(&q.transpose(), &a)), &a) < 1e-13);
        }
        assert!(!orthonormal_basis(&Matrix::from_fn(3, 2, |i, _| [1.0, f64::NAN, 2.0][i])).is_finite());
    }
}
