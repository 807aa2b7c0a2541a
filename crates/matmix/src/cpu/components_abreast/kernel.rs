//! The kernels of a stack: components lie side by side in the lanes, samples come one after the other.
//!
//! ```text
//! first step    out[row][lane] += x[row][i] · U[i][lane]              row: all indices but the contracted one
//! later steps   out[o][j][m][lane] += z[o][i][m][lane] · U[i][j][lane]
//! ```
//!
//! Samples are read where they lie, along or across their rows, one number at a time that is spread to all lanes: no sample
//! has to be transposed for it.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::super::load::Fetch;
use super::super::plan::Step;
use crate::simd::tiles::{evenly, filling, greedily, tile};
use crate::simd::{Real, has_many_registers};

/// Vectors of lanes per tile of the first step, and its two numbers of rows. 16 registers hold 6 × 2 sums, two vectors of loadings and a number that
/// is spread; with 4 × 2 sums more is loaded for each product, and 4 × 3 do not fit.
#[inline(always)]
fn first_tile<S: Simd>() -> (usize, [usize; 2]) {
    // Vectors of 32 bytes, where there are 16 registers: a unit of lanes is two.
    if has_many_registers::<S>() { (3, [TILE_ROWS, 4]) } else { (2, [6, 4]) }
}

/// Units of lanes whose loadings lie together, so that they do not crowd each other out of the cache.
pub(super) const GROUP: usize = 3;

/// The longest part of a mode that is contracted at a time, so that its loadings stay in the first-level cache.
const PIECE: usize = 128;

/// Columns, samples and means per tile of the others.
const TILE: usize = 4;

/// How far sums are added up in the working precision: elements.
pub(super) const RUN: usize = 1024;

/// Machine vectors of a unit of 64 bytes.
#[inline(always)]
fn vectors_of_unit<T: Real, S: Simd>() -> usize {
    T::LANES * size_of::<T>() / size_of::<T::Vector<S>>()
}

/// Machine vectors of `units`.
#[inline(always)]
fn vectors<T: Real, S: Simd>(units: &Range<usize>) -> Range<usize> {
    let per_unit = vectors_of_unit::<T, S>();
    units.start * per_unit..units.end * per_unit
}

/// Lanes in machine vectors.
#[inline(always)]
fn count<T: Real, S: Simd>(lanes: usize) -> usize {
    lanes * size_of::<T>() / size_of::<T::Vector<S>>()
}

/// Samples and the first step of their contraction.
pub(super) struct First<'a, 'f, T> {
    /// `[sample][element]`, a sample every `stride`.
    pub(super) x: &'a [T],
    pub(super) samples: Range<usize>,
    pub(super) stride: usize,
    pub(super) step: Step,
    /// `[group][i][lane of the group]`.
    pub(super) loading: &'a [T],
    /// What a contraction begins with, `[row][lane]`.
    pub(super) start: &'a [T],
    pub(super) width: usize,
    /// Which lanes, in units of 64 bytes.
    pub(super) units: Range<usize>,
    /// `[sample][row][lane]`.
    pub(super) out: &'a mut [T],
    /// What is fetched into cache on the way, and how many lines of it per tile: more than a few at a time would wait
    /// for each other.
    pub(super) fetch: Option<&'a mut Fetch<'f>>,
    pub(super) lines: usize,
}

/// The largest number of rows of a tile.
pub(super) const TILE_ROWS: usize = 8;

impl<T: Real> WithSimd for First<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let pieces = self.step.n.div_ceil(PIECE);
        let units = self.units.clone();
        for first in (0..self.width / T::LANES).step_by(GROUP) {
            let group = first..(first + GROUP).min(self.width / T::LANES);
            let wanted = units.start.max(group.start)..units.end.min(group.end);
            if wanted.is_empty() {
                continue;
            }
            let Range { start, end } = vectors::<T, S>(&wanted);
            for piece in 0..pieces {
                let along = self.step.n * piece / pieces..self.step.n * (piece + 1) / pieces;
                for (v, width) in evenly(end - start, first_tile::<S>().0) {
                    let part = Part {
                        v: start + v,
                        width,
                        group: vectors::<T, S>(&group),
                        along: along.clone(),
                        first: piece == 0,
                    };
                    self.all_rows(simd, &part);
                }
            }
        }
    }
}

/// Which lanes of a contraction, and which part of the mode.
struct Part {
    /// The first vector of lanes, and how many.
    v: usize,
    width: usize,
    /// The vectors whose loadings lie together.
    group: Range<usize>,
    along: Range<usize>,
    /// Whether it is the first part of the mode: the others go on from what is there.
    first: bool,
}

impl<T: Real> First<'_, '_, T> {
    #[inline(always)]
    fn all_rows<S: Simd>(&mut self, simd: S, part: &Part) {
        let Step { before, n, after, .. } = self.step;
        let rows = before * after;
        let (_, sizes) = first_tile::<S>();
        if after == 1 {
            // Rows follow one another, from sample to sample.
            let first = self.samples.start * rows;
            for (row, height) in filling(self.samples.len() * rows, sizes) {
                tile!(S: height, [8 4 1] or [6 4 1] x part.width, [1 2 3] or [2], self.along[_](simd, first + row, part));
            }
            return;
        }
        let tiles = filling(after, sizes);
        for sample in self.samples.clone() {
            for o in 0..before {
                for (m, height) in tiles.clone() {
                    let at = (sample * self.stride + o * n * after, m);
                    let to = (sample * rows + o * after + m, o * after + m);
                    tile!(S: height, [8 4 1] or [6 4 1] x part.width, [1 2 3] or [2], self.across[_](simd, at, to, part));
                }
            }
        }
    }

    /// M rows whose numbers lie next to each other; `first` counts the rows of all samples.
    #[inline(always)]
    fn along<const M: usize, const V: usize, S: Simd>(&mut self, simd: S, first: usize, part: &Part) {
        let (n, rows, length) = (self.step.n, self.step.before, part.along.len());
        let mut starts = [0; M];
        let mut places = [0; M];
        // One division per tile; the rows of the next sample begin where those of this one end.
        let (mut row, mut at) = (first % rows, first / rows * self.stride + part.along.start);
        for m in 0..M {
            (starts[m], places[m]) = (row, at + row * n);
            row += 1;
            if row == rows {
                (row, at) = (0, at + self.stride);
            }
        }
        let mut sum = self.begin::<M, V, S>(simd, starts, first, part);
        let data = self.x;
        let mut x = [&data[..length]; M];
        for m in 0..M {
            x[m] = &data[places[m]..places[m] + length];
        }
        for (i, u) in self.loading::<S>(part).enumerate() {
            let u = &u[..V];
            for m in 0..M {
                let factor = T::splat(simd, x[m][i]);
                for j in 0..V {
                    sum[m][j] = T::mul_add(simd, factor, u[j], sum[m][j]);
                }
            }
        }
        self.end::<M, V, S>(&sum, first, part.v);
    }

    /// M rows of which the same numbers lie next to each other, from `m` on in the slab at `at`; where they go, and where their
    /// start is.
    #[inline(always)]
    fn across<const M: usize, const V: usize, S: Simd>(
        &mut self,
        simd: S,
        (at, m): (usize, usize),
        (to, start): (usize, usize),
        part: &Part,
    ) {
        let after = self.step.after;
        let mut starts = [start; M];
        for m in 0..M {
            starts[m] += m;
        }
        let mut sum = self.begin::<M, V, S>(simd, starts, to, part);
        let x = &self.x[at + part.along.start * after..at + part.along.end * after];
        for (u, x) in self.loading::<S>(part).zip(x.chunks_exact(after)) {
            let (u, x) = (&u[..V], &x[m..m + M]);
            for m in 0..M {
                let factor = T::splat(simd, x[m]);
                for j in 0..V {
                    sum[m][j] = T::mul_add(simd, factor, u[j], sum[m][j]);
                }
            }
        }
        self.end::<M, V, S>(&sum, to, part.v);
    }

    /// The loadings of a part, row by row, from its first vector on.
    #[inline(always)]
    fn loading<S: Simd>(&self, part: &Part) -> impl Iterator<Item = &[T::Vector<S>]> {
        let (stride, before) = (part.group.len(), part.v - part.group.start);
        let at = part.group.start * self.step.n + part.along.start * stride;
        let rows = &T::vectors::<S>(self.loading)[at..at + part.along.len() * stride];
        rows.chunks_exact(stride).map(move |row| &row[before..])
    }

    /// The sums of a tile: from their start, or from what is there already.
    #[inline(always)]
    fn begin<const M: usize, const V: usize, S: Simd>(
        &mut self,
        simd: S,
        starts: [usize; M],
        first: usize,
        part: &Part,
    ) -> [[T::Vector<S>; V]; M] {
        let vectors = count::<T, S>(self.width);
        if let Some(fetch) = &mut self.fetch {
            fetch.advance(self.lines);
        }
        let mut sum = [[T::splat(simd, T::from_f64(0.0)); V]; M];
        // The choice is made before anything is in a register.
        let from = T::vectors::<S>(if part.first { self.start } else { self.out });
        for m in 0..M {
            let row = if part.first { starts[m] } else { first + m };
            let at = row * vectors + part.v;
            sum[m].copy_from_slice(&from[at..at + V]);
        }
        sum
    }

    #[inline(always)]
    fn end<const M: usize, const V: usize, S: Simd>(
        &mut self,
        sum: &[[T::Vector<S>; V]; M],
        first: usize,
        v: usize,
    ) {
        let vectors = count::<T, S>(self.width);
        let out = T::vectors_mut::<S>(self.out);
        for m in 0..M {
            let at = (first + m) * vectors + v;
            out[at..at + V].copy_from_slice(&sum[m]);
        }
    }
}

/// A further step.
pub(super) struct Later<'a, T> {
    /// `[sample][o][i][m][lane]`.
    pub(super) z: &'a [T],
    pub(super) samples: Range<usize>,
    /// Its sides count rows: the first mode is in the lanes.
    pub(super) step: Step,
    /// `[unit of lanes][i][j][lane of the unit]`.
    pub(super) loading: &'a [T],
    pub(super) width: usize,
    pub(super) units: Range<usize>,
    /// `[sample][o][j][m][lane]`.
    pub(super) out: &'a mut [T],
}

/// Vectors of lanes per tile of one fibre, where a unit has as many: the sums of four columns would wait for each other.
const PAIR: usize = 2;

impl<T: Real> WithSimd for Later<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Step { before, after, cols, .. } = self.step;
        let fibres = before * after;
        let first = self.samples.start * fibres;
        let sizes = if has_many_registers::<S>() { [4, 2] } else { [2, 2] };
        for unit in self.units.clone() {
            for (fibre, together) in greedily(self.samples.len() * fibres, sizes) {
                let step = if together == 1 { PAIR } else { 1 };
                for v in (0..vectors_of_unit::<T, S>()).step_by(step) {
                    for (j, width) in evenly(cols, TILE) {
                        tile!(S: together, [4 2 1] or [2 1] x width, [1 2 3 4], self.tile[_](simd, first + fibre, j, (unit, v)));
                    }
                }
            }
        }
    }
}

impl<T: Real> Later<'_, T> {
    /// F fibres, which count those of all samples, and J columns of one vector of a unit of lanes; of one fibre, a pair of vectors.
    #[inline(always)]
    fn tile<const F: usize, const J: usize, S: Simd>(
        &mut self,
        simd: S,
        first: usize,
        j0: usize,
        (unit, v): (usize, usize),
    ) {
        let Step { before, n, after, cols, .. } = self.step;
        let vectors = count::<T, S>(self.width);
        let of_unit = vectors_of_unit::<T, S>();
        // Known when a tile is compiled.
        let pair = if F == 1 { PAIR.min(of_unit) } else { 1 };
        let (z, u) = (T::vectors::<S>(self.z), T::vectors::<S>(self.loading));
        let zero = T::splat(simd, T::from_f64(0.0));
        let mut sum = [[[zero; J]; PAIR]; F];
        let stride = after * vectors;
        let length = (n - 1) * stride + pair;
        let mut from = [&z[..0]; F];
        let mut to = [0; F];
        for f in 0..F {
            let (o, m) = ((first + f) / after, (first + f) % after);
            // `o` counts the samples, too.
            debug_assert!(o / before < self.samples.end);
            let lane = unit * of_unit + v;
            let at = (o * n * after + m) * vectors + lane;
            from[f] = &z[at..at + length];
            to[f] = (o * cols * after + m) * vectors + lane;
        }
        let u = &u[unit * n * cols * of_unit..(unit + 1) * n * cols * of_unit];
        for (i, u) in u.chunks_exact(cols * of_unit).enumerate() {
            let u = &u[j0 * of_unit + v..][..(J - 1) * of_unit + pair];
            for f in 0..F {
                let z = &from[f][i * stride..i * stride + pair];
                for w in 0..pair {
                    for j in 0..J {
                        sum[f][w][j] = T::mul_add(simd, z[w], u[j * of_unit + w], sum[f][w][j]);
                    }
                }
            }
        }
        let out = T::vectors_mut::<S>(self.out);
        for f in 0..F {
            for j in 0..J {
                let at = to[f] + (j0 + j) * stride;
                for w in 0..pair {
                    out[at + w] = sum[f][w][j];
                }
            }
        }
    }
}

/// Inner products of samples with means.
pub(super) struct Dots<'a, T> {
    /// `[sample][element]` and `[component][element]`, both every `stride`, which is whole vectors.
    pub(super) x: &'a [T],
    pub(super) samples: Range<usize>,
    pub(super) means: &'a [T],
    pub(super) stride: usize,
    /// Which components.
    pub(super) components: &'a [usize],
    /// `[slot][sample]`, where a slot is a place among the components.
    pub(super) out: &'a mut [f64],
    pub(super) out_stride: usize,
}

impl<T: Real> WithSimd for Dots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let together = if has_many_registers::<S>() { 4 } else { 2 };
        let first = self.samples.start;
        for (sample, height) in greedily(self.samples.len(), [together]) {
            for (slot, width) in evenly(self.components.len(), TILE) {
                tile!(S: height, [4 2 1] or [2 1] x width, [1 2 3 4], self.tile[_](simd, first + sample, slot));
            }
        }
    }
}

impl<T: Real> Dots<'_, T> {
    #[inline(always)]
    fn tile<const A: usize, const B: usize, S: Simd>(&mut self, simd: S, sample: usize, slot: usize) {
        let zero = T::splat(simd, T::from_f64(0.0));
        let (stride, run) = (count::<T, S>(self.stride), count::<T, S>(RUN));
        let (x, means) = (T::vectors::<S>(self.x), T::vectors::<S>(self.means));
        for from in (0..stride).step_by(run) {
            let length = run.min(stride - from);
            let mut a = [&x[..0]; A];
            let mut b = [&x[..0]; B];
            for s in 0..A {
                let at = (sample + s) * stride + from;
                a[s] = &x[at..at + length];
            }
            for k in 0..B {
                let at = self.components[slot + k] * stride + from;
                b[k] = &means[at..at + length];
            }
            let mut sum = [[zero; B]; A];
            for i in 0..length {
                for k in 0..B {
                    let mean = b[k][i];
                    for s in 0..A {
                        sum[s][k] = T::mul_add(simd, mean, a[s][i], sum[s][k]);
                    }
                }
            }
            for s in 0..A {
                for k in 0..B {
                    self.out[(slot + k) * self.out_stride + sample + s] += T::sum(simd, sum[s][k]).to_f64();
                }
            }
        }
    }
}
