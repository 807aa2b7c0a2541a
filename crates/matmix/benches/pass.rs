//! One EM pass, the only place where time goes: `N × p×q, K, core` in the name of each benchmark.
//!
//! The data are made outside the timed part, with fixed seeds. Throughput is in useful multiply-adds: those of
//! the contractions, N·K·(P·c + p·r·c), and nothing else.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use matmix::data::Scalar;
use matmix::linalg::Matrix;
use matmix::model::Component;
use matmix::pass::{EmPass, Stage, Update};
use matmix::{Backend, Cpu, FitOptions, Mixture, Precision, Samples, Start, fit};

/// A fitted model and data near it: K random patterns and noise.
fn planted(n: usize, side: usize, k: usize, rank: usize) -> (Mixture, Vec<f32>) {
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 16_777_216.0
    };
    let patterns: Vec<Vec<f32>> = (0..k).map(|_| (0..side * side).map(|_| random()).collect()).collect();
    let mut x = Vec::with_capacity(n * side * side);
    for i in 0..n {
        x.extend(patterns[i % k].iter().map(|p| p + random()));
    }
    let few = x[..side * side * n.min(20 * k)].to_vec();
    let few = Samples::from_vec(&[side, side], few).expect("whole samples");
    let options = FitOptions {
        components: k,
        rank: vec![rank],
        start: Start::KMeans,
        max_iter: 2,
        ..FitOptions::default()
    };
    let model = fit(&few, &options).expect("a fit of planted data").model;
    (model, x)
}

fn pass(model: &Mixture, update: Update) -> EmPass {
    EmPass { model: model.clone(), update, precision: Precision::Auto, stage: Stage::ALL }
}

/// Samples × side, components and rank of each benchmark.
const SIZES: [(usize, usize, usize, usize); 5] =
    [(60_000, 28, 10, 4), (6000, 28, 10, 4), (6000, 28, 1, 4), (1000, 64, 8, 8), (32, 512, 4, 16)];

fn single(c: &mut Criterion) {
    passes(c, "em_pass_f32", &SIZES, |x| x);
}

fn double(c: &mut Criterion) {
    passes(c, "em_pass_f64", &SIZES[..1], f64::from);
}

fn passes<T: Scalar>(
    c: &mut Criterion,
    group: &str,
    sizes: &[(usize, usize, usize, usize)],
    convert: impl Fn(f32) -> T,
) {
    let mut group = c.benchmark_group(group);
    group.sample_size(20);
    for &(n, side, k, rank) in sizes {
        let (model, x) = planted(n, side, k, rank);
        let x: Vec<T> = x.into_iter().map(&convert).collect();
        let samples = Samples::from_vec(&[side, side], x).expect("whole samples");
        let useful = n * k * (side * side * rank + side * rank * rank);
        group.throughput(Throughput::Elements(useful as u64));
        let name = format!("{n} × {side}×{side}, K={k}, {rank}×{rank}");
        for (what, update) in
            [("mode 1", Update::Mode(0)), ("mode 2", Update::Mode(1)), ("all modes", Update::All)]
        {
            if side > 100 && update == Update::All {
                continue;
            }
            let pass = pass(&model, update);
            group.bench_function(BenchmarkId::new(&name, what), |b| {
                b.iter(|| Cpu::best().em(black_box(&pass), black_box(&samples)));
            });
        }
    }
    group.finish();
}

/// What skipping hopeless components is worth: samples drawn from mixtures whose components lie apart.
fn skipping(c: &mut Criterion) {
    let mut group = c.benchmark_group("skipping");
    group.sample_size(10);
    let (n, side, rank) = (8000, 28, 4);
    for k in [10, 50, 200] {
        let (model, x) = clustered(n, side, k, rank);
        let samples = Samples::from_vec(&[side, side], x).expect("whole samples");
        let pass = pass(&model, Update::Mode(0));
        let sums = Cpu::best().em(&pass, &samples).expect("a pass");
        let evaluated = sums.evaluated as f64 / n as f64;
        let name = format!("{n} × {side}×{side}, K={k}, {rank}×{rank}, {evaluated:.1} evaluated per sample");
        group.bench_function(BenchmarkId::new(&name, "skipping"), |b| {
            b.iter(|| Cpu::best().em(black_box(&pass), black_box(&samples)));
        });
        group.bench_function(BenchmarkId::new(&name, "all"), |b| {
            b.iter(|| Cpu::best().em_of_all(black_box(&pass), black_box(&samples)));
        });
    }
    group.finish();
}

/// A mixture and samples drawn from it.
fn clustered(n: usize, side: usize, k: usize, rank: usize) -> (Mixture, Vec<f32>) {
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let components = (0..k).map(|_| {
        let mean = (0..side * side).map(|_| random()).collect();
        let mut loading = || Matrix::from_fn(side, rank, |_, _| 0.4 * random());
        let loadings = vec![loading(), loading()];
        Component::new(&[side, side], mean, loadings, 0.01).expect("a component")
    });
    let components = components.collect();
    let model = Mixture::new(&[side, side], vec![1.0; k], components).expect("a mixture");
    let x = model.sample(n, 1).samples.iter().map(|&x| x as f32).collect();
    (model, x)
}

criterion_group!(benches, single, double, skipping);
criterion_main!(benches);
