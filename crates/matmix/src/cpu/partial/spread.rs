//! What the posterior covariance adds to F: γ u_iᵀ V in the row of every missing cell i.
//!
//! ```text
//! u_iᵀ V = Σ_b U_tb Σ_a w_a V[(a, b), …]          w the row of all other modes, t the place of cell i along the last
//! ```
//!
//! The inner sum is shared by the missing cells of a row along the last mode. The rows of F that it is added to lie far apart if few cells are
//! missing, so F lies cell by cell here, and is turned when it is moved.

use pulp::{Simd, WithSimd};

use super::super::load::prefetch;
use super::PartialModel;
use super::covariance::Covariance;
use super::fill::{add, expand};
use super::masks::Cells;
use crate::simd::Aligned;
use crate::simd::Real;
use crate::simd::tiles::{greedily, tile};

/// After so many patterns of a component what V adds to its F is brought to double precision.
const PATIENCE: usize = 1024;

/// Cells whose sums are moved together.
const BLOCK: usize = 16;

/// Σ γ u_iᵀ V of every cell i of a component, over the patterns it is missing in.
pub(super) struct Spread<T> {
    /// Numbers of a row: whole vectors.
    stride: usize,
    /// `[cell][stride]`.
    sums: Aligned<T>,
    patterns: usize,
    /// γ V, `[core][stride]`, and with all modes of its rows but the last contracted, `[last rank][stride]`.
    covariance: Aligned<T>,
    along: Aligned<T>,
}

impl<T: Real> Spread<T> {
    pub(super) fn new(of: &PartialModel<T>) -> Self {
        let (size, rho) = (of.model.sample_len(), of.model.core_len());
        let stride = rho.next_multiple_of(T::LANES);
        let zeros = |rows: usize| Aligned::new(T::from_f64(0.0), rows * stride);
        let (rank, _) = of.last();
        Self { stride, sums: zeros(size), patterns: 0, covariance: zeros(rho), along: zeros(rank) }
    }

    /// Asks for the rows of some cells, which lie far apart and are needed when the pattern is closed.
    #[inline(always)]
    pub(super) fn fetch(&self, cells: &Cells) {
        for &cell in cells.places() {
            prefetch::<false, _>(&self.sums[cell * self.stride]);
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, v: &Covariance, gamma: f64) {
        self.patterns += 1;
        for (j, to) in self.covariance.chunks_exact_mut(self.stride).enumerate() {
            let row = v.row(j);
            for l in 0..row.len() {
                to[l] = T::from_f64(gamma * row[l]);
            }
        }
    }

    /// Whether it is time to bring the sums to double precision.
    pub(super) fn is_due(&self) -> bool {
        self.patterns == PATIENCE
    }

    /// Moves what was added to Fᵀ in double precision.
    pub(super) fn flush(&mut self, cross: &mut [f64]) {
        if self.patterns == 0 {
            return;
        }
        let size = self.sums.len() / self.stride;
        // A few cells at a time: they stay in cache until all their numbers are where they belong.
        for (block, cells) in self.sums.chunks(BLOCK * self.stride).enumerate() {
            for (j, row) in cross.chunks_exact_mut(size).enumerate() {
                let to = row[block * BLOCK..].iter_mut();
                to.zip(cells.chunks_exact(self.stride)).for_each(|(to, cell)| *to += cell[j].to_f64());
            }
        }
        self.sums.fill(T::from_f64(0.0));
        self.patterns = 0;
    }
}

/// Adds γ u_iᵀ V to the rows of the missing cells.
pub(super) struct AddRows<'a, T> {
    pub(super) of: &'a PartialModel<T>,
    pub(super) k: usize,
    /// U of the last mode.
    pub(super) loadings: &'a [T],
    pub(super) missing: &'a Cells,
    pub(super) to: &'a mut Spread<T>,
}

impl<T: Real> WithSimd for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { of, k, loadings, missing, to: Spread { stride, sums, covariance, along, .. } } = self;
        let (rank, side) = of.last();
        let vectors = *stride * size_of::<T>() / size_of::<T::Vector<S>>();
        let sums = T::vectors_mut::<S>(sums);
        for (row, cells) in missing.rows() {
            expand(simd, of.prefix(k, row), covariance, along);
            let along = T::vectors::<S>(along);
            let mut rows = CellRows { first: row * side, loadings, rank, along, vectors, sums: &mut *sums };
            for (at, count) in greedily(vectors, [4, 2]) {
                tile!(count, [4 2 1], rows.add[](simd, cells, at));
            }
        }
    }
}

/// The rows of F of the cells of one row along the last mode.
struct CellRows<'a, S: Simd, T: Real> {
    first: usize,
    loadings: &'a [T],
    rank: usize,
    along: &'a [T::Vector<S>],
    vectors: usize,
    sums: &'a mut [T::Vector<S>],
}

impl<S: Simd, T: Real> CellRows<'_, S, T> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, simd: S, cells: &[usize], at: usize) {
        for &cell in cells {
            let u = &self.loadings[(cell - self.first) * self.rank..][..self.rank];
            let to = &mut self.sums[cell * self.vectors + at..][..N];
            add::<N, T, S>(simd, u, &self.along[at..], self.vectors, to);
        }
    }
}
