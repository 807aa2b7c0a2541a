//! Components that die are begun anew where the model explains the data worst.
//!
//! First as a rival of the component that explains the worst sample: with half its weight, and two iterations to
//! find its feet. If the log-likelihood has not risen by then, once more as an outsider with the weight of one sample.
//! A new place is only kept if the log-likelihood rises, so that a history never falls; a component that found no
//! better place twice is left where it is and reported.

use super::em::{Evaluated, Loop};
use super::engine;
use super::history::{Event, History};
use super::maximize::least_weight;
use crate::error::Result;
use crate::model::{Component, Mixture};

/// How often a component may be moved or tried.
const TRIES: usize = 2;

/// How many iterations a rival has to prove itself.
const TRIAL_ITERATIONS: usize = 2;

/// Tries to move the lightest component that has too few samples to the least likely sample.
pub(super) fn revive(
    fit: &Loop<'_>,
    model: Mixture,
    now: Evaluated,
    tries: &mut [usize],
    history: &mut History,
) -> Result<(Mixture, Evaluated)> {
    let least = (least_weight(&fit.rank) * fit.unit).min(0.5 * fit.engine.total_weight());
    let dying = (0..model.n_components())
        .filter(|&k| now.weights[k] < least && tries[k] < TRIES)
        .min_by(|&a, &b| now.weights[a].total_cmp(&now.weights[b]));
    let worst = now.sums.as_ref().map_or(&[][..], |s| &s.worst);
    let Some((k, &(_, sample))) = dying.zip(worst.first()) else {
        return Ok((model, now));
    };
    let rival = tries[k] == 0;
    tries[k] += 1;
    let mut moved = moved(fit, &model, k, sample, rival)?;
    let mut after = fit.evaluate(&moved)?;
    for _ in 0..if rival { TRIAL_ITERATIONS } else { 0 } {
        (moved, after) = fit.iterate(moved, after)?;
    }
    if after.log_likelihood > now.log_likelihood {
        let iteration = history.log_likelihood.len();
        history.events.push(Event::Reseeded { iteration, component: k, sample });
        return Ok((moved, after));
    }
    Ok((model, now))
}

/// The model with component `k` at a sample, shaped like the component that explains that sample best.
fn moved(fit: &Loop<'_>, model: &Mixture, k: usize, sample: usize, rival: bool) -> Result<Mixture> {
    let alone = engine::rows(fit.engine, vec![sample])?;
    let best = model.assign(&alone)?[0];
    let best = if best == k { heaviest(model, k) } else { best };
    let like = &model.components()[best];
    let mut components = model.components().to_vec();
    let mean = alone.to_f64(0..1)?;
    components[k] = Component::from_step(mean, like.loadings().to_vec(), like.noise_variance());
    let mut weights = model.weights().to_vec();
    weights[k] = 0.0;
    let rest: f64 = weights.iter().sum();
    let share =
        if rival { 0.5 * weights[best] / rest } else { 1.0 / (fit.engine.n_effective() as f64 + 1.0) };
    if rival {
        weights[best] *= 0.5;
    }
    let rest: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w *= (1.0 - share) / rest);
    weights[k] = share;
    Ok(model.with_parts(weights, components))
}

fn heaviest(model: &Mixture, except: usize) -> usize {
    (0..model.n_components())
        .filter(|&j| j != except)
        .max_by(|&a, &b| model.weights()[a].total_cmp(&model.weights()[b]))
        .unwrap_or(except)
}
