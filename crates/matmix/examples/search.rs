//! What the search of a start is worth: log-likelihood and passes beside plain fits and their restarts, seed by seed.
//!
//! ```sh
//! cargo run --release --example search -- [seeds [components [rank [data.npy|planted]]]]
//! ```

use matmix::data::digits;
use matmix::{Component, FitOptions, Matrix, Mixture, Samples, Search, fit};

/// How many restarts stand for the patience of a user.
const RESTARTS: u64 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (seeds, components, rank) = (number(0, 20)?, number(1, 10)?, number(2, 4)?);
    let samples = match arguments.get(3).map(String::as_str) {
        None => digits().samples.scaled(1.0 / 255.0)?,
        Some("planted") => planted()?,
        Some(path) => Samples::from_npy(path)?,
    };
    let run = |search, seed| {
        fit(&samples, &FitOptions { components, rank: vec![rank], search, seed, ..FitOptions::default() })
    };
    let (mut plain, mut best, mut searched) = (Row::default(), Row::default(), Row::default());
    for seed in 0..seeds as u64 {
        let first = run(Search::None, seed)?;
        let (mut most, mut passes, mut seconds) =
            (first.log_likelihood(), first.history.passes, first.history.seconds);
        plain.push(most, passes, seconds);
        for other in 1..RESTARTS {
            let again = run(Search::None, 1000 * other + seed)?;
            most = most.max(again.log_likelihood());
            passes += again.history.passes;
            seconds += again.history.seconds;
        }
        best.push(most, passes, seconds);
        let found = run(Search::Auto, seed)?;
        searched.push(found.log_likelihood(), found.history.passes, found.history.seconds);
        let what = found.history.search.unwrap_or_default();
        let [splits, merges, exchanges] = what.counts();
        say(&format!(
            "seed {seed}: plain {:.2}, best of {RESTARTS} {most:.2}, search {:.2} ({splits} splits, {merges} merges, {exchanges} \
             exchanges for {:.2}, {:.0} of {:.0} passes)",
            first.log_likelihood(),
            found.history.log_likelihood.last().copied().unwrap_or(f64::NAN),
            what.gain(),
            what.passes,
            found.history.passes,
        ));
    }
    say(&format!("plain        {plain}\nbest of {RESTARTS}    {best}\nsearch       {searched}"));
    Ok(())
}

#[allow(clippy::print_stdout)]
fn say(what: &str) {
    println!("{what}");
}

/// Fits of several seeds.
#[derive(Default)]
struct Row {
    log_likelihood: Vec<f64>,
    passes: Vec<f64>,
    seconds: Vec<f64>,
}

impl Row {
    fn push(&mut self, log_likelihood: f64, passes: f64, seconds: f64) {
        self.log_likelihood.push(log_likelihood);
        self.passes.push(passes);
        self.seconds.push(seconds);
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let mut sorted = self.log_likelihood.clone();
        sorted.sort_by(f64::total_cmp);
        let at_318 = sorted.iter().filter(|l| **l >= 318.0).count();
        write!(
            f,
            "mean {:.2}, least {:.2}, most {:.2}, at 318 or more {at_318}; {:.1} passes, {:.2} s",
            mean(&sorted),
            sorted.first().copied().unwrap_or(f64::NAN),
            sorted.last().copied().unwrap_or(f64::NAN),
            mean(&self.passes),
            mean(&self.seconds),
        )
    }
}

/// 2,000 samples of a mixture of 12 components of unequal weights, 16×12 with cores of 3×2, drawn with fixed numbers.
fn planted() -> matmix::Result<Samples<'static>> {
    let (shape, rank, components) = ([16, 12], [3, 2], 12);
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    // The sum of twelve is as good as normal here.
    let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut parts = Vec::new();
    for _ in 0..components {
        let mean = (0..192).map(|_| 0.5 * normal()).collect();
        let loadings = (0..2).map(|d| Matrix::from_fn(shape[d], rank[d], |_, _| 0.6 * normal())).collect();
        parts.push(Component::new(&shape, mean, loadings, 0.5)?);
    }
    let weights = (0..components).map(|k| 1.0 + (k % 4) as f64).collect();
    let drawn = Mixture::new(&shape, weights, parts)?.sample(2000, 1);
    Samples::from_vec(&shape, drawn.samples)
}
