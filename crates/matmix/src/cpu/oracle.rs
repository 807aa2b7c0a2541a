//! Every instruction set against the equations, written out plainly in double precision.

use super::em::{em, em_by};
use super::evaluator::Way;
use super::scatter::scatter;
use crate::data::Samples;
use crate::linalg::{Matrix, project, sides_around};
use crate::model::{Component, Mixture};
use crate::pass::{EmPass, EmSums, Engine, LoadingSums, Precision, ScatterPass, Stage, Update};
use crate::simd::Instructions;

/// Numbers between −1 and 1 that look random enough.
fn number(i: usize) -> f64 {
    ((i as f64 + 1.0) * 0.754_877_666).fract() * 2.0 - 1.0
}

/// ln Γ(n/2), from Γ(½) and Γ(1) upwards.
fn log_gamma_of_half(n: usize) -> f64 {
    let first = if n % 2 == 1 { 0.5 * std::f64::consts::PI.ln() } else { 0.0 };
    first + (1..n).rev().skip(1).step_by(2).map(|below| (0.5 * below as f64).ln()).sum::<f64>()
}

/// ψ(n/2), from ψ(½) and ψ(1) upwards.
fn digamma_of_half(n: usize) -> f64 {
    let euler = 0.577_215_664_901_532_9;
    let first = if n % 2 == 1 { -euler - 2.0 * std::f64::consts::LN_2 } else { -euler };
    first + (1..n).rev().skip(1).step_by(2).map(|below| 2.0 / below as f64).sum::<f64>()
}

/// The same model with Student-t noise of 3, 7, 11, … degrees of freedom.
fn with_tails(model: &Mixture) -> Mixture {
    let tailed =
        |(k, c): (usize, &Component)| c.clone().with_degrees_of_freedom(Some(3.0 + 4.0 * k as f64)).unwrap();
    let components = model.components().iter().enumerate().map(tailed).collect();
    Mixture::new(model.shape(), model.weights().to_vec(), components).unwrap()
}

fn mixture(shape: &[usize], rank: &[usize]) -> Mixture {
    let size: usize = shape.iter().product();
    let components = (0..2).map(|k| {
        let mean = (0..size).map(|i| number(i + 1000 * k) + 0.3 * k as f64).collect();
        let loadings = shape
            .iter()
            .zip(rank)
            .enumerate()
            .map(|(d, (&p, &r))| Matrix::from_fn(p, r, |i, j| number(17 * i + 101 * j + 7 * d + k)))
            .collect();
        Component::new(shape, mean, loadings, 0.5 + 0.2 * k as f64).unwrap()
    });
    Mixture::new(shape, vec![0.4, 0.6], components.collect()).unwrap()
}

/// The matrix with mode d as its rows.
fn unfold(x: &[f64], shape: &[usize], d: usize) -> Matrix {
    let (before, after) = sides_around(shape, d);
    Matrix::from_fn(shape[d], before * after, |i, m| x[((m / after) * shape[d] + i) * after + m % after])
}

/// The sums of a pass, sample by sample.
fn plain(model: &Mixture, x: &[f64], weights: &[f64], update: Update) -> EmSums {
    let mut sums = EmSums::zero(model, update);
    let (shape, rank, size) = (model.shape(), model.rank(), model.sample_len());
    for (n, (x, &weight)) in x.chunks_exact(size).zip(weights).enumerate() {
        let mut joint = Vec::new();
        let mut found = Vec::new();
        for (component, pi) in model.components().iter().zip(model.weights()) {
            let centred: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
            let y = project(&centred, shape, component.loadings(), None);
            let (s, noise) = (component.core_variances(), component.noise_variance());
            let q: Vec<f64> = y.iter().zip(&s).map(|(y, s)| y / (s + noise)).collect();
            let distance: f64 = centred.iter().map(|c| c * c).sum();
            let explained: f64 = y.iter().zip(&q).map(|(y, q)| y * q).sum();
            let log_determinant: f64 =
                s.iter().map(|s| (s + noise).ln()).sum::<f64>() + (size - s.len()) as f64 * noise.ln();
            let two_pi = size as f64 * (2.0 * std::f64::consts::PI).ln();
            let delta = (distance - explained) / noise;
            let (density, u, log_u) = match component.degrees_of_freedom() {
                None => (-0.5 * (two_pi + log_determinant + delta), 1.0, 0.0),
                Some(nu) => {
                    let halves = [nu as usize + size, nu as usize].map(log_gamma_of_half);
                    let scale = size as f64 * (nu * std::f64::consts::PI).ln() + log_determinant;
                    let power = 0.5 * (nu + size as f64);
                    let density = halves[0] - halves[1] - 0.5 * scale - power * (1.0 + delta / nu).ln();
                    let digamma = digamma_of_half(nu as usize + size);
                    (density, 2.0 * power / (nu + delta), digamma - (0.5 * (nu + delta)).ln())
                }
            };
            joint.push(pi.ln() + density);
            let rebuilt = component.reconstruct(&q);
            let error: f64 = x.iter().zip(&rebuilt).map(|(x, r)| (x - r) * (x - r)).sum();
            let v: Vec<f64> = s.iter().map(|s| noise / (s + noise)).collect();
            found.push((centred, q, v, distance, error, u, log_u));
        }
        let best = (0..joint.len()).fold(0, |best, k| if joint[k] > joint[best] { k } else { best });
        let likelihood = joint[best] + joint.iter().map(|j| (j - joint[best]).exp()).sum::<f64>().ln();
        sums.n_samples += 1;
        sums.weight += weight;
        sums.log_likelihood += weight * likelihood;
        sums.log_likelihood_squares += weight * likelihood * likelihood;
        sums.squared_error += weight * found[best].4;
        sums.note_likelihood(likelihood, n);
        sums.components[best].assigned += 1;
        for (k, (centred, q, v, distance, _, u, log_u)) in found.iter().enumerate() {
            let (component, to) = (&model.components()[k], &mut sums.components[k]);
            let gamma = (joint[k] - likelihood).exp();
            sums.entropy -= if gamma > 0.0 { weight * gamma * gamma.ln() } else { 0.0 };
            let gamma = weight * gamma;
            let a = gamma * u;
            to.weight += gamma;
            to.scale += a;
            to.log_scale += gamma * log_u;
            to.squares += a * distance;
            to.shift.iter_mut().zip(centred).for_each(|(t, c)| *t += a * c);
            to.core.iter_mut().zip(q).for_each(|(t, q)| *t += a * q);
            match (&mut to.loadings, update) {
                (LoadingSums::All { cross, gram }, _) => {
                    let (x, b) =
                        (Matrix::from_vec(size, 1, centred.clone()), Matrix::from_vec(q.len(), 1, q.clone()));
                    cross.add_scaled(a, &b.times_transpose(&x));
                    gram.add_scaled(a, &b.times_transpose(&b));
                    v.iter().enumerate().for_each(|(j, v)| gram[(j, j)] += gamma * v);
                }
                (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(mode)) => {
                    let partly: Vec<usize> =
                        (0..shape.len()).map(|e| if e == mode { shape[e] } else { rank[e] }).collect();
                    let z = unfold(&project(centred, shape, component.loadings(), Some(mode)), &partly, mode);
                    let (q, v) = (unfold(q, rank, mode), unfold(v, rank, mode));
                    let w = component.other_variances(mode);
                    let qw = Matrix::from_fn(q.rows(), q.cols(), |i, m| q[(i, m)] * w[m]);
                    cross.add_scaled(a, &z.times_transpose(&q));
                    weighted_gram.add_scaled(a, &qw.times_transpose(&q));
                    gram.add_scaled(a, &q.times_transpose(&q));
                    for i in 0..v.rows() {
                        weighted_gram[(i, i)] += gamma * (0..v.cols()).map(|m| v[(i, m)] * w[m]).sum::<f64>();
                        gram[(i, i)] += gamma * v.row(i).iter().sum::<f64>();
                    }
                }
                _ => panic!("sums of one mode"),
            }
        }
    }
    sums
}

/// Everything a pass can update for samples of this order.
fn updates(order: usize) -> Vec<Update> {
    let modes = (0..order).filter(|_| order > 1).map(Update::Mode);
    std::iter::once(Update::All).chain(modes).collect()
}

fn pass(model: &Mixture, update: Update, precision: Precision) -> EmPass {
    EmPass { model: model.clone(), update, precision, stage: Stage::ALL }
}

/// The plain instruction set runs in double precision only.
fn precisions(on: Instructions, single: f64, double: f64) -> Vec<(Precision, f64)> {
    let mut all = vec![(Precision::Double, double)];
    if on != Instructions::Portable {
        all.push((Precision::Single, single));
    }
    all
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tol: f64, what: &str) {
    let scale = expected.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= tol * scale, "{what}: {a} instead of {b}");
    }
}

#[track_caller]
fn assert_same(found: &EmSums, expected: &EmSums, tol: f64, what: &str) {
    assert_eq!((found.n_samples, found.weight), (expected.n_samples, expected.weight));
    assert_close(&[found.log_likelihood], &[expected.log_likelihood], tol, what);
    assert_close(&[found.log_likelihood_squares], &[expected.log_likelihood_squares], tol, what);
    assert_close(&[found.entropy], &[expected.entropy], tol, what);
    assert_close(&[found.squared_error], &[expected.squared_error], tol, what);
    for (a, b) in found.components.iter().zip(&expected.components) {
        assert_close(&[a.weight], &[b.weight], tol, what);
        assert_close(&[a.scale], &[b.scale], tol, what);
        assert_close(&[a.log_scale], &[b.log_scale], tol, what);
        assert_close(&[a.squares], &[b.squares], tol, what);
        assert_close(&a.shift, &b.shift, tol, what);
        assert_close(&a.core, &b.core, tol, what);
        for (a, b) in a.loadings.matrices().into_iter().zip(b.loadings.matrices()) {
            assert_close(a.as_slice(), b.as_slice(), tol, what);
        }
    }
}

/// Orders 1 to 4; ranks 1 to 9, so that every width of a tile and every remainder is met; sides that fit no vector.
const CASES: [(&[usize], &[usize]); 14] = [
    (&[1], &[1]),
    (&[7], &[3]),
    (&[37], &[9]),
    (&[9, 5], &[7, 1]),
    (&[4, 11], &[2, 9]),
    (&[13, 13], &[5, 6]),
    (&[8, 8], &[8, 8]),
    (&[3, 4, 5], &[3, 1, 4]),
    (&[9, 2, 7], &[8, 2, 5]),
    (&[1, 6, 1], &[1, 6, 1]),
    (&[2, 3, 4, 3], &[1, 2, 3, 2]),
    (&[9, 1, 2, 3], &[9, 1, 1, 2]),
    // More rows than the scatter keeps a number per lane for: vectors as they lie, and contracted ones.
    (&[70], &[3]),
    (&[9, 70], &[1, 8]),
];

#[test]
fn every_instruction_set_computes_the_sums() {
    for (shape, rank, tails) in CASES.iter().flat_map(|&(s, r)| [(s, r, false), (s, r, true)]) {
        let model = mixture(shape, rank);
        let model = if tails { with_tails(&model) } else { model };
        // Not a multiple of any number of lanes.
        let n = 45;
        let x: Vec<f32> = (0..n * model.sample_len()).map(|i| (2.0 * number(3 * i + 5)) as f32).collect();
        let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let weights: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let samples = Samples::from_slice(shape, &x).unwrap().with_weights(weights.clone()).unwrap();
        for update in updates(shape.len()) {
            let expected = plain(&model, &wide, &weights, update);
            for on in Instructions::available() {
                for (precision, tol) in precisions(on, 1e-5, 1e-12) {
                    let what = format!("{on} {precision} {shape:?} {rank:?} {update:?}");
                    for way in [Way::SamplesAbreast, Way::ComponentsAbreast] {
                        let what = format!("{way:?} {what}");
                        let found = em_by(&pass(&model, update, precision), &samples, on, way).unwrap();
                        assert_same(&found, &expected, tol, &what);
                        if precision == Precision::Double {
                            let assigned = |s: &EmSums| s.components[0].assigned;
                            assert_eq!(assigned(&found), assigned(&expected), "{what}");
                            let places = |s: &EmSums| s.worst.iter().map(|w| w.1).collect::<Vec<_>>();
                            assert_eq!(places(&found), places(&expected), "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_instruction_set_computes_the_scatter() {
    for (shape, rank) in CASES {
        let size: usize = shape.iter().product();
        let x: Vec<f64> = (0..45 * size).map(|i| number(5 * i + 2)).collect();
        let mean: Vec<f64> = (0..size).map(|i| 0.1 * number(i)).collect();
        let loadings: Vec<Matrix> = shape
            .iter()
            .zip(rank)
            .map(|(&p, &r)| Matrix::from_fn(p, r, |i, j| number(i * 7 + j * 13)))
            .collect();
        // Every other mode is kept whole.
        let given: Vec<Option<Matrix>> =
            loadings.iter().enumerate().map(|(d, u)| (d % 2 == 0).then(|| u.clone())).collect();
        let whole: Vec<Matrix> = given
            .iter()
            .zip(shape)
            .map(|(u, &p)| u.clone().unwrap_or_else(|| Matrix::identity(p, p)))
            .collect();
        let centred: Vec<Vec<f64>> =
            x.chunks_exact(size).map(|x| x.iter().zip(&mean).map(|(x, m)| x - m).collect()).collect();
        let squares: f64 = centred.iter().flatten().map(|x| x * x).sum();
        // The scatters of all modes, and that of the cores.
        let mut expected: Vec<Matrix> = shape.iter().map(|&p| Matrix::zeros(p, p)).collect();
        let cores: usize = whole.iter().map(Matrix::cols).product();
        let mut of_cores = Matrix::zeros(cores, cores);
        for x in &centred {
            for (mode, expected) in expected.iter_mut().enumerate() {
                let partly: Vec<usize> =
                    (0..shape.len()).map(|e| if e == mode { shape[e] } else { whole[e].cols() }).collect();
                let z = unfold(&project(x, shape, &whole, Some(mode)), &partly, mode);
                expected.add_scaled(1.0, &z.times_transpose(&z));
            }
            let y = Matrix::from_vec(cores, 1, project(x, shape, &whole, None));
            of_cores.add_scaled(1.0, &y.times_transpose(&y));
        }
        let samples = Samples::from_slice(shape, &x).unwrap();
        let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let narrow = Samples::from_slice(shape, &narrow).unwrap();
        let all: Vec<usize> = (0..shape.len()).collect();
        let each = all.iter().map(|&mode| (vec![mode], vec![&expected[mode]]));
        let together = [(all.clone(), expected.iter().collect()), (vec![], vec![&of_cores])];
        for (modes, expected) in each.chain(together) {
            for on in Instructions::available() {
                for (samples, tol) in [(&samples, 1e-12), (&narrow, 1e-5)] {
                    let what = format!("{on} {shape:?} {rank:?} modes {modes:?}");
                    let pass =
                        ScatterPass { mean: mean.clone(), loadings: given.clone(), modes: modes.clone() };
                    let found = scatter(&pass, samples, on).unwrap();
                    assert_eq!(found.scatters.len(), expected.len(), "{what}");
                    for (found, expected) in found.scatters.iter().zip(&expected) {
                        assert_close(found.as_slice(), expected.as_slice(), tol, &what);
                    }
                    assert_close(&[found.squares], &[squares], tol, &what);
                }
            }
        }
    }
}

/// Whatever block a sample is in, and wherever in it, its densities have the same bits: parts of a set may be cut anywhere.
#[test]
fn a_sample_does_not_depend_on_its_neighbours() {
    for (shape, rank, k) in [(vec![7, 9], vec![3, 4], 9), (vec![40], vec![5], 7), (vec![7, 9], vec![3, 4], 1)]
    {
        let size: usize = shape.iter().product();
        let component = |k: usize| {
            let mean = (0..size).map(|i| number(i + 1000 * k)).collect();
            let loading = |d: usize, p: usize, r: usize| {
                Matrix::from_fn(p, r, |i, j| number(17 * i + 101 * j + 7 * d + k))
            };
            let sides = shape.iter().zip(&rank).enumerate();
            let loadings = sides.map(|(d, (&p, &r))| loading(d, p, r)).collect();
            Component::new(&shape, mean, loadings, 0.5).unwrap()
        };
        let model = Mixture::new(&shape, vec![1.0; k], (0..k).map(component).collect()).unwrap();
        let x: Vec<f32> = (0..40 * size).map(|i| (2.0 * number(3 * i + 5)) as f32).collect();
        let densities = |x: &[f32]| {
            let samples = Samples::from_slice(&shape, x).unwrap();
            model.log_densities(&samples as &dyn Engine).unwrap()
        };
        let together = densities(&x);
        for n in 0..40 {
            assert_eq!(
                densities(&x[n * size..(n + 1) * size]),
                together[n * k..(n + 1) * k],
                "{shape:?} {k} {n}"
            );
        }
    }
}

/// Many components, more or less far apart: most are hopeless for most samples, and skipping them changes nothing.
#[test]
fn skipped_components_would_not_have_mattered() {
    let (n, k) = (700, 60);
    for (shape, rank) in [(vec![12, 10], vec![2, 3]), (vec![120], vec![5]), (vec![6, 5, 4], vec![2, 1, 2])] {
        for (apart, share, tails) in [(2.0, 0.5, false), (0.2, 1.0, false), (2.0, 0.7, true)] {
            let size: usize = shape.iter().product();
            let component = |k: usize| {
                let mean = (0..size).map(|i| apart * number(i + 1000 * k)).collect();
                let loading = |d: usize, p: usize, r: usize| {
                    Matrix::from_fn(p, r, |i, j| 0.3 * number(17 * i + 101 * j + 7 * d + k))
                };
                let sides = shape.iter().zip(&rank).enumerate();
                let loadings = sides.map(|(d, (&p, &r))| loading(d, p, r)).collect();
                Component::new(&shape, mean, loadings, 0.01 + 0.001 * k as f64).unwrap()
            };
            let model = Mixture::new(&shape, vec![1.0; k], (0..k).map(component).collect()).unwrap();
            let model = if tails { with_tails(&model) } else { model };
            let x: Vec<f32> = model.sample(n, 3).samples.iter().map(|&x| x as f32).collect();
            let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let samples = Samples::from_slice(&shape, &x).unwrap();
            for update in updates(shape.len()) {
                let expected = plain(&model, &wide, &vec![1.0; n], update);
                for on in Instructions::available() {
                    // The noise is so small beside the means that a fit would choose double precision by itself.
                    for (precision, tol) in precisions(on, 1e-4, 1e-11) {
                        let what = format!("{on} {precision} {shape:?} {apart} {update:?}");
                        let pass = pass(&model, update, precision);
                        let found = em(&pass, &samples, on).unwrap();
                        assert_same(&found, &expected, tol, &what);
                        let evaluated = found.evaluated as f64 / (n * k) as f64;
                        assert!(evaluated > 0.0 && evaluated <= share, "{what}: {evaluated}");
                        let all = em_by(&pass, &samples, on, Way::AllDensities).unwrap();
                        assert_eq!(all.evaluated, (n * k) as u64);
                        assert_same(
                            &found,
                            &all,
                            if precision == Precision::Double { 1e-12 } else { tol },
                            &what,
                        );
                    }
                }
            }
        }
    }
}
