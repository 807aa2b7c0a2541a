//! The same bits, whatever the machine does: any number of threads, data in memory or on disk, a fit in one go or in
//! pieces. And sums over parts of a set are the sums of the set.

use std::ops::ControlFlow;
use std::path::Path;

use crate::planted::statistics;
use crate::planted::{assert_close, drawn, drawn_f32, grouped_vectors, numbers, random_mixture};
use matmix::data::npy;
use matmix::pass::{EmSums, LoadingSums, Sums};
use matmix::{
    Algorithm, Checkpoint, Fit, FitOptions, LowRankOptions, Matrix, Mixture, Precision, Progress, Samples,
    Search, Start, StopReason, fit, fit_low_rank, fit_with,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Every bit of a mixture.
fn bits(model: &Mixture) -> Vec<u64> {
    let parts = model.components().iter().flat_map(|c| {
        let loadings = c.loadings().iter().flat_map(|u| u.as_slice());
        c.mean().iter().chain(loadings).copied().chain([c.noise_variance()])
    });
    model.weights().iter().copied().chain(parts).map(f64::to_bits).collect()
}

/// Every bit of a fit but the time it took.
fn assert_same(a: &Fit, b: &Fit, what: &str) {
    assert_eq!(bits(&a.model), bits(&b.model), "{what}");
    let series = |f: &Fit| -> Vec<u64> {
        let h = &f.history;
        h.log_likelihood.iter().chain(&h.reconstruction_error).map(|x| x.to_bits()).collect()
    };
    assert_eq!(series(a), series(b), "{what}");
    assert_eq!(a.history.events, b.history.events, "{what}");
    assert_eq!(
        (a.stop(), a.history.restart, &a.assigned),
        (b.stop(), b.history.restart, &b.assigned),
        "{what}"
    );
}

/// The fit has every bit the same on one, two and eight threads.
fn assert_same_on_any_number_of_threads(samples: &Samples<'_>, options: &FitOptions) {
    let run = |threads| fit(samples, &FitOptions { threads: Some(threads), ..options.clone() }).unwrap();
    let one = run(1);
    assert!(one.log_likelihood().is_finite());
    for threads in [2, 8] {
        assert_same(&run(threads), &one, &format!("{threads} threads"));
    }
}

/// 5,000 samples of 12 elements are three chunks of 2,048, the last one not full.
const CHUNKED: usize = 5_000;

#[test]
fn one_two_and_eight_threads_give_the_same_bits() {
    let planted = random_mixture(1, &[4, 3], &[2, 1], 3);
    for samples in [drawn(&planted, CHUNKED, 2), drawn_f32(&planted, CHUNKED, 2)] {
        let rank = vec![2, 1];
        let options = FitOptions { components: 3, rank, max_iter: 6, n_init: 2, ..FitOptions::default() };
        assert_same_on_any_number_of_threads(&samples, &options);
        let low_rank = |threads| {
            let options =
                LowRankOptions { rank: vec![2], threads: Some(threads), ..LowRankOptions::default() };
            fit_low_rank(&samples, &options).unwrap()
        };
        assert_eq!(low_rank(1), low_rank(8));
    }
}

#[test]
fn one_two_and_eight_threads_infer_the_same_bits() {
    let model = random_mixture(1, &[4, 3], &[2, 1], 3);
    let samples = drawn(&model, CHUNKED, 3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| model.project(&samples).unwrap())
    };
    let one = run(1);
    assert_eq!(one.log_likelihood.len(), CHUNKED);
    for threads in [2, 8] {
        assert_eq!(run(threads), one);
    }
}

#[test]
fn the_papers_algorithm_gives_the_same_bits_on_any_number_of_threads() {
    let samples = drawn(&random_mixture(4, &[4, 3], &[2, 2], 2), 300, 5);
    let options = FitOptions {
        components: 2,
        rank: vec![2, 2],
        algorithm: Algorithm::Paper,
        start: Start::Random,
        max_iter: 8,
        ..FitOptions::default()
    };
    assert_same_on_any_number_of_threads(&samples, &options);
}

#[test]
fn a_start_of_vectors_has_the_same_bits_on_any_number_of_threads() {
    // All samples, and a subset of them; with a cluster that borrows its loadings, and without.
    for (few, components) in [(3, 4), (600, 4), (3, 9)] {
        let options = FitOptions { components, rank: vec![3], max_iter: 0, ..FitOptions::default() };
        assert_same_on_any_number_of_threads(&grouped_vectors(few), &options);
    }
}

#[test]
fn memory_and_memory_map_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let planted = random_mixture(6, &[4, 3], &[2, 1], 2);
    let in_memory = drawn(&planted, CHUNKED, 7);
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[CHUNKED, 4, 3], &numbers(&in_memory)).unwrap();
    let mapped = Samples::from_npy(&path).unwrap();
    let options = FitOptions { components: 2, rank: vec![2, 1], max_iter: 5, ..FitOptions::default() };
    assert_same(&fit(&mapped, &options).unwrap(), &fit(&in_memory, &options).unwrap(), "f64");

    let single: Vec<f32> = numbers(&in_memory).iter().map(|&x| x as f32).collect();
    npy::write_array(&path, &[CHUNKED, 4, 3], &single).unwrap();
    let mapped = Samples::from_npy(&path).unwrap();
    let in_memory = Samples::from_slice(&[4, 3], &single).unwrap();
    assert_same(&fit(&mapped, &options).unwrap(), &fit(&in_memory, &options).unwrap(), "f32");
    // A selection of everything, in order and shuffled there and back, copies and is still the same.
    let backwards: Vec<usize> = (0..CHUNKED).rev().collect();
    let twice = in_memory.clone().select(&backwards).unwrap().select(&backwards).unwrap();
    assert_same(&fit(&twice, &options).unwrap(), &fit(&in_memory, &options).unwrap(), "selected");
}

fn long_fit(algorithm: Algorithm, checkpoint: Option<Checkpoint>) -> FitOptions {
    FitOptions {
        components: 3,
        rank: vec![2, 2],
        algorithm,
        start: if algorithm == Algorithm::Paper { Start::Random } else { Start::KMeans },
        search: Search::None,
        n_init: 3,
        max_iter: 7,
        tol: 0.0,
        seed: 11,
        checkpoint,
        ..FitOptions::default()
    }
}

fn at(path: &Path, every: usize) -> Option<Checkpoint> {
    Some(Checkpoint { path: path.to_owned(), every, resume: true })
}

fn interrupted_samples() -> Samples<'static> {
    drawn(&random_mixture(8, &[5, 4], &[2, 2], 3), 240, 9)
}

/// Stopped once, at any iteration of any restart, and resumed.
#[test]
fn stopped_by_the_observer_and_resumed_gives_the_same_bits() {
    let samples = interrupted_samples();
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let whole = fit(&samples, &long_fit(algorithm, None)).unwrap();
        assert_eq!(whole.n_iterations(), 7);
        for (restart, iteration) in [(0, 0), (0, 3), (0, 7), (1, 0), (1, 5), (2, 1), (2, 7)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fit.checkpoint");
            let options = long_fit(algorithm, at(&path, 100));
            let mut stop = |p: &Progress<'_>| match (p.restart, p.iteration) == (restart, iteration) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let first = fit_with(&samples, &options, &mut stop).unwrap();
            if restart == 0 {
                assert_eq!((first.stop(), first.n_iterations()), (StopReason::Stopped, iteration));
            }
            let mut seen = Vec::new();
            let resumed = fit_with(&samples, &options, &mut |p| {
                seen.push((p.restart, p.iteration));
                ControlFlow::Continue(())
            });
            let what = format!("{algorithm:?}, stopped in restart {restart} after iteration {iteration}");
            assert_same(&resumed.unwrap(), &whole, &what);
            // It went on from there: nothing was done twice and nothing left out.
            let expected: Vec<_> = (0..3)
                .flat_map(|r| (0..=7).map(move |i| (r, i)))
                .filter(|&now| now > (restart, iteration))
                .collect();
            assert_eq!(seen, expected, "{what}");
        }
    }
}

/// Stopped after every single iteration.
#[test]
fn a_fit_in_many_pieces_gives_the_same_bits() {
    let samples = interrupted_samples();
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let whole = fit(&samples, &long_fit(algorithm, None)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let options = long_fit(algorithm, at(&folder.path().join("fit.checkpoint"), 100));
        let mut last = None;
        for _ in 0..30 {
            last = Some(fit_with(&samples, &options, &mut |_| ControlFlow::Break(())).unwrap());
        }
        assert_same(&last.unwrap(), &whole, &format!("{algorithm:?}"));
    }
}

/// What a kill leaves: the file as it was at some moment.
#[test]
fn killed_and_resumed_gives_the_same_bits() {
    let samples = interrupted_samples();
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let whole = fit(&samples, &long_fit(algorithm, None)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fit.checkpoint");
        let mut copies = Vec::new();
        let observed = fit_with(&samples, &long_fit(algorithm, at(&path, 2)), &mut |p| {
            if path.exists()
                && [(0, 3), (0, 5), (1, 0), (1, 3), (2, 4), (2, 7)].contains(&(p.restart, p.iteration))
            {
                copies.push((p.restart, std::fs::read(&path).unwrap()));
            }
            ControlFlow::Continue(())
        });
        assert_same(&observed.unwrap(), &whole, "a checkpoint changes nothing");
        assert_eq!(copies.len(), 6);
        for (n, (restart, copy)) in copies.into_iter().enumerate() {
            let path = folder.path().join("copy.checkpoint");
            std::fs::write(&path, copy).unwrap();
            let resumed = fit(&samples, &long_fit(algorithm, at(&path, 3))).unwrap();
            assert_same(&resumed, &whole, &format!("{algorithm:?}, copy {n} of restart {restart}"));
            // The file that is left is of a finished fit: resuming once more changes nothing.
            let again = fit(&samples, &long_fit(algorithm, at(&path, 3))).unwrap();
            assert_same(&again, &whole, &format!("{algorithm:?}, copy {n}, resumed twice"));
        }
    }
}

/// Steps of a search are stopped at, too: at once, with a model, and resuming searches again.
#[test]
fn stopped_while_searching_and_resumed_gives_the_same_bits() {
    let samples = interrupted_samples();
    let options = |checkpoint| FitOptions { search: Search::Auto, ..long_fit(Algorithm::Exact, checkpoint) };
    let whole = fit(&samples, &options(None)).unwrap();
    for (restart, steps) in [(0, 1), (0, 3), (1, 2), (2, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fit.checkpoint");
        let (mut seen, mut after) = (0, 0);
        let mut stop = |p: &Progress<'_>| {
            let searching = p.restart == restart && p.search.is_some();
            seen += usize::from(searching);
            after += usize::from(searching && seen > steps);
            if searching && seen >= steps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = fit_with(&samples, &options(at(&path, 100)), &mut stop).unwrap();
        assert_eq!((seen, after), (steps, 0), "restart {restart}: no step after the last one");
        assert_eq!(stopped.model.n_components(), 3);
        let resumed = fit(&samples, &options(at(&path, 100))).unwrap();
        assert_same(&resumed, &whole, &format!("stopped in restart {restart} at step {steps}"));
    }
}

/// A kill right after a search does not cost the search.
#[test]
fn what_a_search_has_found_is_kept_at_once() {
    let samples = interrupted_samples();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fit.checkpoint");
    let options = |checkpoint| FitOptions { search: Search::Auto, ..long_fit(Algorithm::Exact, checkpoint) };
    let mut copy = None;
    let whole = fit_with(&samples, &options(at(&path, 100)), &mut |p| {
        if (p.restart, p.iteration) == (0, 1) {
            copy = Some(std::fs::read(&path).unwrap());
        }
        ControlFlow::Continue(())
    });
    std::fs::write(&path, copy.unwrap()).unwrap();
    let mut searched = false;
    let resumed = fit_with(&samples, &options(at(&path, 100)), &mut |p| {
        searched |= p.restart == 0 && p.search.is_some();
        ControlFlow::Continue(())
    });
    assert!(!searched);
    assert_same(&resumed.unwrap(), &whole.unwrap(), "killed after the search");
}

/// The wish to stop is heard in the very iteration that converges, too.
#[test]
fn a_stop_at_convergence_ends_all_restarts() {
    let samples = interrupted_samples();
    let options = FitOptions { components: 2, rank: vec![2], n_init: 4, tol: 1e3, ..FitOptions::default() };
    let mut last = 0;
    let stopped = fit_with(&samples, &options, &mut |p| {
        last = p.restart;
        if p.iteration == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(stopped.unwrap().stop(), StopReason::Converged);
    assert_eq!(last, 0, "no other restart was begun");
}

fn merged(model: &Mixture, samples: &Samples<'_>, cuts: &[usize], mode: usize) -> EmSums {
    let mut sums: Option<EmSums> = None;
    for part in cuts.windows(2).filter(|c| c[0] < c[1]) {
        let places: Vec<usize> = (part[0]..part[1]).collect();
        let part = samples.clone().select(&places).unwrap();
        let part = statistics(model, &part, mode, Precision::Auto).unwrap();
        match &mut sums {
            Some(sums) => sums.merge(&part).unwrap(),
            None => sums = Some(part),
        }
    }
    sums.unwrap()
}

fn matrices(sums: &LoadingSums) -> Vec<&Matrix> {
    match sums {
        LoadingSums::All { cross, gram } => vec![cross, gram],
        LoadingSums::Mode { cross, weighted_gram, gram } => vec![cross, weighted_gram, gram],
    }
}

fn assert_sums_agree(a: &EmSums, b: &EmSums) {
    assert_eq!((a.n_samples, a.update), (b.n_samples, b.update));
    assert_close(
        &[a.weight, a.log_likelihood, a.squared_error],
        &[b.weight, b.log_likelihood, b.squared_error],
        1e-11,
        "totals",
    );
    for (a, b) in a.components.iter().zip(&b.components) {
        assert_eq!(a.assigned, b.assigned);
        assert_close(&[a.weight, a.squares], &[b.weight, b.squares], 1e-10, "N, s");
        assert_close(&a.shift, &b.shift, 1e-9, "m");
        assert_close(&a.core, &b.core, 1e-9, "b");
        for (a, b) in matrices(&a.loadings).into_iter().zip(matrices(&b.loadings)) {
            assert_close(a.as_slice(), b.as_slice(), 1e-9, "F, G");
        }
    }
    let worst = |s: &EmSums| s.worst.iter().map(|w| w.0).collect::<Vec<_>>();
    assert_close(&worst(a), &worst(b), 1e-12, "the least likely samples");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn sums_over_any_split_are_the_sums_of_the_whole(
        seed in 0u64..1000,
        mut cuts in prop::collection::vec(0usize..=2500, 0..4),
        mode in 0usize..2,
    ) {
        let model = random_mixture(seed, &[4, 3], &[2, 1], 3);
        let samples = drawn(&model, 2500, seed + 1);
        cuts.extend([0, 2500]);
        cuts.sort_unstable();
        let whole = statistics(&model, &samples, mode, Precision::Auto).unwrap();
        prop_assert_eq!(whole.n_samples, 2500);
        assert_sums_agree(&merged(&model, &samples, &cuts, mode), &whole);
    }
}
