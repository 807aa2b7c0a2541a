//! V = σ² Λ⁻¹ of one component.

use pulp::{Simd, WithSimd};

use super::PartialPattern;
use super::lanes::place;
use super::modes::kronecker_row;
use crate::linalg::Matrix;
use crate::simd::Aligned;
use crate::simd::Real;
use crate::simd::tiles::{greedily, tile};

/// V, in double precision.
pub(super) struct Covariance {
    rho: usize,
    /// Numbers of a row: whole vectors.
    stride: usize,
    /// F⁻¹, `[row][stride]`: nothing above the diagonal.
    inverse: Aligned<f64>,
    /// V, `[row][stride]`.
    v: Aligned<f64>,
}

impl Covariance {
    pub(super) fn new(rho: usize) -> Self {
        let stride = rho.next_multiple_of(f64::LANES);
        let zeros = || Aligned::new(0.0, rho * stride);
        Self { rho, stride, inverse: zeros(), v: zeros() }
    }

    /// K diag(v) Kᵀ, K the Kronecker product of some rotations.
    pub(super) fn rotated(rotations: &[Matrix], v: &[f64]) -> Self {
        let mut to = Self::new(v.len());
        let rank: Vec<usize> = rotations.iter().map(Matrix::rows).collect();
        let rows: Vec<Vec<f64>> = (0..v.len()).map(|j| kronecker_row(rotations, &rank, j, None)).collect();
        for (j, a) in rows.iter().enumerate() {
            let a: Vec<f64> = a.iter().zip(v).map(|(a, v)| a * v).collect();
            for (l, b) in rows[..=j].iter().enumerate() {
                let sum = a.iter().zip(b).map(|(a, b)| a * b).sum();
                to.v[j * to.stride + l] = sum;
                to.v[l * to.stride + j] = sum;
            }
        }
        to
    }

    /// That of component `k` for a pattern of missing cells.
    #[inline(always)]
    pub(super) fn find<S: Simd, T: Real>(&mut self, simd: S, pattern: &PartialPattern<'_, T>, k: usize) {
        simd.vectorize(Find { pattern, k, to: self });
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.v[i * self.stride..i * self.stride + self.rho]
    }
}

struct Find<'a, 'p, T> {
    pattern: &'a PartialPattern<'p, T>,
    k: usize,
    to: &'a mut Covariance,
}

impl<T: Real> WithSimd for Find<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let rho = self.to.rho;
        let vectors = vectors::<S>(self.to.stride);
        let width = self.to.stride / vectors;
        for i in 0..rho {
            for (at, count) in greedily(i / width + 1, [4, 2]) {
                tile!(count, [4 2 1], self.inverse_row[_](simd, i, at));
            }
            self.to.inverse[i * self.to.stride + i] = 1.0 / self.factor(i, i);
        }
        for (at, count) in greedily(vectors, [4, 2]) {
            for (a, height) in greedily(rho, [2]) {
                tile!(height, [2 1] x count, [4 2 1], self.rows[_](simd, a, at));
            }
        }
    }
}

impl<T: Real> Find<'_, '_, T> {
    #[inline(always)]
    fn factor(&self, i: usize, j: usize) -> f64 {
        let rho = self.to.rho;
        self.pattern.state.factor[place::<T>(self.k, i * rho + j, rho * rho)].to_f64()
    }

    /// N vectors of row i of F⁻¹: −Σ_{l<i} F_il row l / F_ii, to which the diagonal comes.
    #[inline(always)]
    fn inverse_row<const N: usize, S: Simd>(&mut self, simd: S, i: usize, at: usize) {
        let vectors = vectors::<S>(self.to.stride);
        let zero = f64::splat(simd, 0.0);
        let mut sums = [zero; N];
        for l in 0..i {
            let f = f64::splat(simd, self.factor(i, l));
            let row = &f64::vectors::<S>(&self.to.inverse)[l * vectors + at..][..N];
            for n in 0..N {
                sums[n] = <f64 as Real>::mul_add(simd, f, row[n], sums[n]);
            }
        }
        let below = f64::splat(simd, -1.0 / self.factor(i, i));
        let out = &mut f64::vectors_mut::<S>(&mut self.to.inverse)[i * vectors + at..][..N];
        for n in 0..N {
            out[n] = <f64 as Real>::mul_add(simd, sums[n], below, zero);
        }
    }

    /// N vectors of H rows of V = σ² Σ_i (row i of F⁻¹)ᵀ (row i of F⁻¹).
    #[inline(always)]
    fn rows<const H: usize, const N: usize, S: Simd>(&mut self, simd: S, a: usize, at: usize) {
        let Covariance { rho, stride, inverse, v } = &mut *self.to;
        let vectors = vectors::<S>(*stride);
        let zero = f64::splat(simd, 0.0);
        let mut sums = [[zero; N]; H];
        for i in a..*rho {
            let factors = &inverse[i * *stride + a..][..H];
            let row = &f64::vectors::<S>(inverse)[i * vectors + at..][..N];
            for h in 0..H {
                let factor = f64::splat(simd, factors[h]);
                for n in 0..N {
                    sums[h][n] = <f64 as Real>::mul_add(simd, factor, row[n], sums[h][n]);
                }
            }
        }
        let noise = f64::splat(simd, self.pattern.of.model.components()[self.k].noise_variance());
        for h in 0..H {
            let out = &mut f64::vectors_mut::<S>(v)[(a + h) * vectors + at..][..N];
            for n in 0..N {
                out[n] = <f64 as Real>::mul_add(simd, sums[h][n], noise, zero);
            }
        }
    }
}

/// Machine vectors of so many numbers.
#[inline(always)]
fn vectors<S: Simd>(numbers: usize) -> usize {
    numbers * size_of::<f64>() / size_of::<<f64 as Real>::Vector<S>>()
}
