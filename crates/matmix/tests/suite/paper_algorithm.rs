//! `algorithm = paper` against an independent naive implementation of Algorithm 1: explicit inverses, Kronecker
//! matrices and P×P Gaussians written out.

use crate::dense::Rows;
use matmix::{Algorithm, Component, FitOptions, Matrix, Mixture, Samples, Start, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

fn times(a: &Rows, b: &Rows) -> Rows {
    (0..a.len())
        .map(|i| (0..b[0].len()).map(|j| (0..b.len()).map(|l| a[i][l] * b[l][j]).sum()).collect())
        .collect()
}

fn transpose(a: &Rows) -> Rows {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn combine(a: &Rows, b: &Rows, f: impl Fn(f64, f64) -> f64) -> Rows {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect()).collect()
}

fn trace(a: &Rows) -> f64 {
    (0..a.len()).map(|i| a[i][i]).sum()
}

fn identity(n: usize) -> Rows {
    (0..n).map(|i| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect()
}

fn inverse(a: &Rows) -> Rows {
    let l = crate::dense::cholesky(a);
    transpose(&identity(a.len()).iter().map(|e| crate::dense::solve(&l, e)).collect())
}

fn kronecker(a: &Rows, b: &Rows) -> Rows {
    let (n, m) = (a.len() * b.len(), a[0].len() * b[0].len());
    (0..n)
        .map(|i| (0..m).map(|j| a[i / b.len()][j / b[0].len()] * b[i % b.len()][j % b[0].len()]).collect())
        .collect()
}

/// vec: column after column, as in the paper.
fn vec_of(a: &Rows) -> Vec<f64> {
    transpose(a).concat()
}

fn unvec(v: &[f64], rows: usize) -> Rows {
    transpose(&v.chunks(rows).map(<[f64]>::to_vec).collect())
}

#[derive(Clone)]
struct Naive {
    weight: f64,
    m: Rows,
    l: Rows,
    r: Rows,
    s: Rows,
    noise: f64,
}

fn iterate(x: &[Rows], parts: &mut [Naive]) {
    let n = x.len();
    let (p, q) = (x[0].len(), x[0][0].len());
    let mut gamma = vec![vec![0.0; parts.len()]; n];
    let mut cores: Vec<Vec<Rows>> = Vec::new();
    let mut covariances = Vec::new();
    for part in parts.iter() {
        let (ll, rr) = (times(&transpose(&part.l), &part.l), times(&transpose(&part.r), &part.r));
        let (nr, nc) = (ll.len(), rr.len());
        let noise = part.noise;
        // (a)
        let scaled =
            |g: &Rows, by: f64, ridge: f64| combine(g, &identity(g.len()), |g, i| by * g + ridge * i);
        let times_scalar = |a: Rows, f: f64| combine(&a, &a, |x, _| f * x);
        let t = inverse(&scaled(&ll, trace(&times(&rr, &part.s)), noise * trace(&part.s)));
        let t = times_scalar(t, nc as f64 * noise);
        let s = inverse(&scaled(&rr, trace(&times(&ll, &t)), noise * trace(&t)));
        let s = times_scalar(s, nr as f64 * noise);
        // (b)
        let system = kronecker(&rr, &ll);
        let system = inverse(&combine(&system, &identity(nr * nc), |k, i| k + noise * i));
        let of = |x: &Rows| {
            let d = combine(x, &part.m, |x, m| x - m);
            let y = vec_of(&times(&times(&transpose(&part.l), &d), &part.r));
            unvec(&times(&system, &transpose(&vec![y])).concat(), nr)
        };
        cores.push(x.iter().map(of).collect());
        covariances.push((t, s));
    }
    // (c) the P×P Gaussian of vec(X) with C = RRᵀ ⊗ LLᵀ + σ² I.
    for (k, part) in parts.iter().enumerate() {
        let c = kronecker(&times(&part.r, &transpose(&part.r)), &times(&part.l, &transpose(&part.l)));
        let chol = crate::dense::cholesky(&combine(&c, &identity(p * q), |c, i| c + part.noise * i));
        let log_determinant: f64 = (0..p * q).map(|i| 2.0 * chol[i][i].ln()).sum();
        for i in 0..n {
            let d = vec_of(&combine(&x[i], &part.m, |x, m| x - m));
            let quadratic: f64 = crate::dense::solve(&chol, &d).iter().zip(&d).map(|(a, b)| a * b).sum();
            let constant = (p * q) as f64 * (2.0 * std::f64::consts::PI).ln();
            gamma[i][k] = part.weight.ln() - 0.5 * (constant + log_determinant + quadratic);
        }
    }
    for row in &mut gamma {
        let total = crate::dense::log_sum_exp(row);
        row.iter_mut().for_each(|g| *g = (*g - total).exp());
    }
    for (k, part) in parts.iter_mut().enumerate() {
        let (t, s) = &covariances[k];
        // (d)
        let total: f64 = gamma.iter().map(|g| g[k]).sum();
        let mut mean = vec![vec![0.0; q]; p];
        for i in 0..n {
            mean = combine(&mean, &x[i], |m, x| m + gamma[i][k] * x / total);
        }
        let (nr, nc) = (part.l[0].len(), part.r[0].len());
        // (e)
        let rr = times(&transpose(&part.r), &part.r);
        let (mut a, mut h) = (vec![vec![0.0; nr]; p], vec![vec![0.0; nr]; nr]);
        for i in 0..n {
            let d = combine(&x[i], &mean, |x, m| x - m);
            let b = &cores[k][i];
            a = combine(&a, &times(&times(&d, &part.r), &transpose(b)), |a, y| a + gamma[i][k] * y);
            let second =
                combine(&times(&times(b, &rr), &transpose(b)), t, |y, t| y + t * trace(&times(s, &rr)));
            h = combine(&h, &second, |h, y| h + gamma[i][k] * y);
        }
        let l = times(&a, &inverse(&h));
        // (f)
        let ll = times(&transpose(&l), &l);
        let (mut a, mut h) = (vec![vec![0.0; nc]; q], vec![vec![0.0; nc]; nc]);
        for i in 0..n {
            let d = combine(&x[i], &mean, |x, m| x - m);
            let b = &cores[k][i];
            a = combine(&a, &times(&times(&transpose(&d), &l), b), |a, y| a + gamma[i][k] * y);
            let second =
                combine(&times(&times(&transpose(b), &ll), b), s, |y, s| y + s * trace(&times(t, &ll)));
            h = combine(&h, &second, |h, y| h + gamma[i][k] * y);
        }
        let r = times(&a, &inverse(&h));
        // (g)
        let rr = times(&transpose(&r), &r);
        let mut noise = 0.0;
        for i in 0..n {
            let d = combine(&x[i], &mean, |x, m| x - m);
            let b = &cores[k][i];
            let second =
                combine(&times(&times(&transpose(b), &ll), b), s, |y, s| y + s * trace(&times(t, &ll)));
            let cross = trace(&times(&times(&times(&r, &transpose(b)), &transpose(&l)), &d));
            noise +=
                gamma[i][k] * (trace(&times(&transpose(&d), &d)) - 2.0 * cross + trace(&times(&second, &rr)));
        }
        *part = Naive {
            weight: total / n as f64,
            m: mean,
            l,
            r,
            s: s.clone(),
            noise: noise / ((p * q) as f64 * total),
        };
    }
}

fn rows(m: &Matrix) -> Rows {
    (0..m.rows()).map(|i| m.row(i).to_vec()).collect()
}

fn planted() -> (Mixture, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let shape = [5, 4];
    let mut model = |spread: f64| {
        let parts = (0..3)
            .map(|_| {
                let mean = (0..20).map(|_| spread * rng.sample::<f64, _>(StandardNormal)).collect();
                let mut loadings = |p, r| Matrix::from_fn(p, r, |_, _| rng.sample(StandardNormal));
                let loadings = vec![loadings(5, 2), loadings(4, 3)];
                Component::new(&shape, mean, loadings, 0.3).unwrap()
            })
            .collect();
        Mixture::new(&shape, vec![0.5, 0.3, 0.2], parts).unwrap()
    };
    let truth = model(1.0);
    (model(0.7), truth.sample(40, 3).samples)
}

#[test]
fn equals_the_naive_implementation_after_1_3_and_10_iterations() {
    let (start, data) = planted();
    let x: Vec<Rows> =
        data.chunks_exact(20).map(|x| x.chunks_exact(4).map(<[f64]>::to_vec).collect()).collect();
    let mut naive: Vec<Naive> = start
        .components()
        .iter()
        .zip(start.weights())
        .map(|(c, &weight)| Naive {
            weight,
            m: c.mean().chunks_exact(4).map(<[f64]>::to_vec).collect(),
            l: rows(&c.loadings()[0]),
            r: rows(&c.loadings()[1]),
            s: identity(3),
            noise: c.noise_variance(),
        })
        .collect();
    let samples = Samples::from_slice(&[5, 4], &data).unwrap();
    let mut done = 0;
    for iterations in [1, 3, 10] {
        while done < iterations {
            iterate(&x, &mut naive);
            done += 1;
        }
        let options = FitOptions {
            components: 3,
            rank: vec![2, 3],
            algorithm: Algorithm::Paper,
            start: Start::Model(Box::new(start.clone())),
            max_iter: iterations,
            tol: 0.0,
            ..FitOptions::default()
        };
        let fitted = fit(&samples, &options).unwrap();
        assert_eq!(fitted.n_iterations(), iterations);
        for (k, (part, found)) in naive.iter().zip(fitted.model.components()).enumerate() {
            let close = |a: f64, b: f64, what: &str| {
                assert!(
                    (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    "{what} {k} after {iterations}: {a} and {b}"
                );
            };
            close(fitted.model.weights()[k], part.weight, "weight");
            close(found.noise_variance(), part.noise, "noise");
            for (a, b) in found.mean().iter().zip(part.m.concat()) {
                close(*a, b, "mean");
            }
            // Rotations and scale between L and R mean nothing: RRᵀ ⊗ LLᵀ is what the model says.
            let l = times(&part.l, &transpose(&part.l));
            let r = times(&part.r, &transpose(&part.r));
            let expected = kronecker(&l, &r);
            let (fl, fr) = (rows(&found.loadings()[0]), rows(&found.loadings()[1]));
            let found = kronecker(&times(&fl, &transpose(&fl)), &times(&fr, &transpose(&fr)));
            for (a, b) in found.concat().iter().zip(expected.concat()) {
                close(*a, b, "covariance");
            }
        }
    }
}

/// The paper's start and stop: π = 1/K, σ² = 1, means among the samples; |e(t) − e(t+1)| ≤ ε.
#[test]
fn starts_and_stops_as_the_paper_says() {
    let (_, data) = planted();
    let samples = Samples::from_slice(&[5, 4], &data).unwrap();
    let mut begun = None;
    let options = FitOptions {
        components: 3,
        rank: vec![2, 2],
        algorithm: Algorithm::Paper,
        start: Start::Random,
        stop: matmix::StopRule::ReconstructionError,
        tol: 1e-3,
        max_iter: 50,
        ..FitOptions::default()
    };
    let fitted = matmix::fit_with(&samples, &options, &mut |p| {
        begun.get_or_insert_with(|| p.model.expect("a mixture").clone());
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let begun = begun.unwrap();
    let mut places = Vec::new();
    for (weight, c) in begun.weights().iter().zip(begun.components()) {
        assert!((weight - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(c.noise_variance(), 1.0);
        places.push(data.chunks_exact(20).position(|x| x == c.mean()).expect("a sample"));
    }
    places.dedup();
    assert_eq!(places.len(), 3, "distinct samples");
    let e = &fitted.history.reconstruction_error;
    let last = e.len() - 1;
    match fitted.stop() {
        matmix::StopReason::Converged => assert!((e[last] - e[last - 1]).abs() <= 1e-3 * e[last]),
        _ => assert_eq!(last, 50),
    }
    assert!(e[1..last].windows(2).all(|w| (w[1] - w[0]).abs() > 1e-3 * w[1]), "{e:?}");
}

#[test]
fn is_for_matrices_only() {
    let samples = Samples::from_vec(&[6], vec![1.0f64; 60]).unwrap();
    let options = FitOptions { algorithm: Algorithm::Paper, ..FitOptions::default() };
    let error = fit(&samples, &options).unwrap_err();
    assert_eq!(error, matmix::Error::Order { what: "the paper's algorithm", expected: 2, found: 1 });
}
