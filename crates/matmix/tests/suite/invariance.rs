//! What may not matter does not: the order of samples and components, the names of the modes, how often a sample is
//! written down, the unit of measurement, the type of the elements.

use crate::planted::statistics;
use crate::planted::{assert_close, drawn, normals, numbers, random_mixture};
use matmix::linalg::expand;
use matmix::{
    Algorithm, Component, Fit, FitOptions, LowRankOptions, Matrix, Mixture, Precision, Samples, Start, fit,
    fit_low_rank,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn from(start: &Mixture, max_iter: usize) -> FitOptions {
    FitOptions {
        components: start.n_components(),
        rank: start.rank().to_vec(),
        start: Start::Model(Box::new(start.clone())),
        max_iter,
        tol: 0.0,
        ..FitOptions::default()
    }
}

/// What a component means: mean, covariance and weight.
fn meaning(model: &Mixture, k: usize) -> Vec<f64> {
    let mut all = vec![model.weights()[k]];
    all.extend(model.components()[k].mean());
    all.extend(model.covariance(k).unwrap().as_slice());
    all
}

fn assert_same_fit(a: &Fit, b: &Fit, tol: f64, what: &str) {
    assert_close(&a.history.log_likelihood, &b.history.log_likelihood, tol, what);
    assert_close(&a.history.reconstruction_error, &b.history.reconstruction_error, tol, what);
    for k in 0..a.model.n_components() {
        assert_close(&meaning(&a.model, k), &meaning(&b.model, k), 100.0 * tol, what);
    }
}

/// The model with another mode of side 1 at `place`.
fn with_unit_mode(model: &Mixture, place: usize) -> Mixture {
    let mut shape = model.shape().to_vec();
    shape.insert(place, 1);
    let components = model.components().iter().map(|c| {
        let mut loadings = c.loadings().to_vec();
        loadings.insert(place, Matrix::identity(1, 1));
        Component::new(&shape, c.mean().to_vec(), loadings, c.noise_variance()).unwrap()
    });
    Mixture::new(&shape, model.weights().to_vec(), components.collect()).unwrap()
}

#[test]
fn a_mode_of_side_one_changes_nothing() {
    for (shape, rank) in [(vec![5], vec![2]), (vec![4, 3], vec![2, 1]), (vec![3, 2, 4], vec![2, 1, 3])] {
        let model = random_mixture(1, &shape, &rank, 2);
        let samples = drawn(&model, 200, 2);
        for place in 0..=shape.len() {
            let reshaped = with_unit_mode(&model, place);
            let view = samples.clone().reshaped(reshaped.shape()).unwrap();
            let (a, b) = (model.project(&samples).unwrap(), reshaped.project(&view).unwrap());
            assert_close(&b.log_likelihood, &a.log_likelihood, 1e-11, "densities");
            assert_close(&b.responsibilities, &a.responsibilities, 1e-11, "responsibilities");
            // Signs and rotations are the same because the canonical form is.
            assert_close(&b.cores, &a.cores, 1e-9, "cores");
            assert_close(&reshaped.posterior_variance(), &model.posterior_variance(), 1e-12, "variances");
            let low = |samples: &Samples<'_>, rank: &[usize]| {
                let options = LowRankOptions { rank: rank.to_vec(), ..LowRankOptions::default() };
                fit_low_rank(samples, &options).unwrap()
            };
            let (plain, unit) = (low(&samples, &rank), low(&view, reshaped.rank()));
            assert_close(&unit.reconstruction_error, &plain.reconstruction_error, 1e-9, "LowRank");
        }
    }
}

/// A fit takes one more step per iteration for one more mode; where it ends is the same.
#[test]
fn fits_of_reshaped_samples_end_in_the_same_place() {
    let model = random_mixture(3, &[5, 4], &[2, 1], 2);
    let samples = drawn(&model, 300, 4);
    let plain = fit(&samples, &from(&model, 200)).unwrap();
    let reshaped = with_unit_mode(&model, 1);
    let unit = fit(&samples.clone().reshaped(&[5, 1, 4]).unwrap(), &from(&reshaped, 200)).unwrap();
    assert!(
        (plain.log_likelihood() - unit.log_likelihood()).abs() < 1e-6,
        "{} {}",
        plain.log_likelihood(),
        unit.log_likelihood()
    );
    // A vector is a p×1 matrix.
    let model = random_mixture(5, &[6], &[2], 2);
    let samples = drawn(&model, 300, 6);
    let vector = fit(&samples, &from(&model, 300)).unwrap();
    let column =
        fit(&samples.clone().reshaped(&[6, 1]).unwrap(), &from(&with_unit_mode(&model, 1), 300)).unwrap();
    assert!((vector.log_likelihood() - column.log_likelihood()).abs() < 1e-6);
}

/// The samples with their last two axes exchanged.
fn transposed(samples: &Samples<'_>) -> Samples<'static> {
    let (p, q) = (samples.shape()[0], samples.shape()[1]);
    let turned = |x: &[f64]| Matrix::from_vec(p, q, x.to_vec()).transpose().as_slice().to_vec();
    let elements = numbers(samples).chunks_exact(p * q).flat_map(turned).collect::<Vec<f64>>();
    Samples::from_vec(&[q, p], elements).unwrap()
}

fn transposed_model(model: &Mixture) -> Mixture {
    let (p, q) = (model.shape()[0], model.shape()[1]);
    let components = model.components().iter().map(|c| {
        let mean = Matrix::from_vec(p, q, c.mean().to_vec()).transpose();
        let loadings = c.loadings().iter().rev().cloned().collect();
        Component::new(&[q, p], mean.as_slice().to_vec(), loadings, c.noise_variance()).unwrap()
    });
    Mixture::new(&[q, p], model.weights().to_vec(), components.collect()).unwrap()
}

#[test]
fn transposing_every_matrix_transposes_the_result() {
    let model = random_mixture(7, &[5, 3], &[2, 2], 2);
    let samples = drawn(&model, 300, 8);
    let (turned, turned_model) = (transposed(&samples), transposed_model(&model));
    let (a, b) = (model.project(&samples).unwrap(), turned_model.project(&turned).unwrap());
    assert_close(&b.log_likelihood, &a.log_likelihood, 1e-11, "densities");
    for (a, b) in a.cores.chunks_exact(4).zip(b.cores.chunks_exact(4)) {
        assert_close(b, &[a[0], a[2], a[1], a[3]], 1e-10, "cores");
    }
    // The modes take their turns in the other order, so that only the end is the same.
    let (a, b) =
        (fit(&samples, &from(&model, 300)).unwrap(), fit(&turned, &from(&turned_model, 300)).unwrap());
    assert!(
        (a.log_likelihood() - b.log_likelihood()).abs() < 1e-6,
        "{} {}",
        a.log_likelihood(),
        b.log_likelihood()
    );
    assert!((a.reconstruction_error() - b.reconstruction_error()).abs() < 1e-4);
    let low = |samples: &Samples<'_>| {
        let options =
            LowRankOptions { rank: vec![2, 2], max_iter: 500, tol: 0.0, ..LowRankOptions::default() };
        *fit_low_rank(samples, &options).unwrap().reconstruction_error.last().unwrap()
    };
    assert!((low(&samples) - low(&turned)).abs() < 1e-6);
}

#[test]
fn the_order_of_the_samples_does_not_matter() {
    let model = random_mixture(9, &[4, 3], &[2, 1], 3);
    let samples = drawn(&model, 2500, 10);
    // 1213 has no factor in common with 2500: every sample once.
    let order: Vec<usize> = (0..2500).map(|n| n * 1213 % 2500).collect();
    let shuffled = samples.clone().select(&order).unwrap();
    assert_same_fit(
        &fit(&shuffled, &from(&model, 15)).unwrap(),
        &fit(&samples, &from(&model, 15)).unwrap(),
        1e-9,
        "shuffled",
    );
    let scores = model.score_samples(&samples).unwrap();
    let of_shuffled = model.score_samples(&shuffled).unwrap();
    for (n, &place) in order.iter().enumerate() {
        assert_eq!(of_shuffled[n], scores[place], "a score does not depend on the neighbours");
    }
}

#[test]
fn the_order_of_the_components_does_not_matter() {
    let model = random_mixture(11, &[4, 3], &[2, 1], 3);
    let samples = drawn(&model, 500, 12);
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let run = |start: &Mixture| fit(&samples, &FitOptions { algorithm, ..from(start, 12) }).unwrap();
        let (plain, permuted) = (run(&model), run(&model.permuted(&[2, 0, 1]).unwrap()));
        assert_close(&permuted.history.log_likelihood, &plain.history.log_likelihood, 1e-10, "likelihood");
        for (k, from) in [2, 0, 1].into_iter().enumerate() {
            assert_close(&meaning(&permuted.model, k), &meaning(&plain.model, from), 1e-7, "components");
            assert_eq!(permuted.assigned[k], plain.assigned[from]);
        }
    }
}

/// Loadings rotated by an orthogonal matrix, and scale moved between the modes, are the same model.
#[test]
fn rotating_the_latent_axes_does_not_matter() {
    let model = random_mixture(13, &[4, 3], &[2, 2], 1);
    let component = &model.components()[0];
    let rotation = |a: f64| Matrix::from_vec(2, 2, vec![a.cos(), -a.sin(), a.sin(), a.cos()]);
    let mut left = component.loadings()[0].times(&rotation(0.7));
    let mut right = component.loadings()[1].times(&rotation(-2.1));
    left.scale(5.0);
    right.scale(0.2);
    let turned =
        Component::new(&[4, 3], component.mean().to_vec(), vec![left, right], component.noise_variance())
            .unwrap();
    for (a, b) in turned.loadings().iter().zip(component.loadings()) {
        assert_close(a.as_slice(), b.as_slice(), 1e-10, "the canonical form is one");
    }
    let core = normals(1, 4);
    assert_close(&expand(&core, turned.loadings()), &expand(&core, component.loadings()), 1e-9, "samples");
}

#[test]
fn integer_weights_are_repeated_samples() {
    let model = random_mixture(15, &[4, 3], &[2, 1], 3);
    let samples = drawn(&model, 300, 16);
    let weights: Vec<usize> = (0..300).map(|n| 1 + n % 4).collect();
    let repeated: Vec<usize> = (0..300).flat_map(|n| std::iter::repeat_n(n, weights[n])).collect();
    let repeated = samples.clone().select(&repeated).unwrap();
    let weighted = samples.clone().with_weights(weights.iter().map(|&w| w as f64).collect()).unwrap();
    assert_eq!(weighted.total_weight(), repeated.len() as f64);
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let run = |s: &Samples<'_>| fit(s, &FitOptions { algorithm, ..from(&model, 10) }).unwrap();
        assert_same_fit(&run(&weighted), &run(&repeated), 1e-9, &format!("{algorithm:?}"));
    }
    let k_means = FitOptions { start: Start::KMeans, seed: 5, ..from(&model, 10) };
    // A search may find the components in another order.
    let by_weight = |s: &Samples<'_>| {
        let found = fit(s, &k_means).unwrap();
        let mut order: Vec<usize> = (0..found.model.n_components()).collect();
        order.sort_by(|&a, &b| found.model.weights()[a].total_cmp(&found.model.weights()[b]));
        (found.log_likelihood(), found.model.permuted(&order).unwrap())
    };
    let ((a, model_a), (b, model_b)) = (by_weight(&weighted), by_weight(&repeated));
    assert_close(&[a], &[b], 1e-8, "k-means");
    for k in 0..model_a.n_components() {
        assert_close(&meaning(&model_a, k), &meaning(&model_b, k), 1e-6, "k-means");
    }
    let low = |s: &Samples<'_>| {
        fit_low_rank(s, &LowRankOptions { rank: vec![2, 1], ..LowRankOptions::default() }).unwrap()
    };
    assert_close(
        &low(&weighted).reconstruction_error,
        &low(&repeated).reconstruction_error,
        1e-10,
        "LowRank",
    );
    assert_close(&[model.score(&weighted).unwrap()], &[model.score(&repeated).unwrap()], 1e-12, "score");
    let (a, b) = (model.evaluate(&weighted).unwrap(), model.evaluate(&repeated).unwrap());
    assert_close(&[a.bic, a.aic, a.icl], &[b.bic, b.aic, b.icl], 1e-12, "criteria");
    let error = |s: &Samples<'_>| model.reconstruction_error(s).unwrap();
    assert_close(&[error(&weighted)], &[error(&repeated)], 1e-12, "reconstruction error");
}

#[test]
fn samples_of_weight_zero_do_not_matter() {
    let model = random_mixture(17, &[4, 3], &[2, 1], 2);
    let mut elements = numbers(&drawn(&model, 200, 18));
    let mut weights = vec![1.0; 200];
    let plain = Samples::from_vec(&[4, 3], elements.clone()).unwrap();
    // Wild samples in front, between and behind.
    for (at, value) in [(0, 1e6), (77, -1e6), (202, 3e5)] {
        elements.splice(at * 12..at * 12, [value; 12]);
        weights.insert(at, 0.0);
    }
    let padded = Samples::from_vec(&[4, 3], elements).unwrap().with_weights(weights).unwrap();
    assert_eq!((padded.len(), padded.n_effective()), (203, 200));
    for start in [Start::KMeans, Start::Random, Start::Model(Box::new(model.clone()))] {
        let options = FitOptions { start, ..from(&model, 10) };
        assert_same_fit(&fit(&padded, &options).unwrap(), &fit(&plain, &options).unwrap(), 1e-7, "weight 0");
    }
    let paper = FitOptions { algorithm: Algorithm::Paper, ..from(&model, 10) };
    assert_same_fit(&fit(&padded, &paper).unwrap(), &fit(&plain, &paper).unwrap(), 1e-7, "paper");
    let low = |s: &Samples<'_>| {
        fit_low_rank(s, &LowRankOptions { rank: vec![2, 1], ..LowRankOptions::default() }).unwrap()
    };
    assert_close(&low(&padded).reconstruction_error, &low(&plain).reconstruction_error, 1e-7, "LowRank");
}

/// Weights that sum to 1 say the same as weights that sum to N.
#[test]
fn only_the_proportions_of_small_weights_matter() {
    let model = random_mixture(19, &[4, 3], &[2, 1], 2);
    let samples = drawn(&model, 200, 20);
    let ones = fit(&samples, &from(&model, 10)).unwrap();
    for weight in [1.0 / 200.0, 1e-12] {
        let small = samples.clone().with_weights(vec![weight; 200]).unwrap();
        assert_same_fit(&fit(&small, &from(&model, 10)).unwrap(), &ones, 1e-9, "weights");
        let paper = FitOptions { algorithm: Algorithm::Paper, ..from(&model, 5) };
        assert_same_fit(&fit(&small, &paper).unwrap(), &fit(&samples, &paper).unwrap(), 1e-9, "paper");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// ln p(aX) of the scaled model is ln p(X) − P ln a.
    #[test]
    fn scaling_shifts_the_log_likelihood(seed in 0u64..1000, log_factor in -20.0f64..20.0) {
        let factor = log_factor.exp();
        let model = random_mixture(seed, &[3, 4], &[2, 1], 2);
        let samples = drawn(&model, 50, seed);
        let components = model.components().iter().map(|c| {
            let mean = c.mean().iter().map(|m| m * factor).collect();
            let mut loadings = c.loadings().to_vec();
            loadings[0].scale(factor);
            Component::new(&[3, 4], mean, loadings, c.noise_variance() * factor * factor).unwrap()
        });
        let scaled = Mixture::new(&[3, 4], model.weights().to_vec(), components.collect()).unwrap();
        let found = scaled.score_samples(&samples.clone().scaled(factor).unwrap()).unwrap();
        let expected: Vec<f64> =
            model.score_samples(&samples).unwrap().iter().map(|l| l - 12.0 * log_factor).collect();
        assert_close(&found, &expected, 1e-9, "scores");
    }
}

/// A whole fit in another unit: the history is shifted, nothing else. A power of two costs no rounding.
#[test]
fn a_fit_in_another_unit_is_the_same_fit() {
    let samples = drawn(&random_mixture(21, &[4, 3], &[2, 1], 2), 300, 22);
    let options =
        FitOptions { components: 2, rank: vec![2, 1], max_iter: 15, tol: 0.0, ..FitOptions::default() };
    let plain = fit(&samples, &options).unwrap();
    for factor in [2f64.powi(-30), 2f64.powi(40), -1.0] {
        let scaled = fit(&samples.clone().scaled(factor).unwrap(), &options).unwrap();
        let shift = 12.0 * factor.abs().ln();
        let shifted: Vec<f64> = scaled.history.log_likelihood.iter().map(|l| l + shift).collect();
        assert_close(&shifted, &plain.history.log_likelihood, 1e-9, &format!("times {factor:e}"));
    }
}

#[test]
fn bytes_singles_and_doubles_of_the_same_integers_agree() {
    let bytes: Vec<u8> =
        normals(23, 400 * 12).iter().map(|x| (100.0 + 30.0 * x).clamp(0.0, 255.0) as u8).collect();
    let singles: Vec<f32> = bytes.iter().map(|&x| f32::from(x)).collect();
    let doubles: Vec<f64> = bytes.iter().map(|&x| f64::from(x)).collect();
    let sets = [
        Samples::from_slice(&[4, 3], &bytes).unwrap(),
        Samples::from_slice(&[4, 3], &singles).unwrap(),
        Samples::from_slice(&[4, 3], &doubles).unwrap(),
    ];
    let start =
        fit(&sets[2], &FitOptions { components: 2, rank: vec![2], max_iter: 1, ..FitOptions::default() });
    let start = start.unwrap().model;
    // In double precision they are the same numbers, to the last bit.
    let sums = |precision| sets.each_ref().map(|s| statistics(&start, s, 1, precision).unwrap());
    let [a, b, c] = sums(Precision::Double);
    assert!(a == b && b == c);
    // In single precision, bytes and singles still are.
    let [a, b, c] = sums(Precision::Auto);
    assert_eq!(a, b);
    assert_close(&[a.log_likelihood], &[c.log_likelihood], 1e-5, "single against double");
    let fits = sets.each_ref().map(|s| fit(s, &from(&start, 10)).unwrap());
    assert_eq!(fits[0].model, fits[1].model);
    assert_close(&fits[0].history.log_likelihood, &fits[2].history.log_likelihood, 1e-5, "fits");
    // From their own start, too.
    let options = FitOptions { start: Start::KMeans, ..from(&start, 10) };
    let fits = sets.each_ref().map(|s| fit(s, &options).unwrap());
    assert_close(&fits[0].history.log_likelihood, &fits[2].history.log_likelihood, 1e-4, "from k-means");
}
