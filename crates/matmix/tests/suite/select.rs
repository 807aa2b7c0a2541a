//! Choosing: planted numbers of components and ranks are found, criteria are those written out plainly.

use std::ops::ControlFlow;

use matmix::data::{Missing, digits};
use matmix::{
    Algorithm, Criterion, Error, Event, FitOptions, Progress, Purpose, Reconstruction, Samples, Search,
    SearchMove, SelectOptions, Start, StopReason, fit, fit_with, select, select_on,
};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::planted::{Look, drawn, numbers, planted_mixture};

fn options(most: usize, rank: &[usize]) -> SelectOptions {
    let fit = FitOptions { rank: rank.to_vec(), ..FitOptions::default() };
    SelectOptions { most_components: most, fit, ..SelectOptions::default() }
}

#[test]
fn planted_components_are_counted() {
    for (k, n) in [(3, 300), (6, 600)] {
        let planted = planted_mixture(20 + k as u64, &[6, 5], &[2, 2], k, Look::default());
        let samples = drawn(&planted, n, 3);
        for criterion in [Criterion::HeldOut, Criterion::Bic, Criterion::Icl] {
            let chosen = select(&samples, &SelectOptions { criterion, ..options(9, &[2, 2]) }).unwrap();
            assert_eq!(chosen.best().components, k, "{criterion}: {:#?}", chosen.choice.candidates);
            assert_eq!(chosen.fit.model.n_components(), k);
            assert!(chosen.choice.advice.contains(&format!("K = {k}")), "{}", chosen.choice.advice);
            // As good as a fit from the truth.
            let truth = planted.score(&samples).unwrap();
            assert!(chosen.fit.log_likelihood() > truth, "{} {truth}", chosen.fit.log_likelihood());
        }
    }
}

/// Windows of 8 channels and 64 instants, 150 of them, in one of three states: a state is a mixing matrix and a band of frequencies. All have the same
/// mean, and some windows are several times as loud as others.
fn states(seed: u64) -> Samples<'static> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let bands = [(8.0, 12.0), (15.0, 25.0), (3.0, 7.0)];
    let mixing: Vec<f64> = (0..3 * 8 * 3).map(|_| rng.sample(StandardNormal)).collect();
    let mut x = Vec::new();
    for _ in 0..150 {
        let state = rng.random_range(0..3);
        let mut sources = [[0.0; 64]; 3];
        for source in &mut sources {
            for _ in 0..4 {
                let (low, high) = bands[state];
                let (frequency, phase) = (rng.random_range(low..high), rng.random_range(0.0..1.0));
                let amplitude: f64 = 2.0 * rng.sample::<f64, _>(StandardNormal);
                for (t, value) in source.iter_mut().enumerate() {
                    let turns: f64 = frequency * t as f64 / 64.0 + phase;
                    *value += amplitude * (2.0 * std::f64::consts::PI * turns).cos();
                }
            }
        }
        for channel in 0..8 {
            for t in 0..64 {
                let weight = |source: usize| mixing[(state * 8 + channel) * 3 + source];
                let signal: f64 = (0..3).map(|source| weight(source) * sources[source][t]).sum();
                x.push(signal + rng.sample::<f64, _>(StandardNormal));
            }
        }
    }
    Samples::from_vec(&[8, 64], x).unwrap()
}

#[test]
fn states_that_differ_in_their_covariance_only_come_apart() {
    for seed in 0..6 {
        let samples = states(seed);
        let bic = SelectOptions { criterion: Criterion::Bic, ..options(4, &[]) };
        let chosen = select(&samples, &bic).unwrap().choice;
        let bics: Vec<f64> = chosen.candidates.iter().map(|c| c.bic.unwrap()).collect();
        assert_eq!(chosen.candidates.iter().map(|c| c.components).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(bics[1] < 0.98 * bics[0] && bics[2] < 0.96 * bics[0], "{seed}: {bics:?}");
        assert!(chosen.best().unwrap().components >= 3, "{seed}: {}", chosen.advice);
        // A fifth of 120 samples or so is little for three states of this size; one is never enough.
        let held_out = select(&samples, &SelectOptions { folds: 1, ..options(4, &[]) }).unwrap().choice;
        assert!(held_out.best().unwrap().components > 1, "{seed}: {}", held_out.advice);
        assert_eq!(held_out.candidates.len(), 4, "{seed}");
        // The path costs no more than direct fits, in passes of four components.
        let direct = |k: usize| {
            let fit = fit(&samples, &FitOptions { components: k, ..FitOptions::default() }).unwrap();
            fit.history.passes * k as f64 / 4.0
        };
        assert!(chosen.passes < (1..=4).map(direct).sum(), "{seed}: {}", chosen.passes);
    }
}

#[test]
fn every_number_that_is_asked_for_is_judged_and_what_was_tried_is_told() {
    // Five samples are too few for any split.
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 5, 3);
    let bic = SelectOptions { criterion: Criterion::Bic, ..options(4, &[1, 1]) };
    let chosen = select(&samples, &bic).unwrap();
    assert_eq!(chosen.choice.candidates.iter().map(|c| c.components).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let advice = &chosen.choice.advice;
    assert!(advice.contains("no split of 1 component gained anything"), "{advice}");
    assert!(advice.contains("more began at once with k-means, the best of 3 starts"), "{advice}");
    let more = SelectOptions { least_components: 2, ..bic.clone() };
    assert_eq!(select(&samples, &more).unwrap().choice.candidates.len(), 3);
    // A fit begins the same way and tells of it.
    let fitted = fit(&samples, &FitOptions { components: 3, ..bic.fit.clone() }).unwrap();
    let told = Event::AtOnce { reached: 1, components: 3, starts: 3 };
    assert!(fitted.history.events.contains(&told), "{:?}", fitted.history.events);
    let steps = fitted.history.search.unwrap().steps;
    assert_eq!((steps[1].kind, steps[1].components), (SearchMove::Begin, 3));
    // More than there are samples cannot be judged.
    let least = SelectOptions { least_components: 6, most_components: 7, ..bic };
    assert!(select(&samples, &least).is_err());
}

#[test]
fn a_selection_that_is_stopped_keeps_the_best_so_far() {
    let samples = drawn(&planted_mixture(26, &[6, 5], &[2, 2], 3, Look::default()), 200, 3);
    let bic = SelectOptions { criterion: Criterion::Bic, choose_rank: true, ..options(5, &[2, 2]) };
    let mut whole = 0;
    let mut count = |_: &Progress<'_>| {
        whole += 1;
        ControlFlow::Continue(())
    };
    select_on(&samples, &bic, &mut count).unwrap();
    for asked in [bic.clone(), SelectOptions { criterion: Criterion::HeldOut, least_components: 2, ..bic }] {
        for last in [1, 3, 6, 12] {
            let mut calls = 0;
            let stopped = select_on(&samples, &asked, &mut |_| {
                calls += 1;
                // A break ends the selection even if later calls do not repeat it.
                if calls == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
            assert!(calls <= last + 3 && calls < whole, "{calls} calls of {whole} after {last}");
            assert_eq!((stopped.fit.stop(), stopped.fit.n_iterations()), (StopReason::Stopped, 0));
            let advice = &stopped.choice.advice;
            assert!(advice.contains("stopped before all candidates were judged"), "{advice}");
            let tried: Vec<usize> = stopped.choice.candidates.iter().map(|c| c.components).collect();
            assert!(tried.iter().all(|&k| k <= 5 && k >= asked.least_components), "{tried:?}");
            assert_eq!(stopped.fit.model.n_components(), stopped.best().components);
        }
    }
}

#[test]
fn candidates_at_the_noise_floor_are_out_of_competition() {
    // Pictures of 6×6 whose border is black: with five columns of each mode nothing is left for the noise.
    let planted = planted_mixture(47, &[4, 4], &[2, 2], 1, Look { noise: 0.5, ..Look::default() });
    let inner = numbers(&drawn(&planted, 300, 3));
    let mut pictures = vec![0.0; 300 * 36];
    for (n, x) in inner.chunks_exact(16).enumerate() {
        for (i, row) in x.chunks_exact(4).enumerate() {
            pictures[n * 36 + (i + 1) * 6 + 1..][..4].copy_from_slice(row);
        }
    }
    let samples = Samples::from_vec(&[6, 6], pictures).unwrap();
    for criterion in [Criterion::HeldOut, Criterion::Bic] {
        let asked = SelectOptions { criterion, choose_rank: true, ..options(1, &[2, 2]) };
        let chosen = select(&samples, &asked).unwrap();
        let events = &chosen.fit.history.events;
        assert!(!events.iter().any(|e| matches!(e, Event::NoiseAtFloor { .. })), "{criterion}: {events:?}");
        let advice = &chosen.choice.advice;
        assert!(advice.contains("left out: the noise variance of components is at its floor"), "{advice}");
        assert!(chosen.choice.candidates.iter().any(|c| c.rank == [4, 4]), "{criterion}");
    }
    // If every candidate is at the floor, the advice says so.
    let asked = options(2, &[6, 6]);
    let advice = select(&samples, &asked).unwrap().choice.advice;
    assert!(advice.contains("of no candidate it says much"), "{advice}");
}

#[test]
fn samples_with_missing_cells_are_chosen_for() {
    let planted = planted_mixture(23, &[6, 5], &[2, 2], 3, Look::default());
    let mut x = numbers(&drawn(&planted, 300, 3));
    x.iter_mut().step_by(7).for_each(|x| *x = f64::NAN);
    let samples = Samples::from_vec(&[6, 5], x).unwrap();
    for criterion in [Criterion::HeldOut, Criterion::Bic] {
        let fit = FitOptions { missing: Missing::Nan, rank: vec![2], ..FitOptions::default() };
        let asked = SelectOptions { criterion, fit, ..options(5, &[2]) };
        let chosen = select(&samples, &asked).unwrap();
        assert_eq!(chosen.best().components, 3, "{criterion}: {:#?}", chosen.choice.candidates);
        let chosen_rank =
            SelectOptions { choose_rank: true, least_components: 3, most_components: 3, ..asked };
        let ranks = select(&samples, &chosen_rank).unwrap();
        assert_eq!(ranks.best().rank, [2, 2], "{criterion}: {:#?}", ranks.choice.candidates);
        assert!(ranks.choice.scree.iter().flatten().all(|share| share.is_finite()));
        let explained = SelectOptions { explain: Some(0.8), choose_rank: false, ..chosen_rank };
        assert!(select(&samples, &explained).unwrap().best().explained > 0.75);
    }
    assert!(matches!(select(&samples, &options(3, &[2])), Err(Error::NotFinite { .. })));
}

#[test]
fn planted_ranks_are_found() {
    let planted = planted_mixture(31, &[9, 8], &[3, 2], 2, Look { noise: 0.5, ..Look::default() });
    let samples = drawn(&planted, 500, 3);
    for criterion in [Criterion::HeldOut, Criterion::Bic] {
        let options = SelectOptions { criterion, choose_rank: true, ..options(4, &[]) };
        let chosen = select(&samples, &options).unwrap();
        let best = chosen.best();
        assert_eq!(
            (best.components, &best.rank[..]),
            (2, &[3, 2][..]),
            "{criterion}: {:#?}",
            chosen.choice.candidates
        );
    }
}

#[test]
fn planted_numbers_are_found_from_ranks_that_are_too_small() {
    let planted = planted_mixture(32, &[9, 8], &[3, 3], 3, Look { noise: 0.5, ..Look::default() });
    let samples = drawn(&planted, 600, 3);
    let options = SelectOptions { choose_rank: true, ..options(6, &[1, 1]) };
    let chosen = select(&samples, &options).unwrap();
    let best = chosen.best();
    assert_eq!((best.components, &best.rank[..]), (3, &[3, 3][..]), "{:#?}", chosen.choice.candidates);
    // Numbers beside the chosen one are judged with its ranks, too.
    let tried = |k: usize| chosen.choice.candidates.iter().any(|c| c.components == k && c.rank == best.rank);
    assert!(tried(2) && tried(4), "{:#?}", chosen.choice.candidates);
    // As good as a fit from the truth.
    let truth = planted.score(&samples).unwrap();
    assert!(chosen.fit.log_likelihood() > truth, "{} {truth}", chosen.fit.log_likelihood());
    // Where ranks have grown, what was chosen is fitted as anybody would fit it; without a search, from what the folds have found.
    let alone = |search| {
        let chosen = select(
            &samples,
            &SelectOptions { fit: FitOptions { search, ..options.fit.clone() }, ..options.clone() },
        );
        let chosen = chosen.unwrap();
        let (components, rank) = (chosen.best().components, chosen.best().rank.clone());
        let alone = fit(&samples, &FitOptions { components, rank, search, ..options.fit.clone() }).unwrap();
        alone.history.log_likelihood == chosen.fit.history.log_likelihood
    };
    assert!(alone(Search::Auto) && !alone(Search::None));
}

#[test]
fn a_path_costs_less_than_two_fits_of_its_most_components() {
    let samples = digits().samples.scaled(1.0 / 255.0).unwrap();
    let samples = samples.select(&(0..400).collect::<Vec<_>>()).unwrap();
    let (mut path, mut one) = (0.0, 0.0);
    for seed in 0..3 {
        let most = FitOptions { components: 12, rank: vec![3], seed, ..FitOptions::default() };
        one += fit(&samples, &most).unwrap().history.passes;
        let asked = SelectOptions { criterion: Criterion::Bic, fit: most, ..options(12, &[]) };
        path += select(&samples, &asked).unwrap().choice.passes;
    }
    assert!(path <= 2.0 * one, "{path} {one}");
}

#[test]
fn ranks_go_no_further_than_they_may() {
    let planted = planted_mixture(31, &[9, 8], &[3, 2], 2, Look { noise: 0.5, ..Look::default() });
    let samples = drawn(&planted, 500, 3);
    let options = SelectOptions { choose_rank: true, most_rank: vec![2, 8], folds: 1, ..options(2, &[]) };
    let chosen = select(&samples, &options).unwrap();
    assert!(chosen.choice.candidates.iter().all(|c| c.rank[0] <= 2 && c.rank[1] <= 8));
    assert_eq!(chosen.best().rank[0], 2, "as near to the truth as it may: {:#?}", chosen.choice.candidates);
    let wrong = |options: SelectOptions| select(&samples, &options).unwrap_err().to_string();
    let error = wrong(SelectOptions { choose_rank: false, ..options.clone() });
    assert!(error.contains("most_rank") && error.contains("unless ranks are chosen"), "{error}");
    let fit = FitOptions { rank: vec![3, 3], ..FitOptions::default() };
    let error = wrong(SelectOptions { fit, ..options.clone() });
    assert!(error.contains("most_rank") && error.contains("at least the ranks to begin with"), "{error}");
    let error = wrong(SelectOptions { most_rank: vec![10], ..options });
    assert!(error.contains("10") && error.contains("9"), "{error}");
}

#[test]
fn criteria_are_those_written_out() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 200, 3);
    let bic = SelectOptions { criterion: Criterion::Bic, ..options(3, &[2, 1]) };
    let chosen = select(&samples, &bic).unwrap();
    assert_eq!(chosen.choice.candidates.iter().map(|c| c.components).collect::<Vec<_>>(), [1, 2, 3]);
    for c in &chosen.choice.candidates {
        // Means of 20, loadings of 5×2 less one rotation and 4×1 less one scale, a noise variance; weights that sum to 1.
        let parameters = c.components * (20 + (10 - 1) + 4 - 1 + 1) + c.components - 1;
        assert_eq!(c.parameters, parameters);
        let (m, twice) = (parameters as f64, -2.0 * 200.0 * c.log_likelihood);
        assert!((c.bic.unwrap() - (twice + m * 200f64.ln())).abs() < 1e-6);
        assert!((c.aic.unwrap() - (twice + 2.0 * m)).abs() < 1e-6);
        assert!(c.icl.unwrap() >= c.bic.unwrap() - 1e-9);
        assert_eq!((c.held_out, c.standard_error), (None, None));
        assert_eq!(c.cost(Criterion::Aic), c.aic.unwrap());
    }
    // More components never explain the samples they were fitted to worse.
    assert!(chosen.choice.candidates.is_sorted_by(|a, b| a.log_likelihood <= b.log_likelihood + 1e-6));
    assert_eq!(select(&samples, &bic).map(|again| again.choice.candidates), Ok(chosen.choice.candidates));
}

#[test]
fn a_selection_needs_something_to_choose_from() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 40, 3);
    let wrong = |options: SelectOptions| match select(&samples, &options) {
        Err(Error::Option { option, .. }) => option,
        Err(Error::Components { .. }) => "components",
        Err(Error::Start { .. }) => "start",
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(SelectOptions { least_components: 3, ..options(2, &[]) }), "components");
    assert_eq!(wrong(SelectOptions { least_components: 0, ..options(2, &[]) }), "components");
    assert_eq!(wrong(SelectOptions { folds: 0, ..options(2, &[]) }), "folds");
    let fit = FitOptions { start: Start::Random, ..FitOptions::default() };
    assert_eq!(wrong(SelectOptions { fit, ..options(2, &[]) }), "start");
    // More components than samples are not tried.
    let few = samples.select(&[0, 1, 2, 3, 4, 5]).unwrap();
    let chosen = select(&few, &SelectOptions { folds: 2, ..options(50, &[1]) }).unwrap();
    assert!(chosen.choice.candidates.iter().all(|c| c.components <= 6));
}

/// 1 − Σ‖X − X̂‖²/Σ‖X − M‖², written out.
fn explained(model: &matmix::Mixture, samples: &Samples<'_>) -> f64 {
    let (x, size) = (numbers(samples), samples.sample_len());
    let mean: Vec<f64> =
        (0..size).map(|i| x.iter().skip(i).step_by(size).sum::<f64>() / samples.len() as f64).collect();
    let squares: f64 =
        x.chunks_exact(size).flat_map(|x| x.iter().zip(&mean)).map(|(x, m)| (x - m).powi(2)).sum();
    let rebuilt = model.reconstruct(samples, Reconstruction::MostProbable).unwrap();
    let left: f64 = x.iter().zip(&rebuilt).map(|(x, y)| (x - y).powi(2)).sum();
    1.0 - left / squares
}

#[test]
fn the_smallest_cores_explain_the_share_that_is_asked_for() {
    let planted = planted_mixture(41, &[9, 8], &[3, 2], 2, Look { noise: 0.02, ..Look::default() });
    let samples = drawn(&planted, 300, 3);
    for share in [0.6, 0.9, 0.99] {
        let asked = SelectOptions { explain: Some(share), criterion: Criterion::Bic, ..options(3, &[]) };
        let chosen = select(&samples, &asked).unwrap();
        let found = explained(&chosen.fit.model, &samples);
        assert!(found >= share - 2e-3, "{share}: {found} with {:?}", chosen.best());
        assert_eq!(chosen.fit.model.rank(), chosen.best().rank);
        assert!((chosen.best().explained - found).abs() < 0.02, "{:?} {found}", chosen.best());
        // A core that is smaller by one in any mode does not.
        for d in 0..2 {
            let mut rank = chosen.best().rank.clone();
            rank[d] -= 1;
            if rank[d] > 0 {
                let components = chosen.best().components;
                let smaller =
                    fit(&samples, &FitOptions { components, rank, ..FitOptions::default() }).unwrap();
                assert!(explained(&smaller.model, &samples) < share + 2e-3, "{share}");
            }
        }
    }
}

#[test]
fn compression_keeps_as_many_values_as_are_given_and_spends_them_well() {
    // Far more varies along the rows than along the columns: 4×2 explain everything.
    let planted = planted_mixture(43, &[10, 9], &[4, 2], 1, Look { noise: 0.01, ..Look::default() });
    let samples = drawn(&planted, 240, 3);
    let asked = SelectOptions {
        purpose: Some(Purpose::Compression),
        choose_rank: true,
        keep: Some(8),
        ..options(2, &[])
    };
    let chosen = select(&samples, &asked).unwrap();
    assert_eq!(chosen.choice.criterion, Criterion::Error);
    assert_eq!(chosen.best().rank, [4, 2], "{:#?}", chosen.choice.candidates);
    assert!(chosen.choice.candidates.iter().all(|c| c.values_kept() <= 8));
    assert!(chosen.choice.advice.contains("for compression") && chosen.choice.advice.contains("8 values"));
    // The error is that of the samples held out, and never smaller than the noise that no core can keep.
    let least = chosen.choice.candidates.iter().map(|c| c.error).fold(f64::INFINITY, f64::min);
    assert!(least > (0.9 * 0.01 * 82.0f64).sqrt() && least < (1.5 * 0.01 * 90.0f64).sqrt(), "{least}");
}

#[test]
fn a_purpose_is_its_criterion() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 150, 3);
    for purpose in [Purpose::Clustering, Purpose::Density] {
        let by = SelectOptions { criterion: purpose.criterion(), ..options(3, &[2, 1]) };
        let chosen = select(&samples, &SelectOptions { purpose: Some(purpose), ..by.clone() }).unwrap();
        let plain = select(&samples, &by).unwrap();
        assert_eq!(chosen.choice.candidates, plain.choice.candidates);
        assert_eq!(chosen.fit.model, plain.fit.model);
        assert_eq!((chosen.choice.purpose, plain.choice.purpose), (Some(purpose), None));
        assert!(chosen.choice.advice.contains(&format!("for {purpose}")));
        assert_eq!(chosen.fit.history.choice.as_ref(), Some(&chosen.choice));
    }
}

#[test]
fn more_rank_is_advised_where_it_helps() {
    let planted = planted_mixture(31, &[9, 8], &[3, 3], 1, Look { noise: 0.2, ..Look::default() });
    let samples = drawn(&planted, 300, 3);
    let few = select(&samples, &options(2, &[1, 1])).unwrap().choice;
    assert_eq!(few.beyond.as_ref().map(|c| c.rank.clone()), Some(vec![2, 2]));
    assert!(few.advice.contains("more rank still helps: 2×2 gains"), "{}", few.advice);
    let enough = select(&samples, &options(2, &[3, 3])).unwrap().choice;
    assert!(!enough.advice.contains("more rank"), "{}", enough.advice);
    // Beside the scree of what was drawn the noise is low: three columns of each mode have nearly all of it.
    assert_eq!(enough.scree.iter().map(Vec::len).collect::<Vec<_>>(), [9, 8]);
    for scree in &enough.scree {
        assert!((scree.iter().sum::<f64>() - 1.0).abs() < 1e-9 && scree.is_sorted_by(|a, b| a >= b));
        assert!(scree[..3].iter().sum::<f64>() > 0.9 && scree[3] < 0.05, "{scree:?}");
    }
}

#[test]
fn options_that_say_two_things_are_refused() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 40, 3);
    let wrong = |options: SelectOptions| match select(&samples, &options) {
        Err(Error::Option { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    let error = SelectOptions { criterion: Criterion::Error, ..options(2, &[]) };
    assert_eq!(wrong(SelectOptions { keep: Some(0), choose_rank: true, ..error.clone() }), "keep");
    assert_eq!(wrong(SelectOptions { keep: Some(4), ..error }), "keep");
    assert_eq!(wrong(SelectOptions { keep: Some(4), choose_rank: true, ..options(2, &[]) }), "keep");
    for share in [0.0, 1.0, f64::NAN] {
        assert_eq!(wrong(SelectOptions { explain: Some(share), ..options(2, &[]) }), "explain");
    }
    assert_eq!(wrong(SelectOptions { explain: Some(0.9), choose_rank: true, ..options(2, &[]) }), "explain");
}

#[test]
fn columns_that_fit_nothing_but_noise_are_told_of_and_dropped() {
    for components in [1, 3] {
        let look = Look { noise: 0.3, ..Look::default() };
        let planted = planted_mixture(50 + components as u64, &[12, 10], &[3, 3], components, look);
        let samples = drawn(&planted, 300 * components, 3);
        let plain = FitOptions { components, rank: vec![6], search: Search::Auto, ..FitOptions::default() };
        let whole = fit(&samples, &plain).unwrap();
        let dead: Vec<&Event> =
            whole.history.events.iter().filter(|e| matches!(e, Event::DeadColumns { .. })).collect();
        let expected = |mode| Event::DeadColumns { mode, rank: 6, needed: 3 };
        assert_eq!(dead, [&expected(0), &expected(1)], "{components}");
        let pruned = fit(&samples, &FitOptions { prune: true, ..plain.clone() }).unwrap();
        assert_eq!(pruned.model.rank(), [3, 3]);
        assert_eq!(pruned.history.events.iter().filter(|e| matches!(e, Event::Pruned { .. })).count(), 2);
        assert!(!pruned.history.events.iter().any(|e| matches!(e, Event::DeadColumns { .. })));
        assert!(pruned.history.passes > whole.history.passes);
        // It ends where a fit of the right ranks ends, below the one with more columns and above it by BIC.
        let right = fit(&samples, &FitOptions { rank: vec![3], ..plain }).unwrap();
        let (a, b) = (pruned.log_likelihood(), right.log_likelihood());
        assert!((a - b).abs() < 1e-3 * b.abs(), "{a} {b}");
        assert!(whole.log_likelihood() > a);
        let n = samples.len() as f64;
        assert!(pruned.model.bic(a, n) < whole.model.bic(whole.log_likelihood(), n));
    }
}

#[test]
fn a_fit_whose_columns_are_all_needed_is_not_pruned() {
    let samples = drawn(&planted_mixture(23, &[6, 5], &[2, 2], 2, Look::default()), 400, 3);
    let plain = FitOptions { components: 2, rank: vec![2], ..FitOptions::default() };
    let (whole, pruned) =
        (fit(&samples, &plain), fit(&samples, &FitOptions { prune: true, ..plain.clone() }));
    assert_eq!(whole.unwrap().model, pruned.unwrap().model);
    let paper = FitOptions { prune: true, algorithm: Algorithm::Paper, ..plain };
    assert!(matches!(fit(&samples, &paper), Err(Error::Option { option: "prune", .. })));
}

#[test]
fn every_step_of_a_search_is_shown_before_the_first_iteration() {
    let samples = drawn(&planted_mixture(26, &[6, 5], &[2, 2], 4, Look::default()), 300, 3);
    let searched = FitOptions { components: 4, rank: vec![2], search: Search::Auto, ..FitOptions::default() };
    let (mut steps, mut iterations) = (Vec::new(), Vec::new());
    let found = fit_with(&samples, &searched, &mut |progress| {
        match progress.search {
            Some(step) => steps.push(step.clone()),
            None => iterations.push(progress.iteration),
        }
        assert!(progress.search.is_none() || iterations.is_empty());
        ControlFlow::Continue(())
    });
    assert_eq!(steps, found.unwrap().history.search.unwrap().steps);
    assert_eq!(steps[0].kind, SearchMove::Begin);
    assert_eq!(iterations[..2], [0, 1]);
    // Whoever says stop meanwhile gets what the search has found.
    let stopped = fit_with(&samples, &searched, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.n_iterations(), stopped.model.n_components()), (0, 4));
    // A selection shows the steps of its paths.
    let mut seen = 0;
    let selection =
        SelectOptions { fit: FitOptions { rank: vec![2], ..FitOptions::default() }, ..options(3, &[2]) };
    select_on(&samples, &selection, &mut |progress| {
        seen += usize::from(progress.search.is_some());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(seen > 9, "{seen}");
}
