//! Scores that rank samples with missing cells: not by how many are missing, nor by the unit of the values.

use matmix::{Component, FitOptions, Matrix, Missing, Mixture, Samples, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Values with cells missing at random, a fraction below `most` of each sample; and those fractions.
fn masked(values: &[f64], size: usize, most: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut out, mut fractions) = (Vec::new(), Vec::new());
    for sample in values.chunks_exact(size) {
        let fraction = most * rng.random::<f64>();
        fractions.push(fraction);
        out.extend(sample.iter().map(|&x| if rng.random::<f64>() < fraction { f64::NAN } else { x }));
    }
    (out, fractions)
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let product = |f: &dyn Fn(usize) -> f64| (0..a.len()).map(f).sum::<f64>();
    let covariance = product(&|i| (a[i] - ma) * (b[i] - mb));
    covariance / (product(&|i| (a[i] - ma).powi(2)) * product(&|i| (b[i] - mb).powi(2))).sqrt()
}

fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    order
}

fn samples(shape: &[usize], values: Vec<f64>) -> Samples<'static> {
    Samples::from_vec(shape, values).unwrap().with_missing(Missing::Nan)
}

/// The model is far from right: the cells of digits are not of one variance around a few directions.
#[test]
fn scores_of_digits_do_not_follow_the_fraction_missing() {
    let digits = matmix::data::digits().samples.scaled(1.0 / 255.0).unwrap();
    let values = digits.to_f64(0..500).unwrap();
    let (values, fractions) = masked(&values, 784, 0.5, 5);
    for (shape, components, rank) in
        [(&[28, 28][..], 1, vec![4, 4]), (&[28, 28], 3, vec![4, 4]), (&[784], 3, vec![16])]
    {
        let samples = samples(shape, values.clone());
        let options = FitOptions { components, rank, max_iter: 30, ..FitOptions::default() };
        let model = fit(&samples, &options).unwrap().model;
        let scores = correlation(&model.typicality(&samples).unwrap(), &fractions);
        let likelihoods = correlation(&model.score_samples(&samples).unwrap(), &fractions);
        println!("{shape:?}, K = {components}: {scores:.3}, ln p {likelihoods:.3}");
        assert!(scores.abs() < 0.1 && likelihoods.abs() > scores.abs() + 0.05, "{scores} {likelihoods}");
    }
}

fn planted(unit: f64) -> (Mixture, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut normal = |count: usize| -> Vec<f64> {
        (0..count).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f64>>()
    };
    let components = (0..2).map(|_| {
        let loadings = Matrix::from_vec(60, 3, normal(180).iter().map(|x| unit * x).collect());
        let mean = normal(60).iter().map(|x| 2.0 * unit * x).collect();
        Component::new(&[60], mean, vec![loadings], 0.01 * unit * unit).unwrap()
    });
    let model = Mixture::new(&[60], vec![0.4, 0.6], components.collect()).unwrap();
    let drawn = model.sample(400, 7);
    (model, drawn.samples)
}

/// The model is right, and its cells depend on one another: a mean of ln p per cell would rank by the cells alone.
#[test]
fn scores_of_samples_of_the_model_do_not_follow_the_fraction_missing() {
    let (model, values) = planted(1.0);
    let (values, fractions) = masked(&values, 60, 0.9, 1);
    let samples = samples(&[60], values.clone());
    let scores = model.typicality(&samples).unwrap();
    let found = correlation(&scores, &fractions);
    let observed = values.chunks_exact(60).map(|x| x.iter().filter(|x| !x.is_nan()).count() as f64);
    let likelihoods = model.score_samples(&samples).unwrap();
    let per_cell: Vec<f64> = likelihoods.iter().zip(observed).map(|(x, o)| x / o).collect();
    let per_cell = correlation(&per_cell, &fractions);
    println!("{found:.3}, per cell {per_cell:.3}");
    assert!(found.abs() < 0.2 && per_cell.abs() > 0.5, "{found} {per_cell}");
}

#[test]
fn the_unit_does_not_change_the_ranking() {
    let (model, values) = planted(1.0);
    let (values, _) = masked(&values, 60, 0.6, 2);
    let ranking =
        |model: &Mixture, values: Vec<f64>| order(&model.typicality(&samples(&[60], values)).unwrap());
    let expected = ranking(&model, values.clone());
    let mut by_likelihood = Vec::new();
    for unit in [2f64.powi(-20), 1e-6, 2f64.powi(10), 1e6] {
        let scaled: Vec<f64> = values.iter().map(|x| unit * x).collect();
        let (model, _) = planted(unit);
        assert_eq!(ranking(&model, scaled.clone()), expected, "{unit}");
        by_likelihood.push(order(&model.score_samples(&samples(&[60], scaled)).unwrap()));
    }
    // By ln p the samples with the fewest cells come first in one unit and last in another.
    assert_ne!(by_likelihood[1], by_likelihood[3]);
}

#[test]
fn complete_samples_keep_their_likelihood_and_nothing_observed_is_typical() {
    let (model, mut values) = planted(1.0);
    let complete = samples(&[60], values.clone());
    assert_eq!(model.typicality(&complete).unwrap(), model.score_samples(&complete).unwrap());
    values[..60].fill(f64::NAN);
    let scores = model.typicality(&samples(&[60], values)).unwrap();
    let below = scores.iter().filter(|&&score| score < scores[0]).count();
    assert!((100..300).contains(&below), "{below}");
}
