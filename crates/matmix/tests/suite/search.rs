//! The search of a start: better optima, the same bits everywhere, and nothing where there is nothing to search for.

use std::ops::ControlFlow;

use matmix::data::digits;
use matmix::{
    Algorithm, Checkpoint, Engine, Fit, FitOptions, Noise, Samples, Search, SearchMove, Start, fit, fit_on,
    fit_with,
};

use crate::parts::Parts;
use crate::planted::{Look, drawn, planted_mixture, random_mixture};
use crate::support::never_falls;

fn searching(components: usize, rank: usize) -> FitOptions {
    FitOptions { components, rank: vec![rank], search: Search::Auto, ..FitOptions::default() }
}

fn without_time(mut fit: Fit) -> Fit {
    fit.history.seconds = 0.0;
    fit
}

#[test]
fn digits_end_higher_than_the_best_of_three_plain_fits() {
    let samples = digits().samples.scaled(1.0 / 255.0).unwrap();
    let found = fit(&samples, &searching(10, 4)).unwrap();
    let plain = FitOptions { search: Search::None, ..searching(10, 4) };
    let best =
        (0..3).map(|seed| fit(&samples, &FitOptions { seed, ..plain.clone() }).unwrap().log_likelihood());
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    assert!(found.log_likelihood() > best + 2.0, "{} {best}", found.log_likelihood());
    // It says what it did, and counts it.
    let history = &found.history;
    let searched = history.search.as_ref().unwrap();
    assert_eq!(searched.samples, 1000);
    let [splits, merges, exchanges] = searched.counts();
    assert_eq!((splits, merges), (14, 5));
    let breaths = |s: &&matmix::SearchStep| s.kind == SearchMove::Breathe && s.kept;
    let single = searched.steps.iter().filter(|s| s.kind == SearchMove::Exchange && s.kept).count();
    assert_eq!(exchanges, single + 3 * searched.steps.iter().filter(breaths).count());
    assert_eq!(searched.steps[0].components, 1);
    let kept: Vec<f64> = searched
        .steps
        .iter()
        .filter(|s| s.kept && s.kind == SearchMove::Split)
        .map(|s| s.log_likelihood)
        .collect();
    assert!(kept.is_sorted(), "{kept:?}");
    assert!(searched.passes > 10.0 && history.passes > searched.passes + history.n_iterations() as f64);
    assert!(history.log_likelihood.is_sorted());
}

#[test]
fn a_search_has_the_same_bits_on_any_number_of_threads_and_in_parts() {
    let planted = random_mixture(5, &[6, 5], &[2, 2], 4);
    let samples = drawn(&planted, 500, 6);
    let options = FitOptions { max_iter: 5, ..searching(4, 2) };
    let with = |threads| FitOptions { threads: Some(threads), ..options.clone() };
    let one = without_time(fit(&samples, &with(1)).unwrap());
    assert!(one.history.search.is_some());
    assert_eq!(without_time(fit(&samples, &with(3)).unwrap()), one);
    // Samples that are elsewhere are fetched: the search finds the same.
    let parts = Parts::new(&samples, &[100, 17, 300]);
    let parted = fit_on(&parts, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(parted.history.search, one.history.search);
}

#[test]
fn an_interrupted_search_goes_on_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let samples = drawn(&random_mixture(7, &[5, 4], &[2, 1], 3), 200, 8);
    let options = FitOptions { rank: vec![2, 1], max_iter: 6, tol: 0.0, n_init: 2, ..searching(3, 1) };
    let whole = without_time(fit(&samples, &options).unwrap());
    let checkpoint = Some(Checkpoint { path, every: 1, resume: true });
    let kept = FitOptions { checkpoint, ..options };
    for after in [0, 3] {
        let stop = fit_with(&samples, &kept, &mut |p| match p.iteration >= after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        stop.unwrap();
    }
    assert_eq!(without_time(fit(&samples, &kept).unwrap()), whole);
}

#[test]
fn there_is_no_search_where_there_is_nothing_to_search_for() {
    let model = random_mixture(7, &[5, 4], &[2, 1], 2);
    let samples = drawn(&model, 60, 8);
    let base = FitOptions { rank: vec![2, 1], max_iter: 2, ..searching(2, 1) };
    for options in [
        FitOptions { components: 1, ..base.clone() },
        FitOptions { start: Start::Random, ..base.clone() },
        FitOptions { start: Start::Model(Box::new(model.clone())), ..base.clone() },
        FitOptions { algorithm: Algorithm::Paper, ..base.clone() },
        FitOptions { max_iter: 0, ..base.clone() },
    ] {
        let found = without_time(fit(&samples, &options).unwrap());
        assert_eq!(found.history.search, None);
        let plain = FitOptions { search: Search::None, ..options };
        assert_eq!(without_time(fit(&samples, &plain).unwrap()), found);
    }
}

#[test]
fn ugly_sets_are_searched_without_failing() {
    let planted = random_mixture(9, &[5, 4], &[2, 2], 3);
    let few = drawn(&planted, 7, 1);
    let same = Samples::from_vec(&[3, 2], vec![0.5; 120]).unwrap();
    let twice = Samples::from_vec(&[3, 2], (0..240).map(|i| f64::from(i % 12)).collect::<Vec<_>>()).unwrap();
    let weights: Vec<f64> = (0..200).map(|n| f64::from(n % 3)).collect();
    let weighted = drawn(&planted, 200, 2).with_weights(weights).unwrap();
    let vectors = drawn(&random_mixture(3, &[12], &[3], 3), 150, 4);
    let cubes = drawn(&random_mixture(3, &[3, 4, 2], &[2, 2, 1], 3), 150, 4);
    for samples in [few, same, twice, weighted, vectors, cubes] {
        for noise in [Noise::Gaussian, Noise::T] {
            let options = FitOptions { noise, max_iter: 4, ..searching(5, 1) };
            let found = fit(&samples, &options).unwrap();
            assert!(found.log_likelihood().is_finite());
            assert_eq!(found.model.n_components(), 5);
            assert_eq!(found.model.noise(), noise);
            let mass: f64 = found.model.weights().iter().sum();
            assert!((mass - 1.0).abs() < 1e-9 && never_falls(&found.history));
        }
    }
}

#[test]
fn a_large_set_is_searched_by_some_of_its_samples() {
    let look = Look { spread: 0.6, ..Look::default() };
    let samples = drawn(&planted_mixture(11, &[4, 3], &[1, 1], 4, look), 70_000, 12);
    let options = FitOptions { max_iter: 20, ..searching(4, 1) };
    let found = fit(&samples, &options).unwrap();
    let searched = found.history.search.as_ref().unwrap();
    assert_eq!(searched.samples, 4096);
    // Every pass of it counts as its share.
    assert!(searched.passes < 30.0, "{}", searched.passes);
    assert!(!found.history.early.is_empty() && found.history.early[0].share <= 0.25);
    let plain = fit(&samples, &FitOptions { search: Search::None, ..options }).unwrap();
    assert!(found.log_likelihood() > plain.log_likelihood() - 0.01);
    assert_eq!((&samples as &dyn Engine).len(), found.assigned.iter().sum::<u64>() as usize);
}
