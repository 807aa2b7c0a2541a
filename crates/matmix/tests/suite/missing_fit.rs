//! Fits to samples with missing cells: what they promise, and what is refused.

use std::ops::ControlFlow;

use matmix::{
    Algorithm, Checkpoint, Component, Dof, Error, Event, FitOptions, LowRankOptions, Matrix, Missing, Noise,
    OnlineFit, Samples, Start, fit, fit_low_rank, fit_with,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::impute::random_mixture;

/// Samples of a random mixture, this share of whose cells is missing.
fn broken(seed: u64, shape: &[usize], rank: &[usize], k: usize, n: usize, share: f64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let model = random_mixture(&mut rng, shape, rank, k, None);
    let mut x = model.sample(n, seed).samples;
    x.iter_mut().for_each(|x| {
        if rng.random::<f64>() < share {
            *x = f64::NAN
        }
    });
    x
}

fn options(k: usize, rank: &[usize]) -> FitOptions {
    FitOptions { components: k, rank: rank.to_vec(), missing: Missing::Nan, ..FitOptions::default() }
}

/// 300 random problems, or as many as MATMIX_FITS says.
#[test]
fn the_observed_likelihood_never_falls() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let fits = std::env::var("MATMIX_FITS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    for case in 0..fits {
        let order = rng.random_range(1..4);
        let shape: Vec<usize> = (0..order).map(|_| rng.random_range(1..6)).collect();
        let rank: Vec<usize> = shape.iter().map(|&p| rng.random_range(1..=p.min(3))).collect();
        let (k, n) = (rng.random_range(1..4), rng.random_range(12..40));
        let share = [0.05, 0.3, 0.6, 0.85][rng.random_range(0..4)];
        let x = broken(case, &shape, &rank, k, n, share);
        if x.iter().all(|x| x.is_nan()) {
            continue;
        }
        let tails = rng.random::<bool>();
        let options = FitOptions {
            max_iter: 12,
            tol: 0.0,
            seed: case,
            noise: if tails { Noise::T } else { Noise::Gaussian },
            dof: if tails && case % 3 == 0 { Dof::Shared } else { Dof::Estimated },
            start: if case % 2 == 0 { Start::KMeans } else { Start::Random },
            accelerate: case % 4 < 2,
            ..options(k, &rank)
        };
        let found = fit(&Samples::from_slice(&shape, &x).unwrap(), &options).unwrap();
        let removals = crate::support::removals(&found.history);
        for (t, pair) in found.history.log_likelihood.windows(2).enumerate() {
            let may_fall = removals.contains(&(t + 1));
            assert!(
                may_fall || pair[1] >= pair[0] - 1e-9 * pair[0].abs().max(1.0),
                "case {case}, {shape:?}: {pair:?}"
            );
        }
        let samples = Samples::from_slice(&shape, &x).unwrap().with_missing(Missing::Nan);
        let score = found.model.score(&samples).unwrap();
        assert!((score - found.log_likelihood()).abs() < 1e-9 * score.abs().max(1.0), "case {case}");
    }
}

/// The mean ln p of what was observed of the samples, from dense covariances.
fn dense_likelihood(weights: &[f64], components: &[Component], nu: Option<usize>, x: &[f64]) -> f64 {
    let size = components[0].mean().len();
    let total: f64 = weights.iter().sum();
    let one = |x: &[f64]| {
        let parts = components.iter().zip(weights);
        parts.map(|(c, w)| w / total * crate::impute::dense(c, nu, x).0.exp()).sum::<f64>().ln()
    };
    x.chunks_exact(size).map(one).sum::<f64>() / (x.len() / size) as f64
}

/// What is done to a mean, loadings and a noise variance.
type Change<'a> = dyn Fn(&mut [f64], &mut [Matrix], &mut f64) + 'a;

/// Where a fit ends no parameter can be moved for the better: differences of the dense likelihood of what was observed.
#[test]
fn the_gradient_vanishes_where_a_fit_ends() {
    const STEP: f64 = 1e-5;
    for (nu, seed) in [(None, 21), (None, 22), (Some(5), 23)] {
        let (shape, rank) = ([4, 3], [2, 1]);
        let x = broken(seed, &shape, &rank, 2, 80, 0.3);
        let options = FitOptions {
            max_iter: 3000,
            tol: 1e-13,
            noise: if nu.is_some() { Noise::T } else { Noise::Gaussian },
            dof: nu.map_or(Dof::Estimated, |nu| Dof::Fixed(nu as f64)),
            ..options(2, &rank)
        };
        let found = fit(&Samples::from_slice(&shape, &x).unwrap(), &options).unwrap();
        let (weights, parts) = (found.model.weights().to_vec(), found.model.components().to_vec());
        let at = dense_likelihood(&weights, &parts, nu, &x);
        assert!((at - found.log_likelihood()).abs() < 1e-9 * at.abs(), "{at} {}", found.log_likelihood());
        let slope = |moved: &dyn Fn(f64) -> (Vec<f64>, Vec<Component>)| {
            let [up, down] = [STEP, -STEP].map(|step| {
                let (weights, parts) = moved(step);
                dense_likelihood(&weights, &parts, nu, &x)
            });
            (up - down) / (2.0 * STEP)
        };
        let changed = |k: usize, change: &Change<'_>| {
            let mut parts = parts.clone();
            let of = &parts[k];
            let (mut mean, mut loadings) = (of.mean().to_vec(), of.loadings().to_vec());
            let mut noise = of.noise_variance();
            change(&mut mean, &mut loadings, &mut noise);
            let degrees = of.degrees_of_freedom();
            let part = Component::new(&shape, mean, loadings, noise).unwrap();
            parts[k] = part.with_degrees_of_freedom(degrees).unwrap();
            (weights.clone(), parts)
        };
        let mut steepest = 0.0f64;
        for k in 0..2 {
            for i in 0..12 {
                steepest = steepest.max(slope(&|h| changed(k, &|mean, _, _| mean[i] += h)).abs());
            }
            for (d, (&p, &r)) in shape.iter().zip(&rank).enumerate() {
                for (i, j) in (0..p).flat_map(|i| (0..r).map(move |j| (i, j))) {
                    let moved = slope(&|h| changed(k, &|_, loadings, _| loadings[d][(i, j)] += h));
                    steepest = steepest.max(moved.abs());
                }
            }
            steepest = steepest.max(slope(&|h| changed(k, &|_, _, noise| *noise *= h.exp())).abs());
            let weighed = slope(&|h| {
                let mut weights = weights.clone();
                weights[k] *= h.exp();
                (weights, parts.clone())
            });
            steepest = steepest.max(weighed.abs());
        }
        assert!(steepest < 2e-6, "{nu:?}: {steepest} after {} iterations", found.n_iterations());
    }
}

#[test]
fn complete_samples_have_the_same_bits_whatever_nan_means() {
    let x = broken(5, &[6, 5], &[2, 2], 3, 700, 0.0);
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let bytes: Vec<u8> = x.iter().map(|&x| (128.0 + 20.0 * x).clamp(0.0, 255.0) as u8).collect();
    let sets = [
        Samples::from_slice(&[6, 5], &x).unwrap(),
        Samples::from_slice(&[6, 5], &single).unwrap(),
        Samples::from_slice(&[6, 5], &bytes).unwrap(),
    ];
    for samples in &sets {
        for start in [Start::KMeans, Start::Random] {
            let told = FitOptions { start, ..options(3, &[2, 2]) };
            let untold = FitOptions { missing: Missing::Error, ..told.clone() };
            let (a, b) = (fit(samples, &told).unwrap(), fit(samples, &untold).unwrap());
            assert_eq!(a.model, b.model);
            assert_eq!(a.history.log_likelihood, b.history.log_likelihood);
            assert_eq!((a.missing, a.never_observed), (b.missing, 0));
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let x = broken(6, &[6, 5], &[2, 2], 3, 1500, 0.2);
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    for samples in [Samples::from_slice(&[6, 5], &x).unwrap(), Samples::from_slice(&[6, 5], &single).unwrap()]
    {
        let with =
            |threads| fit(&samples, &FitOptions { threads: Some(threads), ..options(3, &[2, 2]) }).unwrap();
        let one = with(1);
        assert_eq!(one.model, with(2).model);
        assert_eq!(one.model, with(8).model);
    }
}

#[test]
fn a_fit_goes_on_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let x = broken(7, &[5, 4], &[2, 2], 2, 200, 0.3);
    let samples = Samples::from_slice(&[5, 4], &x).unwrap();
    let whole = FitOptions { max_iter: 9, tol: 0.0, ..options(2, &[2, 2]) };
    let checkpoint = Some(Checkpoint { path: path.clone(), every: 1, resume: true });
    let kept = FitOptions { checkpoint, ..whole.clone() };
    fit_with(&samples, &kept, &mut |p| match p.iteration >= 4 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .unwrap();
    // What NaN means may be said by the samples as well.
    let told = FitOptions { missing: Missing::Error, ..kept };
    let resumed = fit(&samples.clone().with_missing(Missing::Nan), &told).unwrap();
    assert_eq!(resumed.model, fit(&samples, &whole).unwrap().model);
}

/// With 30 % missing a planted mixture is found nearly as well as from complete samples.
#[test]
fn a_planted_mixture_is_found() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let planted = random_mixture(&mut rng, &[6, 5], &[2, 2], 3, None);
    let fresh = planted.sample(2000, 77).samples;
    let fresh = Samples::from_slice(&[6, 5], &fresh).unwrap();
    let best = planted.score(&fresh).unwrap();
    let x = planted.sample(3000, 1).samples;
    let mut hidden = x.clone();
    hidden.iter_mut().for_each(|x| {
        if rng.random::<f64>() < 0.3 {
            *x = f64::NAN
        }
    });
    let score = |x: &[f64]| {
        let options = FitOptions { n_init: 3, ..options(3, &[2, 2]) };
        fit(&Samples::from_slice(&[6, 5], x).unwrap(), &options).unwrap().model.score(&fresh).unwrap()
    };
    let (complete, partial) = (score(&x), score(&hidden));
    assert!(best - complete < 0.1 && best - partial < 0.15, "{best} {complete} {partial}");
}

/// A cell that nobody observed, a sample of which nothing was, batches, weights of 0: all are defined.
#[test]
fn corners_are_defined() {
    let mut x = broken(8, &[5, 4], &[2, 2], 2, 120, 0.2);
    x.iter_mut().skip(7).step_by(20).for_each(|x| *x = f64::NAN);
    x[3 * 20..4 * 20].fill(f64::NAN);
    let samples = Samples::from_slice(&[5, 4], &x).unwrap();
    let found = fit(&samples, &options(2, &[2, 2])).unwrap();
    let missing = x.iter().filter(|x| x.is_nan()).count() as u64;
    assert_eq!((found.missing.cells, found.missing.empty, found.never_observed), (missing, 1, 1));
    let told = samples.clone().with_missing(Missing::Nan);
    let scores = found.model.score_samples(&told).unwrap();
    assert_eq!(scores[3], 0.0);
    assert!(found.model.components().iter().all(|c| c.mean()[7].is_finite()));
    let responsibilities = found.model.responsibilities(&told).unwrap();
    let weights = found.model.weights();
    assert!((responsibilities[6] - weights[0]).abs() < 1e-12, "{responsibilities:?}");
    // In batches.
    let mut online = OnlineFit::begin(&samples, &options(2, &[2, 2])).unwrap();
    online.step(&samples, &options(2, &[2, 2])).unwrap();
    assert!(online.log_likelihood.is_finite());
    // A sample that does not count may be anything but infinite.
    let weights = (0..120).map(|n| f64::from(u8::from(n != 3))).collect();
    assert!(fit(&samples.clone().with_weights(weights).unwrap(), &options(2, &[2, 2])).is_ok());
}

#[test]
fn a_dying_component_is_moved_to_a_sample_with_holes() {
    // More components than clusters: whoever starves is tried at the worst samples, imputed.
    let x = broken(9, &[4, 3], &[1, 1], 1, 30, 0.4);
    for seed in 0..5 {
        let options = FitOptions { start: Start::Random, seed, max_iter: 30, ..options(6, &[1, 1]) };
        let found = fit(&Samples::from_slice(&[4, 3], &x).unwrap(), &options).unwrap();
        assert!(found.model.components().iter().all(|c| c.mean().iter().all(|x| x.is_finite())));
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_its_reason() {
    let x = broken(10, &[4, 3], &[1, 1], 1, 30, 0.1);
    let at = x.iter().position(|x| x.is_nan()).unwrap();
    let samples = Samples::from_slice(&[4, 3], &x).unwrap();
    let plain = FitOptions { missing: Missing::Error, ..options(2, &[2, 2]) };
    let error = fit(&samples, &plain).unwrap_err();
    assert!(matches!(error, Error::NotFinite { sample, .. } if sample == at / 12), "{error}");
    assert!(error.to_string().contains("or `missing` be `nan` for cells that were not observed"), "{error}");
    let paper = FitOptions { algorithm: Algorithm::Paper, ..options(2, &[2, 2]) };
    let says = |error: Error, what: &str| assert!(error.to_string().contains(what), "{error}");
    says(fit(&samples, &paper).unwrap_err(), "the paper's algorithm");
    let told = samples.clone().with_missing(Missing::Nan);
    let low_rank = LowRankOptions { rank: vec![2, 2], ..LowRankOptions::default() };
    says(fit_low_rank(&told, &low_rank).unwrap_err(), "models without noise");
    let complete: Vec<f64> = x.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
    let model = fit_low_rank(&Samples::from_slice(&[4, 3], &complete).unwrap(), &low_rank).unwrap().model;
    says(model.transform(&told).unwrap_err(), "models without noise");
    // Infinity is missing nowhere.
    let mut infinite = x.clone();
    infinite[at + 1] = f64::INFINITY;
    let samples = Samples::from_slice(&[4, 3], &infinite).unwrap();
    let error = fit(&samples, &options(2, &[2, 2])).unwrap_err();
    assert!(matches!(error, Error::NotFinite { value, .. } if value == f64::INFINITY), "{error}");
    let nothing = vec![f64::NAN; 12 * 30];
    let samples = Samples::from_slice(&[4, 3], &nothing).unwrap();
    assert_eq!(fit(&samples, &options(2, &[2, 2])).unwrap_err(), Error::NothingObserved);
}

/// Where no cell is observed twice, nothing separates noise from differences between cells: the noise floor is the spread of the observed
/// values, and the fit has an event for it. The same holds for one complete sample.
#[test]
fn cells_that_no_one_observes_twice_leave_imputation_uncertain() {
    let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_988_749_894_9).fract() - 0.5;
    for (n, size, copies) in [(4, 12, 1), (6, 30, 1), (10, 40, 1), (1, 40, 1), (4, 12, 2)] {
        let truth: Vec<f64> = (0..n * size).map(|i| 1e-3 * number(7 * i)).collect();
        let seen = |i: usize| (i % size) % n == i / size;
        let x: Vec<f64> = (0..n * size).map(|i| if seen(i) { truth[i] } else { f64::NAN }).collect();
        let x = x.repeat(copies);
        let samples = Samples::from_slice(&[size], &x).unwrap();
        let found = fit(&samples, &options(1, &[2])).unwrap();
        let seldom = found.history.events.iter().any(|event| matches!(event, Event::SeldomObserved { .. }));
        // A cell that two equal samples have observed has no noise.
        assert_eq!(seldom, copies == 1, "{n} × {size}");
        let filled = found.model.impute(&samples.with_missing(Missing::Nan)).unwrap();
        let hidden: Vec<usize> = (0..n * size).filter(|&i| !seen(i)).collect();
        let covers = |&&i: &&usize| (filled.values[i] - truth[i]).abs() < 1.96 * filled.deviations[i];
        let covered = hidden.iter().filter(covers).count() as f64 / hidden.len() as f64;
        assert!(n == 1 || copies == 2 || covered > 0.6, "{n} × {size}: {covered}");
        let spread = truth.iter().map(|x| x * x).sum::<f64>() / truth.len() as f64;
        assert!(copies == 2 || found.model.components()[0].noise_variance() > 0.2 * spread);
    }
}
