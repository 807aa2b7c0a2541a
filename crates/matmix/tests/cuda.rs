//! The GPU against the processor: sums, answers and whole fits. Without a GPU these tests say that they were left out; with
//! `MATMIX_NEED_GPU=1` its absence is a failure.

use matmix::cuda::Cuda;
use matmix::pass::{AskPass, EmPass, EmSums, LoadingSums, Question, Stage, Task, Update};
use matmix::{
    Backend, Component, Cpu, Engine, Error, FitOptions, Matrix, Mixture, Model, Noise, Precision, Samples,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The GPU, if there is one.
fn gpu() -> Option<Cuda> {
    match Cuda::new(0) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            assert!(std::env::var_os("MATMIX_NEED_GPU").is_none(), "{error}");
            eprintln!("LEFT OUT, no GPU: {error}");
            None
        }
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn any_model(shape: &[usize], rank: &[usize], k: usize, degrees: Option<f64>, seed: u64) -> Mixture {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let size: usize = shape.iter().product();
    let components = (0..k).map(|_| {
        let mean = (0..size).map(|_| 0.5 + 0.5 * normal(rng)).collect();
        let loadings = shape
            .iter()
            .zip(rank)
            .map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| normal(rng) / (p as f64).sqrt()));
        let component =
            Component::new(shape, mean, loadings.collect(), 0.05 + 0.1 * rng.random::<f64>()).unwrap();
        component.with_degrees_of_freedom(degrees).unwrap()
    });
    let components = components.collect();
    let weights = (0..k).map(|_| 0.2 + rng.random::<f64>()).collect();
    Mixture::new(shape, weights, components).unwrap()
}

/// Samples that the model could have drawn, stored in three ways.
fn samples_of(model: &Mixture, n: usize, element: &str, weighted: bool) -> Samples<'static> {
    let drawn = model.sample(n, 5).samples;
    let shape = model.shape();
    let samples = match element {
        "u8" => {
            let bytes = drawn.iter().map(|x| (60.0 * (x + 2.0)).clamp(0.0, 255.0) as u8).collect();
            Samples::from_vec::<u8>(shape, bytes).unwrap().scaled(1.0 / 60.0).unwrap()
        }
        "f32" => Samples::from_vec(shape, drawn.iter().map(|&x| x as f32).collect::<Vec<_>>()).unwrap(),
        _ => Samples::from_vec(shape, drawn).unwrap(),
    };
    match weighted {
        true => samples.with_weights((0..n).map(|i| ((i + 1) % 4) as f64 * 0.5).collect()).unwrap(),
        false => samples,
    }
}

fn em_on(backend: &dyn Backend, samples: &Samples<'_>, pass: &EmPass) -> EmSums {
    backend.over(samples).unwrap().sums(pass).unwrap()
}

/// The largest difference, relative to the largest number.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().chain(b).fold(1e-9f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f64::max)
}

fn assert_same(a: &EmSums, b: &EmSums, tolerance: f64, what: &str) {
    assert_eq!((a.n_samples, a.update), (b.n_samples, b.update), "{what}");
    let close = |name: &str, x: &[f64], y: &[f64], tolerance: f64| {
        let found = difference(x, y);
        assert!(
            found <= tolerance,
            "{what}: {name} differs by {found:.1e}: {:?} {:?}",
            &x[..x.len().min(4)],
            &y[..x.len().min(4)]
        );
    };
    let whole = |s: &EmSums| [s.weight, s.log_likelihood, s.entropy.max(1e-3 * s.weight), s.squared_error];
    close("whole", &whole(a), &whole(b), tolerance);
    close("squares of ln p", &[a.log_likelihood_squares], &[b.log_likelihood_squares], tolerance);
    let numbers = |s: &EmSums| -> Vec<f64> {
        s.components.iter().flat_map(|c| [c.weight, c.scale, c.log_scale, c.squares]).collect()
    };
    close("numbers", &numbers(a), &numbers(b), tolerance);
    let assigned = |s: &EmSums| s.components.iter().map(|c| c.assigned).sum::<u64>();
    assert_eq!(assigned(a), assigned(b), "{what}");
    let worst = |s: &EmSums| -> Vec<usize> { s.worst.iter().take(5).map(|w| w.1).collect() };
    assert_eq!(worst(a).len(), worst(b).len(), "{what}");
    for (k, (x, y)) in a.components.iter().zip(&b.components).enumerate() {
        if x.weight.max(y.weight) < 1e-3 {
            continue;
        }
        close(&format!("shift {k}"), &x.shift, &y.shift, 10.0 * tolerance);
        close(&format!("core {k}"), &x.core, &y.core, 10.0 * tolerance);
        let (x, y) = match (&x.loadings, &y.loadings) {
            (LoadingSums::All { cross: a, gram: b }, LoadingSums::All { cross: c, gram: d }) => {
                (vec![a, b], vec![c, d])
            }
            (
                LoadingSums::Mode { cross: a, weighted_gram: b, gram: c },
                LoadingSums::Mode { cross: d, weighted_gram: e, gram: f },
            ) => (vec![a, b, c], vec![d, e, f]),
            _ => panic!("{what}: sums of another kind"),
        };
        for (x, y) in x.into_iter().zip(y) {
            close(&format!("loadings {k}"), x.as_slice(), y.as_slice(), 10.0 * tolerance);
        }
    }
}

fn pass(model: &Mixture, update: Update, precision: Precision) -> EmPass {
    EmPass { model: model.clone(), update, precision, stage: Stage::ALL }
}

/// Orders 1 to 3, odd shapes and ranks, one component and many, one sample and many, weights, elements, both noises.
#[test]
fn sums_are_those_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    let cases: &[(&[usize], &[usize], usize, usize)] = &[
        (&[7], &[3], 2, 50),
        (&[33], &[1], 1, 1),
        (&[6, 5], &[3, 1], 3, 301),
        (&[28, 28], &[4, 4], 10, 700),
        (&[31, 17], &[5, 3], 4, 999),
        (&[64, 64], &[8, 8], 3, 120),
        (&[20, 19], &[17, 17], 2, 90),
        (&[5, 4, 3], &[2, 3, 1], 3, 257),
        (&[16, 12, 9], &[5, 4, 3], 2, 300),
        (&[9, 8], &[2, 2], 200, 3000),
    ];
    for &(shape, rank, k, n) in cases {
        for (element, weighted, degrees) in
            [("u8", false, None), ("f32", true, None), ("f32", false, Some(4.0)), ("f64", true, Some(7.0))]
        {
            let model = any_model(shape, rank, k, degrees, 3);
            let samples = samples_of(&model, n, element, weighted);
            let what = format!("{shape:?} {rank:?} K={k} N={n} {element} {weighted} {degrees:?}");
            for precision in [Precision::Single, Precision::Double] {
                let tolerance = if precision == Precision::Double { 1e-10 } else { 3e-5 };
                let mut updates = vec![Update::All];
                updates.extend(
                    (shape.len() > 1).then_some((0..shape.len()).map(Update::Mode)).into_iter().flatten(),
                );
                for update in updates {
                    let pass = pass(&model, update, precision);
                    let (here, there) = (em_on(&Cpu::best(), &samples, &pass), em_on(&gpu, &samples, &pass));
                    assert_same(&here, &there, tolerance, &format!("{what} {precision} {update:?}"));
                }
            }
        }
    }
}

/// Components that lie far apart compared with their spread: what cancels is computed directly, as on the processor.
#[test]
fn distances_that_cancel_are_computed_directly() {
    let Some(gpu) = gpu() else { return };
    let base = any_model(&[12, 10], &[2, 2], 2, None, 8);
    let parts = base.components().iter().enumerate().map(|(k, c)| {
        let mean = c.mean().iter().map(|m| m + 3000.0 * k as f64).collect();
        Component::new(base.shape(), mean, c.loadings().to_vec(), c.noise_variance()).unwrap()
    });
    let model = Mixture::new(base.shape(), vec![0.5, 0.5], parts.collect()).unwrap();
    let samples = samples_of(&model, 200, "f32", false);
    let pass = pass(&model, Update::All, Precision::Double);
    assert_same(&em_on(&Cpu::best(), &samples, &pass), &em_on(&gpu, &samples, &pass), 1e-9, "far apart");
}

/// A stage goes over the same samples, and samples that do not fit are streamed: the same sums but for rounding.
#[test]
fn stages_and_streams_are_the_same_samples() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[14, 14], &[3, 3], 5, None, 4);
    for (element, weighted) in [("u8", false), ("f32", true)] {
        let samples = samples_of(&model, 5000, element, weighted);
        let small = gpu.clone().with_memory_limit(200 << 10);
        for stage in [Stage::ALL, Stage::new(1), Stage::new(4)] {
            let pass = EmPass { stage, ..pass(&model, Update::All, Precision::Double) };
            let here = em_on(&Cpu::best(), &samples, &pass);
            assert_same(&here, &em_on(&gpu, &samples, &pass), 1e-10, "a stage");
            assert_same(&here, &em_on(&small, &samples, &pass), 1e-10, "a stream");
        }
    }
}

/// Every question has the answer the processor gives.
#[test]
fn answers_are_those_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    for (shape, rank, k) in [(&[9][..], &[2][..], 3), (&[12, 11], &[3, 4], 4), (&[6, 5, 4], &[2, 2, 2], 2)] {
        for degrees in [None, Some(5.0)] {
            let mixture = any_model(shape, rank, k, degrees, 9);
            let samples = samples_of(&mixture, 20_000, "f64", false);
            let model = std::sync::Arc::new(Model::Mixture(mixture));
            for &question in Question::ALL {
                let pass =
                    AskPass { model: model.clone(), questions: vec![question, Question::LogLikelihood] };
                let mut answers = [Vec::new(), Vec::new()];
                for (backend, to) in [&Cpu::best() as &dyn Backend, &gpu].into_iter().zip(&mut answers) {
                    backend.ask(&pass, &samples, &mut |more| to.extend(more.values)).unwrap();
                }
                let found = difference(&answers[0], &answers[1]);
                assert!(found < 1e-9, "{shape:?} {question} differs by {found:.1e}");
            }
        }
    }
}

/// Whole fits: the same likelihood from the same start, and the same bits in every run.
#[test]
fn a_fit_is_that_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[16, 14], &[3, 2], 4, None, 21);
    let samples = samples_of(&model, 6000, "f32", false);
    for noise in [Noise::Gaussian, Noise::T] {
        let options = FitOptions { components: 4, rank: vec![3, 2], noise, ..FitOptions::default() };
        let fit = |engine: &dyn Engine| {
            matmix::fit_on(engine, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap()
        };
        let here = fit(&samples).history.log_likelihood;
        let engine = gpu.over(&samples).unwrap();
        let there = fit(&*engine);
        let (a, b) = (here.last().copied().unwrap(), there.history.log_likelihood.last().copied().unwrap());
        assert!((a - b).abs() < 1e-6 * a.abs().max(1.0), "{noise}: {a} here, {b} there");
        for _ in 0..9 {
            assert!(fit(&*engine).model == there.model, "{noise}: other bits in another run");
        }
    }
}

/// What is wrong with a sample is said as the processor says it.
#[test]
fn a_sample_that_is_not_finite_is_named() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[6, 5], &[2, 2], 2, None, 2);
    let mut x: Vec<f32> = model.sample(100, 1).samples.iter().map(|&x| x as f32).collect();
    x[30 * 61 + 7] = f32::NAN;
    let samples = Samples::from_vec(&[6, 5], x).unwrap();
    let engine = gpu.over(&samples).unwrap();
    match engine.run(&Task::Em(pass(&model, Update::All, Precision::Auto))) {
        Err(Error::NotFinite { sample: 61, position, .. }) => assert_eq!(position, [1, 2]),
        other => panic!("{other:?}"),
    }
    // Too large for single precision, not for double.
    let mut x: Vec<f32> = model.sample(100, 1).samples.iter().map(|&x| x as f32).collect();
    x[0] = 1e25;
    let samples = Samples::from_vec(&[6, 5], x).unwrap();
    let pass = pass(&model, Update::All, Precision::Single);
    assert_same(&em_on(&Cpu::best(), &samples, &pass), &em_on(&gpu, &samples, &pass), 1e-6, "large");
}

/// Asking for a GPU that is not there is an error that says what is.
#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    let error = Cuda::new(99).unwrap_err().to_string();
    assert!(error.contains("99") || error.contains("was not found"), "{error}");
}
