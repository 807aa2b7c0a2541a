//! What splitting a component would gain: two components fitted to its own samples.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::passes;
use super::super::start::{self, Effort};
use super::ground::{Climbed, Ground};
use super::shapes::by_shapes;
use crate::error::{Result, optional};
use crate::model::{Component, Mixture};
use crate::parallel;

/// Passes of the two over the samples of the one. More of them sharpen the gains and change hardly any decision.
const PASSES: usize = 7;

/// Passes of the two of every start before the better one goes on.
const TRIAL_PASSES: usize = 1;

/// Two clusters are cheap, and decide what is found.
const EFFORT: Effort = Effort { candidates: 3, lloyd_steps: 2 };

/// A split is remembered as long as no more than this share of the samples of its component has changed.
const CHANGED: f64 = 0.05;

/// Two components in the place of one.
#[derive(Debug, Clone)]
pub(in crate::fit) struct Split {
    /// By how much the log-likelihood of the component's samples rises.
    pub(in crate::fit) gain: f64,
    /// Which component.
    pub(in crate::fit) component: usize,
    /// The two, with their shares of its weight.
    pub(in crate::fit) two: Mixture,
}

/// The splits of all components, remembered while a component keeps its samples.
#[derive(Default)]
pub(in crate::fit) struct Splits {
    known: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    members: Vec<usize>,
    /// What the two gained on these samples; nothing if they do not come apart.
    two: Option<(f64, Mixture)>,
}

impl Splits {
    /// Those that gain something, the best first.
    pub(in crate::fit) fn all(
        &mut self,
        ground: &Ground<'_>,
        now: &Climbed,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Split>> {
        let groups = now.groups(ground.samples);
        // One seed for each, drawn before any of them is used: threads may take them in any order.
        let seeds: Vec<u64> = groups.iter().map(|_| rng.random()).collect();
        let least = 2 * ground.least_members();
        let found = parallel::map(groups.len(), |k| match &groups[k] {
            members if members.len() < least => Ok(None),
            members => match self.known.iter().find(|known| much_the_same(&known.members, members)) {
                Some(known) => Ok(Some(known.clone())),
                None => {
                    let mut rng = ChaCha8Rng::seed_from_u64(seeds[k]);
                    let alone = |n: usize| now.joint(n, k) - now.model.weights()[k].ln();
                    let before: f64 = members.iter().map(|&n| ground.samples.weight(n) * alone(n)).sum();
                    let two = in_two(ground, members, &now.model.components()[k], before, &mut rng)?;
                    Ok(Some(Known { members: members.clone(), two }))
                }
            },
        });
        self.known.clear();
        let mut splits = Vec::new();
        for (component, known) in found.into_iter().enumerate() {
            let Some(known) = known? else { continue };
            if let Some((gain, two)) = known.two.clone() {
                splits.push(Split { gain, component, two });
            }
            self.known.push(known);
        }
        splits.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        Ok(splits)
    }
}

/// Fit two components to the samples of one and return their gain in log-likelihood; `None` without a gain or if one has too few samples.
///
/// They begin with k-means on the samples or on the shapes of single samples: components differ in their means, or in their covariances only. The
/// start that is ahead after an iteration goes on, and the other one if that fails.
fn in_two(
    ground: &Ground<'_>,
    members: &[usize],
    one: &Component,
    before: f64,
    rng: &mut ChaCha8Rng,
) -> Result<Option<(f64, Mixture)>> {
    let samples = ground.samples.clone().select(members)?;
    let held = ground.backend.over(&samples)?;
    let moments = passes::moments(&*held, false)?;
    let floor = ground.constraints.noise_floor;
    let means = start::k_means(&*held, 2, ground.rank, floor, &moments, EFFORT, rng)?;
    ground.count_distances(samples.len() * EFFORT.distances(2));
    let shapes = optional(by_shapes(ground, &samples, one, EFFORT, rng))?;
    let begun = |start| ground.rise(&samples, with_rest_of(start, one), TRIAL_PASSES);
    let mut starts = vec![begun(means)?];
    starts.extend(shapes.map(begun).map(optional).transpose()?.flatten());
    starts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let least = ground.least_members() as f64 * ground.constraints.unit;
    for (start, _) in starts {
        let (two, _) = ground.rise(&samples, start, PASSES - TRIAL_PASSES)?;
        let first = ground.updates(&samples, &two)[0];
        let sums = ground.pass(&samples, &two, first)?;
        let gain = sums.log_likelihood - before;
        if gain > 0.0 && sums.components.iter().all(|c| c.weight >= least) {
            return Ok(Some((gain, two)));
        }
    }
    Ok(None)
}

/// A start with all that a component that is there already has beside mean, loadings and noise: its tails.
fn with_rest_of(model: Mixture, like: &Component) -> Mixture {
    let components = model.components().iter().map(|c| c.clone().like(like)).collect();
    model.with_components(model.weights().to_vec(), components)
}

/// The model with these splits made: the first of the two takes the place of the component, the second goes to the end.
pub(in crate::fit) fn split(model: &Mixture, splits: &[Split]) -> Mixture {
    let (mut weights, mut components) = (model.weights().to_vec(), model.components().to_vec());
    for Split { component: k, two, .. } in splits {
        let weight = weights[*k];
        weights[*k] = weight * two.weights()[0];
        weights.push(weight * two.weights()[1]);
        components[*k] = two.components()[0].clone();
        components.push(two.components()[1].clone());
    }
    model.with_components(weights, components)
}

/// Whether two ascending lists differ in few of their entries only.
fn much_the_same(a: &[usize], b: &[usize]) -> bool {
    let allowed = (CHANGED * b.len() as f64) as usize;
    if a.len().abs_diff(b.len()) > allowed {
        return false;
    }
    let (mut i, mut j, mut differ) = (0, 0, 0);
    while i < a.len() && j < b.len() && differ <= allowed {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            std::cmp::Ordering::Less => (i, differ) = (i + 1, differ + 1),
            std::cmp::Ordering::Greater => (j, differ) = (j + 1, differ + 1),
        }
    }
    differ + (a.len() - i) + (b.len() - j) <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_changed_little_are_the_same() {
        let hundred: Vec<usize> = (0..100).collect();
        let shifted = |by: usize| (by..100 + by).collect::<Vec<_>>();
        assert!(much_the_same(&hundred, &hundred));
        assert!(much_the_same(&hundred, &shifted(2)));
        assert!(!much_the_same(&hundred, &shifted(3)));
        assert!(!much_the_same(&hundred, &hundred[..94]));
        assert!(much_the_same(&hundred[..95], &hundred));
    }
}
