//! The nearest of many features: bounded by products of blocks in single precision, decided by differences in double.
//!
//! A product of two blocks of features gives every squared distance at once,
//!
//! ```text
//! ‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩
//! ```
//!
//! and with a bound of its rounding subtracted it is a distance no pair can fall below. Whatever might still be among
//! the nearest is computed again, difference by difference. So the result is that of the plain formula, to the bit.

use std::cmp::Ordering;
use std::ops::Range;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{Distance, Features};
use crate::pass::contract::contract_mode;
use crate::pass::simd::{Path, Real};

/// Probes per block: four of the widest vectors.
const LANES: usize = 4 * <f32 as Real>::LANES;

/// Features of the gallery per block: with the bounds of a block of probes they stay in the second-level cache.
const COLUMNS: usize = 128;

/// For more neighbours than this all distances are computed: the bounds would exclude little.
pub(super) const MANY: usize = 100;

/// Half the distance from 1 to the next number in single precision.
const UNIT: f32 = f32::EPSILON / 2.0;

/// Below this the squares of single precision have lost their digits.
const TINY: f32 = 1e-36;

/// A gallery made ready for products.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// Subtracted from all features: what is far from the origin would lose its digits to ‖a‖² + ‖b‖².
    centre: Vec<f64>,
    /// A power of two that brings the gallery near 1, within the range of single precision.
    scale: f64,
    blocks: Vec<Block>,
}

/// Up to [`COLUMNS`] features of the gallery in single precision.
#[derive(Debug, Clone)]
struct Block {
    range: Range<usize>,
    /// `[part][element][column]`.
    features: Vec<f32>,
    /// (1 − c)·‖b‖² of each part, `[part][column]`, where c bounds the rounding.
    norms: Vec<f32>,
    /// γ, `[part][column]`.
    gamma: Vec<f32>,
}

/// The nearest so far, nearest first, as (distance, index).
pub(super) type Nearest = Vec<(f64, usize)>;

impl Index {
    pub(super) fn new(gallery: &Features, distance: Distance) -> Self {
        let len = gallery.parts * gallery.part_len;
        let mut centre = vec![0.0; len];
        if distance != Distance::Fisher {
            for row in gallery.cores.chunks_exact(len) {
                centre.iter_mut().zip(row).for_each(|(c, x)| *c += x / gallery.n as f64);
            }
        }
        let furthest = gallery
            .cores
            .chunks_exact(len)
            .flat_map(|row| row.iter().zip(&centre).map(|(x, c)| (x - c).abs()))
            .fold(0.0, f64::max);
        // Beyond this range the squares of double precision vanish or overflow as well, and the plain formula says
        // something else than the true distance: without a scale, the features leave no bound at all.
        let scale = if distance != Distance::Fisher && (1e-100..=1e100).contains(&furthest) {
            (-furthest.log2().ceil()).exp2()
        } else {
            1.0
        };
        let mut index = Self { centre, scale, blocks: Vec::new() };
        for first in (0..gallery.n).step_by(COLUMNS) {
            let range = first..(first + COLUMNS).min(gallery.n);
            let (features, norms, gamma) = index.pack(gallery, range.clone(), range.len());
            index.blocks.push(Block { range, features, norms, gamma });
        }
        index
    }

    /// The features of `range` in single precision with the samples innermost, `width` of them: features, shrunken
    /// norms and γ of each part.
    fn pack(&self, of: &Features, range: Range<usize>, width: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let len = of.parts * of.part_len;
        let mut features = vec![0f32; len * width];
        let mut norms = vec![0f32; of.parts * width];
        let mut gamma = vec![0f32; of.parts * width];
        let shrunken = 1.0 - f64::from(rounding(of.part_len));
        for (at, n) in range.enumerate() {
            let row = of.row(n);
            for part in 0..of.parts {
                let mut norm = 0.0;
                for i in part * of.part_len..(part + 1) * of.part_len {
                    let x = ((row[i] - self.centre[i]) * self.scale) as f32;
                    features[i * width + at] = x;
                    norm += f64::from(x) * f64::from(x);
                }
                // NaN where the products could leave the range of single precision: a bound that excludes nothing.
                norms[part * width + at] = if norm < 1e30 { (shrunken * norm) as f32 } else { f32::NAN };
                gamma[part * width + at] = of.gamma[n * of.parts + part] as f32;
            }
        }
        (features, norms, gamma)
    }

    /// The `count` nearest of the gallery for every probe, nearest first, ties in the order of the gallery. `exact` is
    /// the distance of a probe to a feature of the gallery.
    pub(super) fn nearest(
        &self,
        probes: &Features,
        distance: Distance,
        count: usize,
        path: Path,
        exact: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Vec<Nearest> {
        if count > MANY {
            let size = self.blocks.last().map_or(0, |block| block.range.end);
            return (0..probes.n).into_par_iter().map(|n| selected(count, size, |m| exact(n, m))).collect();
        }
        let blocks: Vec<Range<usize>> =
            (0..probes.n).step_by(LANES).map(|n| n..(n + LANES).min(probes.n)).collect();
        let found: Vec<Vec<Nearest>> = blocks
            .into_par_iter()
            .map_init(
                || Scratch::new(COLUMNS.min(self.blocks[0].range.len())),
                |scratch, range| self.nearest_of(probes, range, distance, count, path, scratch, &exact),
            )
            .collect();
        found.into_iter().flatten().collect()
    }

    fn nearest_of(
        &self,
        probes: &Features,
        range: Range<usize>,
        distance: Distance,
        count: usize,
        path: Path,
        scratch: &mut Scratch,
        exact: &impl Fn(usize, usize) -> f64,
    ) -> Vec<Nearest> {
        let packed = self.pack(probes, range.clone(), LANES);
        let mut found: Vec<Nearest> = vec![Vec::with_capacity(count + 1); range.len()];
        // Lanes without a probe exclude everything.
        scratch.limits =
            std::array::from_fn(|l| if l < range.len() { f32::INFINITY } else { f32::NEG_INFINITY });
        for block in &self.blocks {
            let columns = block.range.len();
            path.run(Bounds {
                block,
                probes: (&packed.0, &packed.1, &packed.2),
                sides: (probes.parts, probes.part_len, columns),
                distance,
                scratch,
            });
            let Scratch { bounds, limits, least, least_at, columns, .. } = &mut *scratch;
            let mut consider = |lane: usize, j: usize, limit: &mut f32| {
                let nearest = &mut found[lane];
                let m = block.range.start + j;
                insert(nearest, count, (exact(range.start + lane, m), m));
                *limit = self.limit(nearest, count, distance);
            };
            // The most promising first: after it, few others are still worth the exact distance.
            for lane in 0..range.len() {
                if least_at[lane] != u32::MAX && least[lane] <= limits[lane] {
                    consider(lane, least_at[lane] as usize, &mut limits[lane]);
                } else {
                    least_at[lane] = u32::MAX;
                }
            }
            for &j in columns.iter() {
                for lane in 0..range.len() {
                    // NaN is no bound: it must not exclude.
                    let excluded = bounds[j as usize * LANES + lane] > limits[lane];
                    if !excluded && least_at[lane] != j {
                        consider(lane, j as usize, &mut limits[lane]);
                    }
                }
            }
        }
        found
    }

    /// A bound above this cannot belong to one of the nearest.
    fn limit(&self, nearest: &Nearest, count: usize, distance: Distance) -> f32 {
        match nearest.last() {
            Some((worst, _)) if nearest.len() == count => {
                let scale = if distance == Distance::Fisher { 1.0 } else { self.scale };
                // Rounded up; NaN, which no plain formula orders either, excludes nothing.
                ((worst * scale * (1.0 + 1e-6)) as f32) + f32::MIN_POSITIVE
            }
            _ => f32::INFINITY,
        }
    }
}

/// The `count` smallest of all distances.
fn selected(count: usize, size: usize, exact: impl Fn(usize) -> f64) -> Nearest {
    let mut all: Nearest = (0..size).map(|m| (exact(m), m)).collect();
    if count < size {
        all.select_nth_unstable_by(count - 1, order);
        all.truncate(count);
    }
    all.sort_unstable_by(order);
    all
}

/// By distance, then by place: a tie has one answer.
fn order(a: &(f64, usize), b: &(f64, usize)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Keeps the `count` smallest.
fn insert(nearest: &mut Nearest, count: usize, new: (f64, usize)) {
    let at = nearest.partition_point(|old| order(old, &new).is_lt());
    if at < count {
        nearest.insert(at, new);
        nearest.truncate(count);
    }
}

/// c: |computed − exact| ≤ c·(‖a‖² + ‖b‖²) for a squared distance from products of vectors of this length. The product
/// contributes its length in units, the rounded features and norms a few more; the rest is room.
fn rounding(len: usize) -> f32 {
    (2.0 * len as f32 + 32.0) * UNIT
}

/// What a thread works with.
struct Scratch {
    /// ⟨a, b⟩ of one part, `[column][lane]`.
    products: Vec<f32>,
    /// The distance no pair falls below, `[column][lane]`.
    bounds: Vec<f32>,
    /// Σ γ_a γ_b, and the smallest part.
    weights: Vec<f32>,
    smallest: Vec<f32>,
    /// What a bound must not exceed, per lane.
    limits: [f32; LANES],
    /// The smallest bound of the block and its column, per lane.
    least: [f32; LANES],
    least_at: [u32; LANES],
    /// The columns of the block that no limit excludes in all lanes.
    columns: Vec<u32>,
}

impl Scratch {
    fn new(columns: usize) -> Self {
        let zeros = || vec![0f32; columns * LANES];
        Self {
            products: zeros(),
            bounds: zeros(),
            weights: zeros(),
            smallest: zeros(),
            limits: [f32::INFINITY; LANES],
            least: [f32::INFINITY; LANES],
            least_at: [u32::MAX; LANES],
            columns: Vec::new(),
        }
    }
}

struct Bounds<'a> {
    block: &'a Block,
    /// Features, norms and γ of the probes, lanes innermost.
    probes: (&'a [f32], &'a [f32], &'a [f32]),
    /// Parts, elements of a part, columns.
    sides: (usize, usize, usize),
    distance: Distance,
    scratch: &'a mut Scratch,
}

impl WithSimd for Bounds<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { block, probes: (features, norms, gamma), sides, distance, scratch } = self;
        let (parts, len, columns) = sides;
        let used = columns * LANES;
        let Scratch { products, bounds, weights, smallest, limits, least, least_at, columns: open } = scratch;
        let (products, bounds) = (&mut products[..used], &mut bounds[..used]);
        let (weights, smallest) = (&mut weights[..used], &mut smallest[..used]);
        bounds.fill(0.0);
        weights.fill(0.0);
        smallest.fill(f32::INFINITY);
        for part in 0..parts {
            let a = &features[part * len * LANES..(part + 1) * len * LANES];
            let b = &block.features[part * len * columns..(part + 1) * len * columns];
            contract_mode(simd, a, (1, len, 1), b, columns, LANES, products);
            let a_norms = &norms[part * LANES..(part + 1) * LANES];
            let a_gamma = &gamma[part * LANES..(part + 1) * LANES];
            for j in 0..columns {
                let b_norm = block.norms[part * columns + j];
                let b_gamma = block.gamma[part * columns + j];
                let at = j * LANES..(j + 1) * LANES;
                let (p, to) = (&products[at.clone()], &mut bounds[at.clone()]);
                match distance {
                    Distance::Fisher => {
                        // Unit vectors: the rounding is that of their squares.
                        let room = 2.0 * rounding(len);
                        for lane in 0..LANES {
                            to[lane] = 1.0 - p[lane] - room;
                        }
                    }
                    Distance::Paper => {
                        for lane in 0..LANES {
                            to[lane] += apart(a_norms[lane], b_norm, p[lane]);
                        }
                    }
                    Distance::Weighted => {
                        let (w, s) = (&mut weights[at.clone()], &mut smallest[at]);
                        for lane in 0..LANES {
                            let d = apart(a_norms[lane], b_norm, p[lane]);
                            let weight = a_gamma[lane] * b_gamma;
                            to[lane] += weight * d;
                            w[lane] += weight;
                            // NaN must stay.
                            s[lane] = if d >= s[lane] || s[lane].is_nan() { s[lane] } else { d };
                        }
                    }
                }
            }
        }
        // The rounding of the sum over the parts and of the weights.
        let less = 1.0 - (4.0 * parts as f32 + 32.0) * UNIT;
        match distance {
            Distance::Fisher => {}
            Distance::Paper => bounds.iter_mut().for_each(|d| *d *= less),
            Distance::Weighted => {
                for ((d, w), s) in bounds.iter_mut().zip(weights).zip(smallest) {
                    // Weights too small for single precision: no weighted mean is below its smallest term.
                    *d = less * if *w > 1e-30 { *d / *w } else { *s };
                }
            }
        }
        *least = [f32::INFINITY; LANES];
        *least_at = [u32::MAX; LANES];
        open.clear();
        for (j, row) in bounds.chunks_exact(LANES).enumerate() {
            let mut excluded = true;
            for lane in 0..LANES {
                let smaller = row[lane] < least[lane];
                least[lane] = if smaller { row[lane] } else { least[lane] };
                least_at[lane] = if smaller { j as u32 } else { least_at[lane] };
                excluded &= row[lane] > limits[lane];
            }
            if !excluded {
                open.push(j as u32);
            }
        }
    }
}

/// What ‖a − b‖ is at least. NaN where the norms are.
#[inline(always)]
fn apart(a_norm: f32, b_norm: f32, product: f32) -> f32 {
    let square = a_norm + b_norm - 2.0 * product - TINY;
    // Not `max`, which would turn NaN into 0: in a sum over the parts only NaN excludes nothing.
    let square = if square < 0.0 { 0.0 } else { square };
    square.sqrt()
}
