//! The unit of the data: fits in another one run the same iterations.

use std::ops::ControlFlow;

use matmix::{
    Algorithm, Criterion, Dof, Fit, FitOptions, LowRankOptions, Missing, Mixture, Noise, OnlineFit, Samples,
    Search, SelectOptions, Start, StopRule, fit, fit_low_rank, fit_with, select,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::impute::random_mixture;

/// Samples of a random mixture in single precision.
fn numbers(shape: &[usize], rank: &[usize], k: usize, n: usize, hidden: f64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let model = random_mixture(&mut rng, shape, rank, k, None);
    let cell = |x: f64| if rng.random::<f64>() < hidden { f32::NAN } else { x as f32 };
    model.sample(n, 3).samples.into_iter().map(cell).collect()
}

/// The same samples in another unit.
fn scaled(x: &[f32], factor: f32) -> Vec<f32> {
    x.iter().map(|x| x * factor).collect()
}

/// Whether `other` is `model` of samples 2^`k` times as large, to the last bit.
fn assert_same(model: &Mixture, other: &Mixture, k: i32, what: &str) {
    assert_eq!(model.weights(), other.weights(), "{what}");
    for (a, b) in model.components().iter().zip(other.components()) {
        let longer = |x: &[f64], by: i32| x.iter().map(|x| x * 2f64.powi(by)).collect::<Vec<_>>();
        assert_eq!(longer(a.mean(), k), b.mean(), "{what}");
        assert_eq!(a.noise_variance() * 4f64.powi(k), b.noise_variance(), "{what}");
        assert_eq!(a.degrees_of_freedom(), b.degrees_of_freedom(), "{what}");
        assert_eq!(longer(&a.core_variances(), 2 * k), b.core_variances(), "{what}");
    }
}

fn cases() -> Vec<(&'static str, FitOptions)> {
    let plain = FitOptions { components: 3, rank: vec![2], seed: 1, ..FitOptions::default() };
    vec![
        ("plain", plain.clone()),
        ("k-means", FitOptions { search: Search::None, n_init: 2, ..plain.clone() }),
        ("loose", FitOptions { tol: 1e-3, search: Search::None, accelerate: false, ..plain.clone() }),
        ("t", FitOptions { noise: Noise::T, dof: Dof::Estimated, ..plain.clone() }),
        ("pruned", FitOptions { prune: true, rank: vec![3], ..plain.clone() }),
        ("error", FitOptions { stop: StopRule::ReconstructionError, tol: 1e-4, ..plain }),
    ]
}

#[test]
fn powers_of_two_change_no_other_bit() {
    for (shape, hidden) in [(&[6, 5][..], 0.0), (&[4, 3, 3], 0.0), (&[9], 0.0), (&[6, 5], 0.2)] {
        let x = numbers(shape, &vec![2; shape.len()], 3, 200, hidden);
        for (what, options) in cases().into_iter().take(if hidden > 0.0 { 4 } else { 6 }) {
            let options = FitOptions { missing: Missing::Nan, ..options };
            let run = |x: &[f32]| -> (Fit, Vec<f64>) {
                let samples = Samples::from_slice(shape, x).unwrap().with_missing(Missing::Nan);
                let found = fit(&samples, &options).unwrap();
                let gamma = found.model.responsibilities(&samples).unwrap();
                (found, gamma)
            };
            let (one, gamma) = run(&x);
            for k in [-21, 1, 12] {
                let what = format!("{what}, {shape:?}, {hidden}, 2^{k}");
                let (other, other_gamma) = run(&scaled(&x, 2f32.powi(k)));
                assert_eq!(one.n_iterations(), other.n_iterations(), "{what}");
                assert_eq!(one.stop(), other.stop(), "{what}");
                assert_same(&one.model, &other.model, k, &what);
                assert!(gamma == other_gamma, "{what}");
            }
        }
    }
}

/// In another unit that rounds the numbers a fit takes as many iterations, or one more or less.
#[test]
fn other_units_take_as_many_iterations() {
    let x = numbers(&[6, 5], &[2, 2], 3, 200, 0.0);
    for (what, options) in cases().into_iter().take(1) {
        let run = |factor: f64| {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x) * factor).collect();
            fit(&Samples::from_vec(&[6, 5], x).unwrap(), &options).unwrap()
        };
        let one = run(1.0);
        for factor in [1e-6, 1e6, 1e-30] {
            let other = run(factor);
            let apart = one.n_iterations().abs_diff(other.n_iterations());
            assert!(apart <= 1, "{what} {factor}: {} {}", one.n_iterations(), other.n_iterations());
            let expected = one.log_likelihood() - 30.0 * factor.ln();
            assert!((other.log_likelihood() - expected).abs() < 1e-3, "{what} {factor}");
        }
    }
}

/// A mean log-likelihood near 0 does not make a fit longer.
#[test]
fn a_likelihood_near_zero_stops_like_any_other() {
    let x = numbers(&[6, 5], &[2, 2], 3, 200, 0.0);
    let options = FitOptions { components: 2, rank: vec![1], tol: 1e-4, ..FitOptions::default() };
    let run = |factor: f64| {
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x) * factor).collect();
        fit(&Samples::from_vec(&[6, 5], x).unwrap(), &options).unwrap()
    };
    let one = run(1.0);
    // ln p falls by 30 ln s where samples are s times as large.
    let other = run((one.log_likelihood() / 30.0).exp());
    assert!(other.log_likelihood().abs() < 1e-6);
    assert_eq!(one.n_iterations(), other.n_iterations());
}

#[test]
fn selections_batches_low_ranks_and_the_paper_know_no_unit_either() {
    let x = numbers(&[6, 5], &[2, 2], 3, 150, 0.0);
    for k in [-21, 13] {
        let y = scaled(&x, 2f32.powi(k));
        let (a, b) = (Samples::from_slice(&[6, 5], &x).unwrap(), Samples::from_slice(&[6, 5], &y).unwrap());
        // Components and ranks.
        let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
        let choose = SelectOptions {
            most_components: 4,
            choose_rank: true,
            criterion: Criterion::HeldOut,
            fit,
            ..SelectOptions::default()
        };
        let (one, other) = (select(&a, &choose).unwrap(), select(&b, &choose).unwrap());
        assert_eq!(one.choice.candidates.len(), other.choice.candidates.len());
        assert_same(&one.fit.model, &other.fit.model, k, "selection");
        // Batches.
        let options = FitOptions { components: 2, rank: vec![2], ..FitOptions::default() };
        let batches = |samples: &Samples<'_>| {
            let mut online = OnlineFit::begin(samples, &options).unwrap();
            online.step(samples, &options).unwrap();
            online.model
        };
        assert_same(&batches(&a), &batches(&b), k, "batches");
        // The paper's algorithm from the same start, by its own rule.
        let (start, paper) =
            (fit_with(&a, &options, &mut |_| ControlFlow::Break(())).unwrap().model, |model| FitOptions {
                algorithm: Algorithm::Paper,
                stop: StopRule::ReconstructionError,
                start: Start::Model(Box::new(model)),
                tol: 1e-5,
                ..options.clone()
            });
        let larger = fit_with(&b, &options, &mut |_| ControlFlow::Break(())).unwrap().model;
        let iterations =
            |samples: &Samples<'_>, start| matmix::fit(samples, &paper(start)).unwrap().n_iterations();
        assert_eq!(iterations(&a, start), iterations(&b, larger));
        // Orthonormal loadings.
        let glram = LowRankOptions { rank: vec![2, 2], ..LowRankOptions::default() };
        let (one, other) = (fit_low_rank(&a, &glram).unwrap(), fit_low_rank(&b, &glram).unwrap());
        assert_eq!(one.model.loadings(), other.model.loadings());
        assert_eq!(one.reconstruction_error.len(), other.reconstruction_error.len());
    }
}
