//! Densities, responsibilities and posteriors against dense P×P Gaussians (maths.md, eq. 1–8).

use matmix::{Component, Matrix, Mixture, Samples};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// A random mixture: loadings that are anything but canonical, noise from small to large.
fn random_mixture(rng: &mut ChaCha8Rng, shape: &[usize], rank: &[usize], k: usize) -> Mixture {
    let size: usize = shape.iter().product();
    let components = (0..k)
        .map(|_| {
            let mean = (0..size).map(|_| 2.0 * rng.sample::<f64, _>(StandardNormal)).collect();
            let loadings = shape
                .iter()
                .zip(rank)
                .map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| rng.sample(StandardNormal)))
                .collect();
            let noise = 10f64.powf(rng.random_range(-1.5..0.5));
            Component::new(shape, mean, loadings, noise).unwrap()
        })
        .collect();
    let weights = (0..k).map(|_| rng.random_range(0.1..1.0)).collect();
    Mixture::new(shape, weights, components).unwrap()
}

fn sides() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let side = |most: usize| (1..=most).prop_flat_map(|p| (Just(p), 1..=p));
    prop_oneof![
        prop::collection::vec(side(12), 1),
        prop::collection::vec(side(6), 2),
        prop::collection::vec(side(4), 3),
    ]
    .prop_map(|pairs| pairs.into_iter().unzip())
}

fn close(found: f64, expected: f64, what: &str) -> Result<(), TestCaseError> {
    let error = (found - expected).abs();
    prop_assert!(error <= 1e-9 * expected.abs().max(1.0), "{what}: {found} instead of {expected}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn everything_equals_the_dense_gaussian((shape, rank) in sides(), k in 1usize..=4, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, k);
        let n = 5;
        let drawn = model.sample(n, seed).samples;
        let size = model.sample_len();
        let samples = Samples::from_slice(&shape, &drawn).unwrap();

        let densities = model.log_densities(&samples).unwrap();
        let gammas = model.responsibilities(&samples).unwrap();
        let scores = model.score_samples(&samples).unwrap();
        let projection = model.project(&samples).unwrap();
        let variances = model.posterior_variance();
        let rho = model.core_len();
        for i in 0..n {
            let x = &drawn[i * size..(i + 1) * size];
            let mut joint = Vec::new();
            for (j, component) in model.components().iter().enumerate() {
                let expected = crate::dense::log_density(component, x);
                close(densities[i * k + j], expected, "log-density")?;
                joint.push(model.weights()[j].ln() + expected);

                let (mean, covariance) = crate::dense::posterior(component, x);
                let core = &projection.cores[(i * k + j) * rho..(i * k + j + 1) * rho];
                for a in 0..rho {
                    close(core[a], mean[a], "posterior mean")?;
                    for b in 0..rho {
                        // Exactly diagonal: the entries of a core are independent.
                        let expected = if a == b { variances[j * rho + a] } else { 0.0 };
                        close(covariance[a][b], expected, "posterior covariance")?;
                    }
                }
            }
            let total = crate::dense::log_sum_exp(&joint);
            close(scores[i], total, "log-likelihood")?;
            for j in 0..k {
                close(gammas[i * k + j], (joint[j] - total).exp(), "responsibility")?;
            }
            let best = (0..k).max_by(|&a, &b| joint[a].total_cmp(&joint[b])).unwrap();
            prop_assert_eq!(projection.components[i], best);
        }
    }

    #[test]
    fn the_covariance_is_the_one_the_samples_have((shape, rank) in sides(), seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, 1);
        let found = model.covariance(0).unwrap();
        for (i, row) in crate::dense::covariance(&model.components()[0]).iter().enumerate() {
            for (j, &expected) in row.iter().enumerate() {
                close(found[(i, j)], expected, "covariance")?;
            }
        }
    }

    #[test]
    fn the_reconstruction_error_is_that_of_the_reconstruction((shape, rank) in sides(), k in 1usize..=3, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, k);
        let drawn = model.sample(7, seed).samples;
        let samples = Samples::from_slice(&shape, &drawn).unwrap();
        let rebuilt = model.reconstruct(&samples, matmix::Reconstruction::MostProbable).unwrap();
        let errors = model.squared_errors(&samples).unwrap();
        let size = model.sample_len();
        for n in 0..7 {
            let at = n * size..(n + 1) * size;
            let expected: f64 = drawn[at.clone()].iter().zip(&rebuilt[at]).map(|(x, y)| (x - y) * (x - y)).sum();
            close(errors[n], expected, "squared error")?;
        }
    }
}

#[test]
fn criteria_are_the_textbook_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let model = random_mixture(&mut rng, &[4, 3], &[2, 1], 2);
    let drawn = model.sample(50, 1).samples;
    let samples = Samples::from_slice(&[4, 3], &drawn).unwrap();
    // K − 1 weights; per component 12 means, 1 noise, 4·2 − 1 + 3·1 loadings less 1 for their common scale.
    let m = 1.0 + 2.0 * (12.0 + 1.0 + 7.0 + 3.0 - 1.0);
    assert_eq!(model.n_parameters() as f64, m);
    let criteria = model.evaluate(&samples).unwrap();
    let total: f64 = model.score_samples(&samples).unwrap().iter().sum();
    let entropy: f64 =
        model.responsibilities(&samples).unwrap().iter().filter(|g| **g > 0.0).map(|g| -g * g.ln()).sum();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs(), "{a} instead of {b}");
    close(criteria.log_likelihood, total);
    close(criteria.aic, -2.0 * total + 2.0 * m);
    close(criteria.bic, -2.0 * total + m * 50f64.ln());
    close(criteria.icl, criteria.bic + 2.0 * entropy);
}

#[test]
fn drawn_samples_have_the_moments_of_the_model() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let model = random_mixture(&mut rng, &[3, 2], &[2, 1], 1);
    let n = 200_000;
    let drawn = model.sample(n, 5);
    let c = crate::dense::covariance(&model.components()[0]);
    let mean = model.components()[0].mean();
    for i in 0..6 {
        let column = |i: usize| drawn.samples.iter().skip(i).step_by(6);
        let average: f64 = column(i).sum::<f64>() / n as f64;
        assert!((average - mean[i]).abs() < 6.0 * (c[i][i] / n as f64).sqrt(), "mean {i}");
        for j in 0..6 {
            let product: f64 = column(i).zip(column(j)).map(|(x, y)| (x - mean[i]) * (y - mean[j])).sum();
            let spread = ((c[i][i] * c[j][j] + c[i][j] * c[i][j]) / n as f64).sqrt();
            assert!((product / n as f64 - c[i][j]).abs() < 6.0 * spread, "covariance {i} {j}");
        }
    }
    assert_eq!(model.sample(10, 5).samples, drawn.samples[..60]);
    assert_ne!(model.sample(10, 6).samples, drawn.samples[..60]);
}
