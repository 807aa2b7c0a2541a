//! What samples with missing cells add to the sums of a pass that updates one mode.

use super::covariance::Covariance;
use crate::linalg::{Matrix, sides_around};
use crate::model::Component;

/// The row of the Kronecker product of some loadings that belongs to a place in a grid of this shape, without mode `except`.
pub(super) fn kronecker_row(
    loadings: &[Matrix],
    shape: &[usize],
    place: usize,
    except: Option<usize>,
) -> Vec<f64> {
    let (mut row, mut below) = (vec![1.0], shape.iter().product::<usize>());
    let mut rest = place;
    for (d, (u, side)) in loadings.iter().zip(shape).enumerate() {
        below /= side;
        let at = rest / below;
        rest %= below;
        if Some(d) != except {
            row = row.iter().flat_map(|x| u.row(at).iter().map(move |y| x * y)).collect();
        }
    }
    row
}

/// A core seen from one mode: `[before][own][after]`.
pub(super) struct Sides {
    before: usize,
    own: usize,
    after: usize,
}

impl Sides {
    pub(super) fn around(rank: &[usize], d: usize) -> Self {
        let (before, after) = sides_around(rank, d);
        Self { before, own: rank[d], after }
    }

    /// Adds a X_(d) W Y_(d)ᵀ, for tensors that have the sides of a core but for mode d.
    pub(super) fn add_product(&self, a: f64, x: &[f64], y: &[f64], weights: Option<&[f64]>, to: &mut Matrix) {
        let (rows, columns, after) = (to.rows(), to.cols(), self.after);
        for o in 0..self.before {
            for w in 0..after {
                let factor = a * weights.map_or(1.0, |weights| weights[o * after + w]);
                for i in 0..rows {
                    let x = factor * x[(o * rows + i) * after + w];
                    for j in 0..columns {
                        to[(i, j)] += x * y[(o * columns + j) * after + w];
                    }
                }
            }
        }
    }

    /// Adds γ Σ_m w_m V[(i, m), (j, m)].
    pub(super) fn add_trace(&self, gamma: f64, v: &Covariance, weights: Option<&[f64]>, to: &mut Matrix) {
        for m in 0..self.before * self.after {
            let factor = gamma * weights.map_or(1.0, |weights| weights[m]);
            for i in 0..self.own {
                for j in 0..self.own {
                    to[(i, j)] += factor * v.row(self.place(i, m))[self.place(j, m)];
                }
            }
        }
    }

    /// The place in a core of index `i` of the mode and index `m` of all others.
    fn place(&self, i: usize, m: usize) -> usize {
        (m / self.after * self.own + i) * self.after + m % self.after
    }

    /// Adds what u_iᵀ V of the missing cells adds to A = F contracted with the loadings of all other modes.
    ///
    /// ```text
    /// A[x, j] += γ Σ_i U[x, i] Σ_{m, m'} V[(i, m), (j, m')] W_x[m, m'],   W_x = Σ w wᵀ over the missing cells of row x
    /// ```
    pub(super) fn add_rows(
        &self,
        gamma: f64,
        v: &Covariance,
        component: &Component,
        shape: &[usize],
        missing: &[usize],
        d: usize,
        to: &mut Matrix,
    ) {
        let others = self.before * self.after;
        let (_, below) = sides_around(shape, d);
        let mut grams: Vec<Option<Matrix>> = (0..shape[d]).map(|_| None).collect();
        for &cell in missing {
            let w = kronecker_row(component.loadings(), shape, cell, Some(d));
            let gram = grams[cell / below % shape[d]].get_or_insert_with(|| Matrix::zeros(others, others));
            for (row, a) in gram.as_mut_slice().chunks_exact_mut(others).zip(&w) {
                row.iter_mut().zip(&w).for_each(|(to, b)| *to += a * b);
            }
        }
        let mut along = vec![0.0; self.before * self.own * self.after];
        for (x, gram) in grams.iter().enumerate() {
            let Some(gram) = gram else { continue };
            for m in 0..others {
                along.fill(0.0);
                for (i, u) in component.loadings()[d].row(x).iter().enumerate() {
                    let row = v.row(self.place(i, m));
                    along.iter_mut().zip(row).for_each(|(to, v)| *to += gamma * u * v);
                }
                for j in 0..self.own {
                    let sum: f64 = (0..others).map(|l| along[self.place(j, l)] * gram[(m, l)]).sum();
                    to[(x, j)] += sum;
                }
            }
        }
    }
}
