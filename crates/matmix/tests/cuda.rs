//! The GPU against the processor: sums, answers and whole fits. Without a GPU these tests say that they were left out; with
//! `MATMIX_NEED_GPU=1` its absence is a failure.

use matmix::cuda::Cuda;
use matmix::pass::{
    AskPass, DistancesPass, EmPass, EmSums, GroupsPass, LoadingSums, MomentsPass, Question, ScatterPass,
    Stage, Task, Update,
};
use matmix::{
    Backend, Checkpoint, Component, Cpu, Device, Engine, Error, FitOptions, Matrix, Missing, Mixture, Model,
    Noise, Precision, Samples, Search,
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

/// Mean, variance, clusters, distances and scatters of samples that are on the GPU already, and of samples that are streamed to it.
#[test]
fn the_sums_of_a_start_are_those_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    let shapes: &[(&[usize], &[usize], usize, usize)] = &[
        (&[7], &[3], 2, 500),
        (&[12, 9], &[3, 2], 5, 3001),
        (&[28, 28], &[4, 4], 10, 2000),
        (&[6, 5, 4], &[2, 3, 1], 3, 777),
        (&[5, 3], &[1, 1], 40, 1),
    ];
    for &(shape, rank, k, n) in shapes {
        for (element, weighted) in [("u8", true), ("f32", false), ("f64", true)] {
            let model = any_model(shape, rank, k, None, 12);
            let here = samples_of(&model, n, element, weighted && n > 1);
            let there = gpu.upload(&here).unwrap();
            let what = format!("{shape:?} K={k} N={n} {element}");
            assert_eq!(there.to_f64(0..n).unwrap(), here.to_f64(0..n).unwrap(), "{what}");
            let (cpu, size) = (Cpu::best(), here.sample_len());
            let centres: Vec<Vec<f64>> = model.components().iter().map(|c| c.mean().to_vec()).collect();
            let reference = centres[0].clone();
            let close = |name: &str, a: &[f64], b: &[f64], tolerance: f64| {
                let found = difference(a, b);
                assert!(found <= tolerance, "{what}: {name} differs by {found:.1e}");
            };

            let pass = MomentsPass { origin: here.to_f64(0..1).unwrap(), digest: false };
            let (a, b) = (cpu.moments(&pass, &here, 0).unwrap(), gpu.moments(&pass, &there, 0).unwrap());
            close(
                "moments",
                &[&a.sum[..], &[a.weight, a.squares]].concat(),
                &[&b.sum[..], &[b.weight, b.squares]].concat(),
                1e-12,
            );
            assert_eq!((a.n_samples, a.range), (b.n_samples, b.range), "{what}");

            let pass = GroupsPass { centres: centres.clone(), reference: reference.clone() };
            let (a, b) = (cpu.groups(&pass, &here).unwrap(), gpu.groups(&pass, &there).unwrap());
            assert_eq!(a.n_samples, b.n_samples, "{what}");
            for (a, b) in a.groups.iter().zip(&b.groups) {
                close("groups", &[a.weight, a.squared_distance], &[b.weight, b.squared_distance], 1e-11);
                close("shifts", &a.shift, &b.shift, 1e-11);
            }

            let tolerance = if element == "f64" { 1e-12 } else { 1e-5 };
            let pass = DistancesPass { points: centres, reference };
            let (a, b) = (cpu.distances(&pass, &here).unwrap(), gpu.distances(&pass, &there).unwrap());
            close("distances", &a.values, &b.values, tolerance);

            let narrow =
                |&p: &usize| Some(Matrix::from_fn(p, p.min(2), |i, j| ((i + 3 * j) % 5) as f64 - 1.7));
            let some: Vec<Option<Matrix>> = shape.iter().map(narrow).collect();
            let modes: Vec<usize> = (0..shape.len()).collect();
            let mut passes =
                vec![(some.clone(), modes.clone()), (some.clone(), vec![]), (vec![None; shape.len()], modes)];
            if size < 200 {
                passes.push((vec![None; shape.len()], vec![]));
            }
            if shape.len() > 1 {
                let mut one = some;
                one[0] = None;
                passes.push((one, vec![1, 0]));
            }
            for (loadings, modes) in passes {
                let pass = ScatterPass { mean: model.components()[0].mean().to_vec(), loadings, modes };
                let (a, b) = (cpu.scatter(&pass, &here).unwrap(), gpu.scatter(&pass, &there).unwrap());
                close("squares", &[a.squares], &[b.squares], tolerance);
                for (a, b) in a.scatters.iter().zip(&b.scatters) {
                    close("scatter", a.as_slice(), b.as_slice(), tolerance);
                }
            }
        }
    }
}

/// Large samples on the host go to the GPU for the sums of a start, and if they do not fit, chunk by chunk.
#[test]
fn streamed_sums_are_the_sums_of_what_is_held() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[30, 25], &[2, 2], 3, None, 14);
    let samples = samples_of(&model, 6000, "u8", true);
    let centres: Vec<Vec<f64>> = model.components().iter().map(|c| c.mean().to_vec()).collect();
    let small = gpu.clone().with_memory_limit(4 << 20);
    let tasks: Vec<Task> = vec![
        MomentsPass { origin: centres[0].clone(), digest: false }.into(),
        GroupsPass { reference: centres[0].clone(), centres: centres.clone() }.into(),
        DistancesPass { reference: centres[0].clone(), points: centres.clone() }.into(),
        ScatterPass { mean: centres[0].clone(), loadings: vec![None, None], modes: vec![0, 1] }.into(),
        AskPass {
            model: std::sync::Arc::new(Model::Mixture(model)),
            questions: vec![Question::LogLikelihood],
        }
        .into(),
    ];
    let numbers = |sums: &matmix::pass::AnySums| -> Vec<f64> {
        use matmix::pass::AnySums as Of;
        match sums {
            Of::Moments(m) => [&m.sum[..], &[m.squares, m.weight]].concat(),
            Of::Groups(g) => g
                .groups
                .iter()
                .flat_map(|g| [&g.shift[..], &[g.weight, g.squared_distance]].concat())
                .collect(),
            Of::Answers(a) => a.values.clone(),
            Of::Scatter(s) => s.scatters.iter().flat_map(|m| m.as_slice().to_vec()).collect(),
            other => panic!("{other:?}"),
        }
    };
    for task in &tasks {
        let here = task.run(&Cpu::best(), &samples, 0).unwrap();
        let (all, some) = (
            gpu.over(&samples).unwrap().run(task).unwrap(),
            small.over(&samples).unwrap().run(task).unwrap(),
        );
        for (name, there) in [("held", all), ("streamed", some)] {
            let found = difference(&numbers(&here), &numbers(&there));
            assert!(found < 1e-5, "{}, {name}: {found:.1e}", task.name());
        }
    }
}

/// Samples in memory of the GPU are fitted where they are, whoever put them there, and not by a processor without being told.
#[test]
fn samples_on_the_gpu_are_fitted_there() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[14, 12], &[2, 2], 3, None, 31);
    let here = samples_of(&model, 5000, "f32", true);
    let there = gpu.upload(&here).unwrap();
    let options = FitOptions { components: 3, rank: vec![2, 2], ..FitOptions::default() };
    let fit = |backend: &dyn Backend, samples: &Samples<'_>| {
        let engine = backend.over(samples).unwrap();
        matmix::fit_on(&*engine, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap()
    };
    let (a, b) = (fit(&Cpu::best(), &here).log_likelihood(), fit(&gpu, &there).log_likelihood());
    assert!((a - b).abs() < 1e-6 * a.abs(), "{a} here, {b} there");
    for device in [Device::Cuda, Device::Auto] {
        assert!(device.backend(&there, 3).unwrap().name().starts_with("cuda:0"), "{device}");
    }
    let error = Device::Cpu.backend(&there, 3).unwrap_err().to_string();
    assert!(error.contains("in the memory of GPU 0"), "{error}");
    // Some of them are copied to the host.
    let some = there.clone().select(&[4000, 7, 8]).unwrap();
    assert!(some.device_memory().is_none());
    assert_eq!(some.to_f64(0..3).unwrap(), here.clone().select(&[4000, 7, 8]).unwrap().to_f64(0..3).unwrap());
}

/// NaN among samples on the GPU is found, and named, as it is among those of the host.
#[test]
fn a_sample_on_the_gpu_that_is_not_finite_is_named() {
    let Some(gpu) = gpu() else { return };
    let mut x = vec![0.5f32; 6 * 50];
    x[6 * 31 + 4] = f32::INFINITY;
    let there = gpu.upload(&Samples::from_vec(&[2, 3], x).unwrap()).unwrap();
    match gpu.moments(&MomentsPass { origin: vec![0.0; 6], digest: false }, &there, 0) {
        Err(Error::NotFinite { sample: 31, position, .. }) => assert_eq!(position, [1, 1]),
        other => panic!("{other:?}"),
    }
}

/// Missing cells and known labels: an error for those who ask for a GPU, the processor for those who leave it open.
#[test]
fn what_is_not_for_a_gpu_is_refused_or_done_by_the_processor() {
    let x = vec![0.5f32; 64 * 64 * 200];
    let plain = Samples::from_vec(&[64, 64], x).unwrap();
    let missing = plain.clone().with_missing(Missing::Nan);
    let labelled = plain.with_classes(vec![Some(0); 200]).unwrap();
    for samples in [&missing, &labelled] {
        assert!(Device::Auto.backend(samples, 1000).unwrap().name().starts_with("cpu"));
    }
    let Some(gpu) = gpu() else { return };
    for (samples, what) in [(&missing, "missing cells"), (&labelled, "known labels")] {
        let error = gpu.over(samples).err().unwrap().to_string();
        assert!(error.contains(what) && error.contains("device cpu"), "{error}");
    }
}

/// A GPU whose memory others have taken: what does not fit is streamed, and what cannot be done at all is an error with the facts.
#[test]
fn little_memory_is_enough_and_none_is_an_error() {
    let Some(gpu) = gpu() else { return };
    let model = any_model(&[28, 28], &[4, 4], 5, None, 17);
    let samples = samples_of(&model, 40_000, "f32", false);
    let pass = pass(&model, Update::All, Precision::Single);
    let expected = em_on(&Cpu::best(), &samples, &pass);
    drop(gpu.occupy(1).unwrap());
    let (_, free) = Cuda::devices().unwrap()[0].memory;
    // Samples take 125 MB.
    let taken = gpu.occupy(free - (160 << 20)).unwrap();
    assert_same(&expected, &em_on(&gpu, &samples, &pass), 3e-5, "little room");
    drop(gpu.occupy(1).unwrap());
    let (_, free) = Cuda::devices().unwrap()[0].memory;
    let more: Vec<_> = std::iter::successors(Some(free), |bytes| Some(bytes / 2))
        .take_while(|bytes| *bytes > 1 << 20)
        .filter_map(|bytes| gpu.occupy(bytes).ok())
        .collect();
    match gpu.upload(&samples) {
        Err(error @ Error::DeviceMemory { device: 0, wanted, free, .. }) => {
            assert!(wanted == 40_000 * 784 * 4 && free < wanted, "{error}");
            assert!(error.to_string().contains("no room for 125440000 bytes"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    drop((taken, more));
    assert_same(&expected, &em_on(&gpu, &samples, &pass), 3e-5, "room again");
}

/// Runs a test of this file in a process of its own.
fn alone(name: &str) -> std::process::Output {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]).output().unwrap()
}

/// A GPU that is lost in the middle of a fit: an error that names it, and the checkpoint is what it was, to be gone on from by the processor.
#[test]
fn a_gpu_that_is_lost_is_an_error_and_the_checkpoint_stays() {
    if gpu().is_none() {
        return;
    }
    let output = alone("loses_its_gpu");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
#[ignore = "run by the test above: its process cannot use the GPU afterwards"]
fn loses_its_gpu() {
    let gpu = Cuda::new(0).unwrap();
    let model = any_model(&[10, 9], &[2, 2], 3, None, 5);
    let samples = samples_of(&model, 3000, "f64", false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fit.checkpoint");
    let checkpoint = Checkpoint { path: path.clone(), every: 1, resume: true };
    let options = FitOptions {
        components: 3,
        rank: vec![2, 2],
        // The processor's, which would be done before the GPU is lost.
        search: Search::None,
        stages: false,
        accelerate: false,
        tol: 0.0,
        max_iter: 12,
        checkpoint: Some(checkpoint),
        ..FitOptions::default()
    };
    let engine = gpu.over(&samples).unwrap();
    let mut seen = 0;
    let failed = matmix::fit_on(&*engine, &options, &mut |_| {
        seen += 1;
        if seen == 6 {
            gpu.lose().unwrap();
        }
        std::ops::ControlFlow::Continue(())
    });
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("cuda:0 (NVIDIA") && error.contains("cannot use it any longer"), "{error}");
    let again = gpu
        .over(&samples)
        .and_then(|engine| engine.run(&Task::Em(pass(&model, Update::All, Precision::Auto))));
    assert!(again.unwrap_err().to_string().contains("cuda:0"));
    // The processor goes on from the state that was kept and ends where it would have.
    assert!(path.exists());
    let rest = matmix::fit(&samples, &options).unwrap();
    let whole = matmix::fit(&samples, &FitOptions { checkpoint: None, ..options }).unwrap();
    let (a, b) = (rest.log_likelihood(), whole.log_likelihood());
    assert!((a - b).abs() < 1e-6 * b.abs(), "{a} after the loss, {b} without");
    assert_eq!(rest.history.log_likelihood.len(), 13);
}
