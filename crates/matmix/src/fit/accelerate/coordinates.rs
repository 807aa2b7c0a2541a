//! A model as a vector that may be extrapolated, and back.

use crate::linalg::{Matrix, svd_thin};
use crate::model::{Component, Mixture};

/// The parameters as free numbers: per component ln π, ln σ², M and the loadings.
pub fn coordinates(model: &Mixture) -> Vec<f64> {
    let mut out = Vec::new();
    for (component, weight) in model.components().iter().zip(model.weights()) {
        out.extend([weight.max(f64::MIN_POSITIVE).ln(), component.noise_variance().ln()]);
        out.extend(component.mean());
        component.loadings().iter().for_each(|u| out.extend(u.as_slice()));
    }
    out
}

/// The same, with the loadings turned to lie as close as they can to those of `reference`: the model does not change
/// under U → U O, but differences and sums of iterates do (orthogonal Procrustes).
pub fn aligned(model: &Mixture, reference: &[f64]) -> Vec<f64> {
    let mut out = coordinates(model);
    let mut at = 0;
    for component in model.components() {
        at += 2 + component.mean().len();
        for u in component.loadings() {
            let (rows, cols) = (u.rows(), u.cols());
            let target = Matrix::from_vec(rows, cols, reference[at..at + rows * cols].to_vec());
            if let Some((w, _, v)) = svd_thin(&u.transpose_times(&target)) {
                out[at..at + rows * cols].copy_from_slice(u.times(&w.times_transpose(&v)).as_slice());
            }
            at += rows * cols;
        }
    }
    out
}

/// The model these coordinates stand for, or nothing if they stand for none; no noise variance is below `floor`.
pub fn model_at(like: &Mixture, coordinates: &[f64], floor: f64) -> Option<Mixture> {
    if coordinates.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut rest = coordinates;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at(count);
        rest = left;
        taken
    };
    let (mut weights, mut components) = (Vec::new(), Vec::new());
    for component in like.components() {
        let logarithms = take(2);
        weights.push(logarithms[0]);
        let mean = take(component.mean().len()).to_vec();
        let mut loadings = Vec::new();
        for u in component.loadings() {
            loadings.push(Matrix::from_vec(u.rows(), u.cols(), take(u.rows() * u.cols()).to_vec()));
        }
        let noise = logarithms[1].exp().max(floor);
        if !(noise.is_finite() && noise > 0.0) {
            return None;
        }
        // Canonical to the last bit: loadings that are so up to 1e-10 would do for a stored model, but not beside noise
        // that is smaller than the cores by as much.
        components.push(Component::from_step(mean, loadings, noise));
    }
    let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = weights.iter().map(|w| (w - largest).exp()).collect();
    Mixture::new(like.shape(), weights, components).ok()
}

/// How much a change of each coordinate changes the density: the diagonal of the Fisher information, roughly.
/// Without it pixels, logarithms and loadings would be added as if they had the same unit.
pub fn metric(model: &Mixture) -> Vec<f64> {
    let mut out = Vec::new();
    for (component, &weight) in model.components().iter().zip(model.weights()) {
        let size = component.mean().len();
        let precision = weight / component.noise_variance();
        out.extend([weight, 0.5 * size as f64 * weight]);
        out.extend(vec![precision; size]);
        let traces: Vec<f64> = component.loadings().iter().map(|u| u.inner(u)).collect();
        for (d, u) in component.loadings().iter().enumerate() {
            let others: f64 =
                traces.iter().enumerate().map(|(e, trace)| if e == d { 1.0 } else { *trace }).product();
            out.extend(vec![precision * others; u.rows() * u.cols()]);
        }
    }
    out
}
