//! The M-step: new parameters from the sums of a pass (maths.md, eq. 13–18). Component by component, side by side.

use rayon::prelude::*;

use crate::linalg::{Matrix, cholesky_lower, project, sides_around, solve_symmetric_right};
use crate::model::{Component, Density, Mixture};
use crate::pass::{ComponentStatistics, Statistics};

/// Below this weight not even a mean can be computed.
const NOTHING: f64 = 1e-6;

/// The weight a component needs before its loadings are determined: one sample for the mean and as many
/// as give each mode's unfolded cores full rank.
pub(crate) fn least_weight(rank: &[usize]) -> f64 {
    let core_len: usize = rank.iter().product();
    let widest = rank.iter().copied().max().unwrap_or(1);
    1.0 + (widest * widest) as f64 / core_len as f64
}

/// The model that the sums of a pass over mode d lead to: new weights, means, noise variances and loadings of mode d.
///
/// `unit` is the weight that counts as one sample.
pub(crate) fn maximize(model: &Mixture, sums: &Statistics, noise_floor: f64, unit: f64) -> Mixture {
    let weights = sums.components.iter().map(|c| c.weight / sums.weight).collect();
    let components = model
        .components()
        .par_iter()
        .zip(&sums.components)
        .map(|(component, sums_k)| maximize_component(model, component, sums_k, sums.mode, noise_floor, unit))
        .collect();
    model.with_parts(weights, components)
}

fn maximize_component(
    model: &Mixture,
    old: &Component,
    sums: &ComponentStatistics,
    d: usize,
    noise_floor: f64,
    unit: f64,
) -> Component {
    let n = sums.weight;
    if n < NOTHING * unit {
        return old.clone();
    }
    // 1. The mean, and the sums as they would be around it (eq. 13, 14).
    let delta: Vec<f64> = sums.mean_shift.iter().map(|s| s / n).collect();
    let mean: Vec<f64> = old.mean().iter().zip(&delta).map(|(m, d)| m + d).collect();
    if n < least_weight(model.rank()) * unit {
        return Component::from_step(mean, old.loadings().to_vec(), old.noise_variance());
    }
    let (shape, rank) = (model.shape(), model.rank());
    let density = Density::new(old);
    let w = old.other_variances(d);
    let partly: Vec<usize> = (0..shape.len()).map(|e| if e == d { shape[d] } else { rank[e] }).collect();
    let zeta = unfold(&project(&delta, shape, old.loadings(), Some(d)), &partly, d);
    let q = unfold(&density.posterior_mean(&project(&delta, shape, old.loadings(), None)), rank, d);
    let weighted_q = Matrix::from_fn(q.rows(), q.cols(), |i, m| q[(i, m)] * w[m]);
    let mut a = sums.cross.clone();
    a.add_scaled(-n, &zeta.times_transpose(&q));
    let mut h = sums.weighted_gram.clone();
    h.add_scaled(-n, &weighted_q.times_transpose(&q));
    let mut s = sums.gram.clone();
    s.add_scaled(-n, &q.times_transpose(&q));
    let squared_distance = sums.squared_distance - n * delta.iter().map(|d| d * d).sum::<f64>();

    // 2. What the posterior variance adds (eq. 15).
    let v = unfold(&density.posterior_variance(), rank, d);
    for i in 0..rank[d] {
        for m in 0..v.cols() {
            h[(i, i)] += n * v[(i, m)] * w[m];
            s[(i, i)] += n * v[(i, m)];
        }
    }

    // 3. Loadings and noise (eq. 16, 17).
    let Some(u) = solve_symmetric_right(&a, &h) else {
        return Component::from_step(mean, old.loadings().to_vec(), old.noise_variance());
    };
    let noise = (squared_distance - u.inner(&a)) / (model.sample_len() as f64 * n);
    let noise = if noise > noise_floor { noise } else { noise_floor };

    // 4. Parameter expansion (eq. 18): cores whose covariance came out as S instead of I mean longer loadings.
    s.scale(rank[d] as f64 / (n * model.core_len() as f64));
    let u = cholesky_lower(&s).map(|root| u.times(&root)).filter(Matrix::is_finite).unwrap_or(u);

    // 5. Canonical form.
    let mut loadings = old.loadings().to_vec();
    loadings[d] = u;
    Component::from_step(mean, loadings, noise)
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
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::data::Samples;
    use crate::pass::em::em_pass;
    use crate::pass::simd::Path;
    use crate::pass::{Precision, SimdPath};

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        rng.sample(StandardNormal)
    }

    fn any_model(rng: &mut ChaCha8Rng, shape: &[usize], rank: &[usize], k: usize) -> Mixture {
        let size: usize = shape.iter().product();
        let parts = (0..k)
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
        Mixture::new(shape, vec![1.0; k], parts).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

        /// Eq. 13–18: each single pass with its M-step raises the log-likelihood, whatever the model and the mode.
        #[test]
        fn every_step_raises_the_likelihood(
            sides in prop::collection::vec((1usize..6).prop_flat_map(|p| (Just(p), 1..=p)), 1..=3),
            k in 1usize..=3,
            n in 4usize..40,
            weighted in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let (shape, rank): (Vec<usize>, Vec<usize>) = sides.into_iter().unzip();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut model = any_model(&mut rng, &shape, &rank, k);
            let data = any_model(&mut rng, &shape, &rank, k).sample(n, seed).samples;
            let mut samples = Samples::from_slice(&shape, &data).unwrap();
            if weighted {
                samples = samples.with_weights((0..n).map(|_| rng.random_range(0.1..3.0)).collect()).unwrap();
            }
            let mut before = f64::NEG_INFINITY;
            for step in 0..6 {
                let mode = step % shape.len();
                let sums = em_pass(&model, &samples, mode, Precision::Auto, Path::best()).unwrap();
                let now = sums.mean_log_likelihood();
                prop_assert!(now >= before - 1e-10 * now.abs().max(1.0), "step {}: {} after {}", step, now, before);
                before = now;
                model = maximize(&model, &sums, 1e-9, 1.0);
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
        for mode in 0..2 {
            let step = |m: &Mixture| {
                let sums = em_pass(m, &samples, mode, Precision::Auto, SimdPath::best()).unwrap();
                maximize(m, &sums, 1e-9, 1.0)
            };
            // One component: γ = 1 whatever the mean, so both steps must lead to the same model.
            let (a, b) = (step(&model), step(&moved));
            let (a, b) = (&a.components()[0], &b.components()[0]);
            assert!((a.noise_variance() / b.noise_variance() - 1.0).abs() < 1e-11);
            for (x, y) in a.loadings()[mode].as_slice().iter().zip(b.loadings()[mode].as_slice()) {
                assert!((x - y).abs() < 1e-10, "{x} {y}");
            }
        }
    }
}
