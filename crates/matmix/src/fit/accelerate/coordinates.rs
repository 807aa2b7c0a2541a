//! A mixture as a vector that may be extrapolated, and back.

use super::super::steps::Extrapolation;
use super::LATE;
use crate::linalg::{Matrix, svd_thin};
use crate::model::{Component, Kind, Mixture, Parameter};

/// The space of mixtures of one shape and rank.
#[derive(Debug, Clone, Copy)]
pub struct MixtureSpace {
    /// No noise variance is below this.
    pub floor: f64,
    /// The unit that noise variances are counted in: logarithms of them have the same bits in every unit of the data.
    pub unit: f64,
    /// No degrees of freedom are below this.
    pub min_degrees: f64,
    /// P.
    pub sample_len: usize,
}

impl Extrapolation<Mixture> for MixtureSpace {
    fn late(&self) -> f64 {
        LATE * self.sample_len as f64
    }

    fn coordinates(&self, model: &Mixture) -> Vec<f64> {
        coordinates(model, self.unit)
    }

    fn aligned(&self, model: &Mixture, reference: &[f64]) -> Vec<f64> {
        aligned(model, reference, self.unit)
    }

    fn metric(&self, model: &Mixture) -> Vec<f64> {
        metric(model)
    }

    fn at(&self, like: &Mixture, coordinates: &[f64]) -> Option<Mixture> {
        model_at(like, coordinates, (self.floor, self.unit, self.min_degrees))
    }
}

/// Hands every parameter of every component to `each`: the component, what it is and its values.
fn each_parameter(model: &Mixture, mut each: impl FnMut(usize, &Parameter, &[f64])) {
    let (parameters, _) = model.components()[0].parameters();
    for (k, component) in model.components().iter().enumerate() {
        for parameter in &parameters {
            each(k, parameter, &component.value(parameter.kind).unwrap_or_default());
        }
    }
}

/// The parameters as free numbers: ln π of all components, then their parameters; those that are positive as logarithms, noise variances in `unit`.
pub fn coordinates(model: &Mixture, unit: f64) -> Vec<f64> {
    let mut out: Vec<f64> = model.weights().iter().map(|w| w.max(f64::MIN_POSITIVE).ln()).collect();
    each_parameter(model, |_, parameter, values| {
        out.extend(values.iter().map(|&x| parameter.coordinate(x, unit)));
    });
    out
}

/// The same, with the loadings turned to lie as close as they can to those of `reference`: the model does not change
/// under U → U O, but differences and sums of iterates do (orthogonal Procrustes).
pub fn aligned(model: &Mixture, reference: &[f64], unit: f64) -> Vec<f64> {
    let mut out = coordinates(model, unit);
    let mut at = model.n_components();
    let (mut first, order) = (0..0, model.shape().len() as f64);
    each_parameter(model, |k, parameter, values| {
        let place = at..at + values.len();
        at = place.end;
        if let Kind::Loading(d) = parameter.kind {
            let u = &model.components()[k].loadings()[d];
            let target = Matrix::from_vec(u.rows(), u.cols(), reference[place.clone()].to_vec());
            if let Some((w, _, v)) = svd_thin(&u.transpose_times(&target)) {
                out[place.clone()].copy_from_slice(u.times(&w.times_transpose(&v)).as_slice());
            }
            // Where the power of two that the first mode has more than the others came or went.
            let moved = (order * 0.5 * (target.inner(&target) / u.inner(u)).log2()).round() / order;
            match d {
                0 => first = place,
                _ if moved != 0.0 && moved.is_finite() => {
                    out[place].iter_mut().for_each(|x| *x *= moved.exp2());
                    out[first.clone()].iter_mut().for_each(|x| *x *= (-moved).exp2());
                }
                _ => {}
            }
        }
    });
    out
}

/// The model these coordinates stand for, or nothing if they stand for none. The bounds are the smallest noise variance, the unit of noise
/// variances, and the smallest degrees of freedom.
pub fn model_at(like: &Mixture, coordinates: &[f64], bounds: (f64, f64, f64)) -> Option<Mixture> {
    if coordinates.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let (logarithms, mut rest) = coordinates.split_at(like.n_components());
    let (parameters, _) = like.components()[0].parameters();
    let mut components = Vec::new();
    for old in like.components() {
        let component = Component::assemble(like.shape(), &parameters, |parameter| {
            let (taken, left) = rest.split_at(parameter.len());
            rest = left;
            let before = old.value(parameter.kind).unwrap_or_default();
            Ok(taken.iter().zip(before.iter()).map(|(&x, &old)| parameter.number(x, old, bounds)).collect())
        });
        // Canonical to the last bit: loadings that are so up to 1e-10 would do for a stored model, but not beside noise
        // that is smaller than the cores by as much.
        components.push(component.ok()?.canonical());
    }
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A component without weight stays without.
    let weight = |(log, old): (&f64, &f64)| if *old == 0.0 { 0.0 } else { (log - largest).exp() };
    let weights = logarithms.iter().zip(like.weights()).map(weight).collect();
    Mixture::new(like.shape(), weights, components).ok()?.with_classes(like.classes().cloned()).ok()
}

/// How much a change of each coordinate changes the density: the diagonal of the Fisher information, roughly.
/// Without it pixels, logarithms and loadings would be added as if they had the same unit.
pub fn metric(model: &Mixture) -> Vec<f64> {
    let mut out = model.weights().to_vec();
    each_parameter(model, |k, parameter, values| {
        let worth = model.components()[k].worth(parameter.kind, model.weights()[k]);
        out.extend(std::iter::repeat_n(worth, values.len()));
    });
    out
}
