//! Known labels: densities and responsibilities against the textbook's, and what a fit that keeps to them must do.

use std::ops::ControlFlow;

use matmix::data::npy;
use matmix::pass::{EmPass, EmSums, Stage, Task, Update};
use matmix::{
    Algorithm, Backend, Checkpoint, Classes, Component, Cpu, Dof, Engine, Error, Event, Fit, FitOptions,
    Missing, Mixture, Model, ModelFile, Noise, OnlineFit, Precision, Samples, SelectOptions, Start, fit,
    fit_with, select,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::impute::random_mixture as any_mixture;
use crate::planted::{Look, assert_close, drawn, drawn_f32, numbers, planted_mixture, random_mixture};
use crate::support::removals;

fn named(classes: usize) -> Vec<String> {
    (0..classes).map(|c| format!("class {c}")).collect()
}

fn em_pass(model: &Mixture, update: Update) -> EmPass {
    EmPass { model: model.clone(), update, precision: Precision::Auto, stage: Stage::ALL }
}

fn pass(model: &Mixture, samples: &Samples<'_>) -> EmSums {
    (samples as &dyn Engine).sums(&em_pass(model, Update::All)).unwrap()
}

/// Labels of which some are not known.
fn some_classes(rng: &mut ChaCha8Rng, n: usize, classes: usize) -> Vec<Option<u32>> {
    (0..n).map(|_| rng.random_bool(0.6).then(|| rng.random_range(0..classes as u32))).collect()
}

/// Samples of a planted mixture, two components to a class, with a share of the labels, and all true classes.
fn planted(
    seed: u64,
    classes: usize,
    n: usize,
    share: f64,
) -> (Samples<'static>, Vec<Option<u32>>, Vec<usize>) {
    let look = Look { spread: 1.5, ..Look::default() };
    let drawn = planted_mixture(seed, &[4, 3], &[2, 1], 2 * classes, look).sample(n, seed + 1);
    let truth: Vec<usize> = drawn.components.iter().map(|k| k / 2).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 2);
    let known = truth.iter().map(|&c| rng.random_bool(share).then_some(c as u32)).collect();
    (Samples::from_vec(&[4, 3], drawn.samples).unwrap(), known, truth)
}

fn two_per_class(classes: usize) -> FitOptions {
    FitOptions { components: 2, rank: vec![2, 1], classes: named(classes), ..FitOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: RngSeed::Fixed(16), ..ProptestConfig::default() })]

    /// ln p(x, c) = ln Σ_{k in c} π_k p(x|k) and γ = π_k p(x|k) / p(x, c) within the class, from dense covariances; orders 1 to 3, Gaussian
    /// and t, complete samples and samples with holes, one of them without any cell.
    #[test]
    fn densities_and_responsibilities_are_the_textbooks(seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let all: [(&[usize], &[usize]); 3] = [(&[6], &[2]), (&[4, 3], &[2, 1]), (&[3, 2, 2], &[2, 1, 2])];
        let (shape, rank) = all[rng.random_range(0..3)];
        let nu = [None, Some(5)][rng.random_range(0..2)];
        let classes = Classes::new(named(3), vec![1, 0, 2, 1, 1]).unwrap();
        let model = any_mixture(&mut rng, shape, rank, 5, nu).with_classes(Some(classes.clone())).unwrap();
        let (n, size) = (12, model.sample_len());
        let mut x = model.sample(n, seed).samples;
        if rng.random_bool(0.5) {
            x.iter_mut().filter(|_| rng.random_bool(0.3)).for_each(|x| *x = f64::NAN);
            x[..size].fill(f64::NAN);
        }
        let known = some_classes(&mut rng, n, 3);
        let plain = Samples::from_slice(shape, &x).unwrap().with_missing(Missing::Nan);
        let samples = plain.with_classes(known.clone()).unwrap();
        let (mut total, mut gammas) = (0.0, Vec::new());
        for (x, class) in x.chunks_exact(size).zip(&known) {
            let joint: Vec<f64> = (0..5).map(|k| match class {
                Some(class) if classes.components()[k] != *class as usize => f64::NEG_INFINITY,
                _ => model.weights()[k].ln() + crate::missing::dense(&model.components()[k], nu, x).log_density,
            }).collect();
            let likelihood = crate::dense::log_sum_exp(&joint);
            total += likelihood;
            gammas.extend(joint.iter().map(|joint| (joint - likelihood).exp()));
        }
        let found = model.responsibilities(&samples).unwrap();
        assert_close(&found, &gammas, 1e-9, "γ");
        assert_close(&[n as f64 * model.score(&samples).unwrap()], &[total], 1e-9, "ln p");
        let sums = pass(&model, &samples);
        assert_close(&[sums.log_likelihood], &[total], 1e-9, "ln p of a pass");
        for (k, sums) in sums.components.iter().enumerate() {
            let expected: f64 = gammas.iter().skip(k).step_by(5).sum();
            assert_close(&[sums.weight], &[expected], 1e-9, "Σ γ");
        }
        let within: Vec<f64> = gammas.chunks_exact(5).flat_map(|g| [g[1], g[0] + g[3] + g[4], g[2]]).collect();
        assert_close(&model.class_probabilities(&samples).unwrap(), &within, 1e-9, "p(c|x)");
        // Densities are those of the samples alone.
        let densities = model.log_densities(&samples).unwrap();
        let unlabelled = Samples::from_slice(shape, &x).unwrap().with_missing(Missing::Nan);
        prop_assert_eq!(densities, model.log_densities(&unlabelled).unwrap());
    }

    /// The likelihood of what is known never falls: partial labels, with holes or t noise in some, from both starts.
    #[test]
    fn the_likelihood_never_falls(seed in 0..1_000_000u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (classes, n) = (rng.random_range(1..4), rng.random_range(30..90));
        let (samples, mut known, truth) = planted(seed, classes, n, rng.random_range(0.1..0.9));
        // Every class has labels for its components; some labels are wrong.
        for class in 0..classes as u32 {
            (0..2).for_each(|at| known[2 * class as usize + at] = Some(class));
        }
        let mut x = numbers(&samples);
        let (holes, t) = (rng.random_bool(0.4), rng.random_bool(0.4));
        if holes {
            x.iter_mut().filter(|_| rng.random_bool(0.2)).for_each(|x| *x = f64::NAN);
        }
        let samples = Samples::from_vec(&[4, 3], x).unwrap().with_missing(Missing::Nan);
        let samples = samples.with_classes(known.clone()).unwrap();
        let options = FitOptions {
            noise: if t { Noise::T } else { Noise::Gaussian },
            start: if rng.random_bool(0.3) { Start::Random } else { Start::KMeans },
            max_iter: 30,
            tol: 0.0,
            seed,
            ..two_per_class(classes)
        };
        let fitted = fit(&samples, &options).unwrap();
        let history = &fitted.history.log_likelihood;
        let removals = removals(&fitted.history);
        for (t, pair) in history.windows(2).enumerate() {
            let may_fall = removals.contains(&(t + 1));
            prop_assert!(may_fall || pair[1] >= pair[0] - 1e-9 * pair[1].abs().max(1.0), "{:?}", history);
        }
        let expected = Classes::even(named(classes), 2).unwrap();
        prop_assert_eq!(fitted.model.classes(), Some(&expected));
        // Labelled samples stay where they belong.
        let (found, probability) = fitted.model.classify(&samples).unwrap();
        for (n, class) in known.iter().enumerate() {
            if let Some(class) = class {
                prop_assert!(found[n] == *class as usize && probability[n] > 1.0 - 1e-12);
            }
        }
        prop_assert_eq!(found.len(), truth.len());
    }
}

/// Skipping components that are hopeless for a sample changes nothing, whichever arrangement is used: many components of large samples, in
/// single and in double precision.
#[test]
fn skipping_keeps_to_the_labels() {
    let look = Look { spread: 2.0, signal: 0.1, noise: 0.01, offset: 0.0 };
    let (classes, k) = (Classes::even(named(12), 5).unwrap(), 60);
    let model = planted_mixture(5, &[12, 10], &[2, 3], k, look).with_classes(Some(classes)).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    // Wrong labels: the nearest component is hardly ever one of the class.
    let known = some_classes(&mut rng, 600, 12);
    for (samples, tol) in [(drawn(&model, 600, 7), 1e-9), (drawn_f32(&model, 600, 7), 1e-4)] {
        let samples = samples.with_classes(known.clone()).unwrap();
        let pass = em_pass(&model, Update::Mode(0));
        let some = Cpu::best().em(&pass, &samples).unwrap();
        let all = Cpu::best().em_of_all(&pass, &samples).unwrap();
        assert!(some.evaluated < all.evaluated / 2, "{} of {}", some.evaluated, all.evaluated);
        assert_close(&[some.log_likelihood], &[all.log_likelihood], 1e-3 * tol, "ln p");
        for (some, all) in some.components.iter().zip(&all.components) {
            assert_close(&[some.weight, some.squares], &[all.weight, all.squares], tol, "sums");
            assert_close(&some.shift, &all.shift, tol, "means");
        }
        let gamma = model.responsibilities(&samples).unwrap();
        for (n, class) in known.iter().enumerate() {
            let of = |k: usize| class.is_none_or(|class| k / 5 == class as usize);
            let outside: f64 = (0..k).filter(|&j| !of(j)).map(|j| gamma[k * n + j]).sum();
            assert_eq!(outside, 0.0);
        }
    }
}

/// Labels of which none is known say nothing, to the bit; nor do they to a model without classes.
#[test]
fn without_a_known_label_a_fit_is_the_plain_one() {
    let samples = drawn(&random_mixture(1, &[4, 3], &[2, 1], 4), 300, 2);
    let unknown = samples.clone().with_classes(vec![None; 300]).unwrap();
    let options = FitOptions { components: 4, rank: vec![2, 1], max_iter: 8, ..FitOptions::default() };
    let plain = fit(&samples, &options).unwrap();
    let found = fit(&unknown, &options).unwrap();
    assert_eq!((&found.model, &found.assigned), (&plain.model, &plain.assigned));
    assert_eq!(found.history.log_likelihood, plain.history.log_likelihood);
    // And from one start with and without classes.
    let from = |model: Mixture, classes: Vec<String>, samples: &Samples<'_>| {
        let components = if classes.is_empty() { 4 } else { 2 };
        let start = Start::Model(Box::new(model));
        fit(samples, &FitOptions { start, components, classes, ..options.clone() }).unwrap()
    };
    let classes = Classes::even(named(2), 2).unwrap();
    let labelled = plain.model.clone().with_classes(Some(classes)).unwrap();
    let found = from(labelled, named(2), &unknown).model;
    assert_eq!(found.with_classes(None).unwrap(), from(plain.model.clone(), vec![], &samples).model);
    let every = samples.clone().with_classes((0..300).map(|n| Some(n % 7)).collect()).unwrap();
    assert_eq!(plain.model.score_samples(&every).unwrap(), plain.model.score_samples(&samples).unwrap());
}

/// Where all labels are known a fit is one fit per class.
#[test]
fn with_all_labels_known_classes_are_fitted_apart() {
    let (samples, _, truth) = planted(3, 3, 400, 1.0);
    let known = truth.iter().map(|&c| Some(c as u32)).collect();
    let plain = FitOptions {
        components: 1,
        rank: vec![2, 2],
        max_iter: 25,
        tol: 0.0,
        accelerate: false,
        noise_floor: 1e-9,
        ..FitOptions::default()
    };
    for noise in [Noise::Gaussian, Noise::T] {
        let plain = FitOptions { noise, ..plain.clone() };
        let options = FitOptions { classes: named(3), ..plain.clone() };
        let together = fit(&samples.clone().with_classes(Vec::clone(&known)).unwrap(), &options).unwrap();
        let mut total = 0.0;
        for class in 0..3 {
            let own: Vec<usize> = (0..400).filter(|&n| truth[n] == class).collect();
            let alone = fit(&samples.clone().select(&own).unwrap(), &plain).unwrap();
            let (a, b) = (&together.model.components()[class], &alone.model.components()[0]);
            assert_close(a.mean(), b.mean(), 1e-8, "mean");
            assert_close(&[a.noise_variance()], &[b.noise_variance()], 1e-8, "noise");
            let covariance = |model: &Mixture, k| model.covariance(k).unwrap().as_slice().to_vec();
            assert_close(
                &covariance(&together.model, class),
                &covariance(&alone.model, 0),
                1e-7,
                "covariance",
            );
            assert_close(
                &a.degrees_of_freedom().into_iter().collect::<Vec<_>>(),
                &b.degrees_of_freedom().into_iter().collect::<Vec<_>>(),
                1e-6,
                "ν",
            );
            let share = own.len() as f64 / 400.0;
            assert_close(&[together.model.weights()[class]], &[share], 1e-12, "weight");
            total += share * (alone.log_likelihood() + share.ln());
        }
        assert_close(&[together.log_likelihood()], &[total], 1e-9, "ln p");
    }
}

fn without_time(mut fit: Fit) -> Fit {
    fit.history.seconds = 0.0;
    fit
}

/// The same bits on any number of threads, from memory and from files, in one go and in two.
#[test]
fn the_bits_do_not_depend_on_threads_files_or_interruptions() {
    let n = 5000;
    let (samples, known, _) = planted(8, 3, n, 0.3);
    let labelled = samples.clone().with_classes(known.clone()).unwrap();
    let options = FitOptions { max_iter: 6, tol: 0.0, ..two_per_class(3) };
    let run = |samples: &Samples<'_>, threads| {
        without_time(fit(samples, &FitOptions { threads: Some(threads), ..options.clone() }).unwrap())
    };
    let one = run(&labelled, 1);
    assert!(one.history.log_likelihood.len() > 1);
    for threads in [2, 8] {
        assert_eq!(run(&labelled, threads), one, "{threads} threads");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[n, 4, 3], &numbers(&samples)).unwrap();
    let mapped = Samples::from_npy(&path).unwrap().with_classes(known.clone()).unwrap();
    assert_eq!(run(&mapped, 2), one, "a file");
    let budget = mapped.with_memory_budget(200_000);
    assert_eq!(run(&budget, 2), one, "a file that is read piece by piece");

    let checkpoint = |name: &str| Some(Checkpoint { path: folder.path().join(name), every: 1, resume: true });
    let kept = FitOptions { checkpoint: checkpoint("state"), threads: Some(1), ..options.clone() };
    let stopped = fit_with(&labelled, &kept, &mut |p| match p.iteration >= 3 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    assert_eq!(stopped.unwrap().n_iterations(), 3);
    assert_eq!(without_time(fit(&labelled, &kept).unwrap()), one, "interrupted");
    // One label more is another fit.
    let mut other = known;
    let unknown = other.iter().position(Option::is_none).unwrap();
    other[unknown] = Some(0);
    let refused = fit(&samples.with_classes(other).unwrap(), &kept);
    assert!(matches!(refused, Err(Error::OtherFit { .. })), "{refused:?}");
}

/// A set that is larger than what a start looks at, with a class that is rare: stages and draws do not lose it.
#[test]
fn a_rare_class_is_not_lost_in_a_large_set() {
    let n = 30_000;
    let (samples, _, truth) = planted(21, 2, n, 1.0);
    // Forty labels of the first class, all of the second.
    let mut left = 40;
    let known = truth.iter().map(|&c| {
        left -= usize::from(c == 0 && left > 0);
        (c == 1 || left > 0).then_some(c as u32)
    });
    let samples = samples.with_classes(known.collect()).unwrap();
    let fitted = fit(&samples, &FitOptions { max_iter: 20, ..two_per_class(2) }).unwrap();
    let unlabelled = Samples::from_vec(&[4, 3], numbers(&samples)).unwrap();
    let (found, _) = fitted.model.classify(&unlabelled).unwrap();
    let right = found.iter().zip(&truth).filter(|(a, b)| a == b).count();
    assert!(right as f64 > 0.9 * n as f64, "{right} of {n}");
    let share = truth.iter().filter(|&&c| c == 0).count() as f64 / n as f64;
    let weight: f64 = fitted.model.weights()[..2].iter().sum();
    assert!((weight - share).abs() < 0.05, "{weight} {share}");
}

/// Unlabelled samples help: two labels per class, and many samples without one.
#[test]
fn unlabelled_samples_help() {
    let (samples, _, truth) = planted(30, 3, 900, 1.0);
    let mut left = [2; 3];
    let known: Vec<Option<u32>> = truth
        .iter()
        .map(|&c| {
            (left[c] > 0).then(|| {
                left[c] -= 1;
                c as u32
            })
        })
        .collect();
    let labelled: Vec<usize> = (0..900).filter(|&n| known[n].is_some()).collect();
    let all = samples.clone().with_classes(known).unwrap();
    let accuracy = |samples_of: &Samples<'_>| {
        let fitted = fit(samples_of, &two_per_class(3)).unwrap();
        let (found, _) = fitted.model.classify(&samples).unwrap();
        found.iter().zip(&truth).filter(|(a, b)| a == b).count()
    };
    let (with, without) = (accuracy(&all), accuracy(&all.clone().select(&labelled).unwrap()));
    assert!(with > without + 40, "{with} with unlabelled samples, {without} without");
}

/// A component without samples is moved to one half of another one of its class.
#[test]
fn a_dead_component_comes_back_in_its_class() {
    let (samples, _, truth) = planted(40, 2, 200, 1.0);
    let known = truth.iter().map(|&c| Some(c as u32)).collect();
    let samples = samples.with_classes(known).unwrap();
    let good = fit(&samples, &FitOptions { max_iter: 5, ..two_per_class(2) }).unwrap().model;
    let mut parts = good.components().to_vec();
    let far: Vec<f64> = parts[1].mean().iter().map(|x| x + 1e3).collect();
    parts[1] = Component::new(&[4, 3], far, parts[1].loadings().to_vec(), 0.1).unwrap();
    let dead = Mixture::new(&[4, 3], good.weights().to_vec(), parts).unwrap();
    let dead = dead.with_classes(good.classes().cloned()).unwrap();
    let fitted =
        fit(&samples, &FitOptions { start: Start::Model(Box::new(dead)), ..two_per_class(2) }).unwrap();
    let moved = fitted.history.events.iter().find_map(|event| match event {
        Event::Moved { component: 1, split, .. } => Some(*split),
        _ => None,
    });
    assert_eq!(moved, Some(0), "the other component of its class");
    assert!(fitted.assigned[1] > 5, "{:?}", fitted.assigned);
}

/// Classes are part of the model file, of a task and of a model in another order.
#[test]
fn a_model_remembers_its_classes() {
    let names = vec!["7".to_string(), "naïve, \"β\"\n".to_string()];
    let classes = Classes::new(names, vec![1, 0, 1]).unwrap();
    let model = random_mixture(2, &[4, 3], &[2, 1], 3).with_classes(Some(classes.clone())).unwrap();
    let file = ModelFile::new(Model::Mixture(model.clone()));
    let back = ModelFile::from_bytes("bytes", &file.to_bytes()).unwrap();
    assert_eq!(back, file);
    let Model::Mixture(mixture) = back.model else { panic!("a mixture") };
    assert_eq!(mixture.classes(), Some(&classes));
    let task = Task::from(em_pass(&model, Update::All));
    assert_eq!(Task::from_bytes(&task.to_bytes()).unwrap(), task);
    let turned = model.permuted(&[1, 2, 0]).unwrap();
    assert_eq!(turned.classes().unwrap().components(), [0, 1, 1]);
    // Damage is noticed.
    let text = String::from_utf8_lossy(&file.to_bytes()).into_owned();
    let bytes: Vec<u8> = file.to_bytes();
    let at = text.find("[1,0,1]").unwrap();
    let at = bytes.windows(7).position(|w| w == b"[1,0,1]").unwrap_or(at);
    let mut damaged = bytes.clone();
    damaged[at + 1] = b'0';
    damaged[at + 5] = b'0';
    let error = ModelFile::from_bytes("bytes", &damaged).unwrap_err().to_string();
    assert!(error.contains("its classes cannot be read") && error.contains("has no component"), "{error}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let (samples, known, _) = planted(50, 2, 60, 0.5);
    let labelled = samples.clone().with_classes(known.clone()).unwrap();
    let options = two_per_class(2);
    let says = |result: matmix::Result<Fit>, expected: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    says(fit(&labelled, &FitOptions { classes: vec![], ..options.clone() }), "`classes`");
    says(fit(&labelled, &FitOptions { classes: named(1), ..options.clone() }), "one for every class");
    says(
        fit(&labelled, &two_per_class(3)),
        "class \"class 2\" has 0 labelled samples (of positive weight) for 2 components",
    );
    says(
        fit(&labelled, &FitOptions { classes: vec!["a".into(); 2], ..options.clone() }),
        "two of its classes",
    );
    says(fit(&labelled, &FitOptions { components: 31, ..options.clone() }), "62 components");
    says(
        fit(&labelled, &FitOptions { algorithm: Algorithm::Paper, start: Start::Random, ..options.clone() }),
        "where labels are known",
    );
    says(fit(&labelled, &FitOptions { prune: true, ..options.clone() }), "`prune`");
    let other = Start::Model(Box::new(random_mixture(1, &[4, 3], &[2, 1], 4)));
    says(fit(&labelled, &FitOptions { start: other, ..options.clone() }), "a model of the same classes");
    let message = samples.clone().with_classes(vec![None; 3]).unwrap_err().to_string();
    assert!(message.contains("classes") && message.contains("60"), "{message}");
    let chosen = select(&labelled, &SelectOptions { fit: options.clone(), ..SelectOptions::default() });
    assert!(chosen.unwrap_err().to_string().contains("a selection knows no labels"));
    assert!(OnlineFit::begin(&labelled, &options).is_err());
    let model = fit(&labelled, &options).unwrap().model;
    let beyond = samples.clone().with_classes(vec![Some(2); 60]).unwrap();
    let message = model.score(&beyond).unwrap_err().to_string();
    assert!(message.contains("class 2 (from 0) for a model of 2 classes"), "{message}");
    assert!(matches!(model.with_classes(None).unwrap().classify(&samples), Err(Error::NoClasses)));
}

/// Weights count as often as they say, labels included; degrees of freedom may be shared.
#[test]
fn a_weight_of_two_is_two_samples() {
    let (samples, known, _) = planted(60, 2, 120, 0.6);
    let twice: Vec<usize> = (0..120).flat_map(|n| vec![n; 1 + n % 2]).collect();
    let labelled = samples.with_classes(known).unwrap();
    let weighted = labelled.clone().with_weights((0..120).map(|n| (1 + n % 2) as f64).collect()).unwrap();
    let repeated = labelled.select(&twice).unwrap();
    let options = FitOptions {
        components: 1,
        noise: Noise::T,
        dof: Dof::Shared,
        max_iter: 10,
        tol: 0.0,
        accelerate: false,
        ..two_per_class(2)
    };
    let (a, b) = (fit(&weighted, &options).unwrap(), fit(&repeated, &options).unwrap());
    assert_close(&[a.log_likelihood()], &[b.log_likelihood()], 1e-9, "ln p");
    assert_close(a.model.components()[1].mean(), b.model.components()[1].mean(), 1e-8, "mean");
}
