//! Components that die are begun anew where the model explains the data worst.
//!
//! A new place is only kept if the log-likelihood rises, so that a history never falls; a component that found no
//! better place twice is left where it is and reported.

use super::em::{Evaluated, Loop};
use super::history::{Event, History};
use super::maximize::least_weight;
use crate::error::Result;
use crate::model::{Component, Mixture};

/// How often a component may be moved or tried.
const TRIES: usize = 2;

/// Tries to move the lightest component that has too few samples to the least likely sample.
pub(super) fn revive(
    fit: &Loop<'_>,
    model: Mixture,
    now: Evaluated,
    tries: &mut [usize],
    history: &mut History,
) -> Result<(Mixture, Evaluated)> {
    let least = (least_weight(&fit.rank) * fit.unit).min(0.5 * fit.samples.total_weight());
    let dying = (0..model.n_components())
        .filter(|&k| now.weights[k] < least && tries[k] < TRIES)
        .min_by(|&a, &b| now.weights[a].total_cmp(&now.weights[b]));
    let worst = now.sums.as_ref().map_or(&[][..], |s| &s.worst);
    let Some((k, &(_, sample))) = dying.zip(worst.get(dying.map_or(0, |k| tries[k]))) else {
        return Ok((model, now));
    };
    tries[k] += 1;
    let moved = moved(fit, &model, k, sample)?;
    let after = fit.evaluate(&moved)?;
    if after.log_likelihood > now.log_likelihood {
        let iteration = history.log_likelihood.len();
        history.events.push(Event::Reseeded { iteration, component: k, sample });
        return Ok((moved, after));
    }
    Ok((model, now))
}

/// The model with component `k` at a sample, shaped like the component that explains that sample best.
fn moved(fit: &Loop<'_>, model: &Mixture, k: usize, sample: usize) -> Result<Mixture> {
    let alone = fit.samples.clone().select(&[sample])?;
    let like = model.assign(&alone)?[0];
    let like = &model.components()[if like == k { heaviest(model, k) } else { like }];
    let mean = alone.to_f64(0..1)?;
    let mut components = model.components().to_vec();
    components[k] = Component::from_step(mean, like.loadings().to_vec(), like.noise_variance());
    let weight = 1.0 / (fit.samples.n_effective() as f64 + 1.0);
    let rest: f64 = (0..model.n_components()).filter(|&j| j != k).map(|j| model.weights()[j]).sum();
    let weights = (0..model.n_components())
        .map(|j| if j == k { weight } else { model.weights()[j] / rest * (1.0 - weight) })
        .collect();
    Ok(model.from_step(weights, components))
}

fn heaviest(model: &Mixture, except: usize) -> usize {
    (0..model.n_components())
        .filter(|&j| j != except)
        .max_by(|&a, &b| model.weights()[a].total_cmp(&model.weights()[b]))
        .unwrap_or(except)
}
