//! Resuming: the same fit goes on with the same bits, and no other fit is taken for it.

use std::ops::ControlFlow;
use std::path::Path;

use matmix::{
    Algorithm, Checkpoint, Error, Fit, FitOptions, Mixture, Model, ModelFile, Result, Samples, Start,
    StopReason, fit, fit_with,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::planted::{drawn, random_mixture};

fn kept(path: &Path, options: &FitOptions) -> FitOptions {
    let checkpoint = Some(Checkpoint { path: path.to_owned(), every: 1, resume: true });
    FitOptions { checkpoint, ..options.clone() }
}

/// Stops after so many iterations and leaves a checkpoint.
fn interrupted(samples: &Samples<'_>, options: &FitOptions, after: usize) -> Fit {
    fit_with(samples, options, &mut |p| match p.iteration >= after {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .unwrap()
}

fn without_time(mut fit: Fit) -> Fit {
    fit.history.seconds = 0.0;
    fit
}

/// A checkpoint of one set is not taken for that of another with the same number, shape, mean and variance.
#[test]
fn other_data_is_another_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let shape = [4, 3];
    let x = random_mixture(3, &shape, &[2, 1], 2).sample(60, 4).samples;
    let options =
        FitOptions { components: 2, rank: vec![2, 1], max_iter: 4, tol: 0.0, ..FitOptions::default() };
    let try_with = |x: &[f64]| fit(&Samples::from_slice(&shape, x).unwrap(), &kept(&path, &options));
    try_with(&x).unwrap();
    assert!(try_with(&x).is_ok(), "the same data");
    let mirrored: Vec<f64> = x.chunks_exact(3).flat_map(|row| [row[2], row[1], row[0]]).collect();
    let swapped_columns: Vec<f64> = x.chunks_exact(3).flat_map(|row| [row[1], row[0], row[2]]).collect();
    let mut swapped_samples = x.clone();
    (0..12).for_each(|i| swapped_samples.swap(i, 120 + i));
    let inverted: Vec<f64> = x.iter().map(|x| -x).collect();
    for other in [mirrored, swapped_columns, swapped_samples, inverted] {
        let refused = try_with(&other).unwrap_err();
        assert_eq!(refused, Error::OtherFit { path: path.clone() });
        assert!(
            refused
                .to_string()
                .ends_with("it is the checkpoint of a fit of other samples or with other options")
        );
    }
    let weighted = Samples::from_slice(&shape, &x).unwrap().with_weights(vec![1.0; 60]).unwrap();
    assert!(fit(&weighted, &kept(&path, &options)).is_ok(), "weights of 1 are no weights");
    let weighted = weighted.with_weights((0..60).map(|n| f64::from(n % 2 * 2)).collect()).unwrap();
    assert!(matches!(fit(&weighted, &kept(&path, &options)), Err(Error::OtherFit { .. })));
}

/// Two start models that differ in one loading, or in one noise variance, are two fits.
#[test]
fn another_start_model_is_another_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let model = random_mixture(3, &[4, 3], &[2, 1], 2);
    let samples = drawn(&model, 60, 4);
    let options = |start: &Mixture| FitOptions {
        components: 2,
        rank: vec![2, 1],
        start: Start::Model(Box::new(start.clone())),
        max_iter: 3,
        tol: 0.0,
        ..FitOptions::default()
    };
    fit(&samples, &kept(&path, &options(&model))).unwrap();
    assert!(fit(&samples, &kept(&path, &options(&model))).is_ok());
    let changed = |loading: f64, noise: f64| {
        let components = model.components().iter().map(|c| {
            let mut loadings = c.loadings().to_vec();
            loadings[0].scale(loading);
            loadings[1].scale(1.0 / loading);
            matmix::Component::new(&[4, 3], c.mean().to_vec(), loadings, c.noise_variance() * noise).unwrap()
        });
        Mixture::new(&[4, 3], model.weights().to_vec(), components.collect()).unwrap()
    };
    for other in [changed(1.0 + 1e-12, 1.0), changed(1.0, 1.0 + 1e-12)] {
        assert!(matches!(fit(&samples, &kept(&path, &options(&other))), Err(Error::OtherFit { .. })));
    }
}

/// More iterations than before go on from the last of them; fewer than there are cannot be had.
#[test]
fn a_finished_fit_goes_on_if_more_iterations_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn(&random_mixture(7, &[5, 4], &[2, 2], 3), 90, 8);
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let path = folder.path().join(algorithm.name());
        let options = |max_iter| {
            let plain = FitOptions {
                components: 3,
                rank: vec![2],
                algorithm,
                max_iter,
                tol: 0.0,
                ..FitOptions::default()
            };
            kept(&path, &plain)
        };
        let waited = std::time::Duration::from_millis(100);
        let slow = fit_with(&samples, &options(4), &mut |p| {
            if p.iteration == 2 {
                std::thread::sleep(waited);
            }
            ControlFlow::Continue(())
        });
        assert_eq!(slow.unwrap().n_iterations(), 4);
        let longer = fit(&samples, &options(9)).unwrap();
        // What the first part took counts.
        assert!(longer.history.seconds >= waited.as_secs_f64());
        let at_once = fit(&samples, &FitOptions { checkpoint: None, ..options(9) }).unwrap();
        assert_eq!(without_time(longer), without_time(at_once));
        let error = fit(&samples, &options(5)).unwrap_err().to_string();
        assert!(error.contains("max_iter` is 5, but the checkpoint has 9 iterations"), "{error}");
        // One that has converged stays what it is.
        let loose = FitOptions { tol: 1e9, ..options(20) };
        std::fs::remove_file(&path).unwrap();
        let converged = fit(&samples, &loose).unwrap();
        assert_eq!(converged.stop(), StopReason::Converged);
        assert_eq!(without_time(fit(&samples, &loose).unwrap()), without_time(converged));
    }
}

/// Small problems of every order: ranks that are too large for the samples, repeated samples, columns that fade out. What
/// is written is what is read, and a fit that is stopped anywhere goes on as if nothing had happened.
#[test]
fn random_problems_have_the_same_bits_saved_or_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    for round in 0..150 {
        let (samples, options) = problem(&mut rng);
        let whole = fit(&samples, &options).unwrap();
        let path = folder.path().join(format!("{round}"));
        ModelFile::new(Model::Mixture(whole.model.clone())).save(&path).unwrap();
        assert_eq!(
            ModelFile::load(&path).unwrap().model,
            Model::Mixture(whole.model.clone()),
            "round {round}"
        );
        std::fs::remove_file(&path).unwrap();
        let options = kept(&path, &options);
        let after = rng.random_range(0..=options.max_iter);
        interrupted(&samples, &options, after);
        let resumed: Result<Fit> = fit(&samples, &options);
        assert_eq!(
            without_time(resumed.unwrap()),
            without_time(whole),
            "round {round}, stopped after {after}"
        );
    }
}

fn problem(rng: &mut ChaCha8Rng) -> (Samples<'static>, FitOptions) {
    let order = rng.random_range(1..=4);
    let shape: Vec<usize> = (0..order).map(|_| rng.random_range(1..=5)).collect();
    let rank: Vec<usize> = shape.iter().map(|&p| rng.random_range(1..=p)).collect();
    let (n, size) = (rng.random_range(6..30), shape.iter().product::<usize>());
    let coarse = rng.random_range(0..3);
    let number = |x: f64| match coarse {
        0 => x,
        1 => (4.0 * x).round(),
        // Most of it is the same everywhere.
        _ => {
            if x > 0.9 {
                x
            } else {
                0.0
            }
        }
    };
    let x: Vec<f64> = (0..n * size).map(|_| number(rng.random_range(-1.0..1.0))).collect();
    let options = FitOptions {
        components: rng.random_range(1..=5),
        rank,
        max_iter: rng.random_range(1..10),
        tol: 0.0,
        seed: rng.random(),
        start: if rng.random() { Start::KMeans } else { Start::Random },
        accelerate: rng.random(),
        ..FitOptions::default()
    };
    (Samples::from_vec(&shape, x).unwrap(), options)
}
