//! How many digits are right: single against double precision, and data that is large, small, far off or far apart.

use crate::planted::statistics;
use crate::planted::{Look, assert_close, drawn, drawn_f32, numbers, planted_mixture, random_mixture};
use matmix::linalg::SymmetricFactor;
use matmix::{Fit, FitOptions, LowRankOptions, Matrix, Mixture, Precision, Samples, fit, fit_low_rank};

/// ln p(X_n|k), N × K, from the dense covariance and differences taken one by one.
fn dense_log_densities(model: &Mixture, samples: &Samples<'_>) -> Vec<f64> {
    let size = model.sample_len();
    let factors: Vec<SymmetricFactor> = (0..model.n_components())
        .map(|k| SymmetricFactor::new(&model.covariance(k).unwrap()).unwrap())
        .collect();
    let mut out = Vec::new();
    for x in numbers(samples).chunks_exact(size) {
        for (component, factor) in model.components().iter().zip(&factors) {
            let d: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
            let d = Matrix::from_vec(size, 1, d);
            let quadratic = factor.solve(&d).inner(&d);
            let constant = size as f64 * (2.0 * std::f64::consts::PI).ln() + factor.log_determinant();
            out.push(-0.5 * (constant + quadratic));
        }
    }
    out
}

/// The densities of the component each sample came from: the ones that matter, and the ones that cancel.
fn own(all: &[f64], components: &[usize]) -> Vec<f64> {
    let k = all.len() / components.len();
    components.iter().enumerate().map(|(n, c)| all[n * k + c]).collect()
}

/// A copy in double precision of the numbers as they are read.
fn widened(samples: &Samples<'_>) -> Samples<'static> {
    Samples::from_vec(samples.shape(), numbers(samples)).unwrap()
}

#[track_caller]
fn assert_no_negative_variance(model: &Mixture, samples: &Samples<'_>) {
    for component in model.components() {
        assert!(component.noise_variance() > 0.0 && component.noise_variance().is_finite());
        assert!(component.core_variances().iter().all(|&s| s >= 0.0 && s.is_finite()));
    }
    assert!(model.posterior_variance().iter().all(|&v| v > 0.0 && v <= 1.0));
    assert!(model.squared_errors(samples).unwrap().iter().all(|&e| e >= 0.0 && e.is_finite()));
}

#[test]
fn single_precision_of_digits_is_right_to_five_digits() {
    let digits = matmix::data::digits().samples;
    for scale in [1.0 / 255.0, 1.0] {
        let samples = digits.clone().scaled(scale).unwrap();
        let options = FitOptions { components: 4, rank: vec![4], max_iter: 5, ..FitOptions::default() };
        let model = fit(&samples, &options).unwrap().model;
        let sums = |precision| statistics(&model, &samples, 0, precision).unwrap();
        let (single, double) = (sums(Precision::Single), sums(Precision::Double));
        assert_ne!(single.log_likelihood, double.log_likelihood, "they are really two precisions");
        let relative = (single.log_likelihood / double.log_likelihood - 1.0).abs();
        assert!(relative < 1e-5, "scale {scale}: {relative:e}");
        let (bytes, doubles) =
            (model.score_samples(&samples).unwrap(), model.score_samples(&widened(&samples)).unwrap());
        // Three millionths of a nat per element, whatever the likelihood of the sample comes to.
        for (a, b) in bytes.iter().zip(&doubles) {
            assert!((a - b).abs() < 3e-6 * 784.0, "{a} instead of {b}");
        }
        assert_no_negative_variance(&model, &samples);
    }
}

/// The loadings of digits keep no more digits than single precision gives, at any rank, and no variance goes below zero.
#[test]
fn no_variance_of_digits_is_negative() {
    let digits = matmix::data::digits().samples.select(&(0..1000).step_by(5).collect::<Vec<_>>()).unwrap();
    for (components, rank) in [(1, vec![28, 28]), (3, vec![9, 2]), (10, vec![1, 1])] {
        let options = FitOptions { components, rank, max_iter: 8, tol: 0.0, ..FitOptions::default() };
        let fit = fit(&digits, &options).unwrap();
        assert_no_negative_variance(&fit.model, &digits);
        let double = fit.model.score(&widened(&digits)).unwrap();
        assert!((fit.log_likelihood() / double - 1.0).abs() < 1e-5, "{} {double}", fit.log_likelihood());
    }
}

#[test]
fn little_noise_switches_to_double_precision() {
    let look = Look { noise: 1e-5, ..Look::default() };
    let model = planted_mixture(3, &[6, 5], &[2, 2], 2, look);
    let samples = drawn_f32(&model, 500, 4);
    let exact = model.score(&widened(&samples)).unwrap();
    let found = model.score(&samples).unwrap();
    assert!((found - exact).abs() < 1e-6 * exact.abs(), "{found} {exact}");
    let sums = |precision| statistics(&model, &samples, 0, precision).unwrap();
    assert_eq!(sums(Precision::Auto), sums(Precision::Double));
    // Otherwise this would show nothing: single precision is wrong here.
    let single = sums(Precision::Single).mean_log_likelihood();
    assert!((single - exact).abs() > 1e-5 * exact.abs(), "{single} {exact}");
    // The same model with ordinary noise stays in single precision.
    let noisy = planted_mixture(3, &[6, 5], &[2, 2], 2, Look { noise: 1.0, ..Look::default() });
    let sums = |precision| statistics(&noisy, &samples, 0, precision).unwrap();
    assert_eq!(sums(Precision::Auto), sums(Precision::Single));

    let options = FitOptions { components: 2, rank: vec![2, 2], max_iter: 30, ..FitOptions::default() };
    let fit = fit(&samples, &options).unwrap();
    let exact = fit.model.score(&widened(&samples)).unwrap();
    assert!((fit.log_likelihood() - exact).abs() < 1e-6 * exact.abs());
}

#[test]
fn a_huge_offset_costs_only_what_storing_it_costs() {
    for offset in [1e6, 1e9] {
        let look = Look { offset, noise: 0.01, ..Look::default() };
        let model = planted_mixture(5, &[4, 3], &[2, 1], 2, look);
        let samples = drawn(&model, 200, 6);
        let found = model.log_densities(&samples).unwrap();
        assert_close(&found, &dense_log_densities(&model, &samples), 1e-6, "densities");
    }
}

/// The floor of the noise is about rounding, not about how far from zero the data is.
#[test]
fn an_offset_does_not_change_what_is_fitted() {
    let model = planted_mixture(7, &[4, 3], &[2, 1], 2, Look { noise: 0.01, ..Look::default() });
    let options =
        FitOptions { components: 2, rank: vec![2, 1], max_iter: 20, tol: 0.0, ..FitOptions::default() };
    let plain = fit(&drawn(&model, 400, 8), &options).unwrap();
    // A power of two, so that the sums are nearly exact.
    let offset = f64::from(1u32 << 24);
    let far: Vec<f64> = model.sample(400, 8).samples.iter().map(|x| x + offset).collect();
    let far = fit(&Samples::from_vec(&[4, 3], far).unwrap(), &options).unwrap();
    assert!(
        (far.log_likelihood() - plain.log_likelihood()).abs() < 1e-4,
        "{} {}",
        far.log_likelihood(),
        plain.log_likelihood()
    );
    for (a, b) in far.model.components().iter().zip(plain.model.components()) {
        assert!((a.noise_variance() / b.noise_variance() - 1.0).abs() < 1e-3);
    }
}

#[test]
fn clusters_far_apart_keep_their_densities() {
    for spread in [1e3, 1e6, 1e8] {
        let model = planted_mixture(9, &[4, 3], &[2, 1], 3, Look { spread, noise: 0.01, ..Look::default() });
        let origin = model.sample(150, 10).components;
        let samples = drawn(&model, 150, 10);
        assert_eq!(model.assign(&samples).unwrap(), origin);
        let found = own(&model.log_densities(&samples).unwrap(), &origin);
        let expected = own(&dense_log_densities(&model, &samples), &origin);
        assert_close(&found, &expected, 1e-5, &format!("spread {spread:e}"));
        // In single precision (which Auto leaves here) the numbers that are stored are rounded, and nothing else.
        let rounded = drawn_f32(&model, 150, 10);
        let found = own(&model.log_densities(&rounded).unwrap(), &origin);
        let expected = own(&dense_log_densities(&model, &rounded), &origin);
        assert_close(&found, &expected, 1e-5, &format!("spread {spread:e} rounded"));
    }
}

/// A fit far from unit scale is the fit at unit scale.
#[test]
fn tiny_and_huge_values_are_fitted_alike() {
    let planted = random_mixture(11, &[5, 4], &[2, 2], 2);
    let drawn = planted.sample(400, 12).samples;
    let options =
        FitOptions { components: 2, rank: vec![2, 2], max_iter: 10, tol: 0.0, ..FitOptions::default() };
    let size = 20.0;
    let unit = fit(&Samples::from_slice(&[5, 4], &drawn).unwrap(), &options).unwrap();
    let check = |found: &Fit, factor: f64, tol: f64, what: &str| {
        let shifted = found.log_likelihood() + size * factor.ln();
        let expected = unit.log_likelihood();
        assert!((shifted - expected).abs() < tol * expected.abs(), "{what}: {shifted} instead of {expected}");
        for (a, b) in found.model.components().iter().zip(unit.model.components()) {
            let ratio = a.noise_variance() / (factor * factor) / b.noise_variance();
            assert!((ratio - 1.0).abs() < 100.0 * tol, "{what}: noise {ratio}");
        }
    };
    for factor in [1e-25, 1e-6, 1e6, 1e25] {
        let doubles: Vec<f64> = drawn.iter().map(|x| x * factor).collect();
        let found = fit(&Samples::from_vec(&[5, 4], doubles).unwrap(), &options).unwrap();
        check(&found, factor, 1e-9, &format!("f64 times {factor:e}"));
        let singles: Vec<f32> = drawn.iter().map(|x| (x * factor) as f32).collect();
        let samples = Samples::from_vec(&[5, 4], singles).unwrap();
        let found = fit(&samples, &options).unwrap();
        check(&found, factor, 1e-4, &format!("f32 times {factor:e}"));
        assert_no_negative_variance(&found.model, &samples);

        let low = |samples: &Samples<'_>| {
            fit_low_rank(samples, &LowRankOptions { rank: vec![2], ..LowRankOptions::default() }).unwrap()
        };
        let (narrow, wide) = (low(&samples), low(&widened(&samples)));
        let last = |e: &[f64]| *e.last().unwrap() / factor;
        let (a, b) = (last(&narrow.reconstruction_error), last(&wide.reconstruction_error));
        assert!((a / b - 1.0).abs() < 1e-4, "LowRank times {factor:e}: {a} instead of {b}");
    }
}

/// New samples are not what the model was fitted to: their squares may need more room than the model's.
#[test]
fn single_precision_makes_room_for_large_new_samples() {
    let model = random_mixture(13, &[4, 3], &[2, 1], 2);
    let mut elements: Vec<f32> = model.sample(100, 14).samples.iter().map(|&x| x as f32).collect();
    elements[70 * 12 + 5] = 1e25;
    let samples = Samples::from_vec(&[4, 3], elements).unwrap();
    let found = model.score_samples(&samples).unwrap();
    let expected = model.score_samples(&widened(&samples)).unwrap();
    assert_close(&found[70..71], &expected[70..71], 1e-9, "the large one");
    assert_close(&found, &expected, 1e-5, "scores");
    let sums = statistics(&model, &samples, 1, Precision::Auto).unwrap();
    let total: f64 = found.iter().sum();
    assert!((sums.log_likelihood / total - 1.0).abs() < 1e-9);
}
