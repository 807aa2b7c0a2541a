//! Models whose parameters are known and data drawn from them, for the tests of the whole.
use matmix::{Component, Matrix, Mixture, Samples};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Standard normal numbers.
pub(crate) fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.sample(StandardNormal)).collect()
}

/// What a planted mixture looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// The standard deviation of the entries of the means around `offset`.
    pub(crate) spread: f64,
    /// Added to every entry of every mean.
    pub(crate) offset: f64,
    /// The standard deviation of the entries of the loadings of the first mode; 1 in the others.
    pub(crate) signal: f64,
    /// σ² of the first component; each next one has half as much again.
    pub(crate) noise: f64,
}

impl Default for Look {
    fn default() -> Self {
        Self { spread: 2.0, offset: 0.0, signal: 1.0, noise: 0.25 }
    }
}

/// A mixture with standard normal loadings, means a few units apart and weights between 1 : 1 and 1 : 2.
pub(crate) fn random_mixture(seed: u64, shape: &[usize], rank: &[usize], k: usize) -> Mixture {
    planted_mixture(seed, shape, rank, k, Look::default())
}

/// A mixture that looks as asked.
pub(crate) fn planted_mixture(seed: u64, shape: &[usize], rank: &[usize], k: usize, look: Look) -> Mixture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || -> f64 { rng.sample(StandardNormal) };
    let size = shape.iter().product();
    let mut components = Vec::new();
    for j in 0..k {
        let mean = (0..size).map(|_| look.offset + look.spread * normal()).collect();
        let loadings = shape
            .iter()
            .zip(rank)
            .enumerate()
            .map(|(d, (&p, &r))| {
                let scale = if d == 0 { look.signal } else { 1.0 };
                Matrix::from_fn(p, r, |_, _| scale * normal())
            })
            .collect();
        let noise = look.noise * (1.0 + 0.5 * j as f64);
        components.push(Component::new(shape, mean, loadings, noise).unwrap());
    }
    let weights = (0..k).map(|j| 1.0 + j as f64 / k as f64).collect();
    Mixture::new(shape, weights, components).unwrap()
}

/// Vectors of 60 around four centres far apart: 600 around each of three, `few` around the last.
pub(crate) fn grouped_vectors(few: usize) -> Samples<'static> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut normal = || -> f64 { rng.sample(StandardNormal) };
    let directions: Vec<f64> = (0..4 * 3 * 60).map(|_| normal()).collect();
    let mut x = Vec::new();
    for n in 0..1800 + few {
        let group = if n < 1800 { n % 3 } else { 3 };
        let core = [3.0 * normal(), 2.0 * normal(), normal()];
        for i in 0..60 {
            let along = |t: usize| core[t] * directions[(group * 3 + t) * 60 + i];
            x.push(40.0 * group as f64 + (0..3).map(along).sum::<f64>() + 0.3 * normal());
        }
    }
    Samples::from_vec(&[60], x).unwrap()
}

/// `n` samples drawn from `model`, in double precision.
pub(crate) fn drawn(model: &Mixture, n: usize, seed: u64) -> Samples<'static> {
    Samples::from_vec(model.shape(), model.sample(n, seed).samples).unwrap()
}

/// The same samples rounded to single precision.
pub(crate) fn drawn_f32(model: &Mixture, n: usize, seed: u64) -> Samples<'static> {
    let elements = model.sample(n, seed).samples.iter().map(|&x| x as f32).collect();
    Samples::from_vec::<f32>(model.shape(), elements).unwrap()
}

/// All samples of a set in double precision.
pub(crate) fn numbers(samples: &Samples<'_>) -> Vec<f64> {
    samples.to_f64(0..samples.len()).unwrap()
}

/// |a − b| ≤ tol · max(1, |b|) for every pair; the first that differs is named.
#[track_caller]
pub(crate) fn assert_close(found: &[f64], expected: &[f64], tol: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: lengths differ");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tol * b.abs().max(1.0), "{what}: {a} instead of {b} at {i}");
    }
}

/// One pass of EM over samples of this process that updates one mode, or every mode of vectors.
pub(crate) fn statistics(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: matmix::Precision,
) -> matmix::Result<matmix::pass::EmSums> {
    use matmix::pass::{EmPass, Stage, Update};
    let update = if model.shape().len() == 1 { Update::All } else { Update::Mode(mode) };
    let pass = EmPass { model: model.clone(), update, precision, stage: Stage::ALL };
    (samples as &dyn matmix::Engine).sums(&pass)
}
