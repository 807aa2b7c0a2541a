//! Passes as values: a set in parts, wherever they are, is fitted like a set in one piece.

use std::ops::ControlFlow;

use crate::parts::Parts;
use crate::planted::{
    Look, assert_close, drawn, drawn_f32, grouped_vectors, normals, planted_mixture, random_mixture,
};
use matmix::pass::{EmPass, Stage, Update};
use matmix::{
    Algorithm, Engine, Error, Fit, FitOptions, LowRankOptions, Mixture, Precision, Result, Samples, Start,
    fit, fit_low_rank, fit_low_rank_on, fit_on,
};

fn fit_parts(engine: &dyn Engine, options: &FitOptions) -> Result<Fit> {
    fit_on(engine, options, &mut |_| ControlFlow::Continue(()))
}

fn options(components: usize) -> FitOptions {
    FitOptions { components, rank: vec![2, 1], max_iter: 8, ..FitOptions::default() }
}

fn parameters(model: &Mixture) -> Vec<f64> {
    let parts = model.components().iter().flat_map(|c| {
        let loadings = c.loadings().iter().flat_map(|u| u.as_slice());
        c.mean().iter().chain(loadings).copied().chain([c.noise_variance()])
    });
    model.weights().iter().copied().chain(parts).collect()
}

#[test]
fn parts_are_fitted_like_the_whole() {
    let planted = random_mixture(1, &[4, 3], &[2, 1], 3);
    let weights: Vec<f64> = (0..900).map(|n| f64::from(n % 4)).collect();
    for samples in [
        drawn(&planted, 900, 2),
        drawn_f32(&planted, 900, 2),
        drawn(&planted, 900, 2).with_weights(weights).unwrap(),
        drawn(&planted, 900, 2).scaled(0.01).unwrap(),
    ] {
        for start in [Start::KMeans, Start::Random] {
            let options = FitOptions { start, ..options(3) };
            let whole = fit(&samples, &options).unwrap();
            let parted = fit_parts(&Parts::new(&samples, &[13, 200, 1, 300]), &options).unwrap();
            let (a, b) = (&parted.history.log_likelihood, &whole.history.log_likelihood);
            assert_close(a, b, 1e-4, "likelihood");
            assert_eq!(parted.assigned.iter().sum::<u64>(), whole.assigned.iter().sum::<u64>());
            // One part is the whole, to the bit.
            let one = fit_parts(&Parts::new(&samples, &[]), &options).unwrap();
            assert_eq!(parameters(&one.model), parameters(&whole.model));
            assert_eq!(one.history.log_likelihood, whole.history.log_likelihood);
        }
    }
}

#[test]
fn the_same_parts_give_the_same_bits_on_any_number_of_threads() {
    let planted = random_mixture(1, &[4, 3], &[2, 1], 3);
    let samples = drawn_f32(&planted, 5_000, 2);
    let sizes: Vec<usize> = (0..30).map(|i| 20 + 13 * (i % 7)).collect();
    let run = |threads| {
        let options = FitOptions { threads: Some(threads), ..options(3) };
        fit_parts(&Parts::new(&samples, &sizes), &options).unwrap()
    };
    let (one, four) = (run(1), run(4));
    assert_eq!(parameters(&one.model), parameters(&four.model));
    assert_eq!(one.history.log_likelihood, four.history.log_likelihood);
}

/// Iterations of EM find next to nothing that the start has not found where the clusters are apart.
#[test]
fn a_start_is_close_to_where_the_fit_ends() {
    let samples = grouped_vectors(600);
    let run = |max_iter| {
        let options =
            FitOptions { components: 4, rank: vec![3], max_iter, tol: 0.0, ..FitOptions::default() };
        fit(&samples, &options).unwrap().log_likelihood()
    };
    let (start, end) = (run(0), run(30));
    assert!(end - start < 0.5, "{start} {end}");
}

/// More samples than the subset of the start holds.
#[test]
fn a_start_costs_no_more_than_three_passes_and_is_as_good() {
    let look = Look { spread: 12.0, ..Look::default() };
    let planted = planted_mixture(4, &[4, 3], &[2, 1], 6, look);
    let samples = drawn(&planted, 6_000, 5);
    let engine = Parts::new(&samples, &[1_000, 2_500]);
    let options = FitOptions { max_iter: 0, ..options(6) };
    let start = fit_parts(&engine, &options).unwrap();
    assert_eq!((engine.count("Groups"), engine.count("Scatter")), (1, 0));
    assert_eq!((engine.count("Moments"), engine.count("Rows"), engine.count("Em")), (1, 2, 1));
    // The weights are those of the clusters in all samples, and they are found.
    let mut found = start.model.weights().to_vec();
    let mut expected = planted.weights().to_vec();
    found.sort_by(f64::total_cmp);
    expected.sort_by(f64::total_cmp);
    assert_close(&found, &expected, 0.03, "weights");
    let fitted = fit_parts(&engine, &FitOptions { max_iter: 30, ..options }).unwrap();
    let truth = planted.score(&samples).unwrap();
    assert!(fitted.log_likelihood() > truth - 0.02, "{} after the truth {truth}", fitted.log_likelihood());
}

/// One component needs no clusters; its mean and variance are those of all samples.
#[test]
fn one_component_starts_at_the_mean_of_all_samples() {
    let planted = random_mixture(4, &[4, 3], &[2, 1], 1);
    let samples = drawn(&planted, 5_000, 5);
    let engine = Parts::new(&samples, &[1_000]);
    let start = fit_parts(&engine, &FitOptions { max_iter: 0, ..options(1) }).unwrap();
    assert_eq!(engine.count("Groups"), 0);
    let mut mean = vec![0.0; 12];
    for x in samples.to_f64(0..5_000).unwrap().chunks_exact(12) {
        mean.iter_mut().zip(x).for_each(|(m, x)| *m += x / 5_000.0);
    }
    assert_close(start.model.components()[0].mean(), &mean, 1e-9, "mean");
}

/// Only samples of positive weight are drawn; the others may be anything finite.
#[test]
fn samples_without_weight_do_not_count_in_a_start_from_a_subset() {
    let planted = random_mixture(4, &[4, 3], &[2, 1], 2);
    let mut x = planted.sample(3_000, 1).samples;
    x.extend(vec![1e6; 12 * 3_000]);
    let weights = (0..6_000).map(|n| f64::from(u8::from(n < 3_000))).collect();
    let samples = Samples::from_vec(&[4, 3], x).unwrap().with_weights(weights).unwrap();
    for start in [Start::KMeans, Start::Random] {
        let fitted = fit(&samples, &FitOptions { start, ..options(2) }).unwrap();
        for component in fitted.model.components() {
            assert!(component.mean().iter().all(|m| m.abs() < 100.0));
        }
    }
}

#[test]
fn low_rank_from_parts() {
    let planted = random_mixture(1, &[4, 3], &[2, 1], 1);
    let samples = drawn(&planted, 300, 2);
    let options = LowRankOptions { rank: vec![2, 2], ..LowRankOptions::default() };
    let whole = fit_low_rank(&samples, &options).unwrap();
    let parted = fit_low_rank_on(&Parts::new(&samples, &[100, 7]), &options).unwrap();
    for (a, b) in parted.model.loadings().iter().zip(whole.model.loadings()) {
        assert_close(a.as_slice(), b.as_slice(), 1e-9, "loadings");
    }
    // Large samples: a pass per mode.
    let engine = Parts::new(&Samples::from_vec(&[40, 40], normals(3, 1600 * 20)).unwrap(), &[]);
    let large = fit_low_rank_on(&engine, &options).unwrap();
    assert_eq!(large.passes, (engine.count("Scatter") + engine.count("Moments")) as f64);
    // Fewer vectors than elements: fetched, because they are few.
    let few = Samples::from_vec(&[30], normals(3, 30 * 12)).unwrap();
    let options = LowRankOptions { rank: vec![3], ..LowRankOptions::default() };
    let engine = Parts::new(&few, &[5]);
    let parted = fit_low_rank_on(&engine, &options).unwrap();
    assert_eq!(engine.count("Scatter"), 0);
    let whole = fit_low_rank(&few, &options).unwrap();
    assert_close(parted.model.loadings()[0].as_slice(), whole.model.loadings()[0].as_slice(), 1e-9, "pca");
}

#[test]
fn a_lost_part_and_one_that_was_counted_twice_are_noticed() {
    let samples = drawn(&random_mixture(1, &[4, 3], &[2, 1], 2), 100, 2);
    let mut engine = Parts::new(&samples, &[30, 30]);
    engine.lost = Some(1);
    let error = fit_parts(&engine, &options(2)).unwrap_err();
    assert_eq!(error, Error::LostSamples { expected: 100, found: 70 });
    engine = Parts::new(&samples, &[30, 30]);
    engine.twice = Some(2);
    let error = fit_low_rank_on(&engine, &LowRankOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "statistics of 140 samples came back for a set of 100: a part was lost or counted twice"
    );
}

#[test]
fn samples_are_named_by_their_place_in_the_whole_set() {
    let model = random_mixture(1, &[4, 3], &[2, 1], 2);
    let mut x = model.sample(100, 3).samples;
    x[70 * 12..71 * 12].fill(50.0);
    let samples = Samples::from_vec(&[4, 3], x.clone()).unwrap();
    let pass = EmPass { model, update: Update::Mode(0), precision: Precision::Auto, stage: Stage::ALL };
    let sums = (&Parts::new(&samples, &[30, 30]) as &dyn Engine).sums(&pass).unwrap();
    assert_eq!(sums.worst[0].1, 70);
    x[80 * 12 + 4] = f64::NAN;
    let samples = Samples::from_vec(&[4, 3], x).unwrap();
    let error = fit_parts(&Parts::new(&samples, &[30, 30]), &options(2)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { sample: 80, .. }), "{error}");
}

#[test]
fn the_papers_algorithm_needs_the_samples_themselves() {
    let samples = drawn(&random_mixture(1, &[4, 3], &[2, 1], 2), 50, 2);
    let options = FitOptions { algorithm: Algorithm::Paper, ..options(2) };
    assert!(fit(&samples, &options).is_ok());
    let error = fit_parts(&Parts::new(&samples, &[]), &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "option `algorithm` is `paper`; it must be `exact` for samples that this process cannot read"
    );
}
