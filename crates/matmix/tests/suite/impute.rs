//! Missing cells of new samples against conditionals of dense P×P matrices, and figures that another program found.

use matmix::{Component, Matrix, Mixture, Samples, Temper};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Numbers in [−½, ½) that look random enough.
fn number(i: usize) -> f64 {
    ((i as f64 + 1.0) * 0.618_033_988_749_894_9).fract() - 0.5
}

/// Two components of 4×3 with cores of 2×2 and twelve samples, 45 of whose 144 cells are missing.
pub(crate) fn small(degrees: Option<f64>) -> (Mixture, Vec<f64>) {
    let part = |k: usize| {
        let mean = (0..12).map(|i| number(i + 17 * k)).collect();
        let loading =
            |d: usize, p: usize| Matrix::from_fn(p, 2, |i, j| 1.5 * number(7 * k + 3 * i + j + 11 * d));
        let loadings = vec![loading(0, 4), loading(1, 3)];
        let part = Component::new(&[4, 3], mean, loadings, 0.1 + 0.1 * k as f64).unwrap();
        part.with_degrees_of_freedom(degrees).unwrap()
    };
    let model = Mixture::new(&[4, 3], vec![0.25, 0.75], vec![part(0), part(1)]).unwrap();
    let mut x: Vec<f64> = (0..144).map(|i| 2.0 * number(i + 100)).collect();
    for n in 0..12 {
        for i in 0..12 {
            if (5 * n + 3 * i) % 7 < 2 || n == 4 && i < 6 {
                x[12 * n + i] = f64::NAN;
            }
        }
    }
    (model, x)
}

/// Twelve digits of a program that shares nothing with this one.
#[test]
fn the_figures_of_another_program() {
    let cases = [
        (
            None,
            -8.6691227795,
            [-0.711900149863, -0.302496354244, -0.136946710623, 0.330511347819],
            [0.257781178998, 0.246612400578, 0.213107560931, 0.237428127343],
        ),
        (
            Some(5.0),
            -8.20437206728,
            [-0.57682979288, -0.116416801267, -0.0948096496163, 0.30707651519],
            [0.670145024471, 0.724696348266, 0.531408909753, 0.488973292921],
        ),
    ];
    for (degrees, likelihood, means, variances) in cases {
        let (model, x) = small(degrees);
        let found = model.impute(&Samples::from_slice(&[4, 3], &x).unwrap()).unwrap();
        assert_eq!((found.missing, found.empty.len()), (45, 0));
        let mean = found.log_likelihood.iter().sum::<f64>() / 12.0;
        assert!((mean - likelihood).abs() < 1e-9, "{mean} instead of {likelihood}");
        for (at, cell) in [0, 5, 7, 12 + 1].into_iter().enumerate() {
            assert!((found.values[cell] - means[at]).abs() < 1e-10, "{} {}", found.values[cell], means[at]);
            let variance = found.deviations[cell].powi(2);
            assert!((variance - variances[at]).abs() < 1e-10, "{variance} {}", variances[at]);
        }
        for (x, (value, deviation)) in x.iter().zip(found.values.iter().zip(&found.deviations)) {
            assert!(x.is_nan() || x == value && *deviation == 0.0);
        }
    }
}

pub(crate) fn random_mixture(
    rng: &mut ChaCha8Rng,
    shape: &[usize],
    rank: &[usize],
    k: usize,
    nu: Option<usize>,
) -> Mixture {
    let size: usize = shape.iter().product();
    let part = |_| {
        let mean = (0..size).map(|_| rng.sample(StandardNormal)).collect();
        let sides = shape.iter().zip(rank);
        let loadings =
            sides.map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| rng.sample(StandardNormal))).collect();
        let noise = 10f64.powf(rng.random_range(-1.5..0.5));
        let part = Component::new(shape, mean, loadings, noise).unwrap();
        part.with_degrees_of_freedom(nu.map(|nu| nu as f64)).unwrap()
    };
    let parts = (0..k).map(part).collect();
    Mixture::new(shape, vec![1.0; k], parts).unwrap()
}

/// ln Γ(n/2), from Γ(½) and Γ(1) upwards.
pub(crate) fn log_gamma_of_half(n: usize) -> f64 {
    let first = if n % 2 == 1 { 0.5 * std::f64::consts::PI.ln() } else { 0.0 };
    first + (1..n).rev().skip(1).step_by(2).map(|below| (0.5 * below as f64).ln()).sum::<f64>()
}

/// ln p(x_O), and mean and variance of the missing cells, from the dense covariance of one component.
pub(crate) fn dense(component: &Component, nu: Option<usize>, x: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let c = crate::dense::covariance(component);
    let (missing, seen): (Vec<usize>, Vec<usize>) = (0..x.len()).partition(|&i| x[i].is_nan());
    let part: Vec<Vec<f64>> = seen.iter().map(|&i| seen.iter().map(|&j| c[i][j]).collect()).collect();
    let l = crate::dense::cholesky(&part);
    let d: Vec<f64> = seen.iter().map(|&i| x[i] - component.mean()[i]).collect();
    let solved = crate::dense::solve(&l, &d);
    let delta: f64 = solved.iter().zip(&d).map(|(a, b)| a * b).sum();
    let log_determinant: f64 = (0..l.len()).map(|i| 2.0 * l[i][i].ln()).sum();
    let (o, pi) = (seen.len() as f64, std::f64::consts::PI);
    let (density, factor) = match nu {
        None => (-0.5 * (o * (2.0 * pi).ln() + log_determinant + delta), 1.0),
        Some(nu) => {
            let degrees = nu as f64;
            let gammas = log_gamma_of_half(nu + seen.len()) - log_gamma_of_half(nu);
            let scale = 0.5 * (o * (degrees * pi).ln() + log_determinant);
            let tail = 0.5 * (degrees + o) * (1.0 + delta / degrees).ln();
            (gammas - scale - tail, (degrees + delta) / (degrees + o - 2.0))
        }
    };
    let (mut means, mut variances) = (vec![], vec![]);
    for &i in &missing {
        let to_seen: Vec<f64> = seen.iter().map(|&j| c[i][j]).collect();
        means.push(component.mean()[i] + to_seen.iter().zip(&solved).map(|(a, b)| a * b).sum::<f64>());
        let taken: f64 = to_seen.iter().zip(crate::dense::solve(&l, &to_seen)).map(|(a, b)| a * b).sum();
        variances.push(factor * (c[i][i] - taken));
    }
    (density, means, variances)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]

    #[test]
    fn everything_equals_the_dense_conditional(
        sides in prop::collection::vec((1usize..5).prop_flat_map(|p| (Just(p), 1..=p)), 1..=3),
        k in 1usize..=3,
        nu in prop::option::of(3usize..20),
        share in prop::sample::select(vec![0.0, 0.1, 0.5, 0.9]),
        seed in any::<u64>(),
    ) {
        let (shape, rank): (Vec<usize>, Vec<usize>) = sides.into_iter().unzip();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, k, nu);
        let mut x = model.sample(4, seed).samples;
        x.iter_mut().for_each(|x| if rng.random::<f64>() < share { *x = f64::NAN });
        let samples = Samples::from_slice(&shape, &x).unwrap();
        let found = model.impute_by(&samples, Temper::None).unwrap();
        let size = model.sample_len();
        for (n, x) in x.chunks_exact(size).enumerate() {
            let parts: Vec<_> = model.components().iter().map(|c| dense(c, nu, x)).collect();
            let joint: Vec<f64> = parts.iter().zip(model.weights()).map(|(p, w)| w.ln() + p.0).collect();
            let likelihood = crate::dense::log_sum_exp(&joint);
            let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            prop_assert!(close(found.log_likelihood[n], likelihood), "{} {}", found.log_likelihood[n], likelihood);
            let gammas: Vec<f64> = joint.iter().map(|j| (j - likelihood).exp()).collect();
            let missing = (0..size).filter(|&i| x[i].is_nan());
            for (at, i) in missing.enumerate() {
                let mean: f64 = parts.iter().zip(&gammas).map(|(p, g)| g * p.1[at]).sum();
                let second: f64 = parts.iter().zip(&gammas).map(|(p, g)| g * (p.2[at] + p.1[at] * p.1[at])).sum();
                let (value, deviation) = (found.values[n * size + i], found.deviations[n * size + i]);
                prop_assert!(close(value, mean), "{} {}", value, mean);
                prop_assert!(close(deviation.powi(2), second - mean * mean), "{} {}", deviation.powi(2), second - mean * mean);
            }
        }
    }
}

/// 20,000 draws of the first sample, within five standard errors.
#[test]
fn draws_have_the_conditional_moments() {
    for degrees in [None, Some(9.0)] {
        let (model, x) = small(degrees);
        let samples = Samples::from_slice(&[4, 3], &x[..12]).unwrap();
        let expected = model.impute(&samples).unwrap();
        let n = 20_000;
        let draws = model.impute_draws(&samples, n, 3).unwrap();
        for i in 0..12 {
            let cell: Vec<f64> = draws.iter().skip(i).step_by(12).copied().collect();
            let mean = cell.iter().sum::<f64>() / n as f64;
            let variance = cell.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            if x[i].is_nan() {
                let deviation = expected.deviations[i];
                let error = deviation / (n as f64).sqrt();
                assert!((mean - expected.values[i]).abs() < 5.0 * error, "{mean} {}", expected.values[i]);
                assert!((variance / deviation.powi(2) - 1.0).abs() < 0.1, "{variance} {}", deviation.powi(2));
            } else {
                assert!(cell.iter().all(|&drawn| drawn == x[i]));
            }
        }
        // A sample's draws depend on the seed and its number alone.
        let all = Samples::from_slice(&[4, 3], &x).unwrap();
        assert_eq!(model.impute_draws(&all, 1, 3).unwrap()[..12], draws[..12]);
    }
}

#[test]
fn a_sample_without_a_number_is_the_model_itself() {
    let (model, _) = small(None);
    let nothing = vec![f64::NAN; 12];
    let found = model.impute(&Samples::from_slice(&[4, 3], &nothing).unwrap()).unwrap();
    assert_eq!((found.log_likelihood[0], found.empty), (0.0, vec![0]));
    for i in 0..12 {
        let mean: f64 = model.components().iter().zip(model.weights()).map(|(c, w)| w * c.mean()[i]).sum();
        assert!((found.values[i] - mean).abs() < 1e-12);
        assert!(found.deviations[i] > 0.0);
    }
}

#[test]
fn what_is_complete_scores_as_it_does_elsewhere_and_infinity_is_refused() {
    let (model, _) = small(Some(4.0));
    let x = model.sample(9, 1).samples;
    let samples = Samples::from_slice(&[4, 3], &x).unwrap();
    let found = model.impute(&samples).unwrap();
    assert_eq!((&found.values, found.missing), (&x, 0));
    let scores = model.score_samples(&samples).unwrap();
    assert!(found.log_likelihood.iter().zip(&scores).all(|(a, b)| (a - b).abs() < 1e-10 * b.abs().max(1.0)));
    let mut broken = x.clone();
    broken[12 + 5] = f64::INFINITY;
    let error = model.impute(&Samples::from_slice(&[4, 3], &broken).unwrap()).unwrap_err();
    let matmix::Error::NotFinite { sample, position, .. } = error else { panic!("{error}") };
    assert_eq!((sample, position), (1, vec![1, 2]));
    let other = Samples::from_slice(&[3, 4], &x).unwrap();
    assert!(matches!(model.impute(&other), Err(matmix::Error::ShapeMismatch { .. })));
}

/// Three in ten cells of half of the digits, from a model of the other half.
#[test]
fn hidden_cells_of_digits_are_found_with_honest_deviations() {
    let digits = matmix::data::digits().samples.scaled(1.0 / 255.0).unwrap();
    let all = digits.to_f64(0..1000).unwrap();
    let half = |first: usize| -> Vec<f64> {
        all.chunks_exact(784).skip(first).step_by(2).flatten().copied().collect()
    };
    let (seen, hidden) = (half(0), half(1));
    let options = matmix::FitOptions { rank: vec![8, 8], ..matmix::FitOptions::default() };
    let model = matmix::fit(&Samples::from_slice(&[28, 28], &seen).unwrap(), &options).unwrap().model;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let n = 100 * 784;
    let broken: Vec<f64> =
        hidden[..n].iter().map(|&x| if rng.random::<f64>() < 0.3 { f64::NAN } else { x }).collect();
    let found = model.impute(&Samples::from_slice(&[28, 28], &broken).unwrap()).unwrap();
    let (mut squares, mut by_mean, mut covered) = (0.0, 0.0, 0);
    for i in (0..n).filter(|&i| broken[i].is_nan()) {
        let error = found.values[i] - hidden[i];
        squares += error * error;
        by_mean += (model.components()[0].mean()[i % 784] - hidden[i]).powi(2);
        covered += usize::from(error.abs() < 1.96 * found.deviations[i]);
    }
    let count = found.missing as f64;
    let (error, by_mean, covered) =
        ((squares / count).sqrt(), (by_mean / count).sqrt(), covered as f64 / count);
    println!("root mean square error {error:.4}, by the mean {by_mean:.4}, covered {covered:.3}");
    assert!(error < 0.15 && error < 0.6 * by_mean && (0.88..0.98).contains(&covered), "{error} {covered}");
}

/// Two components of three numbers with cores of one, of these degrees of freedom.
fn one_core(degrees: Option<f64>) -> Mixture {
    let part = |mean: [f64; 3], u: [f64; 3], noise| {
        let part =
            Component::new(&[3], mean.to_vec(), vec![Matrix::from_vec(3, 1, u.to_vec())], noise).unwrap();
        part.with_degrees_of_freedom(degrees).unwrap()
    };
    let parts =
        vec![part([0.5, -0.2, 1.0], [0.8, 1.1, -0.6], 0.3), part([-0.4, 0.9, 0.1], [0.3, -0.7, 1.2], 0.5)];
    Mixture::new(&[3], vec![0.4, 0.6], parts).unwrap()
}

/// p(x_O | b, u, k)^τ p(b | u) p(u) π_k, summed over a fine grid of cores b and scales u; the moments of a missing cell follow.
#[test]
fn a_tempered_posterior_is_the_integral_of_the_tempered_likelihood() {
    let x = [1.3, f64::NAN, -0.4];
    let normal =
        |x: f64, variance: f64| -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + x * x / variance);
    for (degrees, temper) in [(None, 1.0), (None, 0.2), (Some(6.0), 0.2), (Some(6.0), 1.0)] {
        let model = one_core(degrees);
        let scales: Vec<(f64, f64)> = match degrees {
            None => vec![(1.0, 0.0)],
            // Even steps of ln u: the density of Gamma(ν/2, ν/2), times u.
            Some(nu) => (-400..=200)
                .map(|i| (f64::from(i) * 0.02).exp())
                .map(|u: f64| (u, 0.5 * nu * (u.ln() - u)))
                .collect(),
        };
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (k, c) in model.components().iter().enumerate() {
            for &(u, log_scale) in &scales {
                for step in -1500..=1500 {
                    // The core is as wide as its scale has it; the last summand is that of the grid.
                    let b = f64::from(step) * 0.01 / u.sqrt();
                    let at = |i: usize| c.mean()[i] + c.loadings()[0][(i, 0)] * b;
                    let noise = c.noise_variance() / u;
                    let seen = normal(x[0] - at(0), noise) + normal(x[2] - at(2), noise);
                    let density = (temper * seen + normal(b, 1.0 / u) + log_scale - 0.5 * u.ln()).exp()
                        * model.weights()[k];
                    total += density;
                    first += density * at(1);
                    second += density * (at(1) * at(1) + noise);
                }
            }
        }
        let (mean, variance) = (first / total, second / total - (first / total).powi(2));
        let samples = Samples::from_slice(&[3], &x).unwrap();
        let found = model.impute_by(&samples, Temper::Fixed(temper)).unwrap();
        assert!((found.values[1] - mean).abs() < 1e-5, "{degrees:?} {temper}: {} {mean}", found.values[1]);
        let own = found.deviations[1].powi(2);
        assert!((own - variance).abs() < 1e-5 * variance, "{degrees:?} {temper}: {own} {variance}");
        // The density of what was observed is not tempered.
        let exact = model.impute_by(&samples, Temper::None).unwrap();
        assert!((found.log_likelihood[0] - exact.log_likelihood[0]).abs() < 1e-9);
        assert_eq!(found.tempered, if temper < 1.0 { vec![0] } else { vec![] });
        // Draws have the same moments.
        let draws = model.impute_draws_by(&samples, 40_000, 3, Temper::Fixed(temper)).unwrap();
        let cells: Vec<f64> = draws.iter().skip(1).step_by(3).copied().collect();
        let drawn = cells.iter().sum::<f64>() / 40_000.0;
        assert!((drawn - mean).abs() < 5.0 * (variance / 40_000.0).sqrt(), "{drawn} {mean}");
    }
}

#[test]
fn only_samples_with_blocks_are_tempered_by_default() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    let model = random_mixture(&mut rng, &[12, 12], &[2, 2], 2, None);
    let mut x = model.sample(4, 1).samples;
    let hide = |x: &mut [f64], n: usize, hidden: &dyn Fn(usize) -> bool| {
        (0..144).filter(|&i| hidden(i)).for_each(|i| x[n * 144 + i] = f64::NAN);
    };
    hide(&mut x, 0, &|i| i * 7 % 5 < 2);
    hide(&mut x, 1, &|i| (2..10).contains(&(i / 12)) && (2..10).contains(&(i % 12)));
    hide(&mut x, 3, &|_| true);
    let samples = Samples::from_slice(&[12, 12], &x).unwrap();
    let [auto, none, fixed] = [Temper::Auto, Temper::None, Temper::Fixed(0.1)]
        .map(|temper| model.impute_by(&samples, temper).unwrap());
    assert_eq!((auto.tempered.clone(), auto.empty.clone()), (vec![1], vec![3]));
    assert_eq!(auto, model.impute(&samples).unwrap());
    assert_eq!((none.tempered.len(), fixed.tempered.clone()), (0, vec![0, 1]));
    let part = |found: &matmix::Imputed, n: usize| found.values[n * 144..(n + 1) * 144].to_vec();
    for n in [0, 2, 3] {
        assert_eq!(part(&auto, n), part(&none, n));
    }
    assert_eq!(part(&auto, 1), part(&fixed, 1));
    assert_ne!(part(&auto, 1), part(&none, 1));
    for (a, b) in auto.log_likelihood.iter().zip(&none.log_likelihood) {
        assert!((a - b).abs() < 1e-8 * b.abs().max(1.0), "{a} {b}");
    }
    assert!(model.impute_by(&samples, Temper::Fixed(0.0)).is_err());
}
