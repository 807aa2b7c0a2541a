//! Householder's reflectors H = I − τ v vᵀ, and products of many of them.

use super::Matrix;
use super::panel::View;
use super::product::add_product;
use super::tile::Part;
use super::vector::norm;

/// Reflectors that are applied at a time.
const BLOCK: usize = 32;

/// The reflector that takes x to (β, 0, …, 0): x becomes its v, which begins with 1. Returns β and τ.
pub(super) fn reflect(x: &mut [f64]) -> (f64, f64) {
    let [first, rest @ ..] = x else { return (0.0, 0.0) };
    let alpha = std::mem::replace(first, 1.0);
    let below = norm(rest);
    if below == 0.0 {
        return (alpha, 0.0);
    }
    // Of the two possible signs the one that does not cancel.
    let beta = -alpha.hypot(below).copysign(alpha);
    let scale = 1.0 / (alpha - beta);
    if scale.is_normal() {
        rest.iter_mut().for_each(|x| *x *= scale);
    } else {
        rest.iter_mut().for_each(|x| *x /= alpha - beta);
    }
    (beta, (beta - alpha) / beta)
}

/// H_0 H_1 …, where v_j begins with a 1 at `offset` + j and is zero before.
#[derive(Debug)]
pub(super) struct Reflectors {
    /// One v per row.
    pub(super) vectors: Matrix,
    pub(super) tau: Vec<f64>,
    pub(super) offset: usize,
}

impl Reflectors {
    /// The first columns of the product.
    pub(super) fn first_cols(&self, cols: usize) -> Matrix {
        let mut q = Matrix::identity(self.vectors.cols(), cols);
        // From the last on: what lies left of a reflector's beginning is still that of the identity.
        self.blocks().for_each(|first| self.apply_block(first, &mut q, (self.offset + first).min(cols)));
        q
    }

    /// Their product times X takes the place of X.
    pub(super) fn apply(&self, x: &mut Matrix) {
        self.blocks().for_each(|first| self.apply_block(first, x, 0));
    }

    fn blocks(&self) -> impl Iterator<Item = usize> {
        (0..self.tau.len()).step_by(BLOCK).rev()
    }

    /// The reflectors of a block at once, (I − Vᵀ T V) X with the reflectors' vectors as the rows of V, for the columns
    /// of X from one on.
    fn apply_block(&self, first: usize, x: &mut Matrix, from: usize) {
        let tau = &self.tau[first..self.tau.len().min(first + BLOCK)];
        let (count, top) = (tau.len(), self.offset + first);
        let (length, cols) = (x.rows() - top, x.cols());
        if cols == from {
            return;
        }
        let v = &self.vectors.as_slice()[first * x.rows() + top..];
        let v = View::new(v, count, length, x.rows());
        let below = &x.as_slice()[top * cols + from..];
        let vx = v.times(View::new(below, length, cols - from, cols));
        let mut change = upper_factor(&v.times(v.transpose()), tau).times(&vx);
        change.scale(-1.0);
        let below = &mut x.as_mut_slice()[top * cols + from..];
        add_product(v, change.view(), Part::Whole, below, cols);
    }
}

/// The upper triangular T of H_0 H_1 … = I − Vᵀ T V, from V Vᵀ.
fn upper_factor(gram: &Matrix, tau: &[f64]) -> Matrix {
    let mut t = Matrix::zeros(tau.len(), tau.len());
    for (j, &tau) in tau.iter().enumerate() {
        for i in 0..j {
            t[(i, j)] = -tau * (i..j).map(|l| t[(i, l)] * gram[(l, j)]).sum::<f64>();
        }
        t[(j, j)] = tau;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::super::made::{difference, matrix, off_orthonormal, plain_product};
    use super::*;

    /// I − τ v vᵀ.
    fn dense(v: &[f64], tau: f64) -> Matrix {
        Matrix::from_fn(v.len(), v.len(), |i, j| f64::from(u8::from(i == j)) - tau * v[i] * v[j])
    }

    #[test]
    fn a_reflector_takes_its_vector_to_the_first_axis() {
        for n in [1, 2, 5, 70] {
            for scale in [1e-310, 1e-200, 1e-150, 1.0, 1e150, 1e300] {
                let x: Vec<f64> = matrix(n, 1, 3).as_slice().iter().map(|x| x * scale).collect();
                let mut v = x.clone();
                let (beta, tau) = reflect(&mut v);
                assert_eq!(v[0], 1.0);
                let h = dense(&v, tau);
                let digits = if scale < 1e-300 { 1e-11 } else { 1e-14 };
                assert!(off_orthonormal(&h) < digits);
                let length = Matrix::from_vec(n, 1, x.iter().map(|x| x / scale).collect());
                let image = plain_product(&h, &length);
                assert!((image[(0, 0)] - beta / scale).abs() < digits);
                assert!(image.as_slice()[1..].iter().all(|y| y.abs() < digits));
            }
        }
        // What is on the axis stays where it is.
        for x in [[2.0, 0.0, 0.0], [0.0; 3]] {
            assert_eq!(reflect(&mut x.clone()), (x[0], 0.0));
        }
    }

    #[test]
    fn blocks_of_reflectors_are_the_product_of_all() {
        for (count, n, offset) in [(1, 1, 0), (3, 5, 0), (3, 5, 1), (31, 40, 1), (33, 40, 0), (70, 90, 1)] {
            let mut reflectors =
                Reflectors { vectors: Matrix::zeros(count, n), tau: vec![0.0; count], offset };
            let mut expected = Matrix::identity(n, n);
            for j in 0..count {
                let begin = offset + j;
                let mut v = matrix(n - begin, 1, j as u64).as_slice().to_vec();
                // One of them is none.
                if j == 2 {
                    v.fill(0.0);
                }
                let (_, tau) = reflect(&mut v);
                reflectors.tau[j] = tau;
                reflectors.vectors.row_mut(j)[begin..].copy_from_slice(&v);
                expected = plain_product(&expected, &dense(reflectors.vectors.row(j), tau));
            }
            for cols in [1, n / 2, n] {
                let found = reflectors.first_cols(cols);
                assert!(difference(&found, &expected.first_cols(cols)) < 1e-13, "{count} of {n}");
            }
            let mut x = matrix(n, 4, 99);
            let image = plain_product(&expected, &x);
            reflectors.apply(&mut x);
            assert!(difference(&x, &image) < 1e-13);
        }
    }
}
