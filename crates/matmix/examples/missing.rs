//! The figures of docs/missing.md: digits of which cells are hidden.
//!
//! `cargo run --release -p matmix --example missing [likelihood] [hidden] [time]`

use std::time::Instant;

use matmix::pass::{EmPass, Stage, Update};
use matmix::{Engine, FitOptions, Missing, Precision, Samples, Search, Temper, fit};

type Outcome = Result<(), matmix::Error>;

fn main() -> Outcome {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let wants = |what: &str| asked.is_empty() || asked.iter().any(|a| a == what);
    let digits = matmix::data::digits().samples.scaled(1.0 / 255.0)?;
    let whole: Vec<f32> = digits.to_f64(0..1000)?.iter().map(|&x| x as f32).collect();
    if wants("likelihood") {
        likelihood(&whole)?;
    }
    if wants("hidden") {
        hidden(&whole)?;
    }
    if wants("time") {
        time(&whole)?;
    }
    Ok(())
}

/// Uniform numbers in [0, 1) by the finaliser of splitmix64.
fn uniform(i: usize) -> f64 {
    let mut z = (i as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

fn hide(whole: &[f32], hidden: impl Fn(usize) -> bool) -> Vec<f32> {
    whole.iter().enumerate().map(|(i, &x)| if hidden(i) { f32::NAN } else { x }).collect()
}

fn options(components: usize, rank: usize) -> FitOptions {
    FitOptions { components, rank: vec![rank, rank], missing: Missing::Nan, ..FitOptions::default() }
}

/// The mean log-likelihood of what was observed after a default fit, for five seeds.
fn likelihood(whole: &[f32]) -> Outcome {
    for share in [0.3, 0.6] {
        let broken = hide(whole, |i| uniform(i) < share);
        let samples = Samples::from_slice(&[28, 28], &broken)?;
        let mut all = Vec::new();
        for seed in 0..5 {
            let found = fit(&samples, &FitOptions { seed, ..options(5, 4) })?;
            println!(
                "{share:.0e} hidden, seed {seed}: {:.3} after {} iterations ({}) in {:.1} s",
                found.log_likelihood(),
                found.n_iterations(),
                found.stop().name(),
                found.history.seconds
            );
            all.push(found.log_likelihood());
        }
        println!("{share} hidden, K = 5, 4×4: mean {:.3}", all.iter().sum::<f64>() / 5.0);
    }
    Ok(())
}

/// Root mean square error of hidden cells, and how many of their 95 % intervals cover them, by how far the others are trusted.
fn hidden(whole: &[f32]) -> Outcome {
    let block = |i: usize, side: usize| {
        let (n, row, column) = (i / 784, i / 28 % 28, i % 28);
        let place = |j: usize| (uniform(7 * n + j) * (29 - side) as f64) as usize;
        let (top, left) = (place(0), place(1));
        n % 10 < 3 && (top..top + side).contains(&row) && (left..left + side).contains(&column)
    };
    let scattered = |i: usize| uniform(i) < 0.3;
    let (ten, fourteen) = (|i: usize| block(i, 10), |i: usize| block(i, 14));
    let ways: [(&str, &dyn Fn(usize) -> bool); 3] =
        [("30 % scattered", &scattered), ("blocks of 10×10", &ten), ("blocks of 14×14", &fourteen)];
    for (name, hidden) in ways {
        let broken = hide(whole, hidden);
        let samples = Samples::from_slice(&[28, 28], &broken)?;
        for (k, rank) in [(5, 8), (1, 8), (1, 12), (5, 4)] {
            let model = fit(&samples, &options(k, rank))?.model;
            let tempers = [0.5, 0.3, 0.2, 0.1].map(Temper::Fixed);
            for temper in [Temper::None, Temper::Auto].into_iter().chain(tempers) {
                let found = model.impute_by(&samples, temper)?;
                let (mut squares, mut covered) = (0.0, 0);
                for i in (0..broken.len()).filter(|&i| broken[i].is_nan()) {
                    let error = found.values[i] - f64::from(whole[i]);
                    squares += error * error;
                    covered += usize::from(error.abs() < 1.96 * found.deviations[i]);
                }
                let count = found.missing as f64;
                let (error, covered) = ((squares / count).sqrt(), 100.0 * covered as f64 / count);
                println!(
                    "{name}, K = {k}, {rank}×{rank}, temper {temper} ({} samples): error {error:.4}, intervals cover {covered:.1} %",
                    found.tempered.len()
                );
            }
        }
    }
    Ok(())
}

/// A moment of the clock, and of the time that this thread has worked, where the system tells.
struct Moment {
    clock: Instant,
    worked: Option<f64>,
}

impl Moment {
    fn now() -> Self {
        // Linux: nanoseconds on a processor, then other figures.
        let worked = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let worked = worked.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        Self { clock: Instant::now(), worked: worked.map(|nanoseconds| nanoseconds * 1e-9) }
    }

    /// Seconds that this thread has worked since; those that have passed, if the system does not tell.
    fn seconds(&self) -> f64 {
        match (self.worked, Self::now().worked) {
            (Some(then), Some(now)) => now - then,
            _ => self.clock.elapsed().as_secs_f64(),
        }
    }
}

/// Seconds of one pass of EM, complete and with holes, on one thread.
fn time(whole: &[f32]) -> Outcome {
    // A pass cuts its samples into runs that are summed up apart, sixteen times and sixty-four times here.
    for (times, k, rank) in [(4, 10, 4), (4, 5, 8), (60, 10, 4)] {
        let many: Vec<f32> = whole.repeat(times);
        println!("{},000 samples of 28×28, {rank}×{rank}, K = {k}", times);
        time_all(whole, &many, &options(k, rank))?;
    }
    Ok(())
}

fn time_all(whole: &[f32], many: &[f32], options: &FitOptions) -> Outcome {
    let of_each = |share: f64| hide(many, move |i| uniform(i) < share);
    let (sample, row) = (|i: usize| i / 784, |i: usize| i / 28 % 28);
    let sets = [
        ("complete", many.to_vec()),
        ("5 % of every sample", of_each(0.05)),
        ("5 % of one sample in ten", hide(many, |i| sample(i) % 10 == 0 && uniform(i) < 0.05)),
        ("50 % of every sample", of_each(0.5)),
        ("the lower half of every sample", hide(many, |i| row(i) >= 14)),
        ("the same 7 rows of every sample", hide(many, |i| row(i) % 4 == 1)),
        ("7 rows, one of three patterns", hide(many, |i| row(i) % 4 == sample(i) % 3)),
        ("a quarter of the rows, at random", hide(many, |i| uniform(sample(i) * 28 + row(i)) < 0.25)),
    ];
    let complete = Samples::from_slice(&[28, 28], whole)?;
    let quickly =
        FitOptions { missing: Missing::Error, max_iter: 10, search: Search::None, ..options.clone() };
    let model = fit(&complete, &quickly)?.model;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pass = EmPass { model, update: Update::All, precision: Precision::Auto, stage: Stage::ALL };
    // The sets take turns, and the fastest turn of each counts: whatever else the machine does slows them all.
    let mut best = vec![f64::INFINITY; sets.len()];
    for _ in 0..if many.len() > 10 * whole.len() { 5 } else { 15 } {
        for ((_, x), best) in sets.iter().zip(&mut best) {
            let samples = Samples::from_slice(&[28, 28], x)?.with_missing(Missing::Nan);
            let once = || {
                let began = Moment::now();
                (&samples as &dyn Engine).sums(&pass).map(|_| began.seconds())
            };
            let seconds = match &pool {
                Ok(pool) => pool.install(once),
                Err(_) => once(),
            };
            *best = best.min(seconds?);
        }
    }
    for ((name, _), seconds) in sets.iter().zip(&best) {
        let (each, times) = (seconds / (many.len() / 784) as f64 * 1e6, seconds / best[0]);
        println!("{name}: {each:.2} µs per sample, {times:.2} × a complete pass");
    }
    Ok(())
}
