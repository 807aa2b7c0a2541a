//! Tasks and sums on their way between machines: there and back with the same bits; damaged ones are refused.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{
    AnySums, AskPass, DistancesPass, EmPass, GroupsPass, MomentsPass, Precision, Question, RowsPass,
    ScatterPass, Stage, Task, Update, wire,
};
use crate::cpu::Cpu;
use crate::data::Samples;
use crate::error::Error;
use crate::linalg::Matrix;
use crate::model::{Component, Mixture};

fn normals(rng: &mut ChaCha8Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| rng.sample(StandardNormal)).collect()
}

fn mixture(rng: &mut ChaCha8Rng, shape: &[usize], rank: &[usize], k: usize) -> Mixture {
    // Half of them have a parameter that the others do without.
    let degrees = rng.random_bool(0.5).then_some(4.5);
    let parts = (0..k).map(|_| {
        let mean = normals(rng, shape.iter().product());
        let loadings = shape.iter().zip(rank).map(|(&p, &r)| Matrix::from_vec(p, r, normals(rng, p * r)));
        Component::new(shape, mean, loadings.collect(), 0.5)
            .unwrap()
            .with_degrees_of_freedom(degrees)
            .unwrap()
    });
    let parts = parts.collect();
    // Weights that do not quite sum to 1, as those of an M-step that left out the smallest responsibilities.
    let weights = (0..k).map(|_| 1.0 / k as f64 * (1.0 - 3e-11)).collect();
    Mixture::exactly(shape, weights, parts).unwrap()
}

/// One task of each kind for samples of 4×3.
fn tasks(seed: u64) -> Vec<Task> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rng = &mut rng;
    let precision = [Precision::Auto, Precision::Single, Precision::Double][rng.random_range(0..3)];
    let update = [Update::All, Update::Mode(0), Update::Mode(1)][rng.random_range(0..3)];
    let stage = Stage::new(rng.random_range(0..3));
    let model = mixture(rng, &[4, 3], &[2, 1], 3);
    let questions = vec![Question::Component, Question::AllCores, Question::Denoised];
    vec![
        EmPass { model: model.clone(), update, precision, stage }.into(),
        MomentsPass { origin: normals(rng, 12), digest: rng.random() }.into(),
        ScatterPass {
            mean: normals(rng, 12),
            loadings: vec![None, Some(Matrix::from_vec(3, 2, normals(rng, 6)))],
            modes: [vec![0], vec![0, 1], vec![]][rng.random_range(0..3)].clone(),
        }
        .into(),
        GroupsPass { centres: (0..3).map(|_| normals(rng, 12)).collect(), reference: vec![0.0; 12] }.into(),
        RowsPass { indices: vec![1007, 1003, 1090, 5] }.into(),
        DistancesPass { points: (0..2).map(|_| normals(rng, 12)).collect(), reference: vec![0.0; 12] }.into(),
        AskPass { model: std::sync::Arc::new(model.into()), questions }.into(),
    ]
}

fn run(task: &Task, samples: &Samples<'_>) -> AnySums {
    task.run(&Cpu::best(), samples, 1000).unwrap()
}

fn samples(seed: u64, n: usize) -> Vec<Samples<'static>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x = normals(&mut rng, 12 * n);
    vec![
        Samples::from_vec(&[4, 3], x.iter().map(|x| (128.0 + 30.0 * x) as u8).collect::<Vec<_>>())
            .unwrap()
            .scaled(1.0 / 255.0)
            .unwrap(),
        Samples::from_vec(&[4, 3], x.iter().map(|&x| x as f32).collect::<Vec<_>>()).unwrap(),
        Samples::from_vec(&[4, 3], x)
            .unwrap()
            .with_weights((0..n).map(|i| (i % 3) as f64).collect())
            .unwrap(),
    ]
}

/// The buffers of all tasks and of their sums.
fn buffers(seed: u64) -> Vec<(bool, Vec<u8>)> {
    let mut all = Vec::new();
    for (task, samples) in tasks(seed).iter().zip(samples(seed, 40).iter().cycle()) {
        all.push((true, task.to_bytes()));
        all.push((false, run(task, samples).to_bytes()));
    }
    all
}

/// Whether the buffer is refused; it must never be more than that.
fn refused(is_task: bool, bytes: &[u8]) -> Option<Error> {
    if is_task { Task::from_bytes(bytes).err() } else { AnySums::from_bytes(bytes).err() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn there_and_back_is_the_same(seed in any::<u64>()) {
        for task in tasks(seed) {
            let back = Task::from_bytes(&task.to_bytes()).unwrap();
            prop_assert_eq!(&back, &task);
            prop_assert_eq!(back.to_bytes(), task.to_bytes());
            for samples in samples(seed, 40) {
                let sums = run(&task, &samples);
                let expected = match &task {
                    Task::Em(pass) => (1000..1040).filter(|&n| pass.stage.holds(n)).count(),
                    _ => 40,
                };
                prop_assert_eq!(sums.n_samples(), expected as u64);
                prop_assert_eq!(&run(&back, &samples), &sums);
                prop_assert_eq!(&AnySums::from_bytes(&sums.to_bytes()).unwrap(), &sums);
            }
        }
    }

    /// Whatever happens to a buffer on the way, it is noticed.
    #[test]
    fn every_change_is_noticed(seed in 0..4u64, at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        for (is_task, whole) in buffers(seed) {
            let at = at.index(whole.len());
            let mut flipped = whole.clone();
            flipped[at] ^= flip;
            // The reserved byte is covered by the checksum as well.
            prop_assert!(refused(is_task, &flipped).is_some(), "byte {} of {}", at, whole.len());
            prop_assert!(refused(is_task, &whole[..at]).is_some());
            let mut longer = whole.clone();
            longer.insert(at, flip);
            prop_assert!(refused(is_task, &longer).is_some());
            prop_assert!(refused(is_task, &whole).is_none());
        }
    }
}

/// A buffer that was made badly, not damaged: its checksum is right. It must not panic or ask for memory in vain.
#[test]
fn nonsense_with_a_right_checksum_does_no_harm() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut errors, mut tries) = (0, 0);
    for round in 0..400 {
        for (is_task, mut bytes) in buffers(round % 4) {
            let body = bytes.len() - 4;
            for _ in 0..rng.random_range(1..=3) {
                let at = rng.random_range(6..body);
                match rng.random_range(0..3) {
                    0 => bytes[at] = rng.next_u32() as u8,
                    1 => bytes[at..(at + 8).min(body)].fill(0xff),
                    _ => bytes[at] ^= 1 << rng.random_range(0..8),
                }
            }
            wire::reseal(&mut bytes);
            tries += 1;
            errors += usize::from(refused(is_task, &bytes).is_some());
            if let Some(task) = Task::from_bytes(&bytes).ok().filter(|_| is_task) {
                // What can be read can be run, or refused.
                let _ = task.run(&Cpu::best(), &samples(1, 3)[1], 0);
            }
        }
    }
    assert!(errors > tries / 10 && errors < tries, "{errors} of {tries}");
}

#[test]
fn what_is_wrong_is_said() {
    let task = tasks(1).remove(1).to_bytes();
    let says = |error: Option<Error>, expected: &str| {
        let message = error.unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    };
    says(refused(true, &task[..7]), "not a readable task: they are 7 bytes and end inside the header");
    says(refused(false, &task), "not a readable sums: they hold task");
    says(refused(true, &[b'x'; 40]), "they were not written by matmix");
    says(refused(true, &task[..task.len() - 1]), "their checksum is wrong: they were cut short or changed");
    let changed = |at: usize, to: u8| {
        let mut bytes = task.clone();
        bytes[at] = to;
        wire::reseal(&mut bytes);
        refused(true, &bytes)
    };
    says(changed(4, 9), "they are of version 9, this library knows version 7; use the same matmix");
    says(changed(6, 77), "their kind is 77");
    says(changed(9, 200), "they end before their content does");
    says(changed(9, 3), "bytes are left after their content");
    let mut unknown = wire::Writer::new(wire::Content::Task, tasks(1)[0].to_bytes()[6]);
    Update::All.write(&mut unknown);
    unknown.name(Precision::Auto.name());
    unknown.byte(Stage::ALL.halvings());
    unknown.sizes(&[4, 3]);
    unknown.sizes(&[2, 1]);
    unknown.size(1);
    unknown.name("tails");
    says(refused(true, &unknown.finish()), "parameter `tails` is unknown");
}
