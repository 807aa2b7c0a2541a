//! Missing values, Student-t noise, labels and sample weights all at once, against dense P×P matrices in double precision.
//!
//! 100 seeded problems, or as many as `MATMIX_ORACLES` says (`make soak`: 10,000). All through the public surface.

use matmix::{Classes, Component, Matrix, Missing, Mixture, Samples, Temper};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::impute::dense;

const TOLERANCE: f64 = 1e-8;

struct Problem {
    model: Mixture,
    /// The degrees of freedom of every component.
    degrees: Vec<Option<usize>>,
    x: Vec<f64>,
    labels: Vec<Option<u32>>,
    weights: Vec<f64>,
    /// The unit of the values.
    unit: f64,
}

impl Problem {
    /// Orders 1 to 3, one to four components of one to three classes, 2 to 9 samples of at most 30 cells.
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let order = rng.random_range(1..=3);
        let most = [12, 5, 3][order - 1];
        let shape: Vec<usize> = (0..order).map(|_| rng.random_range(1..=most)).collect();
        let rank: Vec<usize> = shape.iter().map(|&side| rng.random_range(1..=side)).collect();
        let k = rng.random_range(1..=4);
        let unit = 10f64.powi(rng.random_range(-3..=3));
        let is_t = rng.random_bool(0.6);
        let degrees: Vec<_> = (0..k).map(|_| is_t.then(|| rng.random_range(1..=30))).collect();
        let size: usize = shape.iter().product();
        let components = degrees.iter().map(|degrees| {
            let mean = (0..size).map(|_| unit * rng.sample::<f64, _>(StandardNormal)).collect();
            let mut scale = unit;
            let loadings = shape.iter().zip(&rank).map(|(&p, &r)| {
                let u = Matrix::from_fn(p, r, |_, _| scale * rng.sample::<f64, _>(StandardNormal));
                scale = 1.0;
                u
            });
            let loadings = loadings.collect();
            let noise = unit * unit * 10f64.powf(rng.random_range(-2.0..1.0));
            let component = Component::new(&shape, mean, loadings, noise).unwrap();
            component.with_degrees_of_freedom(degrees.map(|degrees| degrees as f64)).unwrap()
        });
        let components: Vec<_> = components.collect();
        let shares = (0..k).map(|_| rng.random_range(0.05..1.0)).collect();
        let n_classes = rng.random_range(1..=k.min(3));
        // Every class has a component; the others are of any class.
        let of_class =
            (0..k).map(|k| if k < n_classes { k } else { rng.random_range(0..n_classes) }).collect();
        let names = (0..n_classes).map(|class| format!("class {class}")).collect();
        let classes = Classes::new(names, of_class).unwrap();
        let model = Mixture::new(&shape, shares, components).unwrap().with_classes(Some(classes)).unwrap();
        let n = rng.random_range(2..=9);
        let mut x = model.sample(n, seed).samples;
        let missing = [0.0, 0.1, 0.5, 0.9][rng.random_range(0..4)];
        x.iter_mut().filter(|_| rng.random_bool(missing)).for_each(|x| *x = f64::NAN);
        if rng.random_bool(0.2) {
            x[..size].fill(f64::NAN);
        }
        let labels =
            (0..n).map(|_| rng.random_bool(0.5).then(|| rng.random_range(0..n_classes as u32))).collect();
        let mut weights: Vec<f64> = (0..n).map(|_| rng.random_range(0.1..5.0)).collect();
        // A weight of 0 is a sample that does not count.
        weights[n - 1] = if rng.random_bool(0.3) { 0.0 } else { weights[n - 1] };
        Self { model, degrees, x, labels, weights, unit }
    }

    fn check(&self, seed: u64) {
        let Self { model, x, labels, weights, .. } = self;
        let (k, size) = (model.n_components(), model.sample_len());
        let close = |found: f64, expected: f64, unit: f64, what: &str| {
            let is_same =
                found == expected || (found - expected).abs() <= TOLERANCE * expected.abs().max(unit);
            assert!(is_same, "problem {seed}: {what} is {found} instead of {expected}");
        };
        let plain = Samples::from_slice(model.shape(), x).unwrap().with_missing(Missing::Nan);
        let plain = plain.with_weights(weights.clone()).unwrap();
        let labeled = plain.clone().with_classes(labels.clone()).unwrap();
        let scores = [model.score_samples(&plain).unwrap(), model.score_samples(&labeled).unwrap()];
        let gammas = [model.responsibilities(&plain).unwrap(), model.responsibilities(&labeled).unwrap()];
        let classes = model.class_probabilities(&labeled).unwrap();
        let filled = model.impute_by(&plain, Temper::None).unwrap();
        let of_class = model.classes().unwrap();
        let mut sums = [0.0; 2];
        for (n, x) in x.chunks_exact(size).enumerate() {
            let components = model.components().iter().zip(&self.degrees);
            let known: Vec<_> =
                components.map(|(component, &degrees)| dense(component, degrees, x)).collect();
            let is_empty = x.iter().all(|x| x.is_nan());
            for (at, label) in [None, labels[n]].into_iter().enumerate() {
                let joint: Vec<f64> = (0..k)
                    .map(|j| match label {
                        Some(label) if of_class.components()[j] != label as usize => f64::NEG_INFINITY,
                        _ => model.weights()[j].ln() + known[j].0,
                    })
                    .collect();
                let likelihood = crate::dense::log_sum_exp(&joint);
                // The log-likelihood of a sample without a cell and a label is ln 1.
                let expected = if is_empty && label.is_none() { 0.0 } else { likelihood };
                close(scores[at][n], expected, 1.0, "ln p");
                sums[at] += weights[n] * expected;
                let gamma: Vec<f64> = joint.iter().map(|joint| (joint - likelihood).exp()).collect();
                (0..k).for_each(|j| close(gammas[at][n * k + j], gamma[j], 1.0, "γ"));
                if at == 1 {
                    for class in 0..of_class.len() {
                        let members = (0..k).filter(|&j| of_class.components()[j] == class);
                        let expected = members.map(|j| gamma[j]).sum();
                        close(classes[n * of_class.len() + class], expected, 1.0, "p(class|x)");
                    }
                    continue;
                }
                close(filled.log_likelihood[n], expected, 1.0, "ln p of an imputed sample");
                let observed = x.iter().filter(|x| !x.is_nan()).count();
                let missing = (0..size).filter(|&i| x[i].is_nan());
                for (cell, i) in missing.enumerate() {
                    let mean: f64 = (0..k).map(|j| gamma[j] * known[j].1[cell]).sum();
                    let within = |j: usize| match self.degrees[j] {
                        Some(degrees) if degrees + observed <= 2 => f64::INFINITY,
                        _ => known[j].2[cell],
                    };
                    let variance: f64 = (0..k)
                        .filter(|&j| gamma[j] > 0.0)
                        .map(|j| gamma[j] * (within(j) + (known[j].1[cell] - mean).powi(2)))
                        .sum();
                    let (found, deviation) = (filled.values[n * size + i], filled.deviations[n * size + i]);
                    close(found, mean, self.unit, "the mean of a missing cell");
                    close(deviation.powi(2), variance, self.unit.powi(2), "the variance of a missing cell");
                }
            }
        }
        let total: f64 = weights.iter().sum();
        close(model.score(&plain).unwrap(), sums[0] / total, 1.0, "the weighted mean of ln p");
        close(model.score(&labeled).unwrap(), sums[1] / total, 1.0, "the weighted mean of ln p(x, label)");
    }
}

#[test]
fn everything_at_once_equals_dense_matrices() {
    let problems = std::env::var("MATMIX_ORACLES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    (0..problems).for_each(|seed| Problem::new(seed).check(seed));
}
