//! Guesses where the iterations lead: fewer passes, never a lower likelihood, the same bits after a resume.

use std::ops::ControlFlow;

use crate::parts::Parts;
use crate::planted::{Look, drawn, planted_mixture};
use crate::support::never_falls;
use matmix::fit::accelerate::LATE;
use matmix::{Checkpoint, Fit, FitOptions, Samples, Search, StopReason, fit_on, fit_with};

/// Components that overlap, with cores that are weak beside the noise: plain iterations take long.
fn slow(seed: u64) -> Samples<'static> {
    let look = Look { spread: 0.2, signal: 0.25, noise: 1.0, ..Look::default() };
    drawn(&planted_mixture(seed, &[10, 8], &[2, 2], 3, look), 400, seed)
}

fn options(accelerate: bool, tol: f64) -> FitOptions {
    // A search would leave little to be guessed.
    let search = Search::None;
    FitOptions {
        components: 3,
        rank: vec![2, 2],
        search,
        max_iter: 1000,
        accelerate,
        tol,
        ..FitOptions::default()
    }
}

/// The fit, and how many passes of EM it took.
fn counted(samples: &Samples<'static>, options: &FitOptions) -> (Fit, usize) {
    let engine = Parts::new(samples, &[]);
    let fitted = fit_on(&engine, options, &mut |_| ControlFlow::Continue(())).unwrap();
    (fitted, engine.count("Em"))
}

#[test]
fn guesses_save_passes_and_end_no_lower() {
    let (mut plain_passes, mut passes) = (0, 0);
    for seed in 0..6 {
        let samples = slow(seed);
        let (plain, with_plain) = counted(&samples, &options(false, 1e-9));
        let (guessed, with_guesses) = counted(&samples, &options(true, 1e-9));
        println!("seed {seed}: {with_plain} passes plain, {with_guesses} with guesses");
        assert_eq!((plain.stop(), guessed.stop()), (StopReason::Converged, StopReason::Converged));
        // An evaluation of the start, a pass per iteration, and what was tried besides.
        assert!(with_plain > plain.n_iterations());
        assert!(with_guesses > guessed.n_iterations());
        assert_eq!((plain.history.passes, guessed.history.passes), (with_plain as f64, with_guesses as f64));
        let (end, reached) = (plain.log_likelihood(), guessed.log_likelihood());
        assert!(reached >= end - 1e-6 * end.abs(), "seed {seed}: {reached} instead of {end}");
        assert!(never_falls(&guessed.history), "seed {seed}: {:?}", guessed.history);
        plain_passes += with_plain;
        passes += with_guesses;
    }
    assert!(5 * passes < 4 * plain_passes, "{passes} instead of {plain_passes}");
}

/// What restarts cost is counted, whichever of them is kept.
#[test]
fn the_passes_of_all_restarts_count() {
    let samples = slow(0);
    let restarts = FitOptions { n_init: 3, ..options(false, 1e-4) };
    let (fitted, counted) = counted(&samples, &restarts);
    assert_eq!(fitted.history.passes, counted as f64);
    assert!(counted > 2 * fitted.n_iterations());
    let read = fitted.history.samples_per_second().unwrap() * fitted.history.seconds;
    assert!((read / (samples.len() * counted) as f64 - 1.0).abs() < 1e-12);
}

/// Up to the first guess, which comes late, the fits are one and the same.
#[test]
fn there_are_no_guesses_while_the_likelihood_rises_quickly() {
    let samples = slow(1);
    let (plain, guessed) =
        (counted(&samples, &options(false, 0.0)).0, counted(&samples, &options(true, 0.0)).0);
    let (a, b) = (&plain.history.log_likelihood, &guessed.history.log_likelihood);
    let differ = (0..a.len()).find(|&t| a[t] != b[t]).unwrap();
    let quick = |t: usize| a[t] - a[t - 1] > LATE * 80.0;
    assert!((1..differ).any(quick), "{a:?}");
    assert!(!quick(differ - 2) && !quick(differ - 1), "{differ}: {a:?}");
}

/// Stopped after every iteration in turn, while guesses are made, refused and kept.
#[test]
fn a_fit_in_pieces_makes_the_same_guesses() {
    let samples = slow(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fit.checkpoint");
    let checkpoint = Some(Checkpoint { path: path.clone(), every: 100, resume: true });
    let whole = counted(&samples, &options(true, 1e-7)).0;
    assert_ne!(whole.model, counted(&samples, &options(false, 1e-7)).0.model);
    let options = FitOptions { checkpoint, ..options(true, 1e-7) };
    let mut last = None;
    for _ in 0..=whole.n_iterations() + 1 {
        last = Some(fit_with(&samples, &options, &mut |_| ControlFlow::Break(())).unwrap());
    }
    let pieces = last.unwrap();
    assert_eq!(pieces.history.log_likelihood, whole.history.log_likelihood);
    assert_eq!(pieces.model, whole.model);
    assert_eq!(pieces.stop(), StopReason::Converged);
    // Another fit's state is no state of this one.
    let plain = FitOptions { accelerate: false, ..options };
    assert!(fit_with(&samples, &plain, &mut |_| ControlFlow::Continue(())).is_err());
}
