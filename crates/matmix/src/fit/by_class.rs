//! Where a fit begins if labels of samples are known: every class is divided into clusters by itself.

use rand::seq::index::sample as distinct;
use rand_chacha::ChaCha8Rng;

use super::mixture::About;
use super::options::Start;
use super::passes;
use super::start::{self, Clusters, Effort};
use crate::data::Samples;
use crate::error::Result;
use crate::model::{Classes, Mixture};
use crate::pass::{DistancesPass, Engine};
use crate::walk::Stage;

/// Clusters of fewer labelled samples than these per column of the widest mode's loadings are joined by the unlabelled samples nearest
/// to them: fewer say too little about loadings.
const ENOUGH_PER_COLUMN: usize = 4;

/// The start of a labelled fit: k-means within every class, or labelled samples of it drawn at random.
pub(super) fn start(about: &About<'_>, rng: &mut ChaCha8Rng) -> Result<Mixture> {
    let options = about.options;
    let model = match options.start {
        Start::Random => {
            let chosen = labelled(about.engine, options.classes.len());
            let chosen = chosen.iter().flat_map(|of_class| draw(of_class, options.components, rng)).collect();
            start::random(about.engine, chosen, &about.rank, about.floor, &about.moments, rng)?
        }
        _ => k_means(about, rng)?,
    };
    model.with_classes(Some(Classes::even(options.classes.clone(), options.components)?))
}

/// The samples of positive weight that are known to be of each class.
fn labelled(engine: &dyn Engine, classes: usize) -> Vec<Vec<usize>> {
    let mut labelled = vec![Vec::new(); classes];
    for (n, class) in engine.classes().unwrap_or_default().iter().enumerate() {
        if let Some(class) = class
            && engine.weight(n) > 0.0
        {
            labelled[*class as usize].push(n);
        }
    }
    labelled
}

/// So many of these, or all of them, at random.
fn draw(of: &[usize], count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    distinct(rng, of.len(), count.min(of.len())).iter().map(|i| of[i]).collect()
}

/// How many labelled samples the class that has fewest of them has in a part of the set.
pub(super) fn fewest_labelled(about: &About<'_>, stage: Stage) -> usize {
    let of_classes = labelled(about.engine, about.options.classes.len());
    let count = |of_class: &Vec<usize>| of_class.iter().filter(|&&n| stage.holds(n)).count();
    of_classes.iter().map(count).min().unwrap_or(usize::MAX)
}

/// k-means on the labelled samples of every class. Where these are few, unlabelled samples join the nearest cluster.
fn k_means(about: &About<'_>, rng: &mut ChaCha8Rng) -> Result<Mixture> {
    let (engine, options) = (about.engine, about.options);
    let (classes, per_class) = (options.classes.len(), options.components);
    let subset_len = start::subset_len(engine, options.n_components());
    let whole = engine.len() <= subset_len;
    let drawn = if whole { None } else { Some(drawn(engine, classes, subset_len, rng)) };
    let samples = match &drawn {
        None => start::at_hand(engine, subset_len, rng)?,
        Some(drawn) => std::borrow::Cow::Owned(engine.fetch(drawn.clone())?),
    };
    let samples = &*samples;
    let held = engine.backend().over(samples)?;
    let (mut members, mut centres) = (vec![Vec::new(); classes * per_class], Vec::new());
    for (class, own) in labelled(samples, classes).into_iter().enumerate() {
        let of_class = samples.clone().select(&own)?;
        let held = engine.backend().over(&of_class)?;
        let seen = passes::moments(&*held, false)?;
        let unit = of_class.total_weight() / of_class.n_effective() as f64;
        let middle = seen.mean_towards(&about.moments.mean, unit);
        let effort = Effort::for_start(per_class);
        let (of_clusters, groups) = start::cluster(&of_class, &*held, per_class, &middle, effort, rng)?;
        centres.extend(of_clusters);
        own.iter().zip(groups).for_each(|(&n, k)| members[class * per_class + k].push(n));
    }
    let enough = ENOUGH_PER_COLUMN * about.rank.iter().copied().max().unwrap_or(1);
    if members.iter().any(|members| members.len() < enough) {
        join(samples, &*held, &centres, &about.moments.mean, &mut members)?;
    }
    let counts = drawn.map(|drawn| counts(engine, &drawn, classes));
    let found = Clusters { samples, held: &*held, whole, members, known: None, counts };
    found.mixture(engine, &about.rank, about.floor, &about.moments)
}

/// The unlabelled samples join the clusters of the nearest centres.
fn join(
    samples: &Samples<'_>,
    held: &dyn Engine,
    centres: &[Vec<f64>],
    reference: &[f64],
    members: &mut [Vec<usize>],
) -> Result<()> {
    let pass = DistancesPass { points: centres.to_vec(), reference: reference.to_vec() };
    let distances = held.sums(&pass)?.values;
    for (n, distances) in distances.chunks_exact(centres.len()).enumerate() {
        let unlabelled = samples.classes().is_none_or(|classes| classes[n].is_none());
        if unlabelled && samples.weight(n) > 0.0 {
            let nearer = |a: usize, b: usize| if distances[b] < distances[a] { b } else { a };
            members[(1..distances.len()).fold(0, nearer)].push(n);
        }
    }
    Ok(())
}

/// So many samples, ascending: as many of each class as of any other, as far as there are, and as many unlabelled ones as that.
fn drawn(engine: &dyn Engine, classes: usize, count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let share = count.div_ceil(classes + 1);
    let known = engine.classes().unwrap_or_default();
    let unlabelled: Vec<usize> =
        (0..known.len()).filter(|&n| known[n].is_none() && engine.weight(n) > 0.0).collect();
    let groups = labelled(engine, classes).into_iter().chain([unlabelled]);
    let mut drawn: Vec<usize> = groups.flat_map(|group| draw(&group, share, rng)).collect();
    drawn.sort_unstable();
    drawn
}

/// The weight that each drawn sample stands for: its share of what is known to be of its class, or of what is not known at all.
fn counts(engine: &dyn Engine, drawn: &[usize], classes: usize) -> Vec<f64> {
    let known = engine.classes().unwrap_or_default();
    let group = |n: usize| known[n].map_or(classes, |class| class as usize);
    let totals = |of: &mut dyn Iterator<Item = usize>| {
        let mut totals = vec![0.0; classes + 1];
        of.for_each(|n| totals[group(n)] += engine.weight(n));
        totals
    };
    let (all, some) = (totals(&mut (0..known.len())), totals(&mut drawn.iter().copied()));
    drawn.iter().map(|&n| engine.weight(n) * all[group(n)] / some[group(n)]).collect()
}
