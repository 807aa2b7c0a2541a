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

use super::{Distance, Features};
use crate::cpu::{Cpu, MATCHED, MatchBlock, MatchBounds, MatchScratch, match_rounding};
use crate::parallel;

/// Features of the gallery per block: with the bounds of a block of probes they stay in the second-level cache.
const COLUMNS: usize = 128;

/// For more neighbours than this all distances are computed: the bounds would exclude little.
pub(super) const MANY: usize = 100;

/// A gallery made ready for products.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// Subtracted from all features: what is far from the origin would lose its digits to ‖a‖² + ‖b‖².
    centre: Vec<f64>,
    /// A power of two that brings the gallery near 1, within the range of single precision.
    scale: f64,
    blocks: Vec<(Range<usize>, MatchBlock)>,
}

/// The nearest so far, nearest first, as (distance, index).
pub(super) type Nearest = Vec<(f64, usize)>;

impl Index {
    pub(super) fn new(gallery: &Features, distance: Distance) -> Self {
        let len = gallery.components * gallery.core_len;
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
            index.blocks.push((range, MatchBlock { features, norms, gamma }));
        }
        index
    }

    /// The features of `range` in single precision with the samples innermost, `width` of them: features, shrunken
    /// norms and γ of each component.
    fn pack(&self, of: &Features, range: Range<usize>, width: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let len = of.components * of.core_len;
        let mut features = vec![0f32; len * width];
        let mut norms = vec![0f32; of.components * width];
        let mut gamma = vec![0f32; of.components * width];
        let shrunken = 1.0 - f64::from(match_rounding(of.core_len));
        for (at, n) in range.enumerate() {
            let row = of.row(n);
            for k in 0..of.components {
                let mut norm = 0.0;
                for i in k * of.core_len..(k + 1) * of.core_len {
                    let x = ((row[i] - self.centre[i]) * self.scale) as f32;
                    features[i * width + at] = x;
                    norm += f64::from(x) * f64::from(x);
                }
                // NaN where the products could leave the range of single precision: a bound that excludes nothing.
                norms[k * width + at] = if norm < 1e30 { (shrunken * norm) as f32 } else { f32::NAN };
                gamma[k * width + at] = of.gamma[n * of.components + k] as f32;
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
        cpu: Cpu,
        exact: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Vec<Nearest> {
        let size = self.blocks.last().map_or(0, |(range, _)| range.end);
        if count > MANY || !cpu.can_match() {
            return parallel::map(probes.n, |n| selected(count, size, |m| exact(n, m)));
        }
        let found = parallel::map(probes.n.div_ceil(MATCHED), |block| {
            let range = block * MATCHED..((block + 1) * MATCHED).min(probes.n);
            self.nearest_of(probes, range, distance, count, cpu, &exact)
        });
        found.into_iter().flatten().collect()
    }

    fn nearest_of(
        &self,
        probes: &Features,
        range: Range<usize>,
        distance: Distance,
        count: usize,
        cpu: Cpu,
        exact: &impl Fn(usize, usize) -> f64,
    ) -> Vec<Nearest> {
        let scratch = &mut MatchScratch::new(COLUMNS.min(self.blocks[0].0.len()));
        let packed = self.pack(probes, range.clone(), MATCHED);
        let mut found: Vec<Nearest> = vec![Vec::with_capacity(count + 1); range.len()];
        // Lanes without a probe exclude everything.
        scratch.limits =
            std::array::from_fn(|l| if l < range.len() { f32::INFINITY } else { f32::NEG_INFINITY });
        for (of, block) in &self.blocks {
            cpu.match_bounds(MatchBounds {
                block,
                probes: (&packed.0, &packed.1, &packed.2),
                sides: (probes.components, probes.core_len, of.len()),
                weighted: distance == Distance::Weighted,
                cosine: distance == Distance::Fisher,
                scratch,
            });
            let MatchScratch { bounds, limits, least, least_at, columns, .. } = &mut *scratch;
            let mut consider = |probe: usize, j: usize, limit: &mut f32| {
                let nearest = &mut found[probe];
                let m = of.start + j;
                insert(nearest, count, (exact(range.start + probe, m), m));
                *limit = self.limit(nearest, count, distance);
            };
            // The most promising first: after it, few others are still worth the exact distance.
            for probe in 0..range.len() {
                if least_at[probe] != u32::MAX && least[probe] <= limits[probe] {
                    consider(probe, least_at[probe] as usize, &mut limits[probe]);
                } else {
                    least_at[probe] = u32::MAX;
                }
            }
            for &j in columns.iter() {
                for probe in 0..range.len() {
                    // NaN is no bound: it must not exclude.
                    let excluded = bounds[j as usize * MATCHED + probe] > limits[probe];
                    if !excluded && least_at[probe] != j {
                        consider(probe, j as usize, &mut limits[probe]);
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
