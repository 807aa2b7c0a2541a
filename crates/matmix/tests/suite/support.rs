//! Components that the data do not support are removed, so that outliers do not become the most likely samples.

use matmix::{Event, Fit, FitOptions, History, Noise, Samples, Search, fit};
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// The iterations in which a component was removed or moved.
pub(crate) fn removals(history: &History) -> Vec<usize> {
    let iteration = |event: &Event| match event {
        Event::Removed { iteration, .. } | Event::Moved { iteration, .. } => Some(*iteration),
        _ => None,
    };
    history.events.iter().filter_map(iteration).collect()
}

/// Whether the log-likelihood falls in no iteration but those.
pub(crate) fn never_falls(history: &History) -> bool {
    let removals = removals(history);
    let pairs = history.log_likelihood.windows(2).enumerate();
    pairs.into_iter().all(|(t, pair)| pair[1] >= pair[0] || removals.contains(&(t + 1)))
}

const SHAPE: [usize; 2] = [16, 32];
const OUTLIERS: usize = 9;

/// White noise; the first samples have a ramp of another height in every row.
fn recordings(seed: u64, samples: usize, outliers: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || rng.sample::<f64, _>(StandardNormal);
    let [rows, columns] = SHAPE;
    let mut data: Vec<f64> = (0..samples * rows * columns).map(|_| normal()).collect();
    for row in data.chunks_exact_mut(columns).take(outliers * rows) {
        let height = 20.0 * normal();
        row.iter_mut().enumerate().for_each(|(i, x)| *x += height * i as f64 / (columns - 1) as f64);
    }
    data
}

fn fitted(data: &[f64], components: usize, noise: Noise, seed: u64) -> (Fit, Vec<f64>) {
    let samples = Samples::from_slice(&SHAPE, data).unwrap();
    let rank = vec![4, 4];
    let options = FitOptions { components, rank, noise, seed, search: Search::Auto, ..FitOptions::default() };
    let fit = fit(&samples, &options).unwrap();
    let scores = fit.model.score_samples(&samples).unwrap();
    (fit, scores)
}

/// The fraction of the first samples among as many least likely ones.
fn fraction_found(scores: &[f64], outliers: usize) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    order[..outliers].iter().filter(|&&n| n < outliers).count() as f64 / outliers as f64
}

#[test]
fn planted_outliers_are_the_least_likely_samples_for_any_number_of_components() {
    for noise in [Noise::Gaussian, Noise::T] {
        for components in [1, 2, 3, 5, 10] {
            let seeds = 0..3;
            let mean = seeds.clone().map(|seed| {
                let (_, scores) = fitted(&recordings(100 + seed, 300, OUTLIERS), components, noise, seed);
                fraction_found(&scores, OUTLIERS)
            });
            let mean = mean.sum::<f64>() / seeds.count() as f64;
            // Ten Student-t components of 30 samples each may keep one that explains a few outliers.
            let least = if noise == Noise::T && components == 10 { 0.8 } else { 0.9 };
            assert!(mean >= least, "{noise}, K = {components}: {mean:.2} found");
        }
    }
}

/// Every component that is left has samples enough; the others have the weight 0, and a warning names them.
#[test]
fn removed_components_have_no_weight_and_a_warning() {
    let (fit, _) = fitted(&recordings(7, 300, OUTLIERS), 10, Noise::Gaussian, 0);
    let removed = fit.history.events.iter().filter_map(|event| match event {
        Event::Removed { component, .. } => Some(*component),
        _ => None,
    });
    let mut removed: Vec<usize> = removed.collect();
    removed.sort_unstable();
    let without: Vec<usize> = (0..10).filter(|&k| fit.model.weights()[k] == 0.0).collect();
    assert!(!without.is_empty());
    assert_eq!(removed, without);
    assert!(fit.model.weights().iter().all(|&w| w == 0.0 || w * 300.0 >= 7.5), "{:?}", fit.model.weights());
    assert!(without.iter().all(|&k| fit.assigned[k] == 0));
    let warning = &fit.history.warnings()[0];
    assert!(warning.starts_with("too little support in the data for components "), "{warning}");
}

/// Groups that differ keep their components, small ones too.
#[test]
fn groups_in_the_data_keep_their_components() {
    let mut data = recordings(3, 300, 0);
    let size = SHAPE[0] * SHAPE[1];
    // 220, 50 and 30 samples.
    for (n, sample) in data.chunks_exact_mut(size).enumerate() {
        let shift = [0.0, 1.0, -1.0][usize::from(n >= 220) + usize::from(n >= 270)];
        sample.iter_mut().enumerate().for_each(|(i, x)| *x += shift * f64::from(u8::from(i % 3 == 0)));
    }
    for noise in [Noise::Gaussian, Noise::T] {
        let (fit, _) = fitted(&data, 3, noise, 1);
        let mut sizes = fit.assigned.clone();
        sizes.sort_unstable();
        assert_eq!(sizes, [30, 50, 220], "{noise}: {:?}", fit.history.events);
    }
}

/// A weight is a number of repetitions, also where components are removed or moved.
#[test]
fn weights_are_repetitions_where_components_are_removed() {
    let data = recordings(11, 120, 4);
    let size = SHAPE[0] * SHAPE[1];
    let weights: Vec<f64> = (0..120).map(|n| f64::from(1 + (n % 3) as u8)).collect();
    let repeated: Vec<f64> =
        (0..120).flat_map(|n| data[n * size..][..size].repeat(weights[n] as usize)).collect();
    let start = fitted(&data, 6, Noise::Gaussian, 0).0.model;
    let means: Vec<f64> = start.components()[0].mean().iter().map(|x| x + 1e4).collect();
    let far = matmix::Component::new(&SHAPE, means, start.components()[0].loadings().to_vec(), 1.0).unwrap();
    let near = fitted(&data, 1, Noise::Gaussian, 0).0.model.components()[0].clone();
    let start = matmix::Mixture::new(&SHAPE, vec![0.4, 0.3, 0.3], vec![near.clone(), near, far]).unwrap();
    let options = FitOptions {
        components: 3,
        rank: vec![4, 4],
        start: matmix::Start::Model(Box::new(start)),
        max_iter: 10,
        ..FitOptions::default()
    };
    let weighted = Samples::from_slice(&SHAPE, &data).unwrap().with_weights(weights).unwrap();
    let a = fit(&weighted, &options).unwrap();
    let b = fit(&Samples::from_slice(&SHAPE, &repeated).unwrap(), &options).unwrap();
    assert!(
        a.history.events.iter().any(|e| matches!(e, Event::Moved { component: 2, .. })),
        "{:?}",
        a.history
    );
    assert!((a.log_likelihood() - b.log_likelihood()).abs() < 1e-6 * b.log_likelihood().abs());
}

/// The likelihood of Student-t components of few samples stays bounded.
#[test]
fn components_with_heavy_tails_do_not_collapse() {
    let data = recordings(5, 200, 0);
    let size = SHAPE[0] * SHAPE[1];
    let samples = Samples::from_slice(&[size], &data).unwrap();
    let options = FitOptions {
        components: 4,
        rank: vec![8],
        noise: Noise::T,
        search: Search::Auto,
        ..FitOptions::default()
    };
    let fit = fit(&samples, &options).unwrap();
    for (k, part) in fit.model.components().iter().enumerate() {
        let is_used = fit.model.weights()[k] > 0.0;
        assert!(!is_used || part.noise_variance() > 0.5, "{k}: {}", part.noise_variance());
    }
}
