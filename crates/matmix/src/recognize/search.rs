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
type Nearest = Vec<(f64, usize)>;

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

/// Keeps the `count` smallest, by distance and then by place.
fn insert(nearest: &mut Nearest, count: usize, new: (f64, usize)) {
    let before = |old: &(f64, usize)| old.0.total_cmp(&new.0).then(old.1.cmp(&new.1)).is_lt();
    let at = nearest.partition_point(before);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::recognize::plain_distance;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    /// Features around a few centres; γ nearly one-hot.
    fn features(seed: u64, n: usize, parts: usize, part_len: usize, spread: f64, far: f64) -> Features {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut shared = ChaCha8Rng::seed_from_u64(77);
        let len = parts * part_len;
        let centres: Vec<f64> = (0..5 * len).map(|_| shared.sample::<f64, _>(StandardNormal)).collect();
        let (mut cores, mut gamma) = (Vec::new(), Vec::new());
        for i in 0..n {
            let centre = &centres[i % 5 * len..(i % 5 + 1) * len];
            cores.extend(centre.iter().map(|c| far + c + spread * rng.sample::<f64, _>(StandardNormal)));
            let logs: Vec<f64> = (0..parts).map(|_| -800.0 * rng.random::<f64>()).collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            gamma.extend(logs.iter().map(|l| (l - top).exp()));
        }
        Features { n, parts, part_len, cores, gamma }
    }

    /// All distances by the plain formula, sorted: the oracle.
    fn sorted(probes: &Features, gallery: &Features, distance: Distance, count: usize) -> Vec<Nearest> {
        (0..probes.n)
            .map(|n| {
                let mut all: Nearest =
                    (0..gallery.n).map(|m| (plain_distance(probes, n, gallery, m, distance), m)).collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                all.truncate(count);
                all
            })
            .collect()
    }

    fn check(probes: &Features, gallery: &Features, distance: Distance, name: &str) {
        let index = Index::new(gallery, distance);
        for count in [1, 3, gallery.n].into_iter().filter(|&c| c <= gallery.n) {
            let expected = sorted(probes, gallery, distance, count);
            for path in Path::available() {
                let exact = |n, m| plain_distance(probes, n, gallery, m, distance);
                let found = index.nearest(probes, distance, count, path, exact);
                // Bit by bit: squares that overflow make NaN of the plain formula, too.
                let bits = |of: &[Nearest]| -> Vec<(u64, usize)> {
                    of.iter().flatten().map(|(d, m)| (d.to_bits(), *m)).collect()
                };
                assert!(found.iter().all(|nearest| nearest.len() == count));
                assert_eq!(bits(&found), bits(&expected), "{name}, {distance:?}, {count} nearest, {path:?}");
            }
        }
    }

    fn unit(mut of: Features) -> Features {
        let len = of.parts * of.part_len;
        for row in of.cores.chunks_exact_mut(len) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.iter_mut().for_each(|x| *x /= norm);
        }
        Features { parts: 1, part_len: len, gamma: vec![1.0; of.n], ..of }
    }

    #[test]
    fn the_nearest_are_those_of_the_plain_formula() {
        // (gallery, probes, parts, elements of a part)
        for (n, m, parts, len) in
            [(1, 1, 1, 1), (7, 5, 3, 4), (300, 130, 4, 9), (129, 65, 1, 40), (200, 70, 10, 1)]
        {
            for (spread, far) in [(1.0, 0.0), (1e-4, 0.0), (1.0, 1e7), (1e-9, 1e3), (1e-12, 1.0)] {
                let gallery = features(1, n, parts, len, spread, far);
                let probes = features(2, m, parts, len, spread, far);
                let name = format!("{n} and {m} of {parts}×{len}, spread {spread}, at {far}");
                check(&probes, &gallery, Distance::Paper, &name);
                check(&probes, &gallery, Distance::Weighted, &name);
                check(&unit(probes), &unit(gallery), Distance::Fisher, &name);
            }
        }
    }

    #[test]
    fn duplicates_and_equal_distances_keep_the_order_of_the_gallery() {
        let mut gallery = features(3, 200, 2, 3, 1.0, 50.0);
        for n in [150, 20, 199] {
            gallery.cores.copy_within(7 * 6..8 * 6, n * 6);
            gallery.gamma.copy_within(7 * 2..8 * 2, n * 2);
        }
        for distance in [Distance::Paper, Distance::Weighted] {
            check(&gallery, &gallery, distance, "itself");
            let exact = |n, m| plain_distance(&gallery, n, &gallery, m, distance);
            let found = Index::new(&gallery, distance).nearest(&gallery, distance, 4, Path::best(), exact);
            let places: Vec<usize> = found[7].iter().map(|f| f.1).collect();
            assert_eq!(places, [7, 20, 150, 199]);
        }
        let same = Features { cores: vec![3.5; 200 * 6], ..gallery.clone() };
        check(&gallery, &same, Distance::Paper, "a gallery of equal features");
        check(&unit(gallery), &unit(same), Distance::Fisher, "a gallery of equal features");
    }

    /// The bounds do their work: the plain formula is left with a few pairs of many.
    #[test]
    fn few_pairs_need_the_exact_distance() {
        let (gallery, probes) = (features(6, 2000, 3, 8, 1.0, 100.0), features(7, 100, 3, 8, 1.0, 100.0));
        for distance in [Distance::Paper, Distance::Weighted, Distance::Fisher] {
            let of = |f: &Features| if distance == Distance::Fisher { unit(f.clone()) } else { f.clone() };
            let (gallery, probes) = (of(&gallery), of(&probes));
            let computed = AtomicUsize::new(0);
            let exact = |n, m| {
                computed.fetch_add(1, Relaxed);
                plain_distance(&probes, n, &gallery, m, distance)
            };
            Index::new(&gallery, distance).nearest(&probes, distance, 1, Path::best(), exact);
            let share = computed.into_inner() as f64 / (2000.0 * 100.0);
            assert!(share < 0.02, "{distance:?}: {share}");
        }
    }

    /// Two samples that hardly share a component are as far apart as they are in it, however small the weight.
    #[test]
    fn vanishing_weights_are_no_zero_distances() {
        let of = |cores: [f64; 2], gamma: [f64; 2]| Features {
            n: 1,
            parts: 2,
            part_len: 1,
            cores: cores.to_vec(),
            gamma: gamma.to_vec(),
        };
        let probe = of([0.3, 5.0], [1.0, 0.0]);
        for gamma in [1.0, 1e-90, 1e-110, 1e-200, 1e-310, 5e-324] {
            let known = of([0.0, 5.0], [gamma, 1.0]);
            let found = plain_distance(&probe, 0, &known, 0, Distance::Weighted);
            assert!((found - 0.3).abs() < 1e-15, "{gamma}: {found}");
        }
        let apart = of([0.0, 5.0], [0.0, 1.0]);
        assert_eq!(plain_distance(&probe, 0, &apart, 0, Distance::Weighted), f64::INFINITY);
    }

    #[test]
    fn numbers_beyond_single_precision_are_compared_in_double() {
        for size in [1e-300, 1e-160, 1e-42, 1e-20, 1e20, 1e42, 1e150, 1e300] {
            let scaled = |mut f: Features| {
                f.cores.iter_mut().for_each(|x| *x *= size);
                f
            };
            let gallery = features(4, 140, 2, 3, 0.1, 0.0);
            let probes = features(5, 70, 2, 3, 0.1, 0.0);
            for distance in [Distance::Paper, Distance::Weighted] {
                check(&scaled(probes.clone()), &scaled(gallery.clone()), distance, &format!("both {size}"));
                check(&scaled(probes.clone()), &gallery, distance, &format!("probes {size}"));
                check(&probes, &scaled(gallery.clone()), distance, &format!("gallery {size}"));
            }
        }
    }
}
