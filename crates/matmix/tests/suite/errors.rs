//! Every error can be provoked through the public interface, says what was wrong, where, and what would be right.
//!
//! A unit test beside `Error` fails when a variant is not named in this file. What a damaged file leads to is also in
//! `fuzz_formats.rs` (data) and `model_file.rs` (models and checkpoints).

use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;

use crate::planted::statistics;
use crate::planted::{drawn, random_mixture};
use matmix::data::{Element, Labels, OpenOptions, npy, open};
use matmix::error::{Action, Change, Counted, FileKind, ForImages};
use matmix::pass::{AnySums, EmPass, GroupsPass, MomentsPass, RowsPass, ScatterPass, Stage, Task, Update};
use matmix::{
    Algorithm, Backend, Checkpoint, Component, Cpu, Distance, Engine, Error, FitOptions, Input, LowRank,
    LowRankOptions, Matrix, Meter, Mixture, Model, ModelFile, Precision, Preset, Reconstruction, Samples,
    Start, fit, fit_low_rank, fit_low_rank_on, fit_with,
};

fn six() -> Samples<'static> {
    Samples::from_vec(&[2, 3], (0..36).map(|i| f64::from(i * 7 % 11)).collect::<Vec<_>>()).unwrap()
}

#[track_caller]
fn says(error: &Error, message: &str) {
    assert_eq!(error.to_string(), message);
}

#[test]
fn an_empty_set() {
    assert_eq!(Samples::from_vec::<f64>(&[2], vec![]).unwrap_err(), Error::EmptySet);
    let error = six().select(&[]).unwrap_err();
    assert_eq!(error, Error::EmptySet);
    says(&error, "the set has no samples; at least one is needed");
}

#[test]
fn an_empty_shape() {
    for shape in [vec![], vec![0], vec![3, 0], vec![usize::MAX, 2]] {
        let error = Samples::from_vec(&shape, vec![1.0; 6]).unwrap_err();
        assert_eq!(error, Error::EmptyShape { shape });
    }
    let expected = Error::EmptyShape { shape: vec![] };
    assert_eq!(LowRank::new(&[], vec![0.0], vec![]).unwrap_err(), expected);
    assert_eq!(Component::new(&[], vec![0.0], vec![], 1.0).unwrap_err(), expected);
    let huge = [usize::MAX, 2];
    let loadings = || vec![Matrix::identity(1, 1), Matrix::identity(2, 1)];
    let expected = Error::EmptyShape { shape: huge.to_vec() };
    assert_eq!(LowRank::new(&huge, vec![0.0], loadings()).unwrap_err(), expected);
    assert_eq!(Component::new(&huge, vec![0.0], loadings(), 1.0).unwrap_err(), expected);
    says(
        &six().reshaped(&[3, 0]).unwrap_err(),
        "a sample of shape 3×0 holds nothing; every side must be at least 1",
    );
    says(
        &six().reshaped(&[]).unwrap_err(),
        "a sample of shape () holds nothing; every side must be at least 1",
    );
}

#[test]
fn numbers_that_do_not_divide_into_samples() {
    let error = Samples::from_vec(&[2, 3], vec![0u8; 8]).unwrap_err();
    assert_eq!(error, Error::DataLength { shape: vec![2, 3], found: 8 });
    says(&error, "8 numbers do not divide into samples of shape 2×3 (6 numbers each)");
    assert_eq!(six().reshaped(&[4]).unwrap_err(), Error::DataLength { shape: vec![4], found: 6 });
    let model = random_mixture(1, &[3, 2], &[2, 1], 1);
    let error = model.rebuild(&[0.0; 5], &[0, 0]).unwrap_err();
    assert_eq!(error, Error::DataLength { shape: vec![2, 1], found: 5 });
    let low =
        fit_low_rank(&six(), &LowRankOptions { rank: vec![1, 2], ..LowRankOptions::default() }).unwrap();
    let error = low.model.inverse_transform(&[0.0; 3]).unwrap_err();
    assert_eq!(error, Error::DataLength { shape: vec![1, 2], found: 3 });
}

/// Wherever samples are read, the first value that is not finite is named: which sample, which position.
#[test]
fn nan_and_infinity_are_named_with_their_place() {
    let model = random_mixture(1, &[4, 3], &[2, 1], 2);
    let low = fit_low_rank(&drawn(&model, 50, 2), &LowRankOptions::default()).unwrap().model;
    // In the first chunk of 2,048, in the second, and both.
    for (places, bad) in
        [(&[3][..], f64::NAN), (&[4000][..], f64::INFINITY), (&[2300, 2100][..], f64::NEG_INFINITY)]
    {
        let mut doubles = model.sample(4100, 3).samples;
        places.iter().for_each(|n| doubles[n * 12 + 7] = bad);
        let singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
        let first = *places.iter().min().unwrap();
        for samples in
            [Samples::from_vec(&[4, 3], doubles).unwrap(), Samples::from_vec(&[4, 3], singles).unwrap()]
        {
            let check = |what: &str, error: Error| match &error {
                Error::NotFinite { sample, position, value } => {
                    assert_eq!((*sample, &position[..]), (first, &[2, 1][..]), "{what}");
                    assert!(value.to_bits() == bad.to_bits() || value.is_nan() && bad.is_nan());
                    let message =
                        format!("sample {first} holds {bad} at position [2, 1]; every value must be finite");
                    assert_eq!(error.to_string(), message + if bad.is_nan() { UNLESS } else { "" });
                }
                other => panic!("{what}: {other:?}"),
            };
            let two = FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() };
            for start in [Start::KMeans, Start::Random, Start::Model(Box::new(model.clone()))] {
                check("fit", fit(&samples, &FitOptions { start, ..two.clone() }).unwrap_err());
            }
            let paper = FitOptions { algorithm: Algorithm::Paper, ..two };
            check("paper", fit(&samples, &paper).unwrap_err());
            check("low rank", fit_low_rank(&samples, &LowRankOptions::default()).unwrap_err());
            check("statistics", statistics(&model, &samples, 0, Precision::Auto).unwrap_err());
            check("score", model.score(&samples).unwrap_err());
            check("assign", model.assign(&samples).unwrap_err());
            check("project", model.project(&samples).unwrap_err());
            check("transform", model.transform(&samples).unwrap_err());
            check("reconstruct", model.reconstruct(&samples, Reconstruction::Weighted).unwrap_err());
            check("evaluate", model.evaluate(&samples).unwrap_err());
            check("low rank transform", low.transform(&samples).unwrap_err());
            check("low rank errors", low.squared_errors(&samples).unwrap_err());
        }
    }
    let nan = Samples::from_vec(&[2], vec![1.0, 2.0, f64::NAN, 3.0, 1.0, 0.0]).unwrap();
    let error =
        fit_low_rank(&nan, &LowRankOptions { rank: vec![1], ..LowRankOptions::default() }).unwrap_err();
    says(&error, &format!("sample 1 holds NaN at position [0]; every value must be finite{UNLESS}"));
}

/// What an error about NaN says besides.
const UNLESS: &str = ", or `missing` be `nan` for cells that were not observed: a mixture takes them, models without noise do not";

#[test]
fn values_too_large_to_be_squared() {
    let model = random_mixture(1, &[4, 3], &[2, 1], 2);
    let mut elements = model.sample(3000, 2).samples;
    elements[2500 * 12 + 1] = 1e200;
    let samples = Samples::from_vec(&[4, 3], elements).unwrap();
    let expected = Error::Overflow { sample: 2500 };
    assert_eq!(fit(&samples, &FitOptions { rank: vec![1], ..FitOptions::default() }).unwrap_err(), expected);
    assert_eq!(fit_low_rank(&samples, &LowRankOptions::default()).unwrap_err(), expected);
    assert_eq!(model.score(&samples).unwrap_err(), expected);
    assert_eq!(statistics(&model, &samples, 0, Precision::Auto).unwrap_err(), expected);
    says(&expected, "sample 2500 is too large to be squared in double precision; scale the data down");
    let equal = Samples::from_vec(&[3], vec![1e160; 15]).unwrap();
    assert_eq!(fit(&equal, &FitOptions::default()).unwrap_err(), Error::Overflow { sample: 0 });
}

#[test]
fn samples_of_another_shape() {
    let model = random_mixture(1, &[3, 2], &[1, 1], 1);
    let error = model.score(&six()).unwrap_err();
    assert_eq!(error, Error::ShapeMismatch { expected: vec![3, 2], found: vec![2, 3] });
    says(&error, "the samples have shape 2×3, but 3×2 is needed here");
    let is = |error: Error| assert!(matches!(error, Error::ShapeMismatch { .. }), "{error:?}");
    is(model.transform(&six()).unwrap_err());
    is(statistics(&model, &six(), 0, Precision::Auto).unwrap_err());
    let start = Start::Model(Box::new(model));
    is(fit(&six(), &FitOptions { start, rank: vec![1], ..FitOptions::default() }).unwrap_err());
    let low = LowRank::new(&[6], vec![0.0; 6], vec![Matrix::identity(6, 2)]).unwrap();
    is(low.transform(&six()).unwrap_err());
}

#[test]
fn more_components_than_samples() {
    let seven = FitOptions { components: 7, rank: vec![1], ..FitOptions::default() };
    let error = fit(&six(), &seven).unwrap_err();
    assert_eq!(error, Error::TooManyComponents { components: 7, samples: 6 });
    says(&error, "7 components cannot be fitted to 6 samples (of positive weight); use at most 6");
    let weighted = six().with_weights(vec![1.0, 0.0, 2.0, 0.0, 0.0, 1.0]).unwrap();
    let error =
        fit(&weighted, &FitOptions { components: 4, rank: vec![1], ..FitOptions::default() }).unwrap_err();
    assert_eq!(error, Error::TooManyComponents { components: 4, samples: 3 });
    let one = Samples::from_vec(&[2, 3], vec![1.0; 6]).unwrap();
    let error = fit(&one, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() }).unwrap_err();
    says(&error, "2 components cannot be fitted to 1 sample (of positive weight); use at most 1");
    // As many components as samples is a fit.
    assert!(fit(&six(), &FitOptions { components: 6, rank: vec![1], ..FitOptions::default() }).is_ok());
}

#[test]
fn ranks_that_do_not_fit() {
    let try_rank = |rank: &[usize]| fit(&six(), &FitOptions { rank: rank.to_vec(), ..FitOptions::default() });
    let error = try_rank(&[1, 1, 1]).unwrap_err();
    assert_eq!(error, Error::RankCount { ranks: 3, order: 2 });
    says(&error, "3 rank(s) given for samples of order 2; give one per mode, or a single one for all modes");
    let error = try_rank(&[2, 4]).unwrap_err();
    assert_eq!(error, Error::Rank { mode: 1, rank: 4, side: 3 });
    says(&error, "rank 4 of mode 1 does not fit its side of 3; it must be between 1 and 3");
    assert_eq!(try_rank(&[3]).unwrap_err(), Error::Rank { mode: 0, rank: 3, side: 2 });
    assert_eq!(try_rank(&[0, 1]).unwrap_err(), Error::Rank { mode: 0, rank: 0, side: 2 });
    let low = LowRankOptions { rank: vec![1, 9], ..LowRankOptions::default() };
    assert_eq!(fit_low_rank(&six(), &low).unwrap_err(), Error::Rank { mode: 1, rank: 9, side: 3 });
    let one = vec![Matrix::zeros(2, 1)];
    let expected = Error::RankCount { ranks: 1, order: 2 };
    assert_eq!(Component::new(&[2, 3], vec![0.0; 6], one.clone(), 1.0).unwrap_err(), expected);
    assert_eq!(LowRank::new(&[2, 3], vec![0.0; 6], one).unwrap_err(), expected);
}

#[test]
fn options_out_of_range() {
    let name = |options: FitOptions| match fit(&six(), &FitOptions { rank: vec![1], ..options }).unwrap_err()
    {
        Error::Option { option, value, expected } => format!("{option} = {value}: {expected}"),
        Error::Components { value, expected } => format!("components = {value}: {expected}"),
        Error::Start { value, expected } => format!("start = {value}: {expected}"),
        other => panic!("{other:?}"),
    };
    let default = FitOptions::default;
    assert_eq!(name(FitOptions { components: 0, ..default() }), "components = 0: at least 1");
    assert_eq!(name(FitOptions { n_init: 0, ..default() }), "n_init = 0: at least 1");
    assert_eq!(name(FitOptions { threads: Some(0), ..default() }), "threads = 0: at least 1");
    for tol in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            name(FitOptions { tol, ..default() }),
            format!("tol = {tol}: a finite number of at least 0")
        );
    }
    for noise_floor in [0.0, 1.0, -1e-3, f64::NAN] {
        let expected = format!("noise_floor = {noise_floor}: between 0 and 1");
        assert_eq!(name(FitOptions { noise_floor, ..default() }), expected);
    }
    let checkpoint = Some(Checkpoint { path: "never-written".into(), every: 0, resume: false });
    assert_eq!(name(FitOptions { checkpoint, ..default() }), "checkpoint.every = 0: at least 1");
    let two = Start::Model(Box::new(random_mixture(1, &[2, 3], &[1, 1], 2)));
    let expected = "start = a model of 2 components: a model of as many components";
    assert_eq!(name(FitOptions { start: two, ..default() }), expected);
    let wide = Start::Model(Box::new(random_mixture(1, &[2, 3], &[1, 2], 1)));
    assert_eq!(
        name(FitOptions { start: wide, ..default() }),
        "start = a model of rank 1×2: a model of the same rank"
    );

    let is = |error: Error, name: &str| {
        assert!(matches!(&error, Error::Option { option, .. } if *option == name), "{error:?}");
    };
    is(fit_low_rank(&six(), &LowRankOptions { tol: -1.0, ..LowRankOptions::default() }).unwrap_err(), "tol");
    let error = Distance::from_str("euclid").unwrap_err();
    assert!(matches!(error, Error::Choice { what: "Distance", .. }), "{error:?}");
    says(&error, "`euclid` is no Distance; choose one of auto, data, paper, weighted, fisher");
    for factor in [0.0, f64::NAN, f64::NEG_INFINITY] {
        is(six().scaled(factor).unwrap_err(), "scale");
    }
    is(six().scaled(1e-200).unwrap().scaled(1e-200).unwrap_err(), "scale");
    is(six().scaled(1e200).unwrap().scaled(1e200).unwrap_err(), "scale");
    let model = random_mixture(1, &[2, 3], &[1, 1], 2);
    is(model.component(2).unwrap_err(), "component");
    is(model.covariance(2).unwrap_err(), "component");
    is(model.rebuild(&[0.0], &[5]).unwrap_err(), "component");
    is(model.permuted(&[0, 0]).unwrap_err(), "order");
    let error = six().scaled(0.0).unwrap_err();
    says(&error, "option `scale` is 0; it must be a finite number other than 0");
}

#[test]
fn counts_that_differ() {
    let error = six().with_weights(vec![1.0; 5]).unwrap_err();
    assert_eq!(error, Error::Count { what: Counted::Weights, expected: 6, found: 5 });
    says(&error, "5 sample weights for 6 samples; exactly one per sample is needed");
    assert_eq!(
        Labels::new(["a", "b"]).check_count(3).unwrap_err(),
        Error::Count { what: Counted::Labels, expected: 3, found: 2 }
    );
    let model = random_mixture(1, &[2, 3], &[1, 1], 1);
    assert_eq!(
        model.rebuild(&[0.0; 3], &[0, 0]).unwrap_err(),
        Error::Count { what: Counted::Cores, expected: 2, found: 3 }
    );
}

#[test]
fn weights_that_are_none() {
    for value in [-1.0, f64::INFINITY] {
        let error = six().with_weights(vec![1.0, 1.0, value, 1.0, 1.0, 1.0]).unwrap_err();
        assert_eq!(error, Error::Weight { sample: 2, value });
        let message = format!("the weight of sample 2 is {value}; weights must be finite and not negative");
        says(&error, &message);
    }
    let nan = six().with_weights(vec![f64::NAN; 6]).unwrap_err();
    assert!(matches!(nan, Error::Weight { sample: 0, value } if value.is_nan()));
    let error = six().with_weights(vec![0.0; 6]).unwrap_err();
    assert_eq!(error, Error::ZeroWeights);
    says(&error, "all sample weights are zero; at least one must be positive");
    let some = six().with_weights(vec![0.0, 0.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
    assert_eq!(some.select(&[0, 1]).unwrap_err(), Error::ZeroWeights);
}

#[test]
fn an_index_beyond_the_end() {
    let error = six().select(&[0, 6]).unwrap_err();
    assert_eq!(error, Error::Index { index: 6, len: 6 });
    says(&error, "sample 6 was asked for, but the set has 6 (0 to 5)");
    assert_eq!(Labels::new(["a"]).select(&[1]).unwrap_err(), Error::Index { index: 1, len: 1 });
}

#[test]
fn samples_of_another_order() {
    let cube = six().reshaped(&[2, 3, 1]).unwrap();
    let error = fit(&cube, &FitOptions { algorithm: Algorithm::Paper, ..FitOptions::default() }).unwrap_err();
    assert_eq!(error, Error::Order { what: "the paper's algorithm", expected: 2, found: 3 });
    says(&error, "the paper's algorithm needs samples of order 2, but these have order 3");
    let vectors = six().reshaped(&[6]).unwrap();
    assert!(matches!(vectors.rows().unwrap_err(), Error::Order { expected: 2, found: 1, .. }));
    assert!(matches!(Preset::Glram.view(&cube).unwrap_err(), Error::Order { what: "glram", .. }));
}

#[test]
fn parameters_that_are_no_model() {
    let loadings = || vec![Matrix::from_fn(2, 1, |i, _| 1.0 + i as f64), Matrix::identity(3, 2)];
    let problem = |error: Error| match error {
        Error::Model { problem } => problem,
        other => panic!("{other:?}"),
    };
    let component = |mean: Vec<f64>, loadings: Vec<Matrix>, noise: f64| {
        problem(Component::new(&[2, 3], mean, loadings, noise).unwrap_err())
    };
    assert_eq!(component(vec![0.0; 5], loadings(), 1.0), "a mean has 5 numbers; shape 2×3 needs 6");
    let mut mean = vec![0.0; 6];
    mean[4] = f64::NAN;
    assert_eq!(component(mean, loadings(), 1.0), "a mean holds NaN at position 4");
    for noise in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("a noise variance is {noise}; it must be positive");
        assert_eq!(component(vec![0.0; 6], loadings(), noise), expected);
    }
    let tall = vec![Matrix::zeros(3, 1), Matrix::identity(3, 2)];
    assert_eq!(component(vec![0.0; 6], tall, 1.0), "the loadings of mode 0 have 3 rows instead of 2");
    let mut infinite = loadings();
    infinite[1][(2, 1)] = f64::INFINITY;
    assert_eq!(component(vec![0.0; 6], infinite, 1.0), "the loadings of mode 1 hold NaN or infinity");

    let one = Component::new(&[2, 3], vec![0.0; 6], loadings(), 1.0).unwrap();
    let other =
        Component::new(&[2, 3], vec![0.0; 6], vec![Matrix::identity(2, 2), Matrix::identity(3, 2)], 1.0);
    let mixture = |weights: &[f64], components: Vec<Component>| {
        problem(Mixture::new(&[2, 3], weights.to_vec(), components).unwrap_err())
    };
    assert_eq!(mixture(&[], vec![]), "it has no components");
    assert_eq!(mixture(&[1.0], vec![one.clone(), one.clone()]), "1 weights for 2 components");
    let differ = "its components differ in shape or rank";
    assert_eq!(mixture(&[0.5, 0.5], vec![one.clone(), other.unwrap()]), differ);
    for weight in [-0.5, f64::NAN] {
        let expected = format!("a component weight is {weight}; weights must be finite and not negative");
        assert_eq!(mixture(&[0.5, weight], vec![one.clone(), one.clone()]), expected);
    }
    assert_eq!(mixture(&[0.0], vec![one.clone()]), "its component weights sum to nothing");
    assert_eq!(
        mixture(&[f64::MAX, f64::MAX], vec![one.clone(), one]),
        "its component weights sum to nothing"
    );

    let low = |mean: Vec<f64>, u: Matrix| problem(LowRank::new(&[3], mean, vec![u]).unwrap_err());
    let identity = || Matrix::identity(3, 2);
    assert_eq!(low(vec![0.0; 2], identity()), "the mean has 2 numbers; shape 3 needs 3");
    assert_eq!(low(vec![f64::NAN; 3], identity()), "the mean holds NaN or infinity");
    let oblique = "the columns of the loadings of mode 0 are not orthonormal";
    assert_eq!(low(vec![0.0; 3], Matrix::from_fn(3, 2, |_, _| 1.0)), oblique);
    let nan = "the loadings of mode 0 hold NaN or infinity";
    assert_eq!(low(vec![0.0; 3], Matrix::from_fn(3, 2, |_, _| f64::NAN)), nan);
    assert_eq!(low(vec![0.0; 3], Matrix::identity(2, 2)), "the loadings of mode 0 have 2 rows instead of 3");
    let error = Mixture::new(&[2, 3], vec![], vec![]).unwrap_err();
    says(&error, "these parameters are not a model: it has no components");
}

#[test]
fn a_preset_nobody_published() {
    let error = Preset::from_str("pcca").unwrap_err();
    assert_eq!(error, Error::UnknownPreset { name: "pcca".into(), known: Preset::names() });
    let choices = "pca, 2dpca, glram, mpca, ppca, psopca, mixppca, mp2dpca, mixb2dppca";
    says(&error, &format!("there is no model named `pcca`; choose one of {choices}"));
    for &preset in Preset::ALL {
        assert_eq!(Preset::from_str(&preset.to_string().to_uppercase()).unwrap(), preset);
    }
}

#[test]
fn a_covariance_too_large_to_hold() {
    let error = random_mixture(1, &[100, 100], &[1, 1], 1).covariance(0).unwrap_err();
    assert_eq!(error, Error::TooLarge { size: 10_000, limit: 8192 });
    says(&error, "a dense matrix of 10000×10000 would be needed; the limit is 8192×8192");
    let wide = Samples::from_vec(&[16_385, 1], vec![1.0; 2 * 16_385]).unwrap();
    let error =
        fit_low_rank(&wide, &LowRankOptions { rank: vec![1], ..LowRankOptions::default() }).unwrap_err();
    assert_eq!(error, Error::TooLarge { size: 16_385, limit: 16_384 });
}

#[test]
fn files_the_system_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.npy");
    let refused = |error: Error, action: Action| match &error {
        Error::Io { path, action: found, .. } => {
            assert_eq!(*found, action, "{error}");
            assert!(error.to_string().starts_with(&format!("{}: cannot {action}: ", path.display())));
        }
        other => panic!("{other:?}"),
    };
    refused(Samples::from_npy(&missing).unwrap_err(), Action::Open);
    refused(Samples::from_npy(folder.path()).unwrap_err(), Action::Open);
    refused(ModelFile::load(&missing).unwrap_err(), Action::Open);
    refused(open(&missing.display().to_string(), &Default::default()).unwrap_err(), Action::Open);
    let model = Model::Mixture(random_mixture(1, &[2], &[1], 1));
    refused(
        ModelFile::new(model).save(folder.path().join("no/such/folder/model")).unwrap_err(),
        Action::Write,
    );
    let path = folder.path().join("no/such/folder/checkpoint");
    let checkpoint = Some(Checkpoint { path, every: 1, resume: true });
    refused(
        fit(&six(), &FitOptions { checkpoint, rank: vec![1], ..FitOptions::default() }).unwrap_err(),
        Action::Write,
    );
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[6, 2, 3], &[1.0f32; 36]).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let problem = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match Samples::from_npy(&path).unwrap_err() {
            Error::Format { path: found, format, problem } => {
                assert_eq!((found.as_path(), format), (path.as_path(), FileKind::Npy));
                problem
            }
            other => panic!("{other:?}"),
        }
    };
    let is = |problem: String, expected: &str| assert!(problem.contains(expected), "{problem}");
    is(problem(b"anything at all"), "it does not begin with \\x93NUMPY");
    is(problem(&whole[..20]), "but the file ends before");
    is(
        problem(&whole[..whole.len() - 1]),
        "6×2×3 of <f4 needs 144 bytes of data, but 143 are there; the file is cut short",
    );
    let replaced = |from: &str, to: &str| {
        let at = whole.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut bytes = whole.clone();
        bytes.splice(at..at + from.len(), to.bytes());
        bytes
    };
    is(problem(&replaced("<f4", "<c8")), "its elements are `<c8`; real numbers are needed");
    is(problem(&replaced("(6, 2, 3,)", "(6, 2,-3,)")), "the axis `-3` in its header is no size");
    is(problem(&replaced("False", "Maybe")), "does not say whether the order is Fortran's");
    // A sound file, but no samples.
    std::fs::write(&path, replaced("(6, 2, 3,)", "(36,     )")).unwrap();
    let Error::Data { problem: said, .. } = Samples::from_npy(&path).unwrap_err() else { panic!() };
    is(said, "its shape is 36; samples need at least two axes");
    is(problem(&replaced("\x01\0", "\x09\0")), "its version is 9; 1 to 3 are known");
    std::fs::write(&path, "anything at all").unwrap();
    let error = Samples::from_npy(&path).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: not a readable .npy file: ", path.display())));
}

/// An engine that answers every task with the same sums, or not at all.
struct Answers(matmix::Result<AnySums>);

impl Engine for Answers {
    fn shape(&self) -> &[usize] {
        &[2, 3]
    }

    fn len(&self) -> usize {
        6
    }

    fn element(&self) -> Element {
        Element::F64
    }

    fn scale(&self) -> f64 {
        1.0
    }

    fn weights(&self) -> Option<&[f64]> {
        None
    }

    fn run(&self, _: &Task) -> matmix::Result<AnySums> {
        self.0.clone()
    }

    fn backend(&self) -> &dyn Backend {
        static CPU: std::sync::OnceLock<Cpu> = std::sync::OnceLock::new();
        CPU.get_or_init(Cpu::best)
    }
}

#[test]
fn engines_that_fail_and_answers_to_another_question() {
    let ask = |answer| fit_low_rank_on(&Answers(answer), &LowRankOptions::default()).unwrap_err();
    let failed = Error::Engine { problem: "a worker died".into() };
    assert_eq!(ask(Err(failed.clone())), failed);
    says(&failed, "a pass could not be run: a worker died");
    let rows = |samples: &Samples<'_>, indices: Vec<usize>| {
        Task::from(RowsPass { indices }).run(&Cpu::best(), samples, 0).unwrap()
    };
    let error = ask(Ok(rows(&six(), vec![3])));
    assert!(matches!(&error, Error::Sums { .. }), "{error:?}");
    says(
        &error,
        "these sums do not belong here: they are of another model, of other samples or of another question",
    );
    let five = six().select(&[0, 1, 2, 3, 4]).unwrap();
    let error = ask(Ok(rows(&five, vec![0])));
    assert_eq!(error, Error::LostSamples { expected: 6, found: 5 });
    let moments = Task::from(MomentsPass { origin: vec![0.0; 6], digest: false });
    let moments = moments.run(&Cpu::best(), &six(), 0).unwrap();
    says(&ask(Ok(moments.clone())), "these sums do not belong here: they are of a pass of another kind");
    let mut sums = rows(&six(), vec![3]);
    says(
        &sums.merge(&moments).unwrap_err(),
        "these sums do not belong here: sums of passes of different kinds cannot be added",
    );
    says(
        &sums.merge(&rows(&six(), vec![2, 3])).unwrap_err(),
        "these sums do not belong here: sample 3 came back twice",
    );
}

#[test]
fn a_memory_budget_for_less_than_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[6, 2, 3], &[1.0f32; 36]).unwrap();
    let samples = Samples::from_npy(&path).unwrap().with_memory_budget(100);
    let error = fit_low_rank(&samples, &LowRankOptions::default()).unwrap_err();
    // Three buffers of 144 bytes, 64 samples of scratch, and five times the sums of six numbers.
    assert_eq!(error, Error::Memory { budget: 100, needed: 3 * 144 + 64 * 48 + 5 * 48 });
    says(
        &error,
        "a memory budget of 100 bytes is too small: at least 3.8 kB are needed for two chunks of the samples and the \
         sums of a pass",
    );
}

#[test]
fn tasks_for_other_samples_and_bytes_that_are_none() {
    let refused = |task: Task| match task.run(&Cpu::best(), &six(), 0).unwrap_err() {
        Error::Task { problem } => problem,
        other => panic!("{other:?}"),
    };
    let problem = refused(MomentsPass { origin: vec![0.0; 5], digest: false }.into());
    assert_eq!(problem, "the origin has 5 numbers; samples of 2×3 have 6");
    assert_eq!(
        refused(GroupsPass { centres: vec![], reference: vec![0.0; 6] }.into()),
        "there are no centres"
    );
    let loadings = vec![None, Some(Matrix::identity(4, 2))];
    let problem = refused(ScatterPass { mean: vec![0.0; 6], loadings, modes: vec![0] }.into());
    assert_eq!(problem, "the loadings are not for samples of 2×3");
    let model = random_mixture(1, &[2, 3], &[1, 1], 1);
    let problem = {
        let pass = EmPass { model, update: Update::Mode(2), precision: Precision::Auto, stage: Stage::ALL };
        refused(pass.into())
    };
    assert_eq!(problem, "mode 2 (from 0) of samples of 2×3");
    let error = Task::from_bytes(b"no task").unwrap_err();
    assert!(matches!(&error, Error::Bytes { what: "task", .. }), "{error:?}");
    says(&error, "these bytes are not a readable task: they are 7 bytes and end inside the header");
}

#[test]
fn images_of_different_sizes() {
    let folder = tempfile::tempdir().unwrap();
    crate::pictures::save(folder.path().join("a.png"), 2, 3, &[0; 6]);
    crate::pictures::save(folder.path().join("b.png"), 4, 3, &[0; 12]);
    let error = open(folder.path().to_str().unwrap(), &Default::default()).unwrap_err();
    let (path, other) = (folder.path().join("b.png"), folder.path().join("a.png"));
    let message = format!(
        "{}: it has 4×3 pixels, but {} has 2×3; all samples need one shape",
        path.display(),
        other.display()
    );
    assert_eq!(error, Error::ImageSizes { path, size: (4, 3), other, other_size: (2, 3) });
    says(&error, &message);
}

#[test]
fn a_file_that_changes_while_it_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    crate::pictures::save(&path, 2, 3, &[0; 6]);
    let options = OpenOptions { memory_budget: Some(5), ..OpenOptions::default() };
    let set = open(folder.path().to_str().unwrap(), &options);
    // One image alone is more than five bytes.
    assert!(set.is_err());
    crate::pictures::save(folder.path().join("b.png"), 2, 3, &[0; 6]);
    let options = OpenOptions { memory_budget: Some(6), ..OpenOptions::default() };
    let set = open(folder.path().to_str().unwrap(), &options).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(9).unwrap();
    let error = set.samples.to_f64(0..1).unwrap_err();
    assert!(matches!(&error, Error::Changed { change: Change::Size { after: 9, .. }, .. }), "{error:?}");
    assert!(error.to_string().contains("a.png: it has become shorter (9 bytes instead of "), "{error}");
    // A mapped file that has become shorter ends a pass before it begins, not the process; one that is read piece by
    // piece must not be another.
    let (path, other) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
    npy::write_array(&path, &[12_288, 2, 3], &[1.0f32; 6 * 12_288]).unwrap();
    let mapped = Samples::from_npy(&path).unwrap();
    let read = Samples::from_npy(&path).unwrap().with_memory_budget(150_000);
    let pass = |samples: &Samples<'_>| {
        Task::from(MomentsPass { origin: vec![0.0; 6], digest: false })
            .run(&Cpu::best(), samples, 0)
            .map(|_| ())
    };
    assert_eq!((pass(&mapped), pass(&read)), (Ok(()), Ok(())));
    npy::write_array(&other, &[12_288, 2, 3], &[2.0f32; 6 * 12_288]).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(pass(&mapped), Ok(()));
    assert_eq!(pass(&read), Err(Error::Changed { path: path.clone(), change: Change::Replaced }));
    let mapped = Samples::from_npy(&path).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(200).unwrap();
    let change = Change::Size { before: 6 * 12_288 * 4 + 128, after: 200 };
    assert_eq!(pass(&mapped), Err(Error::Changed { path, change }));
}

#[test]
fn files_of_another_kind_and_arrays_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name)
    };
    let refused = |path: &std::path::Path| open(path.to_str().unwrap(), &Default::default()).unwrap_err();
    let path = save("x.parquet", b"PAR1");
    let error = refused(&path);
    let instead = "save its numbers as a .npy or .csv file";
    says(&error, &format!("{}: it is a Parquet file, which is not read here; {instead}", path.display()));
    assert_eq!(error, Error::NotRead { path, found: "a Parquet file", instead });
    let mat = crate::made::MatFile::new(false, false).variable("fea", 9, &[2, 3], 2, &[0; 6]).bytes;
    let path = save("x.mat", &mat);
    let error = refused(&path);
    says(
        &error,
        &format!(
            "{}: the samples in `fea` have 3 numbers, which is no square image; their shape has to be given",
            path.display()
        ),
    );
    assert_eq!(error, Error::ShapeNeeded { path: path.clone(), array: "fea".into(), numbers: 3 });
    let named = std::path::PathBuf::from(format!("{}:y", path.display()));
    let held = vec!["`fea` (2×3)".to_string()];
    assert_eq!(refused(&named), Error::NoArray { path, wanted: Some("y".into()), held });
    let path = save("x.csv", b"1,2\n3,?\n");
    let error = refused(&path);
    assert!(matches!(&error, Error::Cell { line: 2, column: 2, .. }), "{error:?}");
    says(&error, &format!("{}: line 2, column 2: `?` is no number", path.display()));
}

#[test]
fn labels_and_options_that_do_not_fit_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y.txt");
    std::fs::write(&path, "a\nb\n").unwrap();
    let refused = |options: &OpenOptions| open("demo:mnist", options).unwrap_err();
    let error = refused(&OpenOptions { labels: Some(path.clone()), ..OpenOptions::default() });
    says(&error, &format!("{}: 2 labels for 1000 samples; exactly one per sample is needed", path.display()));
    assert_eq!(error, Error::LabelCount { path, labels: 2, samples: 1000 });
    let error = refused(&OpenOptions { colour: true, ..OpenOptions::default() });
    let found = "the embedded data";
    assert_eq!(error, Error::OnlyImages { name: "demo:mnist".into(), option: ForImages::Colour, found });
    let error = refused(&OpenOptions { exclude: vec!["x".into()], ..OpenOptions::default() });
    assert!(
        matches!(&error, Error::UnknownLabel { label, labels, .. } if label == "x" && labels.len() == 10)
    );
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[6, 2], &[1.0f32; 12]).unwrap();
    let exclude = OpenOptions { exclude: vec!["x".into()], ..OpenOptions::default() };
    let name = path.display().to_string();
    assert_eq!(open(&name, &exclude).unwrap_err(), Error::NoLabels { name });
}

#[test]
fn more_than_may_be_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, "1,2\n3,4\n").unwrap();
    let options = OpenOptions { memory_budget: Some(31), ..OpenOptions::default() };
    let name = path.display().to_string();
    let error = open(&name, &options).unwrap_err();
    assert_eq!(error, Error::Unpacked { name, needed: 32, limit: 31, packed: None });
}

#[test]
fn values_that_cannot_be_meant() {
    let bytes = Samples::from_vec(&[2, 3], vec![9u8; 12]).unwrap();
    let model = random_mixture(1, &[2, 3], &[1, 1], 2);
    let fractions = Samples::from_vec(&[2, 3], vec![0.25; 12]).unwrap();
    let input = Some(Input::of(&[2, 3], &fractions).unwrap());
    let error = ModelFile { input, ..ModelFile::new(model.into()) }.prepare(&bytes, None).unwrap_err();
    assert_eq!(error, Error::Values { found: [9.0; 2], expected: [0.25; 2], scale: 1.0 });
    says(&error, "the values go from 9 to 9; the model was fitted to values from 0.25 to 0.25");
}

#[test]
fn data_that_is_not_what_was_asked_for() {
    let error = open("demo:faces", &Default::default()).unwrap_err();
    assert_eq!(error, Error::UnknownDemo { name: "demo:faces".into() });
    says(&error, "demo:faces: there is no such embedded data; there is demo:mnist");
    let exclude = vec!["x".into()];
    let error = open("demo:mnist", &OpenOptions { exclude, ..OpenOptions::default() }).unwrap_err();
    assert!(matches!(&error, Error::UnknownLabel { .. }), "{error:?}");
    says(&error, "demo:mnist: no sample has the label `x`; the labels are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
}

#[test]
fn a_label_too_few() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y.txt");
    std::fs::write(&path, "a\n".repeat(999)).unwrap();
    let labels = Some(path.clone());
    let error = open("demo:mnist", &OpenOptions { labels, ..OpenOptions::default() }).unwrap_err();
    assert_eq!(error, Error::LabelCount { path: path.clone(), labels: 999, samples: 1000 });
    says(
        &error,
        &format!("{}: 999 labels for 1000 samples; exactly one per sample is needed", path.display()),
    );
}

/// Near 2^64, and as many as no machine has memory for; what fits is the same as ever.
#[test]
fn more_samples_than_there_is_memory_for() {
    let model = random_mixture(1, &[2, 3], &[1, 1], 2);
    for samples in [usize::MAX, usize::MAX - 7, 1 << 60, 100_000_000_000_000] {
        for noise in [true, false] {
            let error = model.try_sample(samples, 1, noise).unwrap_err();
            let Error::NoMemory { samples: asked, shape, needed, .. } = &error else { panic!("{error:?}") };
            assert_eq!((*asked, &shape[..], *needed), (samples, &[2, 3][..], samples as u128 * 56));
        }
    }
    let error = Error::NoMemory { samples: 1 << 60, shape: vec![2, 3], needed: 56 << 60, available: None };
    says(&error, "1152921504606846976 samples of 2×3 take 64.6 EB, more memory than there is");
    let error = Error::NoMemory {
        samples: 100_000_000_000,
        shape: vec![2, 3],
        needed: 5_600_000_000_000,
        available: Some(8_000_000_000),
    };
    let said = "100000000000 samples of 2×3 take 5.6 TB, more than the 8.0 GB of memory that are free";
    says(&error, said);
    assert_eq!(model.try_sample(9, 1, true), Ok(model.sample(9, 1)));
    assert_eq!(model.try_sample(9, 1, false), Ok(model.sample_noiseless(9, 1)));
}

/// Three samples, two of them complete.
#[test]
fn more_draws_of_missing_cells_than_there_is_memory_for() {
    let model = random_mixture(1, &[2, 3], &[1, 1], 2);
    let mut values = vec![1.0; 18];
    values[3..9].fill(f64::NAN);
    let samples = Samples::from_slice(&[2, 3], &values).unwrap();
    for draws in [usize::MAX, usize::MAX / 3, 1 << 58, 10_000_000_000_000] {
        let error = model.impute_draws(&samples, draws, 1).unwrap_err();
        let Error::NoMemory { samples, shape, needed, .. } = &error else { panic!("{error:?}") };
        // 18 cells, and a copy of the six missing ones.
        let expected = (draws.saturating_mul(3), &[2, 3][..], draws as u128 * 24 * 8);
        assert_eq!((*samples, &shape[..], *needed), expected);
    }
    let (few, more) =
        (model.impute_draws(&samples, 2, 1).unwrap(), model.impute_draws(&samples, 5, 1).unwrap());
    assert_eq!((few.len(), &few[..]), (36, &more[..36]));
}

/// After the start, and after an iteration.
#[test]
fn a_fit_whose_passes_are_stopped() {
    let samples = drawn(&random_mixture(1, &[2, 3], &[1, 1], 2), 500, 1);
    for at in [0, 2] {
        let meter = Arc::new(Meter::new());
        let metered = samples.clone().with_meter(meter.clone());
        let options = FitOptions { components: 2, rank: vec![1], tol: 0.0, ..FitOptions::default() };
        let stopped = fit_with(&metered, &options, &mut |now| {
            if now.iteration == at {
                meter.stop();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(stopped, Err(Error::Stopped));
        assert_eq!(fit_low_rank(&metered, &LowRankOptions::default()).unwrap_err(), Error::Stopped);
    }
    says(&Error::Stopped, "the pass was stopped");
}
