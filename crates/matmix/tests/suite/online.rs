//! Fitting batch by batch: approximate, and a good place for a full fit to begin.

use crate::planted::{drawn, normals, random_mixture};
use matmix::{Algorithm, Error, FitOptions, OnlineFit, Samples, Start, fit};

/// 40 batches of 250 samples lead to within 0.5 % of the log-likelihood of the full fit, and a full fit from there to it.
#[test]
fn many_batches_come_close_to_the_full_fit() {
    for (shape, rank) in [(&[12][..], &[3][..]), (&[8, 6], &[2, 2]), (&[5, 4, 3], &[2, 2, 1])] {
        let truth = random_mixture(3, shape, rank, 3);
        let whole = drawn(&truth, 10_000, 4);
        let options = FitOptions { components: 3, rank: rank.to_vec(), ..FitOptions::default() };
        let full = fit(&whole, &options).unwrap();

        let batch = |b: usize| {
            let places: Vec<usize> = (b * 250..(b + 1) * 250).collect();
            whole.clone().select(&places).unwrap()
        };
        let mut online = OnlineFit::begin(&batch(0), &options).unwrap();
        let begun = mean_score(&online, &whole);
        for b in 1..40 {
            online.step(&batch(b), &options).unwrap();
        }
        assert_eq!(online.batches, 40);
        let ended = mean_score(&online, &whole);
        let best = full.log_likelihood();
        assert!(ended > begun, "{ended} after {begun}");
        assert!((best - ended).abs() < 0.005 * best.abs(), "{ended} instead of {best}");

        let start = Start::Model(Box::new(online.model));
        let polished = fit(&whole, &FitOptions { start, ..options }).unwrap();
        assert!(polished.history.log_likelihood.is_sorted());
        assert!((polished.history.log_likelihood[0] - ended).abs() < 1e-9);
        assert!((polished.log_likelihood() - best).abs() < 1e-4 * best.abs());
    }
}

fn mean_score(online: &OnlineFit, samples: &Samples<'_>) -> f64 {
    online.model.score_samples(samples).unwrap().iter().sum::<f64>() / samples.len() as f64
}

/// State is the model and the number of batches: nothing else, and nothing is lost by keeping only these.
#[test]
fn a_resumed_fit_has_the_same_bits() {
    let truth = random_mixture(5, &[6, 5], &[2, 2], 2);
    let options = FitOptions { components: 2, rank: vec![2, 2], ..FitOptions::default() };
    let mut whole = OnlineFit::begin(&drawn(&truth, 200, 1), &options).unwrap();
    let mut resumed = OnlineFit::resume(whole.model.clone(), whole.batches);
    for seed in 2..5 {
        let batch = drawn(&truth, 100, seed);
        whole.step(&batch, &options).unwrap();
        resumed = OnlineFit::resume(resumed.model.clone(), resumed.batches);
        resumed.step(&batch, &options).unwrap();
        assert_eq!(whole, resumed);
    }
}

/// A batch counts by its samples' share of it: doubling all weights changes nothing, one of a single sample is no accident.
#[test]
fn weights_are_relative_and_small_batches_are_survived() {
    let truth = random_mixture(6, &[6, 5], &[2, 2], 2);
    let options = FitOptions { components: 2, rank: vec![2, 2], ..FitOptions::default() };
    let first = OnlineFit::begin(&drawn(&truth, 300, 1), &options).unwrap();
    let batch = drawn(&truth, 64, 2);
    let mut plain = first.clone();
    plain.step(&batch, &options).unwrap();
    let mut doubled = first.clone();
    doubled.step(&batch.clone().with_weights(vec![2.0; 64]).unwrap(), &options).unwrap();
    for (a, b) in plain.model.components().iter().zip(doubled.model.components()) {
        crate::planted::assert_close(a.mean(), b.mean(), 1e-12, "means");
    }
    let mut one = first;
    for seed in 0..20 {
        one.step(&drawn(&truth, 1, seed), &options).unwrap();
        assert!(one.model.components().iter().all(|c| c.noise_variance() > 0.0 && c.mean()[0].is_finite()));
    }
}

#[test]
fn what_a_step_cannot_use_is_named() {
    let truth = random_mixture(7, &[6, 5], &[2, 2], 2);
    let options = FitOptions { components: 2, rank: vec![2, 2], ..FitOptions::default() };
    let mut online = OnlineFit::begin(&drawn(&truth, 60, 1), &options).unwrap();
    let before = online.clone();
    let other = Samples::from_vec(&[5, 6], normals(1, 300)).unwrap();
    let shape = |s: &[usize]| s.to_vec();
    let mismatch = Error::ShapeMismatch { expected: shape(&[6, 5]), found: shape(&[5, 6]) };
    assert_eq!(online.step(&other, &options), Err(mismatch));
    let mut holed = normals(2, 300);
    holed[31] = f64::NAN;
    let holed = Samples::from_vec(&[6, 5], holed).unwrap();
    assert!(matches!(online.step(&holed, &options), Err(Error::NotFinite { sample: 1, .. })));
    let paper = FitOptions { algorithm: Algorithm::Paper, ..options };
    assert!(matches!(online.step(&before_batch(), &paper), Err(Error::Option { option: "algorithm", .. })));
    assert_eq!(online.model, before.model, "a step that fails changes nothing");
}

fn before_batch() -> Samples<'static> {
    Samples::from_vec(&[6, 5], normals(3, 300)).unwrap()
}
