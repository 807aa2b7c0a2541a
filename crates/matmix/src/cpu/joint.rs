//! The sums of a pass that updates every mode: F, G, m and b of each component, in one product.
//!
//! γ x ⊗ q of one sample is an outer product, which would fetch all of F for every sample. Samples are therefore gathered by
//! component, x − M and q below each other, until there are a few dozen of them; then they are one matrix product:
//!
//! ```text
//! [ F  G ]       [ a q ]ᵀ [ x − M   q ]
//! [ m  b ]  +=   [  a  ]  [  …      … ]        one row per gathered sample
//! ```

use pulp::{Simd, WithSimd};

use super::evaluator::Found;
use super::plan::Plan;
use crate::pass::{ComponentSums, LoadingSums};
use crate::simd::Aligned;
use crate::simd::tiles::{evenly, greedily, tile};
use crate::simd::{Real, has_many_registers};

/// Samples that are gathered, at most and at least.
const ROOM: usize = 32;
const LEAST_ROOM: usize = 8;

/// Bytes of gathered samples of all components, about.
const ROOM_BYTES: usize = 4 << 20;

/// After so many samples of a component its sums are brought to double precision.
const PATIENCE: usize = 1024;

/// Columns per tile of the product.
const TILE_COLUMNS: usize = 4;

/// The sums of all components, in the working precision.
pub(super) struct Joint<T> {
    size: usize,
    core_len: usize,
    /// Numbers of a gathered row, whole vectors: x − M, then q from `core_at` on.
    left: usize,
    core_at: usize,
    /// Numbers of its factors: a q and a.
    right: usize,
    room: usize,
    gathered: Vec<Gathered>,
    /// `[component][row][left]`.
    rows: Aligned<T>,
    /// `[component][row][right]`.
    factors: Aligned<T>,
    /// `[component][right][left]`.
    sums: Aligned<T>,
}

/// What of a component has not been brought to its sums yet.
#[derive(Clone, Default)]
struct Gathered {
    /// Rows that wait to be multiplied.
    waiting: usize,
    /// Samples, their γ and their a.
    samples: usize,
    weight: f64,
    scale: f64,
}

impl<T: Real> Joint<T> {
    pub(super) fn new(plan: &Plan<T>) -> Self {
        let (size, core_len, k) = (plan.sample_len, plan.core_len, plan.components.len());
        let core_at = size.next_multiple_of(T::LANES);
        let left = core_at + core_len.next_multiple_of(T::LANES);
        let right = core_len + 1;
        let room = (ROOM_BYTES / (k * left * size_of::<T>())).clamp(LEAST_ROOM, ROOM);
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            size,
            core_len,
            left,
            core_at,
            right,
            room,
            gathered: vec![Gathered::default(); k],
            rows: zeros(k * room * left),
            factors: zeros(k * room * right),
            sums: zeros(k * right * left),
        }
    }

    /// Adds a sample with responsibility γ (times its weight) and a = γ u to component `k`; x − M and q are what was found. True
    /// if it is time to bring the sums of the component to double precision.
    #[inline(always)]
    pub(super) fn add<S: Simd>(
        &mut self,
        simd: S,
        k: usize,
        (gamma, a): (f64, f64),
        found: &Found<'_, T>,
    ) -> bool {
        let (x, q) = self.next(k);
        found.centred(k, x);
        found.rounded_core(k, q);
        self.push(simd, k, (gamma, a))
    }

    /// Room for x − M and q of the next sample of component `k`.
    #[inline(always)]
    pub(super) fn next(&mut self, k: usize) -> (&mut [T], &mut [T]) {
        let row = k * self.room + self.gathered[k].waiting;
        let (x, q) = self.rows[row * self.left..(row + 1) * self.left].split_at_mut(self.core_at);
        (&mut x[..self.size], &mut q[..self.core_len])
    }

    /// Adds the sample that was written there, as [`add`](Self::add) does. γ counts for what the posterior variance adds where every
    /// cell was observed.
    #[inline(always)]
    pub(super) fn push<S: Simd>(&mut self, simd: S, k: usize, (gamma, a): (f64, f64)) -> bool {
        let (core_len, left, right) = (self.core_len, self.left, self.right);
        let of = &mut self.gathered[k];
        let row = k * self.room + of.waiting;
        of.waiting += 1;
        of.samples += 1;
        of.weight += gamma;
        of.scale += a;
        let q = &self.rows[row * left + self.core_at..][..core_len];
        let factors = &mut self.factors[row * right..(row + 1) * right];
        let a = T::from_f64(a);
        for j in 0..core_len {
            factors[j] = q[j] * a;
        }
        factors[core_len] = a;
        let due = of.samples >= PATIENCE;
        if of.waiting == self.room {
            self.multiply(simd, k);
        }
        due
    }

    #[inline(always)]
    fn multiply<S: Simd>(&mut self, simd: S, k: usize) {
        let waiting = std::mem::take(&mut self.gathered[k].waiting);
        let (left, right) = (self.left, self.right);
        simd.vectorize(Multiply {
            rows: &self.rows[k * self.room * left..][..waiting * left],
            factors: &self.factors[k * self.room * right..][..waiting * right],
            sums: &mut self.sums[k * right * left..(k + 1) * right * left],
            left,
            right,
        });
    }

    /// Whether anything was added for component `k` since its sums were last moved.
    pub(super) fn is_pending(&self, k: usize) -> bool {
        self.gathered[k].samples > 0
    }

    /// Moves what was added for component `k` to its sums in double precision.
    #[inline(always)]
    pub(super) fn flush<S: Simd>(&mut self, simd: S, plan: &Plan<T>, k: usize, to: &mut ComponentSums) {
        self.multiply(simd, k);
        // A function of its own: it is seldom called, and from several places.
        simd.vectorize(Move { joint: self, plan, k, to });
    }

    #[inline(always)]
    fn move_sums(&mut self, plan: &Plan<T>, k: usize, to: &mut ComponentSums) {
        let Gathered { weight, scale, .. } = std::mem::take(&mut self.gathered[k]);
        let component = &plan.components[k];
        let (size, core_len, left) = (self.size, self.core_len, self.left);
        let sums = &mut self.sums[k * self.right * left..(k + 1) * self.right * left];
        let ComponentSums { squares, shift, core, loadings: LoadingSums::All { cross, gram }, .. } = to
        else {
            unreachable!("the sums of a pass that updates every mode")
        };
        let (sums, last) = sums.split_at_mut(core_len * left);
        // The samples were centred with the rounded mean: what it lacks comes off here.
        let lacking = &component.lacking[..size];
        let (mut along, mut square) = (0.0, 0.0);
        for i in 0..size {
            let m = last[i].to_f64();
            shift[i] += m - scale * lacking[i];
            along += lacking[i] * m;
            square += lacking[i] * lacking[i];
        }
        *squares += scale * square - 2.0 * along;
        for (j, sums) in sums.chunks_exact(left).enumerate() {
            let b = last[self.core_at + j].to_f64();
            core[j] += b;
            let to = &mut cross.as_mut_slice()[j * size..(j + 1) * size];
            for i in 0..size {
                to[i] += sums[i].to_f64() - b * lacking[i];
            }
            for l in 0..core_len {
                gram[(j, l)] += sums[self.core_at + l].to_f64();
            }
            gram[(j, j)] += weight * component.posterior_variance[j];
        }
        sums.fill(T::from_f64(0.0));
        last.fill(T::from_f64(0.0));
    }
}

struct Move<'a, T> {
    joint: &'a mut Joint<T>,
    plan: &'a Plan<T>,
    k: usize,
    to: &'a mut ComponentSums,
}

impl<T: Real> WithSimd for Move<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.joint.move_sums(self.plan, self.k, self.to);
    }
}

/// sums[j][lane] += Σ over rows of factors[row][j] · rows[row][lane].
struct Multiply<'a, T> {
    rows: &'a [T],
    factors: &'a [T],
    sums: &'a mut [T],
    left: usize,
    right: usize,
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let vectors = self.left * size_of::<T>() / size_of::<T::Vector<S>>();
        // With 16 registers a third vector would send the sums of four columns to memory.
        let sizes = if has_many_registers::<S>() { [3, 2] } else { [2, 2] };
        for (v, width) in greedily(vectors, sizes) {
            for (j, height) in evenly(self.right, TILE_COLUMNS) {
                tile!(S: width, [3 2 1] or [2 1] x height, [1 2 3 4], self.tile[_](simd, v, j));
            }
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    #[inline(always)]
    fn tile<const V: usize, const J: usize, S: Simd>(&mut self, simd: S, v: usize, j0: usize) {
        let vectors = self.left * size_of::<T>() / size_of::<T::Vector<S>>();
        let (rows, sums) = (T::vectors::<S>(self.rows), T::vectors_mut::<S>(self.sums));
        let mut sum = [[T::splat(simd, T::from_f64(0.0)); V]; J];
        for j in 0..J {
            let at = (j0 + j) * vectors + v;
            sum[j].copy_from_slice(&sums[at..at + V]);
        }
        for (row, factors) in rows.chunks_exact(vectors).zip(self.factors.chunks_exact(self.right)) {
            let (row, factors) = (&row[v..v + V], &factors[j0..j0 + J]);
            for j in 0..J {
                let factor = T::splat(simd, factors[j]);
                for i in 0..V {
                    sum[j][i] = T::mul_add(simd, row[i], factor, sum[j][i]);
                }
            }
        }
        for j in 0..J {
            let at = (j0 + j) * vectors + v;
            sums[at..at + V].copy_from_slice(&sum[j]);
        }
    }
}
