//! The M-step: new parameters from the sums of a pass (maths.md, eq. 13–18), a regression of X on [1, B].
//!
//! ```text
//! δ = m/W    β = b/W    F ← F − m ⊗ β    G ← G − W β ⊗ β    s ← s − W ‖δ‖²
//! for each mode d:   U_d = A_d H_d⁻¹,   A_d, H_d: F and G contracted with the loadings of all other modes
//! σ² = (s − ⟨U_d, A_d⟩) / (P N)
//! cores whose covariance came out as ⊗ Σ_d instead of I mean longer loadings:   U_d ← U_d chol(Σ_d);   M = M₀ + δ
//! ```
//!
//! With Student-t noise the weights u are in the sums already; their scale is expanded too, u = α u₀, and what is left of their spread is
//! the degrees of freedom:
//!
//! ```text
//! α = W/N    U ← U/√α    σ² ← σ²/α    ν: the root of ln(ν/2) − ψ(ν/2) = ln α − Σ γ E[ln u] / N
//! ```
//!
//! What the old model is needed for is M₀ and the loadings of modes that are not updated, or not yet.

use super::options::Dof;
use crate::linalg::{
    Matrix, cholesky_lower, contracted_cross, contracted_gram, project, sides_around, solve_symmetric_right,
};
use crate::model::{Component, DEGREES, Mixture, Noise, log_less_digamma};
use crate::parallel;
use crate::pass::{ComponentSums, EmSums, LoadingSums, Update};

/// Below this weight not even a mean can be computed.
const NOTHING: f64 = 1e-6;

/// Halvings of ln ν that leave nothing but rounding.
const HALVINGS: usize = 56;

/// Rounds in which the covariance of the cores is split up between the modes.
const ROUNDS: usize = 3;

/// The weight a component needs before its loadings are determined: one sample for the mean and as many
/// as give each mode's unfolded cores full rank.
pub(crate) fn least_weight(rank: &[usize]) -> f64 {
    let core_len: usize = rank.iter().product();
    let widest = rank.iter().copied().max().unwrap_or(1);
    1.0 + (widest * widest) as f64 / core_len as f64
}

/// Smallest effective size of a component: below it even its mean is that of single samples.
const MIN_SIZE: f64 = 3.0;

/// The same as a fraction of the mean size N/K. Of planted outliers (300 samples of 16×32, 9 outliers, K = 10) fractions of 0, 0.1 and 0.25
/// find 0.76, 0.80 and 1.00; 0.5 and 0.75 cost 0 to 3 and 2 to 8 nats of held-out likelihood on digits and rendered shapes.
const MIN_FRACTION: f64 = 0.25;

/// The largest lower bound for the degrees of freedom of matrices and tensors; the whole bound costs up to 1.2 nats of held-out
/// likelihood on digits and finds no more outliers.
const MAX_LOWER_DEGREES: f64 = 4.0;

/// Smallest weight of a component in the unit of one sample: max(3, N/4K), at most √(2P), where the optimism of a sample's own log-density, about P/N_k, is as
/// small as the standard deviation of ln p, √(P/2); never so much that K components could not have it.
pub(crate) fn min_component_size(sample_len: usize, rank: &[usize], samples: f64, components: usize) -> f64 {
    let mean = samples / components as f64;
    let enough = (2.0 * sample_len as f64).sqrt();
    MIN_SIZE.max(least_weight(rank)).max((MIN_FRACTION * mean).min(enough)).min(0.5 * mean)
}

/// Smallest degrees of freedom that are estimated, so that the likelihood of a component of a quarter of the mean size stays bounded.
///
/// If m samples can lie exactly in a component's subspace of ρ latent dimensions, their log-densities grow by (P − ρ)/2 · ln(1/σ²) as
/// σ² → 0, and those of the other N_k − m samples fall by (ν + ρ)/2 · ln(1/σ²). The likelihood is bounded for
/// (ν + ρ)(N_k − m) > (P − ρ) m. Vectors with r factors have m = r + 1; a matrix beyond the mean fits no smaller core, so that m = 1.
pub(crate) fn min_degrees(shape: &[usize], rank: &[usize], samples: f64, components: usize) -> f64 {
    let size = shape.iter().product::<usize>() as f64;
    let members = if components == 1 { samples } else { MIN_FRACTION * samples / components as f64 };
    let is_vector = shape.iter().filter(|&&side| side > 1).count() < 2;
    let (latent, most) = match is_vector {
        true => (rank.iter().product::<usize>() as f64, *DEGREES.end()),
        false => (0.0, MAX_LOWER_DEGREES),
    };
    let exact = latent + 1.0;
    let bound = (size - latent) * exact / (members - exact).max(f64::MIN_POSITIVE) - latent;
    bound.clamp(*DEGREES.start(), most)
}

/// What bounds the parameters of an M-step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constraints {
    /// The smallest noise variance.
    pub(crate) noise_floor: f64,
    /// The weight that counts as one sample.
    pub(crate) unit: f64,
    /// How the degrees of freedom of Student-t noise are found.
    pub(crate) dof: Dof,
    /// The smallest degrees of freedom that are estimated.
    pub(crate) min_degrees: f64,
}

/// The model that the sums of a pass of `model` lead to.
pub(crate) fn maximize(model: &Mixture, sums: &EmSums, constraints: &Constraints) -> Mixture {
    let weights = sums.components.iter().map(|c| c.weight / sums.weight).collect();
    let step = Step { shape: model.shape(), rank: model.rank(), update: sums.update, constraints };
    let updated = parallel::map_if_large(model.n_components(), step.operations(model), |k| {
        step.component(&model.components()[k], &sums.components[k])
    });
    let components = match model.noise() {
        Noise::Gaussian => updated.into_iter().map(|(component, _)| component).collect(),
        Noise::T => with_degrees(updated, constraints),
    };
    model.with_components(weights, components)
}

/// How the weights u of the samples of a component are spread: N and ln α − Σ γ E[ln u]/N, which is never negative.
#[derive(Debug, Clone, Copy)]
struct Spread {
    weight: f64,
    value: f64,
    /// Whether the component was held: it keeps degrees of its own, but has a say in those of all.
    held: bool,
}

/// The components with the degrees of freedom that the spread of their weights says. One that was held keeps its own.
fn with_degrees(updated: Vec<(Component, Option<Spread>)>, constraints: &Constraints) -> Vec<Component> {
    let least = constraints.min_degrees;
    let spreads = updated.iter().filter_map(|(_, spread)| *spread);
    let (weight, total) =
        spreads.fold((0.0, 0.0), |(n, sum), spread| (n + spread.weight, sum + spread.weight * spread.value));
    let shared = degrees_of(total / weight, least);
    let degrees = |(component, spread): (Component, Option<Spread>)| {
        let found = match constraints.dof {
            Dof::Fixed(degrees) => Some(degrees),
            Dof::Shared => shared,
            Dof::Estimated => {
                spread.filter(|spread| !spread.held).and_then(|spread| degrees_of(spread.value, least))
            }
        };
        let degrees = found.or(component.degrees_of_freedom());
        component.clone().with_degrees_of_freedom(degrees).unwrap_or(component)
    };
    updated.into_iter().map(degrees).collect()
}

/// The ν within [`DEGREES`] for which ln(ν/2) − ψ(ν/2) is nearest to this value: it falls with ν, so that halving finds it.
fn degrees_of(spread: f64, least: f64) -> Option<f64> {
    if spread.is_nan() {
        return None;
    }
    let (mut low, mut high) = (least.ln(), DEGREES.end().ln());
    if log_less_digamma(0.5 * least) <= spread {
        return Some(least);
    }
    if log_less_digamma(0.5 * DEGREES.end()) >= spread {
        return Some(*DEGREES.end());
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match log_less_digamma(0.5 * middle.exp()) > spread {
            true => low = middle,
            false => high = middle,
        }
    }
    Some((0.5 * (low + high)).exp())
}

/// What all components have in common.
struct Step<'a> {
    shape: &'a [usize],
    rank: &'a [usize],
    update: Update,
    constraints: &'a Constraints,
}

impl Step<'_> {
    /// Multiply-adds it takes, about.
    fn operations(&self, model: &Mixture) -> usize {
        let (size, core_len) = (model.sample_len(), model.core_len());
        let loadings: usize = model.shape().iter().zip(model.rank()).map(|(p, r)| 20 * p * r * r).sum();
        let sums = match self.update {
            Update::All => 2 * model.shape().len() * core_len * size,
            Update::Mode(_) => 2 * core_len * size,
        };
        model.n_components() * (sums + loadings)
    }

    /// The component that its sums lead to, and how the weights u of its samples are spread; nothing if it has none.
    fn component(&self, old: &Component, sums: &ComponentSums) -> (Component, Option<Spread>) {
        let (n, w) = (sums.weight, sums.scale);
        let &Constraints { noise_floor, unit, .. } = self.constraints;
        if n < NOTHING * unit {
            return (old.clone(), None);
        }
        let delta: Vec<f64> = sums.shift.iter().map(|m| m / w).collect();
        let mean: Vec<f64> = old.mean().iter().zip(&delta).map(|(m, d)| m + d).collect();
        let (alpha, log_scale) = (w / n, sums.log_scale / n);
        let held = |mean| {
            let spread = Spread { weight: n, value: alpha - 1.0 - log_scale, held: true };
            (old.moved_to(mean), Some(spread))
        };
        if n < least_weight(self.rank) * unit {
            return held(mean);
        }
        let beta: Vec<f64> = sums.core.iter().map(|b| b / w).collect();
        let squares = sums.squares - w * delta.iter().map(|d| d * d).sum::<f64>();
        let centred = Centred { step: self, old, delta: &delta, beta: &beta, w, n };
        let found = match &sums.loadings {
            LoadingSums::All { cross, gram } => centred.all_modes(cross, gram),
            LoadingSums::Mode { cross, weighted_gram, gram } => {
                let Update::Mode(d) = self.update else { unreachable!("sums of one mode") };
                centred.one_mode(d, cross, weighted_gram, gram)
            }
        };
        let Some((mut loadings, captured)) = found else { return held(mean) };
        let noise = (squares - captured) / (mean.len() as f64 * n);
        if old.degrees_of_freedom().is_none() {
            let noise = if noise > noise_floor { noise } else { noise_floor };
            return (old.stepped(mean, loadings, noise), None);
        }
        // A noise variance at its floor could not be divided by α, and half an expansion is no ascent.
        let expands = noise > noise_floor && noise / alpha > noise_floor;
        let (noise, value) = match expands {
            true => {
                loadings[0].scale(alpha.powf(-0.5));
                (noise / alpha, alpha.ln() - log_scale)
            }
            false => (if noise > noise_floor { noise } else { noise_floor }, alpha - 1.0 - log_scale),
        };
        (old.stepped(mean, loadings, noise), Some(Spread { weight: n, value, held: false }))
    }
}

/// Sums that are to be brought to their own mean, δ for the samples and β for the cores.
struct Centred<'a> {
    step: &'a Step<'a>,
    old: &'a Component,
    delta: &'a [f64],
    beta: &'a [f64],
    w: f64,
    n: f64,
}

impl Centred<'_> {
    /// New loadings of all modes, and ⟨U_d, A_d⟩.
    fn all_modes(&self, cross: &Matrix, gram: &Matrix) -> Option<(Vec<Matrix>, f64)> {
        let &Self { step, old, delta, beta, w, n } = self;
        let (shape, rank) = (step.shape, step.rank);
        let mut f = cross.clone();
        for (row, b) in f.as_mut_slice().chunks_exact_mut(delta.len()).zip(beta) {
            row.iter_mut().zip(delta).for_each(|(f, d)| *f -= w * d * b);
        }
        let mut g = gram.clone();
        for (row, a) in g.as_mut_slice().chunks_exact_mut(beta.len()).zip(beta) {
            row.iter_mut().zip(beta).for_each(|(g, b)| *g -= w * a * b);
        }
        let mut loadings = old.loadings().to_vec();
        let mut captured = 0.0;
        for d in 0..shape.len() {
            let a = contracted_cross(&f, shape, rank, &loadings, d);
            let grams: Vec<Matrix> = loadings.iter().map(|u| u.transpose_times(u)).collect();
            let h = contracted_gram(&g, rank, &grams, d);
            loadings[d] = solve_symmetric_right(&a, &h)?;
            captured = loadings[d].inner(&a);
        }
        let mut sigmas: Vec<Matrix> = rank.iter().map(|&r| Matrix::identity(r, r)).collect();
        g.scale(1.0 / n);
        for _ in 0..if shape.len() > 1 { ROUNDS } else { 1 } {
            for d in 0..shape.len() {
                let inverses: Option<Vec<Matrix>> = sigmas
                    .iter()
                    .map(|s| solve_symmetric_right(&Matrix::identity(s.rows(), s.rows()), s))
                    .collect();
                let Some(inverses) = inverses else { return Some((loadings, captured)) };
                let mut sigma = contracted_gram(&g, rank, &inverses, d);
                sigma.scale(rank[d] as f64 / beta.len() as f64);
                sigmas[d] = sigma;
            }
        }
        Some((expanded(loadings, &sigmas), captured))
    }

    /// New loadings of mode d beside the old ones of the others, and ⟨U_d, A_d⟩.
    fn one_mode(
        &self,
        d: usize,
        cross: &Matrix,
        weighted: &Matrix,
        gram: &Matrix,
    ) -> Option<(Vec<Matrix>, f64)> {
        let &Self { step, old, delta, beta, w, n } = self;
        let (shape, rank) = (step.shape, step.rank);
        let others = old.other_variances(d);
        let partly: Vec<usize> = (0..shape.len()).map(|e| if e == d { shape[d] } else { rank[e] }).collect();
        let zeta = unfold(&project(delta, shape, old.loadings(), Some(d)), &partly, d);
        let q = unfold(beta, rank, d);
        let weighted_q = Matrix::from_fn(q.rows(), q.cols(), |i, m| q[(i, m)] * others[m]);
        let (mut a, mut h, mut s) = (cross.clone(), weighted.clone(), gram.clone());
        a.add_scaled(-w, &zeta.times_transpose(&q));
        h.add_scaled(-w, &weighted_q.times_transpose(&q));
        s.add_scaled(-w, &q.times_transpose(&q));
        let mut loadings = old.loadings().to_vec();
        loadings[d] = solve_symmetric_right(&a, &h)?;
        let captured = loadings[d].inner(&a);
        s.scale(rank[d] as f64 / (n * beta.len() as f64));
        let mut sigmas: Vec<Matrix> = rank.iter().map(|&r| Matrix::identity(r, r)).collect();
        sigmas[d] = s;
        Some((expanded(loadings, &sigmas), captured))
    }
}

/// Parameter expansion: U_d ← U_d chol(Σ_d), unless a Σ is no covariance.
fn expanded(loadings: Vec<Matrix>, sigmas: &[Matrix]) -> Vec<Matrix> {
    let longer = |(u, sigma): (&Matrix, &Matrix)| {
        cholesky_lower(sigma).map(|root| u.times(&root)).filter(Matrix::is_finite)
    };
    let all: Option<Vec<Matrix>> = loadings.iter().zip(sigmas).map(longer).collect();
    all.unwrap_or(loadings)
}

/// unfold_d: the tensor as a matrix with mode d as rows and all others, in order, as columns.
fn unfold(x: &[f64], shape: &[usize], d: usize) -> Matrix {
    let (before, after) = sides_around(shape, d);
    let n = shape[d];
    Matrix::from_fn(n, before * after, |i, m| x[((m / after) * n + i) * after + m % after])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::data::{Missing, Samples};
    use crate::pass::{EmPass, Engine, Precision};
    use crate::walk::Stage;

    const FREE: Constraints =
        Constraints { noise_floor: 1e-9, unit: 1.0, dof: Dof::Estimated, min_degrees: 0.5 };

    fn pass(model: &Mixture, samples: &Samples<'_>, update: Update) -> EmSums {
        let pass = EmPass { model: model.clone(), update, precision: Precision::Auto, stage: Stage::ALL };
        (samples as &dyn Engine).sums(&pass).unwrap()
    }

    /// What the passes of one iteration update, in either way to iterate.
    fn ways(order: usize) -> Vec<Vec<Update>> {
        let mut ways = vec![vec![Update::All]];
        if order > 1 {
            ways.push((0..order).map(Update::Mode).collect());
        }
        ways
    }

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        rng.sample(StandardNormal)
    }

    fn any_model(rng: &mut ChaCha8Rng, shape: &[usize], rank: &[usize], k: usize) -> Mixture {
        let size: usize = shape.iter().product();
        let components = (0..k)
            .map(|_| {
                let mean = (0..size).map(|_| normal(rng)).collect();
                let loadings = shape
                    .iter()
                    .zip(rank)
                    .map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| normal(rng)))
                    .collect();
                let noise = 10f64.powf(rng.random_range(-2.0..1.0));
                Component::new(shape, mean, loadings, noise).unwrap()
            })
            .collect();
        Mixture::new(shape, vec![1.0; k], components).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        /// Eq. 13–18: each single pass with its M-step raises the log-likelihood, whatever the model and the mode.
        #[test]
        fn every_step_raises_the_likelihood(
            sides in prop::collection::vec((1usize..6).prop_flat_map(|p| (Just(p), 1..=p)), 1..=3),
            k in 1usize..=3,
            n in 4usize..40,
            weighted in any::<bool>(),
            hidden in prop::sample::select(vec![0.0, 0.0, 0.2, 0.7]),
            tails in prop::option::of(prop::sample::select(vec![Dof::Estimated, Dof::Shared, Dof::Fixed(2.5)])),
            seed in any::<u64>(),
        ) {
            let (shape, rank): (Vec<usize>, Vec<usize>) = sides.into_iter().unzip();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut start = any_model(&mut rng, &shape, &rank, k);
            if tails.is_some() {
                let degrees = if tails == Some(Dof::Fixed(2.5)) { 2.5 } else { rng.random_range(0.6..60.0) };
                let components = start.components().iter().map(|c| c.clone().with_degrees_of_freedom(Some(degrees)).unwrap());
                start = start.with_components(start.weights().to_vec(), components.collect());
            }
            let constraints = Constraints { dof: tails.unwrap_or_default(), ..FREE };
            let mut data = any_model(&mut rng, &shape, &rank, k).sample(n, seed).samples;
            data.iter_mut().for_each(|x| if rng.random::<f64>() < hidden { *x = f64::NAN });
            let mut samples = Samples::from_slice(&shape, &data).unwrap().with_missing(Missing::Nan);
            if weighted {
                samples = samples.with_weights((0..n).map(|_| rng.random_range(0.1..3.0)).collect()).unwrap();
            }
            for way in ways(shape.len()) {
                let (mut model, mut before) = (start.clone(), f64::NEG_INFINITY);
                for (step, &update) in way.iter().cycle().take(6).enumerate() {
                    let sums = pass(&model, &samples, update);
                    let now = sums.mean_log_likelihood();
                    prop_assert!(now >= before - 1e-10 * now.abs().max(1.0), "{:?} {}: {} after {}", update, step, now, before);
                    before = now;
                    model = maximize(&model, &sums, &constraints);
                }
            }
        }
    }

    /// Mode after mode, with a third of the cells missing: figures of a program that shares nothing with this one.
    #[test]
    fn the_iterations_of_another_program() {
        let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_988_749_894_9).fract() - 0.5;
        let missing = |n: usize, i: usize| (5 * n + 3 * i) % 7 < 2 || n == 4 && i < 6;
        let cell = |at: usize| if missing(at / 12, at % 12) { f64::NAN } else { 2.0 * number(at + 100) };
        let x: Vec<f64> = (0..144).map(cell).collect();
        let samples = Samples::from_slice(&[4, 3], &x).unwrap().with_missing(Missing::Nan);
        let gaussian = [-8.6691227795, -6.51450027988, -5.96295932563, -5.44298673002, -3.68012111093];
        let tailed = [-8.20437206728, -6.54779447236, -5.67633462912, -5.17947275714, -3.0072399699];
        for (degrees, expected) in [(None, gaussian), (Some(5.0), tailed)] {
            let part = |k: usize| {
                let loading = |d: usize, p: usize| {
                    Matrix::from_fn(p, 2, |i, j| 1.5 * number(7 * k + 3 * i + j + 11 * d))
                };
                let mean = (0..12).map(|i| number(i + 17 * k)).collect();
                let part =
                    Component::new(&[4, 3], mean, vec![loading(0, 4), loading(1, 3)], 0.1 + 0.1 * k as f64);
                part.unwrap().with_degrees_of_freedom(degrees).unwrap()
            };
            let mut model = Mixture::new(&[4, 3], vec![0.25, 0.75], vec![part(0), part(1)]).unwrap();
            for step in 0..=10 {
                let sums = pass(&model, &samples, Update::Mode(step % 2));
                if let Some(at) = [0, 1, 2, 3, 10].iter().position(|&s| s == step) {
                    let (found, expected) = (sums.mean_log_likelihood(), expected[at]);
                    assert!(
                        (found / expected - 1.0).abs() < 1e-8,
                        "step {step}: {found} instead of {expected}"
                    );
                }
                model = maximize(&model, &sums, &Constraints { noise_floor: 1e-3, ..FREE });
            }
        }
    }

    /// Eq. 13, 14: the sums of a pass around the old mean, shifted, are the sums around the new one.
    #[test]
    fn the_mean_shift_is_exact() {
        let (shape, rank) = ([4, 3], [2, 2]);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let model = any_model(&mut rng, &shape, &rank, 1);
        let data = any_model(&mut rng, &shape, &rank, 1).sample(30, 2).samples;
        let samples = Samples::from_slice(&shape, &data).unwrap();
        let mean: Vec<f64> = (0..12).map(|i| data.iter().skip(i).step_by(12).sum::<f64>() / 30.0).collect();
        let part = &model.components()[0];
        let moved = Component::new(&shape, mean, part.loadings().to_vec(), part.noise_variance()).unwrap();
        let moved = Mixture::new(&shape, vec![1.0], vec![moved]).unwrap();
        for update in [Update::All, Update::Mode(0), Update::Mode(1)] {
            let step = |m: &Mixture| maximize(m, &pass(m, &samples, update), &FREE);
            // One component: γ = 1 whatever the mean, so both steps must lead to the same model.
            let (a, b) = (step(&model), step(&moved));
            let (a, b) = (&a.components()[0], &b.components()[0]);
            assert!((a.noise_variance() / b.noise_variance() - 1.0).abs() < 1e-11);
            for (u, v) in a.loadings().iter().zip(b.loadings()) {
                for (x, y) in u.as_slice().iter().zip(v.as_slice()) {
                    assert!((x - y).abs() < 1e-10, "{x} {y}");
                }
            }
        }
    }
}
