//! One EM pass, and a whole fit, on the GPU and on the processor of the same machine. `make bench-cuda` runs it beside PyTorch.

use std::time::Instant;

use matmix::cuda::Cuda;
use matmix::pass::{EmPass, Stage, Update};
use matmix::{
    Backend, Component, Cpu, Engine, FitOptions, Matrix, Mixture, Precision, Samples, Search, fit_on,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Samples that are drawn; larger sets repeat them.
const DRAWN: usize = 4000;

fn planted(side: usize, rank: usize, k: usize) -> Mixture {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    let components = (0..k).map(|_| {
        let mean = (0..side * side).map(|_| 0.3 * normal()).collect();
        let mut loadings = || Matrix::from_fn(side, rank, |_, _| normal() / (side as f64).sqrt());
        let loadings = vec![loadings(), loadings()];
        Component::new(&[side, side], mean, loadings, 0.05).expect("a component")
    });
    let components = components.collect();
    Mixture::new(&[side, side], vec![1.0; k], components).expect("a mixture")
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn timed<R>(repeats: usize, mut work: impl FnMut() -> R) -> f64 {
    let mut once = || {
        let begin = Instant::now();
        let _ = work();
        begin.elapsed().as_secs_f64()
    };
    once();
    median((0..repeats).map(|_| once()).collect())
}

fn set(model: &Mixture, n: usize) -> Vec<f32> {
    let drawn: Vec<f32> = model.sample(DRAWN.min(n), 2).samples.iter().map(|&x| x as f32).collect();
    drawn.iter().copied().cycle().take(n * model.sample_len()).collect()
}

fn main() {
    let gpu = match Cuda::new(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("left out: {error}");
            return;
        }
    };
    println!("{}", gpu.name());
    for (n, side, rank, k) in [(60_000, 28, 4, 10), (200_000, 64, 8, 10), (60_000, 28, 4, 200)] {
        let model = planted(side, rank, k);
        let samples = Samples::from_vec(&[side, side], set(&model, n)).expect("samples");
        let begin = Instant::now();
        let engine = gpu.over(&samples).expect("room");
        let upload = begin.elapsed().as_secs_f64();
        let pass = EmPass { model, update: Update::All, precision: Precision::Single, stage: Stage::ALL };
        let there = timed(20, || engine.sums(&pass).expect("sums"));
        let gpu_ms = gpu.last_pass_ms();
        let here: &dyn Engine = &samples;
        let here = timed(3, || here.sums(&pass).expect("sums"));
        println!(
            "pass {n} x {side}x{side} K={k} {rank}x{rank}: {:.3} ms on the device, {:.3} ms with host work; processor ({}) {:.1} ms, {:.0} times; upload {:.0} ms",
            gpu_ms,
            1e3 * there,
            Cpu::best().name(),
            1e3 * here,
            here / there,
            1e3 * upload
        );
    }
    let model = planted(28, 4, 10);
    let drawn = model.sample(60_000, 3).samples.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let samples = Samples::from_vec(&[28, 28], drawn).expect("samples");
    let options = FitOptions { components: 10, rank: vec![4, 4], ..FitOptions::default() };
    let engine = gpu.over(&samples).expect("room");
    for (start, search) in [("from k-means", Search::None), ("after a search", Search::Auto)] {
        let options = FitOptions { search, ..options.clone() };
        let fit = |engine: &dyn Engine| {
            fit_on(engine, &options, &mut |_| std::ops::ControlFlow::Continue(())).expect("a fit")
        };
        let there = timed(5, || fit(&*engine));
        let here = timed(1, || fit(&samples));
        let told = |engine: &dyn Engine| {
            let history = fit(engine).history;
            (history.log_likelihood.last().copied().unwrap_or(f64::NAN), history.log_likelihood.len())
        };
        let ((a, i), (b, j)) = (told(&*engine), told(&samples));
        println!(
            "fit 60000 x 28x28 K=10 4x4 {start}: {:.0} ms, processor {:.0} ms, {:.1} times; ln p {a:.6} after {i} iterations and {b:.6} after {j}",
            1e3 * there,
            1e3 * here,
            here / there,
        );
    }
    // The same number of iterations, whatever the rule that ends a fit says.
    for (name, stages) in [("plain iterations", false), ("stages and guesses", true)] {
        let fixed = FitOptions {
            tol: 0.0,
            max_iter: 30,
            stages,
            accelerate: stages,
            precision: Precision::Single,
            ..options.clone()
        };
        let series = |engine: &dyn Engine| {
            fit_on(engine, &fixed, &mut |_| std::ops::ControlFlow::Continue(()))
                .expect("a fit")
                .history
                .log_likelihood
        };
        let (there, here) = (series(&*engine), series(&samples));
        let apart = |i: usize| (there[i] - here[i]) / here[i].abs();
        println!(
            "30 iterations, {name}: ln p differs by {:.1e} after the start, {:.1e} in the middle, {:.1e} at the end",
            apart(0),
            apart(here.len().min(there.len()) / 2),
            apart(here.len().min(there.len()) - 1),
        );
        println!("    there {:.7?}", &there[there.len().saturating_sub(8)..]);
        println!("    here  {:.7?}", &here[here.len().saturating_sub(8)..]);
    }
    // What a pass finds for the same model, in single precision there and in double here.
    let pass = |precision| EmPass { model: model.clone(), update: Update::All, precision, stage: Stage::ALL };
    let local: &dyn Engine = &samples;
    let exact = local.sums(&pass(Precision::Double)).expect("sums").mean_log_likelihood();
    let single = local.sums(&pass(Precision::Single)).expect("sums").mean_log_likelihood();
    let device = engine.sums(&pass(Precision::Single)).expect("sums").mean_log_likelihood();
    println!(
        "ln p of one model: off by {:.1e} on the GPU, {:.1e} on the processor, both in single precision (of {exact:.3})",
        device - exact,
        single - exact
    );
    streams(&gpu);
}

/// Samples that do not fit: they come while the device works on those before, so that a pass takes as long as the longer of both.
fn streams(gpu: &Cuda) {
    let model = planted(28, 4, 10);
    let drawn = set(&model, 400_000);
    let bytes = drawn.iter().map(|x| (60.0 * (x + 2.0)).clamp(0.0, 255.0) as u8).collect::<Vec<_>>();
    let bytes = Samples::from_vec(&[28, 28], bytes).and_then(|s| s.scaled(1.0 / 60.0)).expect("samples");
    for samples in [bytes, Samples::from_vec(&[28, 28], drawn).expect("samples")] {
        let size = samples.stored_bytes() as usize;
        let small = gpu.clone().with_memory_limit(size);
        let pass = EmPass {
            model: model.clone(),
            update: Update::All,
            precision: Precision::Single,
            stage: Stage::ALL,
        };
        let on = |gpu: &Cuda| {
            let engine = gpu.over(&samples).expect("room");
            1e3 * timed(5, || engine.sums(&pass).expect("sums"))
        };
        let (held, streamed) = (on(gpu), on(&small));
        let copied = 1e3 * timed(3, || gpu.upload(&samples).expect("room"));
        println!(
            "streamed 400000 x 28x28 K=10 4x4, {}, {:.2} GB: {streamed:.1} ms ({:.1} GB/s); on the device {held:.1} ms, the copy alone {copied:.1} ms",
            samples.element(),
            1e-9 * size as f64,
            1e-6 * size as f64 / streamed,
        );
    }
}
