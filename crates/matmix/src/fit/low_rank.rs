//! Fitting `LowRank`: exact eigenvectors for order 1, alternating ones for higher orders.

use std::ops::ControlFlow;

use super::few_samples::{FETCH_LIMIT, all_rows, centred_rows, eigen_of_few_rows};
use super::iterate::{LoopOptions, iterate};
use super::mode_scatter::mode_scatter;
use super::options::StopRule;
use super::passes;
use super::steps::{Evaluation, Steps, Watch};
use super::threads::with_threads;
use crate::data::{Missing, Samples};
use crate::error::{Error, Result, needs_noise};
use crate::linalg::{Matrix, leading_eigen, rough_eigen_of_rows};
use crate::model::{History, LowRank, StopReason, ranks_for};
use crate::pass::{Engine, Moments, ScatterSums};
use crate::walk::Stage;

/// Up to this size a symmetric matrix is decomposed whole.
const DENSE_LIMIT: usize = 16_384;

/// Up to this many elements of a sample, or of its core, the scatter of all of them is considered: 8 MB.
const WHOLE_LIMIT: usize = 1024;

/// How many alternations a fit is expected to take, at most.
const EXPECTED_ALTERNATIONS: usize = 4;

/// Alternations for a start.
const START_ALTERNATIONS: usize = 2;

/// Of so many samples one is taken to begin with, if that leaves enough of them.
const SUBSET: usize = 16;
const SUBSET_LEAST: usize = 256;

/// When the loadings of a subset are good enough to begin with: the relative change of an alternation, and how many of
/// them at most.
const SUBSET_TOL: f64 = 1e-4;
const SUBSET_ITERATIONS: usize = 8;

/// By how much less of all samples than of the subset the loadings may capture, as a share of the squares: more than chance
/// explains, and the subset is not like the rest.
const UNLIKE: f64 = 0.02;

/// The options of a low-rank fit.
///
/// ```
/// use matmix::{LowRankOptions, Samples, fit_low_rank};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// // 2DPCA: rows are kept whole.
/// let fitted = fit_low_rank(&samples, &LowRankOptions { rank: vec![4, 1], ..LowRankOptions::default() })?;
/// assert_eq!((fitted.model.rank(), fitted.model.core_len()), (&[4, 1][..], 4));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LowRankOptions {
    /// One rank for all modes or one per mode; a mode whose rank is its side is kept whole. Empty means min(4, side).
    pub rank: Vec<usize>,
    /// Whether the mean is subtracted first (Ye's GLRAM does not).
    pub centred: bool,
    /// The largest number of alternations.
    pub max_iter: usize,
    /// The relative change of the squared error that ends them.
    pub tol: f64,
    /// How many threads; `None` uses the threads of the pool this is called from.
    pub threads: Option<usize>,
}

impl Default for LowRankOptions {
    fn default() -> Self {
        Self { rank: vec![], centred: true, max_iter: 100, tol: 1e-6, threads: None }
    }
}

/// A fitted `LowRank` and how it came about.
///
/// ```
/// use matmix::{LowRankOptions, Samples, StopReason, fit_low_rank};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let fitted = fit_low_rank(&samples, &LowRankOptions { rank: vec![2, 2], ..LowRankOptions::default() })?;
/// assert_eq!(fitted.stop, StopReason::Converged);
/// let last = *fitted.reconstruction_error.last().unwrap();
/// assert!((last - fitted.model.reconstruction_error(&samples)?).abs() < 1e-9 * last);
/// // The mean, and then the samples as one scatter: the rest is made from it.
/// assert_eq!(fitted.passes, 2.0);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LowRankFit {
    /// The model.
    pub model: LowRank,
    /// e(t) = sqrt(Σ‖X − X̂‖²/N) after each alternation.
    pub reconstruction_error: Vec<f64>,
    /// Passes over the whole set: one over a subset counts as its share.
    pub passes: f64,
    /// Why it ended.
    pub stop: StopReason,
}

/// Fits orthonormal loadings to the samples.
///
/// Order 1 is solved exactly (PCA). Higher orders alternate: for one mode after the other, the leading eigenvectors
/// of its scatter given the loadings of the others, from the leading eigenvectors of the whole scatter or, if there are
/// many samples, from the loadings of every sixteenth.
///
/// # Errors
/// Samples that are not finite, ranks that do not fit them, modes that are too large to be decomposed.
///
/// ```
/// use matmix::{LowRankOptions, Samples, fit_low_rank};
///
/// let samples = Samples::from_vec(&[4, 3], (0..120).map(|i| f64::from((i * 37) % 101)).collect::<Vec<_>>())?;
/// let glram = fit_low_rank(&samples, &LowRankOptions { rank: vec![2, 2], centred: false, ..Default::default() })?;
/// assert_eq!(glram.model.transform(&samples)?.len(), 10 * 4);
/// # Ok::<(), matmix::Error>(())
/// ```
pub fn fit_low_rank(samples: &Samples<'_>, options: &LowRankOptions) -> Result<LowRankFit> {
    fit_low_rank_on(samples, options)
}

/// Fits orthonormal loadings to whatever samples the engine holds.
///
/// # Errors
/// As [`fit_low_rank`], and whatever keeps the engine from running a pass.
pub fn fit_low_rank_on(samples: &dyn Engine, options: &LowRankOptions) -> Result<LowRankFit> {
    if samples.missing() == Missing::Nan {
        return Err(needs_noise());
    }
    let rank = if options.rank.is_empty() {
        samples.shape().iter().map(|&p| p.min(4)).collect()
    } else {
        ranks_for(samples.shape(), &options.rank)?
    };
    if !(options.tol.is_finite() && options.tol >= 0.0) {
        let value = options.tol.to_string();
        return Err(Error::Option { option: "tol", value, expected: "a finite number of at least 0" });
    }
    with_threads(options.threads, || fit(samples, &rank, options))?
}

fn fit(samples: &dyn Engine, rank: &[usize], options: &LowRankOptions) -> Result<LowRankFit> {
    let (mean, total) = if options.centred {
        let moments = passes::moments(samples, false)?;
        (moments.mean, Some(moments.variance))
    } else {
        (vec![0.0; samples.sample_len()], None)
    };
    let found = alternate(samples, rank, &mean, total, options.max_iter, options.tol)?;
    let total = found.total;
    let reconstruction_error = found.captured.iter().map(|c| (total - c).max(0.0).sqrt()).collect();
    let model = LowRank::new(samples.shape(), mean, found.loadings)?.with_variance(found.variances, total);
    let stop = if found.converged { StopReason::Converged } else { StopReason::MaxIterations };
    let passes = found.passes + if options.centred { 1.0 } else { 0.0 };
    Ok(LowRankFit { model, reconstruction_error, passes, stop })
}

/// What [`alternate`] found.
pub(super) struct Loadings {
    pub(super) loadings: Vec<Matrix>,
    /// Per mode, the mean square along each loading.
    pub(super) variances: Vec<Vec<f64>>,
    /// The mean square that is captured, after each alternation.
    captured: Vec<f64>,
    /// The mean square of the samples less their mean.
    total: f64,
    /// Passes over the whole set.
    passes: f64,
    converged: bool,
}

/// The mean square of samples, less their mean, that loadings of these ranks capture, about.
pub(super) fn captured(
    samples: &Samples<'_>,
    held: &dyn Engine,
    rank: &[usize],
    seen: &Moments,
) -> Result<f64> {
    let found = rough_loadings(samples, held, rank, &seen.mean, seen.variance)?;
    Ok(found.captured.last().copied().unwrap_or(0.0))
}

/// Loadings to start from: two alternations, or for order 1 what a few steps find of the eigenvectors. The iterations
/// of EM that follow turn them further than more digits would.
pub(super) fn rough_loadings(
    samples: &Samples<'_>,
    held: &dyn Engine,
    rank: &[usize],
    mean: &[f64],
    total: f64,
) -> Result<Loadings> {
    if let [rank] = *rank
        && rank < samples.sample_len()
        && let Some(found) = rough_eigen_of_rows(centred_rows(samples, mean)?, rank)
    {
        let (vectors, values) = signed(found.vectors, &found.values, samples.total_weight());
        let captured = vec![values.iter().sum()];
        return Ok(Loadings {
            loadings: vec![vectors],
            variances: vec![values],
            captured,
            total,
            passes: 1.0,
            converged: true,
        });
    }
    alternate(held, rank, mean, Some(total), START_ALTERNATIONS, 0.0)
}

/// Alternates over the modes until the captured mean square changes by no more than the share `tol` of the `total`,
/// which is found on the way if it is not known.
fn alternate(
    samples: &dyn Engine,
    rank: &[usize],
    mean: &[f64],
    total: Option<f64>,
    max_iter: usize,
    tol: f64,
) -> Result<Loadings> {
    alternate_by(Way::choose(samples, rank, max_iter), samples, rank, mean, total, max_iter, tol)
}

fn alternate_by(
    way: Way,
    samples: &dyn Engine,
    rank: &[usize],
    mean: &[f64],
    total: Option<f64>,
    max_iter: usize,
    tol: f64,
) -> Result<Loadings> {
    let shape = samples.shape();
    let modes = reduced(shape, rank);
    let few = shape.len() == 1 && samples.n_effective() <= shape[0];
    let all = if few { all_rows(samples)? } else { None };
    if let Some(&d) = modes.iter().find(|&&d| all.is_none() && shape[d] > DENSE_LIMIT) {
        return Err(Error::TooLarge { size: shape[d], limit: DENSE_LIMIT });
    }
    let weight = samples.total_weight();
    let mut steps = AlternatingSteps {
        samples,
        rank,
        mean,
        modes,
        way,
        weight,
        total,
        whole: None,
        at_hand: None,
        captured: vec![],
        passes: if all.is_some() { 1.0 } else { 0.0 },
    };
    if steps.way == Way::Whole {
        steps.whole = steps.taken(passes::whole_scatter(samples, mean)?).pop();
    }
    // A mode kept whole has no loadings to find: the identity, and no contraction.
    let (mut found, mut errors, mut converged) = (Alternating::none(shape.len()), vec![], true);
    match (&steps.modes[..], all) {
        (&[], _) => errors.push(f64::INFINITY),
        // One step is exact.
        (&[d], all) => {
            let (vectors, values) = match all {
                Some(all) => {
                    let few = eigen_of_few_rows(&centred_rows(&all, mean)?, rank[0])?;
                    steps.total.get_or_insert(few.squares / weight);
                    signed(few.vectors, &few.values, weight)
                }
                None => {
                    let scatter = steps.scatters(&found.loadings, &[d])?.swap_remove(0);
                    leading(&scatter, rank[d], weight)?
                }
            };
            errors.push(values.iter().sum());
            found.loadings[d] = Some(vectors);
            found.variances[d] = values;
        }
        (modes, _) => {
            let count = modes.len();
            let options = LoopOptions {
                n_init: 1,
                max_iter: max_iter.max(1) * count,
                tol,
                stop: StopRule::ReconstructionError,
                accelerate: false,
                checkpoint: None,
            };
            let finished = iterate(&mut steps, &options, &mut |_| ControlFlow::Continue(()))?;
            converged = finished.history.stop == Some(StopReason::Converged);
            found = finished.model;
            // Those after whole alternations, and the last.
            let series = &steps.captured[steps.captured.len() - finished.history.n_iterations()..];
            errors = series.chunks(count).filter_map(|alternation| alternation.last().copied()).collect();
        }
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|&d| found.loadings[d].is_none()).collect();
    for (&d, scatter) in kept.iter().zip(&steps.scatters(&found.loadings, &kept)?) {
        found.variances[d] = (0..shape[d]).map(|i| scatter[(i, i)] / weight).collect();
    }
    let identity = |(v, &p): (Option<Matrix>, &usize)| v.unwrap_or_else(|| Matrix::identity(p, p));
    let loadings = found.loadings.into_iter().zip(shape).map(identity).collect();
    let total = steps.total.unwrap_or(0.0);
    let passes = steps.passes;
    Ok(Loadings { loadings, variances: found.variances, captured: errors, total, passes, converged })
}

/// Loadings that are being found, mode after mode.
#[derive(Debug, Clone)]
struct Alternating {
    loadings: Vec<Option<Matrix>>,
    /// Per mode, the mean square along each loading.
    variances: Vec<Vec<f64>>,
    /// Which of the modes comes next.
    next: usize,
}

impl Alternating {
    fn none(order: usize) -> Self {
        Self { loadings: vec![None; order], variances: vec![Vec::new(); order], next: 0 }
    }
}

/// The steps of an alternation: one mode at a time.
struct AlternatingSteps<'a> {
    samples: &'a dyn Engine,
    rank: &'a [usize],
    mean: &'a [f64],
    /// The modes that are not kept whole.
    modes: Vec<usize>,
    way: Way,
    weight: f64,
    /// The mean square of the samples less their mean, once it is known.
    total: Option<f64>,
    /// The scatter of the flattened samples, if single modes' are made from it.
    whole: Option<Matrix>,
    /// The scatter of the mode that comes next, if a pass has found it already.
    at_hand: Option<Matrix>,
    /// The mean square that is captured, after each mode.
    captured: Vec<f64>,
    /// Passes over the whole set so far.
    passes: f64,
}

impl AlternatingSteps<'_> {
    /// The scatters that a pass has found.
    fn taken(&mut self, sums: ScatterSums) -> Vec<Matrix> {
        self.passes += 1.0;
        self.total.get_or_insert(sums.squares / self.weight);
        sums.scatters
    }

    fn scatters(&mut self, loadings: &[Option<Matrix>], modes: &[usize]) -> Result<Vec<Matrix>> {
        let shape = self.samples.shape();
        match &self.whole {
            Some(whole) => Ok(modes.iter().map(|&d| mode_scatter(whole, shape, loadings, d)).collect()),
            None if modes.is_empty() => Ok(vec![]),
            None => {
                let sums = passes::scatters(self.samples, self.mean, loadings, modes)?;
                Ok(self.taken(sums))
            }
        }
    }
}

impl Steps for AlternatingSteps<'_> {
    type Model = Alternating;
    type Sums = ();

    fn start(&mut self, _: usize, _: &mut History, _: &mut Watch<'_>) -> Result<Alternating> {
        let mut model = Alternating::none(self.rank.len());
        let (first, others) = (self.modes[0], self.modes[1..].to_vec());
        if let Way::Subset(count) = self.way {
            let (start, share, passes) = from_subset(self.samples, self.rank, self.mean, count)?;
            self.passes += passes;
            let scatter = self.scatters(&start, &[first])?.swap_remove(0);
            let before = mean_square(&scatter, start[first].as_ref(), self.weight);
            if before >= (share - UNLIKE) * self.total.unwrap_or(0.0) {
                // As if every mode had just been found.
                self.captured = vec![before; self.modes.len()];
                self.at_hand = Some(scatter);
                model.loadings = start;
                return Ok(model);
            }
        }
        let scatters = self.scatters(&model.loadings, &others)?;
        for (&d, scatter) in others.iter().zip(&scatters) {
            model.loadings[d] = Some(leading(scatter, self.rank[d], self.weight)?.0);
        }
        Ok(model)
    }

    /// What is captured is known from the eigenvalues: there is nothing to go over the samples for.
    fn evaluate(&mut self, _: &Alternating, _: Stage) -> Result<Evaluation<()>> {
        let captured = self.captured.last().copied().unwrap_or(0.0);
        Ok(Evaluation {
            log_likelihood: f64::NAN,
            sampling_error: f64::NAN,
            reconstruction_error: (self.total.unwrap_or(0.0) - captured).max(0.0).sqrt(),
            assigned: vec![],
            sums: (),
        })
    }

    fn update(&mut self, model: &Alternating, (): (), _: Stage) -> Result<Alternating> {
        let mut next = model.clone();
        let d = self.modes[model.next];
        let scatter = match self.at_hand.take() {
            Some(scatter) => scatter,
            None => self.scatters(&model.loadings, &[d])?.swap_remove(0),
        };
        let (vectors, values) = leading(&scatter, self.rank[d], self.weight)?;
        self.captured.push(values.iter().sum());
        next.loadings[d] = Some(vectors);
        next.variances[d] = values;
        next.next = (model.next + 1) % self.modes.len();
        Ok(next)
    }

    /// Asked after every mode: whether all of them together, each once, have changed little.
    fn converged(&self, _: &History, options: &LoopOptions) -> bool {
        let gain = match self.captured[..] {
            [.., now] if self.captured.len() > self.modes.len() => {
                now - self.captured[self.captured.len() - 1 - self.modes.len()]
            }
            _ => f64::INFINITY,
        };
        gain <= options.tol * self.total.unwrap_or(0.0)
    }
}

/// The modes that are not kept whole.
fn reduced(shape: &[usize], rank: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|&d| rank[d] < shape[d]).collect()
}

/// The leading eigenvectors of a scatter and the mean square along each.
fn leading(scatter: &Matrix, rank: usize, weight: f64) -> Result<(Matrix, Vec<f64>)> {
    let eigen = leading_eigen(scatter, rank).ok_or(Error::Overflow { sample: 0 })?;
    Ok(signed(eigen.vectors, &eigen.values, weight))
}

/// Eigenvectors with their signs fixed, and the eigenvalues of a scatter as mean squares.
fn signed(mut vectors: Matrix, values: &[f64], weight: f64) -> (Matrix, Vec<f64>) {
    for j in 0..vectors.cols() {
        crate::model::fix_sign(&mut vectors, j);
    }
    (vectors, values.iter().map(|v| v.max(0.0) / weight).collect())
}

/// The mean square along loadings.
fn mean_square(scatter: &Matrix, loadings: Option<&Matrix>, weight: f64) -> f64 {
    loadings.map_or(scatter.trace(), |u| u.inner(&scatter.times(u))) / weight
}

/// Where the scatters of single modes come from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// A pass each, from the leading eigenvectors of the scatters given nothing.
    Passes,
    /// A pass each, from the loadings of so many of the samples.
    Subset(usize),
    /// The scatter of the flattened samples: one pass.
    Whole,
}

impl Way {
    /// The cheapest, counted in multiply-adds per sample.
    fn choose(samples: &dyn Engine, rank: &[usize], max_iter: usize) -> Self {
        let (shape, size) = (samples.shape(), samples.sample_len());
        let modes = reduced(shape, rank);
        if modes.len() < 2 {
            return Way::Passes;
        }
        let pass = size * (samples.backend().overhead() + rank.iter().sum::<usize>());
        let alternations = max_iter.min(EXPECTED_ALTERNATIONS);
        if size <= WHOLE_LIMIT && samples.len() > size && size * size / 2 < alternations * modes.len() * pass
        {
            return Way::Whole;
        }
        // Two alternations on all samples at least, one to get there and one to see that nothing changes.
        let subset = (samples.n_effective() / SUBSET).min(FETCH_LIMIT / (size * size_of::<f64>()));
        if subset >= SUBSET_LEAST && max_iter > 2 { Way::Subset(subset) } else { Way::Passes }
    }
}

/// The loadings of `count` samples, evenly spread over all that count, the share of the squares they capture there, and the passes over the
/// whole set that finding them is worth.
fn from_subset(
    samples: &dyn Engine,
    rank: &[usize],
    mean: &[f64],
    count: usize,
) -> Result<(Vec<Option<Matrix>>, f64, f64)> {
    let counting: Vec<usize> = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    let chosen = (0..count).map(|i| counting[i * counting.len() / count]).collect();
    let subset = samples.fetch(chosen)?;
    let held = samples.backend().over(&subset)?;
    let found = alternate(&*held, rank, mean, None, SUBSET_ITERATIONS, SUBSET_TOL)?;
    let share = found.captured.last().map_or(0.0, |captured| captured / found.total);
    let modes = reduced(samples.shape(), rank);
    let kept = |(d, v)| modes.contains(&d).then_some(v);
    let passes = found.passes * count as f64 / samples.len() as f64;
    Ok((found.loadings.into_iter().enumerate().map(kept).collect(), share, passes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 28×28 samples of rank 3 with noise, in one corner; those that are `seldom` are larger and in the other, without noise.
    fn images(n: usize, seldom: impl Fn(usize) -> bool) -> Samples<'static> {
        let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_989).fract() - 0.5;
        let mut x = vec![0.0; n * 784];
        for (n, x) in x.chunks_exact_mut(784).enumerate() {
            let (first, height) = if seldom(n) { (0, 6.0) } else { (14, 1.0) };
            for t in 0..3 {
                let size = height * number(7919 * n + t) / (1 + t) as f64;
                for i in 0..14 {
                    for j in 0..14 {
                        let shape = number(31 * i + 5 * t) * number(17 * j + 11 * t);
                        x[(first + i) * 28 + first + j] += size * shape;
                    }
                }
            }
            if !seldom(n) {
                x.iter_mut().enumerate().for_each(|(i, x)| {
                    let (row, column) = (i / 28, i % 28);
                    if row >= 14 && column >= 14 {
                        *x += 0.02 * number(n * 97 + i * 13);
                    }
                });
            }
        }
        Samples::from_vec(&[28, 28], x).unwrap()
    }

    #[test]
    fn every_way_leads_to_the_same_loadings() {
        let samples = images(4096, |_| false);
        let find = |way| alternate_by(way, &samples, &[2, 3], &vec![0.01; 784], None, 100, 1e-12).unwrap();
        let plain = find(Way::Passes);
        for way in [Way::Whole, Way::Subset(256), Way::Subset(300)] {
            let what = format!("{way:?}");
            let found = find(way);
            assert!((found.total / plain.total - 1.0).abs() < 1e-12, "{what}");
            let (a, b) = (found.captured.last().unwrap(), plain.captured.last().unwrap());
            assert!((a / b - 1.0).abs() < 1e-10, "{what}: {:?} {:?}", found.captured, plain.captured);
            for (a, b) in found.loadings.iter().zip(&plain.loadings) {
                // The same space: the projections of one onto the other lose nothing.
                let common = a.transpose_times(b).column_norms_squared();
                assert!(common.iter().all(|c| (c - 1.0).abs() < 1e-6), "{what}: {common:?}");
            }
        }
    }

    /// Of the few samples in the other corner, which have most of the squares, not one is in the subset; what is found
    /// there captures none of them, so that no alternation would ever see them.
    #[test]
    fn a_subset_that_is_not_like_the_rest_is_not_begun_with() {
        let samples = images(4096, |n| n % 16 == 8);
        let find = |way| alternate_by(way, &samples, &[2, 2], &[0.0; 784], None, 100, 1e-9).unwrap();
        let (subset, plain) = (find(Way::Subset(256)), find(Way::Passes));
        assert_eq!(subset.captured, plain.captured);
        assert!(plain.captured.last().unwrap() > &(0.5 * plain.total));
    }

    #[test]
    fn the_way_depends_on_the_size_and_the_number_of_samples() {
        let choose = |n: usize, shape: &[usize], rank: &[usize], max_iter: usize| {
            let size: usize = shape.iter().product();
            Way::choose(&Samples::from_vec(shape, vec![0u8; n * size]).unwrap(), rank, max_iter)
        };
        assert_eq!(choose(10_000, &[28, 28], &[4, 4], 100), Way::Subset(625));
        assert_eq!(choose(4000, &[28, 28], &[4, 4], 100), Way::Passes);
        assert_eq!(choose(10_000, &[28, 28], &[4, 4], 2), Way::Passes);
        assert_eq!(choose(1000, &[12, 10], &[3, 3], 100), Way::Whole);
        // Fewer samples than elements; one mode only.
        assert_eq!(choose(100, &[12, 10], &[3, 3], 100), Way::Passes);
        assert_eq!(choose(10_000, &[28, 28], &[4, 28], 100), Way::Passes);
    }
}
