//! Where a fit begins.

use std::borrow::Cow;

use rand::seq::index::sample as distinct;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::low_rank::{Loadings, rough_loadings};
use super::passes;
use crate::data::Samples;
use crate::error::Result;
use crate::linalg::Matrix;
use crate::model::{Component, Mixture, power_of_four};
use crate::parallel;
use crate::pass::{DistancesPass, Engine, Moments};

/// How much k-means does for its clusters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Candidates for each next centre.
    pub(super) candidates: usize,
    /// Lloyd steps after k-means++.
    pub(super) lloyd_steps: usize,
}

impl Effort {
    /// A start, not a clustering: on digits (50 seeds) ten Lloyd steps lead to the same mean log-likelihood as one, and each
    /// costs a pass over the data. The candidates are worth 2 nats per sample after the fit.
    pub(super) fn for_start(components: usize) -> Self {
        Self { candidates: 2 + (components as f64).ln() as usize, lloyd_steps: 1 }
    }

    /// The squared distances of each sample that so many clusters take.
    pub(super) fn distances(self, clusters: usize) -> usize {
        1 + (clusters - 1) * self.candidates + (self.lloyd_steps + 1) * clusters
    }
}

/// The clusters of a start are sought in so many samples, or in so many per component if that is more; but in no
/// more bytes than these, unless there would be too few samples for the components.
const SUBSET_LEAST: usize = 2048;
const SUBSET_PER_COMPONENT: usize = 32;
const SUBSET_BYTES: usize = 64 << 20;
const SUBSET_FEWEST: usize = 4;

/// The random stream of one restart: independent of all others, whatever they draw.
pub(super) fn stream(seed: u64, restart: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(restart as u64);
    rng
}

/// The paper's start: π = 1/K, K distinct samples (those chosen) as means, standard normal loadings, σ² = 1.
///
/// Deviation: σ² begins at its floor where that is larger than 1, or the first step would have to go down to it.
pub(super) fn random(
    engine: &dyn Engine,
    chosen: Vec<usize>,
    rank: &[usize],
    floor: f64,
    moments: &Moments,
    rng: &mut ChaCha8Rng,
) -> Result<Mixture> {
    let components = chosen.len();
    let samples = engine.fetch(chosen.clone())?;
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    let shape = engine.shape();
    let mut found = Vec::with_capacity(components);
    for n in chosen {
        let at = sorted.partition_point(|&m| m < n);
        let loadings = shape
            .iter()
            .zip(rank)
            .map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| rng.sample(StandardNormal)))
            .collect();
        let mean = one_sample(&samples, at, &moments.mean)?;
        found.push(Component::new(shape, mean, loadings, floor.max(1.0))?);
    }
    Mixture::new(shape, vec![1.0 / components as f64; components], found)
}

/// Sample `n` as a mean: what is missing of it is what it is on average.
fn one_sample(samples: &Samples<'_>, n: usize, reference: &[f64]) -> Result<Vec<f64>> {
    let mut x = samples.to_f64(n..n + 1)?;
    x.iter_mut().zip(reference).filter(|(x, _)| x.is_nan()).for_each(|(x, g)| *x = *g);
    Ok(x)
}

/// So many different samples of positive weight.
pub(super) fn draw_distinct(engine: &dyn Engine, count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let Some(weights) = engine.weights() else {
        return distinct(rng, engine.len(), count).into_vec();
    };
    let candidates: Vec<usize> = (0..weights.len()).filter(|&n| weights[n] > 0.0).collect();
    distinct(rng, candidates.len(), count).iter().map(|c| candidates[c]).collect()
}

/// How many samples the clusters are sought in.
pub(super) fn subset_len(engine: &dyn Engine, components: usize) -> usize {
    affordable(engine, SUBSET_LEAST.max(SUBSET_PER_COMPONENT * components), components)
}

/// So many samples, or as many as may be fetched.
pub(super) fn affordable(engine: &dyn Engine, wanted: usize, components: usize) -> usize {
    let affordable = SUBSET_BYTES / (engine.sample_len() * engine.element().size()).max(1);
    wanted.min(affordable.max(SUBSET_FEWEST * components))
}

/// So many of the samples, drawn at random, or all of them if there are no more, where this process can read them again and again.
pub(super) fn at_hand<'a>(
    engine: &'a dyn Engine,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Cow<'a, Samples<'a>>> {
    let whole = engine.len() <= count;
    // Samples in parts are brought together: what is found should not depend on who holds the parts.
    let is_here = |samples: &&Samples<'_>| whole && samples.parts().len() == 1 && !samples.is_read_ahead();
    Ok(match engine.local().filter(is_here) {
        Some(samples) => Cow::Borrowed(samples),
        None if whole => Cow::Owned(engine.fetch((0..engine.len()).collect())?),
        None => {
            let count = count.min(engine.n_effective());
            Cow::Owned(engine.fetch(draw_distinct(engine, count, rng))?)
        }
    })
}

/// k-means++ and a few Lloyd steps, then `LowRank` in every cluster.
///
/// Clusters and loadings are found in a subset of bounded size, so that a start costs no more than a few passes over a
/// large set; what clusters there are in the whole set is then one pass. A small set is its own subset.
pub(super) fn k_means(
    engine: &dyn Engine,
    components: usize,
    rank: &[usize],
    floor: f64,
    moments: &Moments,
    effort: Effort,
    rng: &mut ChaCha8Rng,
) -> Result<Mixture> {
    let subset_len = subset_len(engine, components);
    let whole = engine.len() <= subset_len;
    let samples = &*at_hand(engine, subset_len, rng)?;
    let unit = engine.total_weight() / engine.n_effective() as f64;
    let held = engine.backend().over(samples)?;
    let (centres, groups) = cluster(samples, &*held, components, &moments.mean, effort, rng)?;
    let known = match whole {
        true => None,
        // One cluster is the whole set.
        false if components == 1 => Some(vec![Some(moments.clone())]),
        false => Some(clusters(engine, &centres, &moments.mean, unit)?),
    };
    let mut members = vec![Vec::new(); components];
    for (n, &k) in groups.iter().enumerate() {
        if samples.weight(n) > 0.0 {
            members[k].push(n);
        }
    }
    let found = Clusters { samples, held: &*held, whole, members, known, counts: None };
    found.mixture(engine, rank, floor, moments)
}

/// Clusters of samples at hand, to be made components of.
pub(super) struct Clusters<'a> {
    pub(super) samples: &'a Samples<'a>,
    pub(super) held: &'a dyn Engine,
    /// Whether these are all samples there are.
    pub(super) whole: bool,
    /// The samples of positive weight of every cluster.
    pub(super) members: Vec<Vec<usize>>,
    /// What is known of all samples that the members of a cluster stand for.
    pub(super) known: Option<Vec<Option<Moments>>>,
    /// The weight that each sample stands for, if it is not its own.
    pub(super) counts: Option<Vec<f64>>,
}

impl Clusters<'_> {
    /// `LowRank` in every cluster.
    pub(super) fn mixture(
        &self,
        engine: &dyn Engine,
        rank: &[usize],
        floor: f64,
        moments: &Moments,
    ) -> Result<Mixture> {
        let Self { samples, held, whole, members, known, counts } = self;
        let components = members.len();
        let unit = engine.total_weight() / engine.n_effective() as f64;
        // Clusters of a sample or two say nothing about loadings: they borrow those of the whole set.
        let least = super::maximize::least_weight(rank).ceil() + 1.0;
        // A weight of 2 is two samples; weights that sum to 1 are as many samples as there are.
        let is_small = |members: &Vec<usize>| {
            members.iter().map(|&n| samples.weight(n)).sum::<f64>() < least * unit.min(1.0)
        };
        let borrowed = match members.iter().any(is_small) {
            true => {
                let seen = if *whole { moments.clone() } else { passes::moments(*held, false)? };
                Some(local(samples, *held, rank, floor, &seen, moments)?)
            }
            false => None,
        };
        let known = |k: usize| known.as_ref().and_then(|known| known[k].as_ref());
        let part = |k: usize| {
            let (known, members) = (known(k), &members[k]);
            let Some(like) = borrowed.as_ref().filter(|_| is_small(members)) else {
                let cluster = (*samples).clone().select(members)?;
                let held = engine.backend().over(&cluster)?;
                let mut seen = passes::moments(&*held, false)?;
                seen.mean = seen.mean_towards(&moments.mean, unit);
                let moments = known.unwrap_or(&seen);
                return local(&cluster, &*held, rank, floor, &seen, moments);
            };
            let mean = match (known, members.first()) {
                (Some(moments), _) => moments.mean.clone(),
                (None, Some(&n)) => one_sample(samples, n, &moments.mean)?,
                // More centres than distinct samples: any sample that counts will do.
                (None, None) => {
                    let counts = (0..samples.len()).find(|&n| samples.weight(n) > 0.0).unwrap_or(0);
                    one_sample(samples, counts, &moments.mean)?
                }
            };
            like.clone().with_mean(mean).renewed(engine.shape())
        };
        // Nothing here is random or depends on another cluster. Of several errors the first is reported.
        let found = parallel::map(components, part).into_iter().collect::<Result<Vec<_>>>()?;
        let weight = |k: usize| {
            let weight = match known(k) {
                Some(moments) => moments.weight,
                None => members[k].iter().map(|&n| counts.as_ref().map_or(samples.weight(n), |c| c[n])).sum(),
            };
            weight.max(1e-3 * engine.total_weight() / components as f64)
        };
        let weights = (0..components).map(weight).collect();
        Mixture::new(engine.shape(), weights, found)
    }
}

/// Weight, mean and variance of the samples nearest to each centre: one pass over all of them.
fn clusters(
    engine: &dyn Engine,
    centres: &[Vec<f64>],
    reference: &[f64],
    unit: f64,
) -> Result<Vec<Option<Moments>>> {
    let sums = passes::groups(engine, centres, reference)?;
    let groups = sums.groups.iter().zip(centres);
    Ok(groups.map(|(group, centre)| group.moments(centre, reference, unit)).collect())
}

/// One component from a cluster: `LowRank` loadings, scaled so that the variances of the cores and of the rest are
/// those of the cluster. `seen` are the moments of these samples, `moments` those of all that they stand for.
fn local(
    cluster: &Samples<'_>,
    held: &dyn Engine,
    rank: &[usize],
    floor: f64,
    seen: &Moments,
    moments: &Moments,
) -> Result<Component> {
    let Loadings { loadings, mut variances, .. } =
        rough_loadings(cluster, held, rank, &seen.mean, seen.variance)?;
    // Missing cells had the mean.
    let ratio = moments.variance / (seen.variance * seen.share());
    if ratio.is_finite() && ratio > 0.0 {
        variances.iter_mut().flatten().for_each(|v| *v *= ratio);
    }
    scaled_component(cluster.shape(), moments.mean.clone(), loadings, &variances, moments.variance, floor)
}

/// A component with these orthonormal loadings as its directions: `variances` are those of the cores along each, and `variance` is
/// that of the samples in all, so that what the cores leave over is noise.
pub(super) fn scaled_component(
    shape: &[usize],
    mean: Vec<f64>,
    loadings: Vec<Matrix>,
    variances: &[Vec<f64>],
    variance: f64,
    floor: f64,
) -> Result<Component> {
    let rank: Vec<usize> = loadings.iter().map(Matrix::cols).collect();
    let (size, core_len) = (mean.len() as f64, rank.iter().product::<usize>() as f64);
    let captured = variances.iter().map(|v| v.iter().sum::<f64>()).fold(f64::INFINITY, f64::min);
    let noise = if size > core_len { (variance - captured) / (size - core_len) } else { floor };
    let noise = noise.max(floor);
    // s_j is a product over the modes; each mode's share of the signal is what its variances exceed the noise by.
    let order = rank.len() as f64;
    let mut signals = Vec::new();
    for (variances, &r) in variances.iter().zip(&rank) {
        let share = noise * core_len / r as f64;
        signals.push(variances.iter().map(|v| (v - share).max(1e-2 * v).max(floor)).collect::<Vec<_>>());
    }
    // The unit of the data goes into the loadings as a power of two, so that it changes no other bit.
    let unit = power_of_four(signals[0].iter().sum());
    let total = signals.iter().map(|s| (s.iter().sum::<f64>() / unit).ln()).sum::<f64>() / order;
    let scale = (total / order).exp();
    let loadings = loadings
        .iter()
        .zip(&signals)
        .enumerate()
        .map(|(d, (v, signal))| {
            let sum: f64 = signal.iter().sum();
            let length = if d == 0 { unit.sqrt() } else { 1.0 };
            Matrix::from_fn(v.rows(), v.cols(), |i, j| v[(i, j)] * (signal[j] / sum * scale).sqrt() * length)
        })
        .collect();
    Component::new(shape, mean, loadings, noise)
}

/// k-means: the centres, and the cluster of every sample.
pub(super) fn cluster(
    samples: &Samples<'_>,
    held: &dyn Engine,
    components: usize,
    reference: &[f64],
    effort: Effort,
    rng: &mut ChaCha8Rng,
) -> Result<(Vec<Vec<f64>>, Vec<usize>)> {
    let distances = |points: &[Vec<f64>]| {
        let pass = DistancesPass { points: points.to_vec(), reference: reference.to_vec() };
        Ok::<_, crate::Error>(held.sums(&pass)?.values)
    };
    if components == 1 {
        return Ok((vec![reference.to_vec()], vec![0; samples.len()]));
    }
    // Greedy k-means++ (Arthur & Vassilvitskii 2007): a few candidates for each next centre, drawn in proportion to
    // their squared distance to those chosen; the one that leaves the least distance is taken.
    let Effort { candidates, lloyd_steps } = effort;
    let mut distance = vec![1.0; samples.len()];
    let mut centres: Vec<Vec<f64>> = Vec::new();
    while centres.len() < components {
        let masses: Vec<f64> = distance.iter().enumerate().map(|(n, d)| d * samples.weight(n)).collect();
        let first = centres.is_empty();
        let drawn: Vec<usize> = (0..if first { 1 } else { candidates }).map(|_| draw(&masses, rng)).collect();
        let mut points: Vec<Vec<f64>> =
            drawn.iter().map(|&n| one_sample(samples, n, reference)).collect::<Result<_>>()?;
        let to_points = distances(&points)?;
        let left = |c: usize, n: usize| {
            let new = to_points[n * points.len() + c];
            if first { new } else { new.min(distance[n]) }
        };
        let total = |c: usize| (0..samples.len()).map(|n| samples.weight(n) * left(c, n)).sum::<f64>();
        let best = (0..points.len()).map(|c| (c, total(c))).min_by(|a, b| a.1.total_cmp(&b.1));
        let best = best.map_or(0, |(c, _)| c);
        distance = (0..samples.len()).map(|n| left(best, n)).collect();
        centres.push(points.swap_remove(best));
    }
    let unit = samples.total_weight() / samples.n_effective() as f64;
    for _ in 0..lloyd_steps {
        let sums = passes::groups(held, &centres, reference)?;
        for (centre, group) in centres.iter_mut().zip(&sums.groups) {
            if let Some(moments) = group.moments(centre, reference, unit) {
                *centre = moments.mean;
            }
        }
    }
    let nearest = |distances: &[f64]| {
        let nearer = |a: usize, b: usize| if distances[b] < distances[a] { b } else { a };
        (1..distances.len()).fold(0, nearer)
    };
    let groups = distances(&centres)?.chunks_exact(components).map(nearest).collect();
    Ok((centres, groups))
}

/// A random index in proportion to the masses; uniform if there are none (all samples are the same).
fn draw(masses: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let total: f64 = masses.iter().sum();
    let at: f64 = rng.random::<f64>();
    if !(total.is_finite() && total > 0.0) {
        return ((at * masses.len() as f64) as usize).min(masses.len() - 1);
    }
    let mut below = 0.0;
    let mut last = 0;
    for (n, mass) in masses.iter().enumerate() {
        if *mass > 0.0 {
            last = n;
            below += mass;
            if at * total < below {
                return n;
            }
        }
    }
    last
}
