//! Components that die are begun anew where the model explains the data worst.
//!
//! First as a rival of the component that explains the worst sample: with half its weight, and two iterations to
//! find its feet. If the log-likelihood has not risen by then, once more as an outsider with the weight of one sample.
//! A new place is only kept if the log-likelihood rises, so that a history never falls; a component that found no
//! better place twice is left where it is and reported.

use super::maximize::least_weight;
use super::mixture::MixtureSteps;
use super::steps::{Evaluation, Steps};
use crate::error::Result;
use crate::model::{Event, History, Mixture};
use crate::pass::{AskPass, EmSums, Question};
use crate::temper::Temper;
use crate::walk::Stage;

/// How often a component may be moved or tried.
const TRIES: usize = 2;

/// How many iterations a rival has to prove itself.
const TRIAL_ITERATIONS: usize = 2;

/// Tries to move the lightest component that has too few samples to the least likely sample.
pub(super) fn revive(
    fit: &mut MixtureSteps<'_>,
    model: &Mixture,
    now: &Evaluation<EmSums>,
    stage: Stage,
    history: &mut History,
) -> Result<Option<(Mixture, Evaluation<EmSums>)>> {
    let about = &fit.about;
    let least = (least_weight(&about.rank) * about.unit).min(0.5 * about.engine.total_weight());
    let weights: Vec<f64> = now.sums.components.iter().map(|c| c.weight).collect();
    let dying = (0..model.n_components())
        .filter(|&k| weights[k] < least && fit.tries[k] < TRIES)
        .min_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    // A sample of another class could not be one of the component.
    let own = dying.and_then(|k| model.classes().map(|classes| classes.components()[k] as u32));
    let can_be = |class: Option<u32>| class.is_none() || own.is_none() || class == own;
    let known = |n: usize| about.engine.classes().and_then(|classes| classes[n]);
    let worst = now.sums.worst.iter().find(|(_, sample)| can_be(known(*sample)));
    let Some((k, &(_, sample))) = dying.zip(worst) else {
        return Ok(None);
    };
    let rival = fit.tries[k] == 0;
    fit.tries[k] += 1;
    let mut moved = moved(fit, model, k, sample, rival)?;
    let passes = stage.share() * fit.passes_per_iteration() as f64;
    history.passes += stage.share();
    let mut after = fit.evaluate(&moved, stage)?;
    for _ in 0..if rival { TRIAL_ITERATIONS } else { 0 } {
        moved = fit.update(&moved, after.sums, stage)?;
        history.passes += passes;
        after = fit.evaluate(&moved, stage)?;
    }
    if after.log_likelihood > now.log_likelihood {
        let iteration = history.n_iterations() + 1;
        history.events.push(Event::Reseeded { iteration, component: k, sample });
        return Ok(Some((moved, after)));
    }
    Ok(None)
}

/// The model with component `k` at a sample, shaped like the component that explains that sample best.
fn moved(fit: &MixtureSteps<'_>, model: &Mixture, k: usize, sample: usize, rival: bool) -> Result<Mixture> {
    let engine = fit.about.engine;
    let alone = engine.fetch(vec![sample])?;
    let held = engine.backend().over(&alone)?;
    let best = held.sums(&AskPass::one(model.clone().into(), Question::Component))?.values[0] as usize;
    let best = if best == k { heaviest(model, k) } else { best };
    let like = &model.components()[best];
    let mut components = model.components().to_vec();
    let mut mean = alone.to_f64(0..1)?;
    if mean.iter().any(|x| x.is_nan()) {
        mean = model.impute_on(engine.backend(), &alone, Temper::None)?.values;
    }
    components[k] = like.moved_to(mean);
    let mut weights = model.weights().to_vec();
    weights[k] = 0.0;
    let rest: f64 = weights.iter().sum();
    let share = if rival { 0.5 * weights[best] / rest } else { 1.0 / (engine.n_effective() as f64 + 1.0) };
    if rival {
        weights[best] *= 0.5;
    }
    let rest: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w *= (1.0 - share) / rest);
    weights[k] = share;
    Ok(model.with_components(weights, components))
}

fn heaviest(model: &Mixture, except: usize) -> usize {
    (0..model.n_components())
        .filter(|&j| j != except)
        .max_by(|&a, &b| model.weights()[a].total_cmp(&model.weights()[b]))
        .unwrap_or(except)
}
