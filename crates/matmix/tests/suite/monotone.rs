//! The log-likelihood never falls: on planted data, on ugly data and in the paper's hardest setting. The exception are iterations in
//! which a component without support was removed.

use matmix::{Event, Fit, FitOptions, Samples, Start, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::support::removals;

/// Rounding may take back this share of a mean log-likelihood, and no more.
const ROUNDING: f64 = 1e-9;

fn check(fit: &Fit, what: &str) {
    let removals = removals(&fit.history);
    for (t, pair) in fit.history.log_likelihood.windows(2).enumerate() {
        if removals.contains(&(t + 1)) {
            continue;
        }
        let allowed = ROUNDING * pair[1].abs().max(1.0);
        assert!(pair[1] >= pair[0] - allowed, "{what}: iteration {}: {} after {}", t + 1, pair[1], pair[0]);
    }
    assert!(fit.history.log_likelihood.iter().all(|l| l.is_finite()), "{what}: {:?}", fit.history);
    assert!(fit.history.reconstruction_error.iter().all(|e| e.is_finite() && *e >= 0.0), "{what}");
    assert!((fit.model.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9, "{what}");
    for c in fit.model.components() {
        assert!(c.noise_variance() > 0.0, "{what}");
        assert!(
            c.mean().iter().all(|x| x.is_finite()) && c.loadings().iter().all(|u| u.is_finite()),
            "{what}"
        );
    }
}

fn normals(rng: &mut ChaCha8Rng, n: usize, scale: f64) -> Vec<f64> {
    (0..n).map(|_| scale * rng.sample::<f64, _>(StandardNormal)).collect()
}

/// Name, shape, rank, K and numbers.
type Ugly = (&'static str, Vec<usize>, Vec<usize>, usize, Vec<f64>);

fn ugly(seed: u64) -> Vec<Ugly> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sets = Vec::new();
    sets.push(("constant samples", vec![4, 3], vec![2, 2], 2, vec![3.5; 20 * 12]));
    sets.push(("all zero", vec![4, 3], vec![2, 2], 2, vec![0.0; 20 * 12]));
    let few = normals(&mut rng, 3 * 12, 1.0);
    sets.push(("duplicated samples", vec![4, 3], vec![2, 2], 3, few.repeat(10)));
    sets.push(("one sample per component", vec![4, 3], vec![2, 2], 8, normals(&mut rng, 8 * 12, 1.0)));
    sets.push(("one sample", vec![4, 3], vec![2, 2], 1, normals(&mut rng, 12, 1.0)));
    sets.push(("ranks equal to the shape", vec![4, 3], vec![4, 3], 2, normals(&mut rng, 40 * 12, 1.0)));
    let mut dead = normals(&mut rng, 40 * 12, 1.0);
    dead.chunks_exact_mut(12).for_each(|x| x[..5].fill(0.25));
    sets.push(("zero-variance pixels", vec![4, 3], vec![2, 2], 2, dead));
    let mut line = normals(&mut rng, 40 * 12, 0.0);
    line.chunks_exact_mut(12).enumerate().for_each(|(n, x)| x.iter_mut().for_each(|x| *x = n as f64));
    sets.push(("all samples on a line", vec![4, 3], vec![2, 2], 3, line));
    sets.push(("values of 1e-6", vec![4, 3], vec![2, 2], 3, normals(&mut rng, 60 * 12, 1e-6)));
    sets.push(("values of 1e6", vec![4, 3], vec![2, 2], 3, normals(&mut rng, 60 * 12, 1e6)));
    let mut offset = normals(&mut rng, 60 * 12, 1e-3);
    offset.iter_mut().for_each(|x| *x += 1e6);
    sets.push(("a large offset", vec![4, 3], vec![2, 2], 3, offset));
    let mut outlier = normals(&mut rng, 60 * 12, 1.0);
    outlier[..12].iter_mut().for_each(|x| *x += 1e8);
    sets.push(("one far outlier", vec![4, 3], vec![2, 2], 3, outlier));
    sets.push(("vectors", vec![12], vec![3], 3, normals(&mut rng, 60 * 12, 1.0)));
    sets.push(("order 3", vec![3, 2, 2], vec![2, 1, 2], 2, normals(&mut rng, 60 * 12, 1.0)));
    sets.push(("a side of one", vec![1, 12, 1], vec![1, 3, 1], 2, normals(&mut rng, 60 * 12, 1.0)));
    sets
}

#[test]
fn never_falls_on_ugly_data() {
    for seed in 0..4 {
        for (what, shape, rank, components, data) in ugly(seed) {
            let samples = Samples::from_slice(&shape, &data).unwrap();
            for start in [Start::KMeans, Start::Random] {
                let what = format!("{what}, seed {seed}, {start:?}");
                let options = FitOptions {
                    components,
                    rank: rank.clone(),
                    start,
                    max_iter: 40,
                    tol: 0.0,
                    seed,
                    ..FitOptions::default()
                };
                let fitted = fit(&samples, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(fitted.n_iterations(), 40, "{what}");
                check(&fitted, &what);
            }
        }
    }
}

/// 250 samples of 32×32, K = 10, ranks 10×10: components of a few samples close in on them.
#[test]
fn never_falls_or_fails_in_the_hardest_setting() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    // Smooth random images of 50 groups, five each, like faces of 50 people.
    let wave = |i: usize, j: usize, c: &[f64]| {
        let (x, y) = (i as f64 / 32.0, j as f64 / 32.0);
        c[0] * (3.0 * x + c[1]).sin() + c[2] * (4.0 * y + c[3]).cos() + c[4] * (7.0 * x * y + c[5]).sin()
    };
    let mut data: Vec<f32> = Vec::new();
    for _ in 0..50 {
        let person = normals(&mut rng, 6, 1.0);
        for _ in 0..5 {
            let c: Vec<f64> = person.iter().map(|p| p + 0.2 * rng.sample::<f64, _>(StandardNormal)).collect();
            for i in 0..32 {
                for j in 0..32 {
                    data.push((wave(i, j, &c) + 0.05 * rng.sample::<f64, _>(StandardNormal)) as f32);
                }
            }
        }
    }
    let samples = Samples::from_slice(&[32, 32], &data).unwrap();
    // What a model without any structure reaches: one Gaussian with one variance for all pixels.
    let n = data.len() as f64;
    let mean = data.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = data.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
    let plain = -0.5 * 1024.0 * ((2.0 * std::f64::consts::PI * variance).ln() + 1.0);
    for seed in 0..20 {
        for start in [Start::KMeans, Start::Random] {
            let what = format!("seed {seed}, {start:?}");
            let options = FitOptions {
                components: 10,
                rank: vec![10, 10],
                start,
                max_iter: 25,
                tol: 0.0,
                seed,
                ..FitOptions::default()
            };
            let fitted = fit(&samples, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            // Single precision: what cancels is judged more kindly than in double.
            let removals = removals(&fitted.history);
            for (t, pair) in fitted.history.log_likelihood.windows(2).enumerate() {
                let may_fall = removals.contains(&(t + 1));
                let least = pair[0] - 1e-6 * pair[1].abs();
                assert!(may_fall || pair[1] >= least, "{what}: {} after {}", pair[1], pair[0]);
            }
            assert!(fitted.log_likelihood() > plain, "{what}: {}", fitted.log_likelihood());
            let floor = 1e-6 * variance / 2.0;
            for (k, c) in fitted.model.components().iter().enumerate() {
                assert!(c.noise_variance() > floor && c.noise_variance() < 2.0 * variance, "{what}: {k}");
            }
            // What is reported is what a fresh evaluation of the model says.
            let scored = fitted.model.score(&samples).unwrap();
            assert!((scored - fitted.log_likelihood()).abs() < 1e-6 * scored.abs(), "{what}: {scored}");
            let error = fitted.model.reconstruction_error(&samples).unwrap();
            assert!(
                (error - fitted.reconstruction_error()).abs() < 1e-4 * error.max(1e-3),
                "{what}: {error}"
            );
            let assigned: u64 = fitted.assigned.iter().sum();
            assert_eq!(assigned, 250, "{what}");
        }
    }
}

/// Two of three components begin far away from all samples: dead from the first pass on.
#[test]
fn a_dead_component_is_moved_and_reported() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut data = normals(&mut rng, 200 * 12, 1.0);
    data[..100 * 12].iter_mut().for_each(|x| *x += 9.0);
    let samples = Samples::from_slice(&[4, 3], &data).unwrap();
    let good =
        fit(&samples, &FitOptions { components: 1, rank: vec![2, 2], max_iter: 5, ..FitOptions::default() });
    let good = good.unwrap().model.components()[0].clone();
    let far = matmix::Component::new(&[4, 3], vec![1e4; 12], good.loadings().to_vec(), 1.0).unwrap();
    let start = matmix::Mixture::new(&[4, 3], vec![0.4, 0.3, 0.3], vec![good, far.clone(), far]).unwrap();
    let options = FitOptions {
        components: 3,
        rank: vec![2, 2],
        start: Start::Model(Box::new(start)),
        max_iter: 30,
        tol: 0.0,
        ..FitOptions::default()
    };
    let fitted = fit(&samples, &options).unwrap();
    check(&fitted, "dead components");
    let moved: Vec<usize> = fitted
        .history
        .events
        .iter()
        .filter_map(|e| match e {
            Event::Moved { component, .. } => Some(*component),
            _ => None,
        })
        .collect();
    assert!(moved.contains(&1) && moved.contains(&2), "{:?}", fitted.history.events);
    // Both planted groups have found a component.
    assert!(fitted.model.weights().iter().filter(|w| **w > 0.2).count() >= 2, "{:?}", fitted.model.weights());
}

/// At convergence the gradient of the log-likelihood vanishes, in every parameter (central differences).
#[test]
fn the_gradient_vanishes_at_convergence() {
    use matmix::{Component, Mixture};
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut data = normals(&mut rng, 80 * 6, 1.0);
    data[..40 * 6].iter_mut().enumerate().for_each(|(i, x)| *x = *x * (1.0 + (i % 3) as f64) + 4.0);
    let samples = Samples::from_slice(&[3, 2], &data).unwrap();
    let options =
        FitOptions { components: 2, rank: vec![1, 1], max_iter: 20_000, tol: 1e-15, ..FitOptions::default() };
    let fitted = fit(&samples, &options).unwrap();
    let model = &fitted.model;
    let likelihood = |m: &Mixture| m.score(&samples).unwrap();
    let rebuild = |k: usize, mean: Vec<f64>, loadings: Vec<matmix::Matrix>, noise: f64| {
        let mut parts = model.components().to_vec();
        parts[k] = Component::new(&[3, 2], mean, loadings, noise).unwrap();
        likelihood(&Mixture::new(&[3, 2], model.weights().to_vec(), parts).unwrap())
    };
    let h = 1e-5;
    for k in 0..2 {
        let c = &model.components()[k];
        let (mean, loadings, noise) = (c.mean().to_vec(), c.loadings().to_vec(), c.noise_variance());
        let slope = |f: &dyn Fn(f64) -> f64| (f(h) - f(-h)) / (2.0 * h);
        for i in 0..6 {
            let g = slope(&|h| {
                let mut m = mean.clone();
                m[i] += h;
                rebuild(k, m, loadings.clone(), noise)
            });
            assert!(g.abs() < 1e-5, "mean {k} {i}: {g}");
        }
        for d in 0..2 {
            for i in 0..loadings[d].rows() {
                let g = slope(&|h| {
                    let mut u = loadings.clone();
                    u[d][(i, 0)] += h;
                    rebuild(k, mean.clone(), u, noise)
                });
                assert!(g.abs() < 1e-5, "loading {k} {d} {i}: {g}");
            }
        }
        let g = slope(&|h| rebuild(k, mean.clone(), loadings.clone(), noise + h));
        assert!(g.abs() < 1e-5, "noise {k}: {g}");
        let g = slope(&|h| {
            let mut w = model.weights().to_vec();
            w[k] += h;
            w[1 - k] -= h;
            likelihood(&Mixture::new(&[3, 2], w, model.components().to_vec()).unwrap())
        });
        assert!(g.abs() < 1e-5, "weight {k}: {g}");
    }
}
