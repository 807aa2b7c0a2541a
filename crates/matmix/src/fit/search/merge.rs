//! What merging two components would lose: from their parameters for all pairs, from their samples for the cheapest.
//!
//! A population that is a mixture of two components has a mean and a covariance in closed form,
//!
//! ```text
//! M = Σ t_i M_i        C = Σ t_i ( ⊗_d U_i^(d) U_i^(d)ᵀ + σ_i² I + (M_i − M)(M_i − M)ᵀ )
//! ```
//!
//! and so have the scatters of its modes, of which the component that takes the place of both has the leading eigenvectors. How likely the
//! samples of either are under it follows from parameters as well. Student-t components are ranked as if their noise were Gaussian.

use super::super::start;
use super::ground::{Climbed, Ground, log_sum};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, leading_eigen, project, sides_around};
use crate::model::{Component, Density, Mixture};
use crate::parallel;

/// Pairs per component whose joint component is computed; the rest are told apart by giving the samples of the one to the other.
const PAIRS: usize = 3;

/// Alternations over the modes for the loadings of a pair.
const ALTERNATIONS: usize = 3;

/// Passes of a joint component over the samples of the pair before its loss is measured.
const PASSES: usize = 1;

/// One component in the place of two.
#[derive(Debug, Clone)]
pub(in crate::fit) struct Merge {
    /// By how much the log-likelihood of the samples of both falls.
    pub(in crate::fit) loss: f64,
    /// Which two, the larger number first.
    pub(in crate::fit) pair: [usize; 2],
    /// What takes their place.
    pub(in crate::fit) one: Component,
    /// The samples of both, and ln p of each under it.
    members: Vec<usize>,
    densities: Vec<f64>,
}

/// What merges would lose by the parameters of the pair, remembered while neither of the two changes.
#[derive(Default)]
pub(in crate::fit) struct Losses {
    known: Vec<Guess>,
}

#[derive(Clone)]
struct Guess {
    pair: [Component; 2],
    one: Component,
    /// Per sample of the pair.
    loss: f64,
}

impl Losses {
    /// The cheapest merges by their parameters, so many of them, with their losses measured on the samples concerned.
    pub(in crate::fit) fn cheapest(
        &mut self,
        ground: &Ground<'_>,
        now: &Climbed,
        count: usize,
    ) -> Result<Vec<Merge>> {
        let model = &now.model;
        let pairs = likely_pairs(model);
        let guesses = parallel::map(pairs.len(), |at| {
            let [i, j] = pairs[at];
            let (a, b) = (&model.components()[i], &model.components()[j]);
            match self.known.iter().find(|known| known.pair[0] == *a && known.pair[1] == *b) {
                Some(known) => Ok(known.clone()),
                None => guess([a, b], [model.weights()[i], model.weights()[j]], ground),
            }
        });
        self.known = guesses.into_iter().collect::<Result<_>>()?;
        let weight = |at: usize| model.weights()[pairs[at][0]] + model.weights()[pairs[at][1]];
        let loss = |at: usize| weight(at) * self.known[at].loss;
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|&a, &b| loss(a).total_cmp(&loss(b)));
        order.truncate(count);
        let groups = now.groups(ground.samples);
        parallel::map(order.len(), |at| {
            measured(ground, now, &groups, pairs[order[at]], &self.known[order[at]].one)
        })
        .into_iter()
        .collect()
    }
}

/// A merge with its loss on the samples of the pair.
fn measured(
    ground: &Ground<'_>,
    now: &Climbed,
    groups: &[Vec<usize>],
    pair: [usize; 2],
    one: &Component,
) -> Result<Merge> {
    let [i, j] = pair;
    let mut members = [&groups[i][..], &groups[j]].concat();
    members.sort_unstable();
    if members.is_empty() {
        return Ok(Merge { loss: 0.0, pair, one: one.clone(), members, densities: vec![] });
    }
    let samples = ground.samples.clone().select(&members)?;
    let alone = Mixture::new(samples.shape(), vec![1.0], vec![one.clone()])?;
    let (alone, _) = ground.rise(&samples, alone, PASSES)?;
    let densities = ground.densities(&samples, &alone)?;
    let weight = (now.model.weights()[i] + now.model.weights()[j]).ln();
    let lost = |(&n, ln_p): (&usize, &f64)| {
        ground.samples.weight(n) * (log_sum(&[now.joint(n, i), now.joint(n, j)]) - ln_p - weight)
    };
    let loss = members.iter().zip(&densities).map(lost).sum();
    Ok(Merge { loss, pair, one: alone.components()[0].clone(), members, densities })
}

/// The model with a merge made, and what it says about the samples as long as each stays where it is.
pub(in crate::fit) fn merged(now: &Climbed, merge: &Merge, ground: &Ground<'_>) -> Climbed {
    let (model, [i, j]) = (&now.model, merge.pair);
    let (mut weights, mut components) = (model.weights().to_vec(), model.components().to_vec());
    weights[i] += weights[j];
    components[i] = merge.one.clone();
    let mut joint = now.joint.clone();
    let rows = joint.chunks_exact_mut(components.len());
    rows.for_each(|row| row[i] = f64::NEG_INFINITY);
    for (&n, ln_p) in merge.members.iter().zip(&merge.densities) {
        joint[n * components.len() + i] = ln_p + weights[i].ln();
    }
    let without = |row: &[f64]| [&row[..j], &row[j + 1..]].concat();
    let joint = joint.chunks_exact(components.len()).flat_map(without).collect();
    weights.remove(j);
    components.remove(j);
    Climbed::new(model.with_components(weights, components), joint, ground.samples)
}

/// Pairs that may be cheap to merge.
fn likely_pairs(model: &Mixture) -> Vec<[usize; 2]> {
    let (k, components, weights) = (model.n_components(), model.components(), model.weights());
    let mut pairs: Vec<[usize; 2]> = (0..k).flat_map(|i| (0..i).map(move |j| [i, j])).collect();
    if pairs.len() > PAIRS * k {
        let own: Vec<f64> = components.iter().map(|c| expected(c, c)).collect();
        let loss = |from: usize, to: usize| {
            weights[from] * (own[from] - expected(&components[from], &components[to]))
        };
        let losses = parallel::map(pairs.len(), |at| {
            let [i, j] = pairs[at];
            loss(i, j).min(loss(j, i))
        });
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        pairs = order.into_iter().take(PAIRS * k).map(|at| pairs[at]).collect();
    }
    pairs
}

/// The joint component of a pair and what it loses per sample, from parameters.
fn guess(pair: [&Component; 2], weights: [f64; 2], ground: &Ground<'_>) -> Result<Guess> {
    let total = weights[0] + weights[1];
    let shares = match total > 0.0 {
        true => weights.map(|w| w / total),
        false => [0.5; 2],
    };
    let one = joint_component(pair, shares, ground)?;
    let loss = pair.iter().zip(shares).map(|(part, share)| match share > 0.0 {
        true => share * (expected(part, part) + share.ln() - expected(part, &one)),
        false => 0.0,
    });
    Ok(Guess { loss: loss.sum(), pair: pair.map(Clone::clone), one })
}

/// E ln p(X | under) of X from a component, as if both were Gaussian.
fn expected(of: &Component, under: &Component) -> f64 {
    let shape: Vec<usize> = of.loadings().iter().map(Matrix::rows).collect();
    let apart: Vec<f64> = of.mean().iter().zip(under.mean()).map(|(a, b)| a - b).collect();
    let y = project(&apart, &shape, under.loadings(), None);
    // The variance of a core entry of `under` is a product over the modes, and the noise along it.
    let mut variances = vec![1.0];
    for (own, other) in of.loadings().iter().zip(under.loadings()) {
        let along = own.transpose_times(other).column_norms_squared();
        variances = variances.iter().flat_map(|&v| along.iter().map(move |&a| v * a)).collect();
    }
    let density = Density::gaussian(under);
    let mut explained = 0.0;
    for (((y, variance), s), p) in
        y.iter().zip(&variances).zip(under.core_variances()).zip(&density.precision)
    {
        explained += (y * y + variance + of.noise_variance() * s) * p;
    }
    let squares = apart.iter().map(|d| d * d).sum::<f64>() + of.total_variance();
    density.log_density(density.mahalanobis(squares, explained))
}

/// The component of a population that is a mixture of two.
fn joint_component(pair: [&Component; 2], shares: [f64; 2], ground: &Ground<'_>) -> Result<Component> {
    let (shape, rank) = (ground.samples.shape(), ground.rank);
    let mean: Vec<f64> =
        pair[0].mean().iter().zip(pair[1].mean()).map(|(a, b)| shares[0] * a + shares[1] * b).collect();
    let apart = pair.map(|part| part.mean().iter().zip(&mean).map(|(a, b)| a - b).collect::<Vec<f64>>());
    let variance: f64 = (0..2)
        .map(|i| shares[i] * (pair[i].total_variance() + apart[i].iter().map(|d| d * d).sum::<f64>()))
        .sum();
    // Orthonormal loadings, alternating; every other mode is whole at first.
    let mut loadings: Vec<Option<Matrix>> = vec![None; shape.len()];
    let mut variances = vec![vec![]; shape.len()];
    for _ in 0..if shape.len() > 1 { ALTERNATIONS } else { 1 } {
        for d in 0..shape.len() {
            let scatter = scatter(pair, shares, &apart, &loadings, shape, d);
            let eigen = leading_eigen(&scatter, rank[d]).ok_or(Error::Overflow { sample: 0 })?;
            variances[d] = eigen.values.iter().map(|v| v.max(0.0)).collect();
            loadings[d] = Some(eigen.vectors);
        }
    }
    let loadings: Vec<Matrix> = loadings.into_iter().flatten().collect();
    let floor = ground.constraints.noise_floor;
    let one = start::scaled_component(shape, mean, loadings, &variances, variance, floor)?;
    one.between(pair, shares, shape)
}

/// E[Z Zᵀ] of mode d with Z = unfold_d((X − M) ×_{e≠d} V^(e)ᵀ) for orthonormal V; those that are not there are the identity.
fn scatter(
    pair: [&Component; 2],
    shares: [f64; 2],
    apart: &[Vec<f64>; 2],
    loadings: &[Option<Matrix>],
    shape: &[usize],
    d: usize,
) -> Matrix {
    let others = || (0..shape.len()).filter(|&e| e != d);
    let kept: usize = others().map(|e| loadings[e].as_ref().map_or(shape[e], Matrix::cols)).product();
    let mut sum = Matrix::zeros(shape[d], shape[d]);
    for ((part, share), apart) in pair.into_iter().zip(shares).zip(apart) {
        let seen = |e: usize| match &loadings[e] {
            Some(v) => part.loadings()[e].transpose_times(v).column_norms_squared().iter().sum::<f64>(),
            None => part.loadings()[e].column_norms_squared().iter().sum(),
        };
        let own = &part.loadings()[d];
        sum.add_scaled(share * others().map(seen).product::<f64>(), &own.times_transpose(own));
        for i in 0..shape[d] {
            sum[(i, i)] += share * part.noise_variance() * kept as f64;
        }
        let (mut z, mut sides) = (apart.clone(), shape.to_vec());
        for e in others() {
            if let Some(v) = &loadings[e] {
                z = crate::linalg::mode_contraction(&z, &sides, e, v);
                sides[e] = v.cols();
            }
        }
        let (before, after) = sides_around(&sides, d);
        let unfolded = Matrix::from_fn(shape[d], before * after, |i, m| {
            z[((m / after) * shape[d] + i) * after + m % after]
        });
        sum.add_scaled(share, &unfolded.times_transpose(&unfolded));
    }
    sum
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    use super::*;

    fn component(shape: &[usize], rank: &[usize], noise: f64, seed: u64) -> Component {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || rng.sample::<f64, _>(StandardNormal);
        let mean = (0..shape.iter().product()).map(|_| normal()).collect();
        let loadings =
            shape.iter().zip(rank).map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| normal())).collect();
        Component::new(shape, mean, loadings, noise).unwrap()
    }

    /// −½ (P ln 2π + ln|C| + tr C⁻¹ (C₀ + d dᵀ)) by dense algebra.
    fn dense(of: &Component, under: &Component, shape: &[usize]) -> f64 {
        let covariance =
            |c: &Component| Mixture::new(shape, vec![1.0], vec![c.clone()]).unwrap().covariance(0).unwrap();
        let (c0, c) = (covariance(of), covariance(under));
        let size = c.rows();
        let d = Matrix::from_fn(size, 1, |i, _| of.mean()[i] - under.mean()[i]);
        let mut seen = c0;
        seen.add_scaled(1.0, &d.times_transpose(&d));
        let eigen = crate::linalg::eigen_symmetric(&c).unwrap();
        let rotated = eigen.vectors.transpose_times(&seen.times(&eigen.vectors));
        let terms = (0..size).map(|i| eigen.values[i].ln() + rotated[(i, i)] / eigen.values[i]);
        -0.5 * (size as f64 * (2.0 * std::f64::consts::PI).ln() + terms.sum::<f64>())
    }

    #[test]
    fn the_expected_log_likelihood_is_that_of_dense_covariances() {
        for (shape, rank) in [(&[6][..], &[2][..]), (&[4, 5], &[2, 3]), (&[3, 4, 2], &[2, 1, 2])] {
            let (a, b) = (component(shape, rank, 0.5, 1), component(shape, rank, 0.8, 2));
            for (of, under) in [(&a, &a), (&a, &b), (&b, &a)] {
                let (found, expected) = (expected(of, under), dense(of, under, shape));
                assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_scatter_of_a_pair_is_that_of_its_dense_covariance() {
        let (shape, rank) = ([3, 4, 2], [2, 1, 2]);
        let two = [component(&shape, &rank, 0.5, 3), component(&shape, &rank, 0.8, 4)];
        let (pair, shares) = ([&two[0], &two[1]], [0.3, 0.7]);
        let size: usize = shape.iter().product();
        let mean: Vec<f64> = (0..size).map(|i| 0.3 * two[0].mean()[i] + 0.7 * two[1].mean()[i]).collect();
        let apart = pair.map(|p| (0..size).map(|i| p.mean()[i] - mean[i]).collect::<Vec<f64>>());
        let mut whole = Matrix::zeros(size, size);
        for i in 0..2 {
            let part = Mixture::new(&shape, vec![1.0], vec![two[i].clone()]).unwrap();
            whole.add_scaled(shares[i], &part.covariance(0).unwrap());
            let d = Matrix::from_vec(size, 1, apart[i].clone());
            whole.add_scaled(shares[i], &d.times_transpose(&d));
        }
        let basis = |d: usize| crate::linalg::orthonormal_basis(&two[0].loadings()[d]);
        for loadings in [vec![None, None, None], vec![Some(basis(0)), None, Some(basis(2))]] {
            for d in 0..3 {
                let found = scatter(pair, shares, &apart, &loadings, &shape, d);
                let expected = super::super::super::mode_scatter::mode_scatter(&whole, &shape, &loadings, d);
                for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
                    assert!((a - b).abs() < 1e-10, "mode {d}: {a} {b}");
                }
            }
        }
    }
}
