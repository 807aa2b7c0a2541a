//! Passes over samples with missing cells against conditional moments of dense matrices, and figures that another program found.

use matmix::pass::{EmPass, EmSums, LoadingSums, Stage, Update};
use matmix::{Component, Engine, Matrix, Missing, Mixture, Precision, Reconstruction, Samples};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::impute::{log_gamma_of_half, random_mixture, small};

fn with_holes<'a>(shape: &[usize], x: &'a [f64]) -> Samples<'a> {
    Samples::from_slice(shape, x).unwrap().with_missing(Missing::Nan)
}

fn pass(model: &Mixture, samples: &Samples<'_>, update: Update) -> EmSums {
    let pass = EmPass { model: model.clone(), update, precision: Precision::Auto, stage: Stage::ALL };
    (samples as &dyn Engine).sums(&pass).unwrap()
}

/// What is known about a sample and its core together, (x − M, b), given the observed cells: mean, covariance, ln p and E[u].
pub(crate) struct Known {
    mean: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    pub(crate) log_density: f64,
    weight: f64,
}

/// The joint covariance of (x, b) is [C W; Wᵀ I]: condition it on what was observed.
pub(crate) fn dense(component: &Component, nu: Option<usize>, x: &[f64]) -> Known {
    let w = crate::dense::loading_matrix(component.loadings());
    let (size, rho) = (w.len(), w[0].len());
    let mut c = crate::dense::covariance(component);
    for (row, w) in c.iter_mut().zip(&w) {
        row.extend(w);
    }
    for j in 0..rho {
        let mut row: Vec<f64> = w.iter().map(|w| w[j]).collect();
        row.extend((0..rho).map(|l| if l == j { 1.0 } else { 0.0 }));
        c.push(row);
    }
    let seen: Vec<usize> = (0..size).filter(|&i| !x[i].is_nan()).collect();
    let part: Vec<Vec<f64>> = seen.iter().map(|&i| seen.iter().map(|&j| c[i][j]).collect()).collect();
    let l = crate::dense::cholesky(&part);
    let d: Vec<f64> = seen.iter().map(|&i| x[i] - component.mean()[i]).collect();
    let solved = crate::dense::solve(&l, &d);
    let delta: f64 = solved.iter().zip(&d).map(|(a, b)| a * b).sum();
    let log_determinant: f64 = (0..l.len()).map(|i| 2.0 * l[i][i].ln()).sum();
    let to_seen: Vec<Vec<f64>> = c.iter().map(|row| seen.iter().map(|&j| row[j]).collect()).collect();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mean = to_seen.iter().map(|row| inner(row, &solved)).collect();
    let taken: Vec<Vec<f64>> = to_seen.iter().map(|row| crate::dense::solve(&l, row)).collect();
    let entry = |i: usize, j: usize| c[i][j] - inner(&to_seen[i], &taken[j]);
    let all = size + rho;
    let covariance = (0..all).map(|i| (0..all).map(|j| entry(i, j)).collect()).collect();
    let (o, pi) = (seen.len() as f64, std::f64::consts::PI);
    let (log_density, weight) = match nu {
        None => (-0.5 * (o * (2.0 * pi).ln() + log_determinant + delta), 1.0),
        Some(nu) => {
            let degrees = nu as f64;
            let gammas = log_gamma_of_half(nu + seen.len()) - log_gamma_of_half(nu);
            let scale = 0.5 * (o * (degrees * pi).ln() + log_determinant);
            let tail = 0.5 * (degrees + o) * (1.0 + delta / degrees).ln();
            (gammas - scale - tail, (degrees + o) / (degrees + delta))
        }
    };
    Known { mean, covariance, log_density, weight }
}

/// The sums of a pass that updates every mode, component by component: W, s, m, b, Fᵀ and G.
struct Expected {
    weight: f64,
    scale: f64,
    squares: f64,
    shift: Vec<f64>,
    core: Vec<f64>,
    cross: Vec<f64>,
    gram: Vec<f64>,
}

fn expected(model: &Mixture, nu: Option<usize>, x: &[f64], weights: &[f64]) -> (f64, Vec<Expected>) {
    let (size, rho) = (model.sample_len(), model.core_len());
    let none = || Expected {
        weight: 0.0,
        scale: 0.0,
        squares: 0.0,
        shift: vec![0.0; size],
        core: vec![0.0; rho],
        cross: vec![0.0; rho * size],
        gram: vec![0.0; rho * rho],
    };
    let mut sums: Vec<Expected> = model.components().iter().map(|_| none()).collect();
    let mut log_likelihood = 0.0;
    for (x, weight) in x.chunks_exact(size).zip(weights) {
        let known: Vec<Known> = model.components().iter().map(|c| dense(c, nu, x)).collect();
        let joint: Vec<f64> =
            known.iter().zip(model.weights()).map(|(k, w)| w.ln() + k.log_density).collect();
        let likelihood = crate::dense::log_sum_exp(&joint);
        log_likelihood += weight * likelihood;
        for ((of, joint), to) in known.iter().zip(&joint).zip(&mut sums) {
            let gamma = weight * (joint - likelihood).exp();
            let a = gamma * of.weight;
            let second = |i: usize, j: usize| a * of.mean[i] * of.mean[j] + gamma * of.covariance[i][j];
            to.weight += gamma;
            to.scale += a;
            to.squares += (0..size).map(|i| second(i, i)).sum::<f64>();
            (0..size).for_each(|i| to.shift[i] += a * of.mean[i]);
            for j in 0..rho {
                to.core[j] += a * of.mean[size + j];
                (0..size).for_each(|i| to.cross[j * size + i] += second(i, size + j));
                (0..rho).for_each(|l| to.gram[j * rho + l] += second(size + j, size + l));
            }
        }
    }
    (log_likelihood, sums)
}

/// One index per mode.
fn index(place: usize, sides: &[usize]) -> Vec<usize> {
    let mut rest = place;
    let mut index = vec![0; sides.len()];
    for (at, side) in index.iter_mut().zip(sides).rev() {
        *at = rest % side;
        rest /= side;
    }
    index
}

/// F and G with all modes but d contracted with the loadings, entry by entry.
fn contracted(model: &Mixture, k: usize, of: &Expected, d: usize) -> [Vec<f64>; 3] {
    let (shape, rank, u) = (model.shape(), model.rank(), model.components()[k].loadings());
    let (size, rho) = (model.sample_len(), model.core_len());
    let others = |f: &dyn Fn(usize) -> f64| (0..shape.len()).filter(|&e| e != d).map(f).product::<f64>();
    let mut cross = vec![0.0; shape[d] * rank[d]];
    let (mut weighted, mut gram) = (vec![0.0; rank[d] * rank[d]], vec![0.0; rank[d] * rank[d]]);
    for j in 0..rho {
        let at = index(j, rank);
        for i in 0..size {
            let cell = index(i, shape);
            cross[cell[d] * rank[d] + at[d]] += of.cross[j * size + i] * others(&|e| u[e][(cell[e], at[e])]);
        }
        for l in 0..rho {
            let to = index(l, rank);
            let product = |e: usize| (0..shape[e]).map(|i| u[e][(i, at[e])] * u[e][(i, to[e])]).sum::<f64>();
            let same = others(&|e| f64::from(u8::from(at[e] == to[e])));
            weighted[at[d] * rank[d] + to[d]] += of.gram[j * rho + l] * others(&product);
            gram[at[d] * rank[d] + to[d]] += of.gram[j * rho + l] * same;
        }
    }
    [cross, weighted, gram]
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let size = expected.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-9 * size, "{what}: {found} instead of {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default() })]

    /// Eq. 8d–8g, 12a–12c: densities and sums of every order, by all modes and by each.
    #[test]
    fn sums_are_those_of_dense_conditional_moments(
        sides in prop::collection::vec((1usize..5).prop_flat_map(|p| (Just(p), 1..=p)), 1..=3),
        k in 1usize..=3,
        nu in prop::option::of(3usize..20),
        share in prop::sample::select(vec![0.05, 0.3, 0.6, 0.9]),
        seed in any::<u64>(),
    ) {
        let (shape, rank): (Vec<usize>, Vec<usize>) = sides.into_iter().unzip();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, k, nu);
        let (size, n) = (model.sample_len(), 9);
        let mut x = model.sample(n, seed).samples;
        // Two complete, one empty, three with one pattern, one with a whole slice missing, two with their own.
        let hide = |x: &mut [f64], hidden: &dyn Fn(usize) -> bool| {
            (0..size).filter(|&i| hidden(i)).for_each(|i| x[i] = f64::NAN);
        };
        let masks: Vec<Vec<bool>> =
            (0..3).map(|_| (0..size).map(|_| rng.random::<f64>() < share).collect()).collect();
        hide(&mut x[2 * size..3 * size], &|_| true);
        for n in [3, 5, 8] {
            hide(&mut x[n * size..(n + 1) * size], &|i| masks[0][i]);
        }
        hide(&mut x[4 * size..5 * size], &|i| i < size / shape[0]);
        hide(&mut x[6 * size..7 * size], &|i| masks[1][i]);
        hide(&mut x[7 * size..8 * size], &|i| masks[2][i]);
        let weights: Vec<f64> = (0..n).map(|_| rng.random_range(0.2..3.0)).collect();
        let samples = with_holes(&shape, &x).with_weights(weights.clone()).unwrap();
        let (log_likelihood, sums) = expected(&model, nu, &x, &weights);
        let modes = (0..shape.len()).filter(|_| shape.len() > 1).map(Update::Mode);
        for update in modes.chain([Update::All]) {
            let found = pass(&model, &samples, update);
            assert_close(&[found.log_likelihood], &[log_likelihood], "ln p");
            prop_assert_eq!(found.n_samples, n as u64);
            for (k, (found, expected)) in found.components.iter().zip(&sums).enumerate() {
                assert_close(&[found.weight, found.scale], &[expected.weight, expected.scale], "N, W");
                assert_close(&[found.squares], &[expected.squares], "s");
                assert_close(&found.shift, &expected.shift, "m");
                assert_close(&found.core, &expected.core, "b");
                match (&found.loadings, update) {
                    (LoadingSums::All { cross, gram }, _) => {
                        assert_close(cross.as_slice(), &expected.cross, "F");
                        assert_close(gram.as_slice(), &expected.gram, "G");
                    }
                    (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) => {
                        let [a, h, s] = contracted(&model, k, expected, d);
                        assert_close(cross.as_slice(), &a, "A");
                        assert_close(weighted_gram.as_slice(), &h, "H");
                        assert_close(gram.as_slice(), &s, "S");
                    }
                    _ => panic!("sums of another update"),
                }
            }
        }
    }

    /// Everything a mixture is asked about a sample with holes is said by the dense conditional, too.
    #[test]
    fn answers_are_those_of_the_dense_conditional(
        sides in prop::collection::vec((1usize..5).prop_flat_map(|p| (Just(p), 1..=p)), 1..=3),
        nu in prop::option::of(3usize..20),
        seed in any::<u64>(),
    ) {
        let (shape, rank): (Vec<usize>, Vec<usize>) = sides.into_iter().unzip();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let model = random_mixture(&mut rng, &shape, &rank, 2, nu);
        let (size, rho) = (model.sample_len(), model.core_len());
        let mut x = model.sample(4, seed).samples;
        x[size..].iter_mut().for_each(|x| if rng.random::<f64>() < 0.4 { *x = f64::NAN });
        let samples = with_holes(&shape, &x);
        let found = model.project(&samples).unwrap();
        let densities = model.log_densities(&samples).unwrap();
        let rebuilt = model.reconstruct(&samples, Reconstruction::MostProbable).unwrap();
        let denoised = model.denoise(&samples).unwrap();
        let errors = model.squared_errors(&samples).unwrap();
        for (n, x) in x.chunks_exact(size).enumerate() {
            let known: Vec<Known> = model.components().iter().map(|c| dense(c, nu, x)).collect();
            let joint: Vec<f64> =
                known.iter().zip(model.weights()).map(|(k, w)| w.ln() + k.log_density).collect();
            let likelihood = crate::dense::log_sum_exp(&joint);
            let gamma: Vec<f64> = joint.iter().map(|j| (j - likelihood).exp()).collect();
            let best = found.components[n];
            prop_assert!(gamma[best] >= gamma[1 - best] - 1e-12);
            assert_close(&found.log_likelihood[n..=n], &[likelihood], "ln p");
            assert_close(&found.responsibilities[2 * n..2 * n + 2], &gamma, "γ");
            let mut all = vec![0.0; size];
            for (k, known) in known.iter().enumerate() {
                assert_close(&densities[2 * n + k..=2 * n + k], &[known.log_density], "ln p(x|k)");
                let core = &found.cores[(2 * n + k) * rho..][..rho];
                assert_close(core, &known.mean[size..], "Q");
                let whole = model.components()[k].reconstruct(&known.mean[size..]);
                all.iter_mut().zip(&whole).for_each(|(to, x)| *to += gamma[k] * x);
                if k == best {
                    assert_close(&rebuilt[n * size..(n + 1) * size], &whole, "X̂");
                    let error: f64 =
                        x.iter().zip(&whole).filter(|(x, _)| !x.is_nan()).map(|(x, y)| (x - y).powi(2)).sum();
                    assert_close(&errors[n..=n], &[error], "e²");
                }
            }
            assert_close(&denoised[n * size..(n + 1) * size], &all, "without noise");
        }
    }
}

/// What is said of complete samples has the same bits whether others have holes or not, samples side by side (K = 3) and components (K =
/// 16), in both precisions; and the sums are those of either kind added up.
#[test]
fn complete_samples_keep_their_bits_among_samples_with_holes() {
    for (k, nu) in [(3, None), (3, Some(5)), (16, None)] {
        let (shape, rank, n) = ([6, 5], [2, 2], 250);
        let model = random_mixture(&mut ChaCha8Rng::seed_from_u64(17), &shape, &rank, k, nu);
        let whole = model.sample(n, 18).samples;
        let has_holes = |n: usize| n > 40 && n.is_multiple_of(7);
        let hide = |(i, &x): (usize, &f64)| if has_holes(i / 30) && i % 4 == 1 { f64::NAN } else { x };
        let broken: Vec<f64> = whole.iter().enumerate().map(hide).collect();
        let (holes, complete): (Vec<usize>, Vec<usize>) = (0..n).partition(|&n| has_holes(n));
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|&x| x as f32).collect() };
        let (narrow_whole, narrow_broken) = (narrow(&whole), narrow(&broken));
        let single = |x| Samples::from_slice(&shape, x).unwrap().with_missing(Missing::Nan);
        let pairs = [
            (with_holes(&shape, &whole), with_holes(&shape, &broken)),
            (single(&narrow_whole), single(&narrow_broken)),
        ];
        for (precision, (whole, broken)) in [1e-12, 1e-4].into_iter().zip(&pairs) {
            let (alone, among) = (model.project(whole).unwrap(), model.project(broken).unwrap());
            for &n in &complete {
                assert_eq!(alone.log_likelihood[n].to_bits(), among.log_likelihood[n].to_bits());
                assert_eq!(alone.components[n], among.components[n]);
                let (gamma, cores) = (n * k..(n + 1) * k, n * k * 4..(n + 1) * k * 4);
                assert_eq!(alone.responsibilities[gamma.clone()], among.responsibilities[gamma]);
                assert_eq!(alone.cores[cores.clone()], among.cores[cores]);
            }
            for update in [Update::All, Update::Mode(0), Update::Mode(1)] {
                let [all, a, b] = [&(0..n).collect(), &complete, &holes]
                    .map(|which: &Vec<usize>| pass(&model, &broken.clone().select(which).unwrap(), update));
                assert_eq!(all.n_samples, a.n_samples + b.n_samples);
                let close = |all: f64, a: f64, b: f64| {
                    assert!((all - a - b).abs() <= precision * all.abs().max(1.0), "{all} {a} {b}");
                };
                close(all.log_likelihood, a.log_likelihood, b.log_likelihood);
                for ((all, a), b) in all.components.iter().zip(&a.components).zip(&b.components) {
                    close(all.weight, a.weight, b.weight);
                    close(all.squares, a.squares, b.squares);
                    (0..30).for_each(|i| close(all.shift[i], a.shift[i], b.shift[i]));
                    (0..4).for_each(|j| close(all.core[j], a.core[j], b.core[j]));
                }
            }
        }
    }
}

/// Twelve digits of a program that shares nothing with this one.
#[test]
fn the_sums_of_another_program() {
    let cases = [
        (
            None,
            -8.6691227795,
            [[-18.3779149399, -15.3292742473], [-8.80854683695, -2.24400314045]],
            [0.0155617838926, 0.000539765099029, 0.0632304839614, 0.999271120081],
            [3.3723512659, 3.3723512659, 6.49080243746],
            [-0.269558874064, 2.14043386257, 3.38226176619, 4.19094359168],
        ),
        (
            Some(5.0),
            -8.20437206728,
            [[-12.9902995383, -12.8552911236], [-7.38456336985, -2.35773135322]],
            [0.225548346291, 0.0448168628501, 0.133505251704, 0.999006684781],
            [3.95148096768, 4.26314239665, 7.09118803055],
            [-0.602947180554, 2.19113323247, 3.22665860658, 4.11363069678],
        ),
    ];
    for (degrees, likelihood, densities, gammas, numbers, norms) in cases {
        let (model, x) = small(degrees);
        let samples = with_holes(&[4, 3], &x);
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        close(model.score(&samples).unwrap(), likelihood);
        let found = model.log_densities(&samples).unwrap();
        for (n, of) in [0, 4].into_iter().zip(densities) {
            close(found[2 * n], of[0]);
            close(found[2 * n + 1], of[1]);
        }
        let found = model.responsibilities(&samples).unwrap();
        (0..4).for_each(|n| close(found[2 * n], gammas[n]));
        let sums = pass(&model, &samples, Update::Mode(0));
        let found = &sums.components[0];
        close(found.weight, numbers[0]);
        close(found.scale, numbers[1]);
        close(found.squares, numbers[2]);
        close(found.shift.iter().sum(), norms[0]);
        let LoadingSums::Mode { cross, weighted_gram, gram } = &found.loadings else { panic!("one mode") };
        close(cross.as_slice().iter().map(|x| x * x).sum::<f64>().sqrt(), norms[1]);
        // That program adds the posterior variance of complete samples in its M-step.
        let (v, others) = (model.posterior_variance(), model.components()[0].eigenvalues(1));
        let complete: f64 = v[..4].iter().sum();
        let weighted: f64 = (0..4).map(|j| v[j] * others[j % 2]).sum();
        close(weighted_gram.trace() - found.weight * weighted, norms[2]);
        close(gram.trace() - found.weight * complete, norms[3]);
    }
}

/// Uniform numbers in [0, 1) by the finaliser of splitmix64.
fn uniform(i: u64) -> f64 {
    let mut z = i.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// Digits in 0..1 of which this share is hidden.
pub(crate) fn broken_digits(share: f64) -> (Vec<f64>, Vec<f64>) {
    let digits = matmix::data::digits().samples;
    let whole: Vec<f64> = digits.to_f64(0..1000).unwrap().iter().map(|x| x / 255.0).collect();
    let hide = |(i, &x): (usize, &f64)| if uniform(i as u64) < share { f64::NAN } else { x };
    let broken = whole.iter().enumerate().map(hide).collect();
    (whole, broken)
}

/// Means by label and cosines for loadings.
fn fixed_start(broken: &[f64], k: usize, degrees: Option<f64>) -> Mixture {
    let labels = matmix::data::digits().labels.unwrap().index;
    let (mut all, mut seen) = (0.0, 0);
    broken.iter().filter(|x| !x.is_nan()).for_each(|x| (all, seen) = (all + x, seen + 1));
    let loading = |_| {
        Matrix::from_fn(28, 4, |i, j| {
            let first = if j == 0 { 0.5f64.sqrt() } else { 1.0 };
            (2.0f64 / 28.0).sqrt() * first * (std::f64::consts::PI * (i as f64 + 0.5) * j as f64 / 28.0).cos()
        })
    };
    let parts = (0..k).map(|part| {
        let mean = (0..784).map(|i| {
            let of = (0..1000).filter(|&n| labels[n] / (10 / k) == part).map(|n| broken[784 * n + i]);
            let of: Vec<f64> = of.filter(|x| !x.is_nan()).collect();
            if of.is_empty() { all / f64::from(seen) } else { of.iter().sum::<f64>() / of.len() as f64 }
        });
        let part = Component::new(&[28, 28], mean.collect(), (0..2).map(loading).collect(), 0.05).unwrap();
        part.with_degrees_of_freedom(degrees).unwrap()
    });
    Mixture::new(&[28, 28], vec![1.0; k], parts.collect()).unwrap()
}

/// The observed log-likelihood of fixed models, in double and in single precision.
#[test]
fn broken_digits_score_as_another_program_says() {
    assert!((uniform(0) - 0.883310808214).abs() < 1e-12 && (uniform(3) - 0.113450342057).abs() < 1e-12);
    for (share, k, degrees, cells, expected) in [
        (0.3, 5, None, 235_015, 16.6141214946),
        (0.6, 1, None, 470_884, -10.7466374678),
        (0.3, 5, Some(10.0), 235_015, 22.9344467609),
    ] {
        let (_, broken) = broken_digits(share);
        assert_eq!(broken.iter().filter(|x| x.is_nan()).count(), cells);
        let model = fixed_start(&broken, k, degrees);
        let double = model.score(&with_holes(&[28, 28], &broken)).unwrap();
        assert!((double - expected).abs() < 1e-8, "{double} instead of {expected}");
        let rounded: Vec<f32> = broken.iter().map(|&x| x as f32).collect();
        let samples = Samples::from_slice(&[28, 28], &rounded).unwrap().with_missing(Missing::Nan);
        let single = model.score(&samples).unwrap();
        assert!((single - expected).abs() < 1e-3, "{single} instead of {expected}");
    }
}

/// Many samples of which the same whole fibres are missing, beside complete ones and two with holes of their own.
#[test]
fn whole_fibres_of_many_samples_give_the_sums_of_dense_moments() {
    let cases: [(&[usize], &[usize]); 3] = [(&[40], &[33]), (&[7, 8], &[6, 6]), (&[5, 4, 4], &[4, 3, 3])];
    for ((shape, rank), nu) in cases.into_iter().flat_map(|case| [None, Some(4)].map(|nu| (case, nu))) {
        let mut rng = ChaCha8Rng::seed_from_u64(41);
        let model = random_mixture(&mut rng, shape, rank, 2, nu);
        let (size, n) = (model.sample_len(), 40);
        let mut x = model.sample(n, 42).samples;
        // One index of every mode is missing.
        let gone: Vec<usize> = shape.iter().map(|&p| rng.random_range(0..p)).collect();
        for (n, x) in x.chunks_exact_mut(size).enumerate().skip(2) {
            for (i, x) in x.iter_mut().enumerate() {
                let of_them = index(i, shape).iter().zip(&gone).any(|(at, gone)| at == gone);
                if of_them || (n < 4 && rng.random::<f64>() < 0.3) {
                    *x = f64::NAN;
                }
            }
        }
        let weights: Vec<f64> = (0..n).map(|_| rng.random_range(0.2..3.0)).collect();
        let samples = with_holes(shape, &x).with_weights(weights.clone()).unwrap();
        let (log_likelihood, sums) = expected(&model, nu, &x, &weights);
        let found = pass(&model, &samples, Update::All);
        assert_close(&[found.log_likelihood], &[log_likelihood], "ln p");
        assert_eq!(found.n_samples, n as u64);
        for (found, expected) in found.components.iter().zip(&sums) {
            assert_close(&[found.weight, found.scale], &[expected.weight, expected.scale], "N, W");
            assert_close(&[found.squares], &[expected.squares], "s");
            assert_close(&found.shift, &expected.shift, "m");
            assert_close(&found.core, &expected.core, "b");
            let LoadingSums::All { cross, gram } = &found.loadings else { panic!("of all modes") };
            assert_close(cross.as_slice(), &expected.cross, "F");
            assert_close(gram.as_slice(), &expected.gram, "G");
        }
    }
}

/// Many samples with one pattern are evaluated together, a few one by one: the same but for rounding, components side by side or samples, in
/// both precisions.
#[test]
fn many_samples_without_the_same_rows_are_as_few_are() {
    for (k, nu, precision) in [(2, None, 1e-10), (12, Some(6), 1e-10), (12, None, 3e-4), (1, None, 3e-4)] {
        let (shape, rank, n) = ([9, 8], [6, 6], 90);
        let model = random_mixture(&mut ChaCha8Rng::seed_from_u64(31), &shape, &rank, k, nu);
        let mut x = model.sample(n, 32).samples;
        let is_missing = |i: usize| [2, 3, 7].contains(&(i / 8 % 9)) || i % 8 == (i / 72) % 2;
        x.iter_mut().enumerate().for_each(|(i, x)| *x = if is_missing(i) { f64::NAN } else { *x });
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let samples = match precision > 1e-6 {
            true => Samples::from_slice(&shape, &single).unwrap().with_missing(Missing::Nan),
            false => with_holes(&shape, &x),
        };
        let part = |range: std::ops::Range<usize>| {
            pass(&model, &samples.clone().select(&range.collect::<Vec<_>>()).unwrap(), Update::All)
        };
        let together = part(0..n);
        let parts: Vec<EmSums> = (0..n).step_by(30).map(|first| part(first..first + 30)).collect();
        let compare = |of: &dyn Fn(&EmSums) -> Vec<f64>, what: &str| {
            let found = of(&together);
            let mut expected = vec![0.0; found.len()];
            for part in &parts {
                expected.iter_mut().zip(of(part)).for_each(|(to, x)| *to += x);
            }
            let size = expected.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() <= precision * size, "{what}, K = {k}: {found} {expected}");
            }
        };
        compare(&|s| vec![s.n_samples as f64, s.weight, s.entropy, s.squared_error], "numbers");
        compare(&|s| vec![s.log_likelihood], "ln p");
        for k in 0..k {
            let of = |s: &EmSums| s.components[k].clone();
            compare(&|s| vec![of(s).weight, of(s).scale, of(s).log_scale, of(s).squares], "N, W, s");
            compare(&|s| vec![of(s).assigned as f64], "assigned");
            compare(&|s| [of(s).shift, of(s).core].concat(), "m, b");
            compare(
                &|s| match of(s).loadings {
                    LoadingSums::All { cross, gram } => [cross.as_slice(), gram.as_slice()].concat(),
                    LoadingSums::Mode { .. } => panic!("of all modes"),
                },
                "F, G",
            );
        }
        // The least likely are told by their numbers in the set.
        let worst: Vec<usize> = together.worst.iter().map(|&(_, n)| n).collect();
        assert!(worst.iter().all(|&n| n < 90) && worst.len() == 32);
    }
}
