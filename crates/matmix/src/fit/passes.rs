//! The passes a fit asks for besides those of its loop.

use crate::data::Missing;
use crate::error::Result;
use crate::linalg::Matrix;
use crate::pass::{Engine, GroupSums, GroupsPass, Moments, MomentsPass, ScatterPass, ScatterSums};

/// Mean and variance of all samples, and their digest if it is asked for. Also where NaN and infinity are found before a fit begins.
pub(super) fn moments(engine: &dyn Engine, digest: bool) -> Result<Moments> {
    // Sums of differences from one of the samples do not cancel the way sums of squares would; one that counts, so that
    // it lies among the others.
    let heavier = |a: usize, b: usize| if engine.weight(b) > engine.weight(a) { b } else { a };
    let first = engine.weights().map_or(0, |weights| (1..weights.len()).fold(0, heavier));
    let mut origin = engine.fetch(vec![first])?.to_f64(0..1)?;
    if origin.iter().any(|x| x.is_infinite() || x.is_nan() && engine.missing() == Missing::Error) {
        // The pass will find it, or one before it.
        origin.fill(0.0);
    }
    // What is missing of it is put in the middle of the rest.
    let observed: Vec<f64> = origin.iter().copied().filter(|x| !x.is_nan()).collect();
    let middle = observed.iter().sum::<f64>() / observed.len().max(1) as f64;
    origin.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = middle);
    let pass = MomentsPass { origin, digest };
    Ok(engine.sums(&pass)?.moments(&pass.origin))
}

/// Σ w Z Zᵀ of some modes in one pass, and the squares of the samples.
pub(super) fn scatters(
    engine: &dyn Engine,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    modes: &[usize],
) -> Result<ScatterSums> {
    engine.sums(&ScatterPass { mean: mean.to_vec(), loadings: loadings.to_vec(), modes: modes.to_vec() })
}

/// Σ w x xᵀ of the flattened samples, P × P: every scatter of every mode can be made from it.
pub(super) fn whole_scatter(engine: &dyn Engine, mean: &[f64]) -> Result<ScatterSums> {
    scatters(engine, mean, &vec![None; engine.order()], &[])
}

/// The sums of the samples nearest to each centre.
pub(super) fn groups(engine: &dyn Engine, centres: &[Vec<f64>], reference: &[f64]) -> Result<GroupSums> {
    engine.sums(&GroupsPass { centres: centres.to_vec(), reference: reference.to_vec() })
}
