//! Closed forms and planted models: what a fit must find.

use matmix::{Component, FitOptions, LowRankOptions, Matrix, Mixture, Samples, Start, fit, fit_low_rank};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

fn planted(seed: u64, shape: &[usize], rank: &[usize], k: usize, spread: f64, noise: f64) -> Mixture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let size: usize = shape.iter().product();
    let parts = (0..k)
        .map(|j| {
            let mean = (0..size).map(|_| spread * rng.sample::<f64, _>(StandardNormal)).collect();
            let loadings = shape
                .iter()
                .zip(rank)
                .map(|(&p, &r)| {
                    Matrix::from_fn(p, r, |_, c| rng.sample::<f64, _>(StandardNormal) / (1.0 + c as f64))
                })
                .collect();
            Component::new(shape, mean, loadings, noise * (1.0 + j as f64)).unwrap()
        })
        .collect();
    let weights = (0..k).map(|j| 1.0 + j as f64).collect();
    Mixture::new(shape, weights, parts).unwrap()
}

/// The cosine of the largest principal angle between the column spaces of two matrices.
fn smallest_cosine(a: &Matrix, b: &Matrix) -> f64 {
    let (qa, qb) = (matmix::linalg::orthonormal_basis(a), matmix::linalg::orthonormal_basis(b));
    let (_, cosines, _) = matmix::linalg::svd_thin(&qa.transpose_times(&qb)).unwrap();
    cosines.last().copied().unwrap()
}

/// Tipping & Bishop's closed form: σ² is the mean of the discarded eigenvalues, C keeps the leading ones.
#[test]
fn order_1_with_one_component_is_closed_form_ppca() {
    let truth = planted(1, &[10], &[3], 1, 1.0, 0.2);
    let data = truth.sample(400, 1).samples;
    let samples = Samples::from_slice(&[10], &data).unwrap();
    for start in [Start::KMeans, Start::Random] {
        let options =
            FitOptions { rank: vec![3], start, max_iter: 5000, tol: 1e-15, ..FitOptions::default() };
        let fitted = fit(&samples, &options).unwrap();
        let mean: Vec<f64> = (0..10).map(|i| data.iter().skip(i).step_by(10).sum::<f64>() / 400.0).collect();
        let covariance = Matrix::from_fn(10, 10, |i, j| {
            data.chunks_exact(10).map(|x| (x[i] - mean[i]) * (x[j] - mean[j])).sum::<f64>() / 400.0
        });
        let eigen = matmix::linalg::eigen_symmetric(&covariance).unwrap();
        let noise = eigen.values[3..].iter().sum::<f64>() / 7.0;
        let found = &fitted.model.components()[0];
        assert!((found.noise_variance() / noise - 1.0).abs() < 1e-6, "{} {noise}", found.noise_variance());
        for (lambda, value) in found.eigenvalues(0).iter().zip(&eigen.values) {
            assert!((lambda + noise - value).abs() < 1e-5 * value, "{lambda} {value}");
        }
        assert!(smallest_cosine(&found.loadings()[0], &eigen.vectors.first_cols(3)) > 1.0 - 1e-9);
        let log_determinant: f64 = eigen.values[..3].iter().map(|v| v.ln()).sum::<f64>() + 7.0 * noise.ln();
        let best = -0.5 * (10.0 * (2.0 * std::f64::consts::PI).ln() + log_determinant + 10.0);
        assert!((fitted.log_likelihood() - best).abs() < 1e-8, "{} {best}", fitted.log_likelihood());
    }
}

/// With vanishing noise the subspaces of PSOPCA are those of GLRAM (Yu, Bi, Ye 2011).
#[test]
fn order_2_with_one_component_and_vanishing_noise_is_glram() {
    let truth = planted(2, &[9, 7], &[3, 2], 1, 0.0, 1e-7);
    let data = truth.sample(300, 2).samples;
    let samples = Samples::from_slice(&[9, 7], &data).unwrap();
    let options = FitOptions {
        rank: vec![3, 2],
        max_iter: 500,
        tol: 1e-14,
        noise_floor: 1e-12,
        ..FitOptions::default()
    };
    let fitted = fit(&samples, &options).unwrap();
    let glram =
        fit_low_rank(&samples, &LowRankOptions { rank: vec![3, 2], tol: 1e-14, ..LowRankOptions::default() });
    let glram = glram.unwrap().model;
    for d in 0..2 {
        let cosine = smallest_cosine(&fitted.model.components()[0].loadings()[d], &glram.loadings()[d]);
        assert!(cosine > 1.0 - 1e-8, "mode {d}: {cosine}");
    }
    let ratio =
        fitted.model.reconstruction_error(&samples).unwrap() / glram.reconstruction_error(&samples).unwrap();
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn planted_mixtures_are_recovered() {
    for (shape, rank) in [(vec![12], vec![2]), (vec![8, 6], vec![2, 2]), (vec![4, 5, 3], vec![2, 2, 1])] {
        let truth = planted(3, &shape, &rank, 3, 1.5, 0.05);
        let drawn = truth.sample(3000, 4);
        let samples = Samples::from_slice(&shape, &drawn.samples).unwrap();
        let options = FitOptions {
            components: 3,
            rank: rank.clone(),
            n_init: 3,
            max_iter: 300,
            tol: 1e-10,
            ..FitOptions::default()
        };
        let fitted = fit(&samples, &options).unwrap();
        // The fit explains the data at least as well as the truth they were drawn from.
        assert!(fitted.log_likelihood() >= truth.score(&samples).unwrap(), "{shape:?}");
        let found = fitted.model.assign(&samples).unwrap();
        for (k, part) in truth.components().iter().enumerate() {
            // The component that most of its samples went to.
            let mut votes = [0usize; 3];
            drawn.components.iter().zip(&found).filter(|(t, _)| **t == k).for_each(|(_, f)| votes[*f] += 1);
            let best = (0..3).max_by_key(|&j| votes[j]).unwrap();
            let total: usize = votes.iter().sum();
            assert!(votes[best] as f64 > 0.97 * total as f64, "{shape:?} {k}: {votes:?}");
            let other = &fitted.model.components()[best];
            assert!((other.noise_variance() / part.noise_variance() - 1.0).abs() < 0.1, "{shape:?} {k}");
            assert!((fitted.model.weights()[best] - truth.weights()[k]).abs() < 0.03, "{shape:?} {k}");
            for d in 0..shape.len() {
                let cosine = smallest_cosine(&part.loadings()[d], &other.loadings()[d]);
                assert!(cosine > 0.98, "{shape:?} component {k} mode {d}: {cosine}");
            }
        }
    }
}

/// K = 1 is a mixture of one: responsibilities are 1, and two equal halves of it say the same.
#[test]
fn one_component_equals_two_halves_of_it() {
    let truth = planted(5, &[5, 4], &[2, 2], 1, 1.0, 0.3);
    let data = truth.sample(60, 1).samples;
    let samples = Samples::from_slice(&[5, 4], &data).unwrap();
    let part = truth.components()[0].clone();
    let halves = Mixture::new(&[5, 4], vec![0.5, 0.5], vec![part.clone(), part]).unwrap();
    assert!(truth.responsibilities(&samples).unwrap().iter().all(|g| *g == 1.0));
    assert!(halves.responsibilities(&samples).unwrap().iter().all(|g| (g - 0.5).abs() < 1e-12));
    let (one, two) = (truth.score(&samples).unwrap(), halves.score(&samples).unwrap());
    assert!((one - two).abs() < 1e-11 * one.abs(), "{one} {two}");
}

/// Denoising recovers more of the noiseless sample than the sample itself shows.
#[test]
fn denoising_removes_noise() {
    let truth = planted(6, &[8, 6], &[2, 2], 2, 1.0, 0.3);
    let (noisy, clean) = (truth.sample(500, 9), truth.sample_noiseless(500, 9));
    assert_eq!(noisy.components, clean.components);
    let samples = Samples::from_slice(&[8, 6], &noisy.samples).unwrap();
    let denoised = truth.denoise(&samples).unwrap();
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
    let (before, after) = (distance(&noisy.samples, &clean.samples), distance(&denoised, &clean.samples));
    // Four of 48 directions carry signal: about 4/48 of the noise remains.
    assert!(after < 0.15 * before, "{after} of {before}");
}
