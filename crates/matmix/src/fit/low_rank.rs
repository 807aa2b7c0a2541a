//! Fitting `LowRank`: exact eigenvectors for order 1, alternating ones for higher orders.

use std::borrow::Cow;

use rayon::prelude::*;

use super::engine::{self, Engine};
use super::history::StopReason;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, leading_eigen, mode_contraction, sides_around};
use crate::model::{LowRank, ranks_for};
use crate::pass::pack::PACKING;

/// Up to this size a symmetric matrix is decomposed whole.
const DENSE_LIMIT: usize = 16_384;

/// Up to this many elements of a sample the scatter of the flattened samples is considered: 8 MB.
const WHOLE_LIMIT: usize = 1024;

/// How many alternations a fit is expected to take, at most.
const EXPECTED_ALTERNATIONS: usize = 8;

/// Up to so many bytes samples are fetched from elsewhere, all of them.
const FETCH_LIMIT: usize = 64 << 20;

/// The options of a low-rank fit.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct LowRankFit {
    /// The model.
    pub model: LowRank,
    /// e(t) = sqrt(Σ‖X − X̂‖²/N) after each alternation.
    pub reconstruction_error: Vec<f64>,
    /// Why it ended.
    pub stop: StopReason,
}

/// Fits orthonormal loadings to the samples.
///
/// Order 1 is solved exactly (PCA). Higher orders alternate: for one mode after the other, the leading eigenvectors
/// of its scatter given the loadings of the others, from the leading eigenvectors of the whole scatter.
pub fn fit_low_rank(samples: &Samples<'_>, options: &LowRankOptions) -> Result<LowRankFit> {
    fit_low_rank_on(samples, options)
}

/// Fits orthonormal loadings to whatever samples the engine holds.
pub fn fit_low_rank_on(samples: &dyn Engine, options: &LowRankOptions) -> Result<LowRankFit> {
    let rank = if options.rank.is_empty() {
        samples.shape().iter().map(|&p| p.min(4)).collect()
    } else {
        ranks_for(samples.shape(), &options.rank)?
    };
    if !(options.tol.is_finite() && options.tol >= 0.0) {
        let value = options.tol.to_string();
        return Err(Error::Option { option: "tol", value, expected: "a finite number of at least 0" });
    }
    super::em::with_threads(options.threads, || fit(samples, &rank, options))?
}

fn fit(samples: &dyn Engine, rank: &[usize], options: &LowRankOptions) -> Result<LowRankFit> {
    let moments = engine::moments(samples)?;
    let (mean, total) = if options.centred {
        (moments.mean, moments.variance)
    } else {
        let square: f64 = moments.mean.iter().map(|m| m * m).sum();
        (vec![0.0; samples.sample_len()], moments.variance + square)
    };
    let mut reconstruction_error = Vec::new();
    let mut note = |captured: f64| reconstruction_error.push((total - captured).max(0.0).sqrt());
    let Loadings { loadings, variances, converged } =
        alternate(samples, rank, &mean, options.max_iter, options.tol * total, &mut note)?;
    let model = LowRank::new(samples.shape(), mean, loadings)?.with_variance(variances, total);
    let stop = if converged { StopReason::Converged } else { StopReason::MaxIterations };
    Ok(LowRankFit { model, reconstruction_error, stop })
}

/// What [`alternate`] found.
pub(super) struct Loadings {
    pub(super) loadings: Vec<Matrix>,
    /// Per mode, the mean square along each loading.
    pub(super) variances: Vec<Vec<f64>>,
    pub(super) converged: bool,
}

/// Alternates over the modes until the captured variance changes by no more than `tol`; tells `note` what is captured
/// after each alternation.
pub(super) fn alternate(
    samples: &dyn Engine,
    rank: &[usize],
    mean: &[f64],
    max_iter: usize,
    tol: f64,
    note: &mut dyn FnMut(f64),
) -> Result<Loadings> {
    let shape = samples.shape();
    let weight = samples.total_weight();
    let order = shape.len();
    let reduced: Vec<usize> = (0..order).filter(|&d| rank[d] < shape[d]).collect();
    // A mode kept whole has no loadings to find: the identity, and no contraction.
    let mut loadings: Vec<Option<Matrix>> = vec![None; order];
    let mut variances = vec![Vec::new(); order];
    let whole = match pays_off(samples, rank, reduced.len() * max_iter.min(EXPECTED_ALTERNATIONS)) {
        true => Some(engine::whole_scatter(samples, mean)?),
        false => None,
    };
    let scatter = |loadings: &[Option<Matrix>], d: usize| match &whole {
        Some(whole) => Ok(mode_scatter(whole, shape, loadings, d)),
        None => engine::scatter(samples, mean, loadings, d),
    };
    let solve = |loadings: &[Option<Matrix>], d: usize| -> Result<(Matrix, Vec<f64>)> {
        let all = if order == 1 && samples.n_effective() <= shape[0] { all_rows(samples)? } else { None };
        let (vectors, values) = if let Some(all) = all {
            eigen_from_samples(&all, mean, rank[0])?
        } else {
            if shape[d] > DENSE_LIMIT {
                return Err(Error::TooLarge { size: shape[d], limit: DENSE_LIMIT });
            }
            let scatter = scatter(loadings, d)?;
            let eigen = leading_eigen(&scatter, rank[d]).ok_or(Error::Overflow { sample: 0 })?;
            (eigen.vectors, eigen.values)
        };
        let mut vectors = vectors;
        for j in 0..vectors.cols() {
            crate::model::fix_sign(&mut vectors, j);
        }
        Ok((vectors, values.iter().map(|v| v.max(0.0) / weight).collect()))
    };
    let mut converged = false;
    if reduced.len() <= 1 {
        // One step is exact.
        let only = reduced.first().copied();
        if let Some(d) = only {
            let (vectors, values) = solve(&loadings, d)?;
            note(values.iter().sum());
            loadings[d] = Some(vectors);
            variances[d] = values;
        } else {
            note(f64::INFINITY);
        }
        converged = true;
    } else {
        let start: Vec<Matrix> =
            reduced[1..].iter().map(|&d| Ok(solve(&loadings, d)?.0)).collect::<Result<_>>()?;
        for (&d, v) in reduced[1..].iter().zip(start) {
            loadings[d] = Some(v);
        }
        let mut before = f64::NEG_INFINITY;
        for _ in 0..max_iter.max(1) {
            let mut captured = 0.0;
            for &d in &reduced {
                let (vectors, values) = solve(&loadings, d)?;
                captured = values.iter().sum();
                loadings[d] = Some(vectors);
                variances[d] = values;
            }
            note(captured);
            if captured - before <= tol {
                converged = true;
                break;
            }
            before = captured;
        }
    }
    for d in 0..order {
        if loadings[d].is_none() {
            let scatter = scatter(&loadings, d)?;
            variances[d] = (0..shape[d]).map(|i| scatter[(i, i)] / weight).collect();
        }
    }
    let loadings =
        loadings.into_iter().zip(shape).map(|(v, &p)| v.unwrap_or_else(|| Matrix::identity(p, p))).collect();
    Ok(Loadings { loadings, variances, converged })
}

/// Whether one pass for the scatter of the flattened samples, P × P, costs less than `passes` passes for the scatters of
/// single modes: it multiplies more, but at the speed of a matrix product, and reads the samples once.
fn pays_off(samples: &dyn Engine, rank: &[usize], passes: usize) -> bool {
    let size = samples.sample_len();
    let per_element = size / 2;
    let contraction: usize = rank.iter().sum();
    samples.order() > 1
        && size <= WHOLE_LIMIT
        && samples.len() > size
        && per_element < passes * (contraction + PACKING)
}

/// Σ w Z Zᵀ of mode d from Σ w x xᵀ of the flattened samples: the loadings of the other modes applied on both sides.
fn mode_scatter(whole: &Matrix, shape: &[usize], loadings: &[Option<Matrix>], d: usize) -> Matrix {
    let reduce = |x: &[f64]| {
        let (mut x, mut sides) = (x.to_vec(), shape.to_vec());
        for (e, u) in loadings.iter().enumerate() {
            if let Some(u) = u.as_ref().filter(|_| e != d) {
                x = mode_contraction(&x, &sides, e, u);
                sides[e] = u.cols();
            }
        }
        (x, sides)
    };
    let rows: Vec<(Vec<f64>, Vec<usize>)> =
        (0..whole.rows()).into_par_iter().map(|i| reduce(whole.row(i))).collect();
    let sides = rows[0].1.clone();
    let (before, after) = sides_around(&sides, d);
    let (p, len) = (shape[d], rows[0].0.len());
    // Element (o, i, m) of the reduced samples with all others: column by column of what the rows became.
    let columns: Vec<Vec<f64>> = (0..len)
        .into_par_iter()
        .map(|c| reduce(&rows.iter().map(|(row, _)| row[c]).collect::<Vec<_>>()).0)
        .collect();
    let mut scatter = Matrix::zeros(p, p);
    for o in 0..before {
        for m in 0..after {
            let at = |i: usize| (o * p + i) * after + m;
            for i in 0..p {
                for j in 0..p {
                    scatter[(i, j)] += columns[at(j)][at(i)];
                }
            }
        }
    }
    scatter
}

/// All samples, where they can be read or are few enough to be fetched.
fn all_rows<'a>(samples: &'a dyn Engine) -> Result<Option<Cow<'a, Samples<'a>>>> {
    if let Some(samples) = samples.local().filter(|samples| !samples.is_read_ahead()) {
        return Ok(Some(Cow::Borrowed(samples)));
    }
    if samples.n_effective() * samples.sample_len() * size_of::<f64>() > FETCH_LIMIT {
        return Ok(None);
    }
    let counts = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    Ok(Some(Cow::Owned(engine::rows(samples, counts)?)))
}

/// Fewer samples than elements: the eigenvectors of X Xᵀ (N × N) lead to those of XᵀX (P × P).
fn eigen_from_samples(samples: &Samples<'_>, mean: &[f64], rank: usize) -> Result<(Matrix, Vec<f64>)> {
    let size = samples.sample_len();
    let chosen: Vec<usize> = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    let mut x = Matrix::zeros(chosen.len(), size);
    for (row, &n) in x.as_mut_slice().chunks_exact_mut(size).zip(&chosen) {
        samples.check_finite(n..n + 1)?;
        let root = samples.weight(n).sqrt();
        for ((to, from), m) in row.iter_mut().zip(samples.to_f64(n..n + 1)?).zip(mean) {
            *to = root * (from - m);
        }
    }
    let overflow = Error::Overflow { sample: 0 };
    let eigen = leading_eigen(&x.times_transpose(&x), chosen.len().min(rank)).ok_or(overflow)?;
    let largest = eigen.values.first().copied().unwrap_or(0.0);
    let mut vectors = Matrix::zeros(size, rank);
    let mut values = vec![0.0; rank];
    let mut found = 0;
    for (j, &value) in eigen.values.iter().enumerate() {
        if value > largest * 1e-12 && value > 0.0 {
            let v = x.transpose_times(&Matrix::from_vec(x.rows(), 1, eigen.vectors.col(j)));
            for i in 0..size {
                vectors[(i, found)] = v[(i, 0)];
            }
            values[found] = value;
            found += 1;
        }
    }
    // Directions without variance: completed to an orthonormal basis by unit vectors.
    let mut next = 0;
    for j in 0..rank {
        loop {
            if j >= found {
                for i in 0..size {
                    vectors[(i, j)] = f64::from(u8::from(i == next));
                }
                next += 1;
            }
            if orthonormalize(&mut vectors, j) || next > size {
                break;
            }
        }
    }
    Ok((vectors, values))
}

/// Gram–Schmidt, twice, of column j against those before it; false if nothing is left of it.
fn orthonormalize(v: &mut Matrix, j: usize) -> bool {
    let norm = |v: &Matrix| (0..v.rows()).map(|i| v[(i, j)] * v[(i, j)]).sum::<f64>().sqrt();
    let before = norm(v);
    for _ in 0..2 {
        for l in 0..j {
            let along: f64 = (0..v.rows()).map(|i| v[(i, l)] * v[(i, j)]).sum();
            for i in 0..v.rows() {
                let step = along * v[(i, l)];
                v[(i, j)] -= step;
            }
        }
    }
    let after = norm(v);
    if after <= 1e-8 * before || after == 0.0 {
        return false;
    }
    for i in 0..v.rows() {
        v[(i, j)] /= after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scatters_of_all_modes_come_from_that_of_the_flattened_samples() {
        let shape = [5, 4, 3];
        let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_989).fract() - 0.5;
        let samples = Samples::from_vec(&shape, (0..80 * 60).map(number).collect::<Vec<f64>>()).unwrap();
        let samples = samples.with_weights((0..80).map(|n| 0.5 + f64::from(n % 3)).collect()).unwrap();
        let mean: Vec<f64> = (0..60).map(|i| 0.1 * number(7 * i)).collect();
        let loadings = |d: usize, r: usize| Some(Matrix::from_fn(shape[d], r, |i, j| number(i + 9 * j + d)));
        let whole = engine::whole_scatter(&samples, &mean).unwrap();
        for loadings in [[loadings(0, 2), loadings(1, 3), loadings(2, 1)], [None, loadings(1, 2), None]] {
            for d in 0..3 {
                let expected = engine::scatter(&samples, &mean, &loadings, d).unwrap();
                let found = mode_scatter(&whole, &shape, &loadings, d);
                for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
                    assert!((a - b).abs() < 1e-11, "{a} {b}");
                }
            }
        }
    }
}
