//! What a selection is worth: planted numbers found again, what a path costs, and how near it comes to a full grid.
//!
//! ```sh
//! cargo run --release --example choosing -- planted [--seeds 0..20] [--components 3,6,10] [--samples 300,1000,5000] [--first 4]
//! cargo run --release --example choosing -- path [--seeds 0..3]
//! cargo run --release --example choosing -- grid [--most 20] [--ranks 2,4,6,8,10,12,14,16] [--held 4] [--seeds 0..1] [--only selection|grid]
//! ```
//!
//! A line per run, so that seeds can be shared out among machines; the last lines sum up. Times are those of the processor, all threads together, so that
//! other work on the machine does not count.

use std::ops::Range;
use std::sync::LazyLock;
use std::time::Instant;

use matmix::data::digits;
use matmix::{
    Component, Criterion, FitOptions, Matrix, Mixture, Samples, Search, SelectOptions, Selection, Start, fit,
    select,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).cloned()
    };
    let seeds = |default: &str| range(&given("--seeds").unwrap_or_else(|| default.into()));
    let numbers = |name: &str, default: &str| list(&given(name).unwrap_or_else(|| default.into()));
    match arguments.first().map(String::as_str) {
        Some("planted") => planted(
            seeds("0..20")?,
            &numbers("--components", "3,6,10")?,
            &numbers("--samples", "300,1000,5000")?,
            &numbers("--first", "4")?,
        ),
        Some("path") => path(seeds("0..3")?),
        Some("grid") => grid(
            numbers("--most", "20")?[0],
            &numbers("--ranks", "2,4,6,8,10,12,14,16")?,
            numbers("--held", "4")?[0],
            seeds("0..1")?,
            given("--only").as_deref(),
        ),
        _ => Err("choosing planted | path | grid".into()),
    }
}

fn range(text: &str) -> Outcome<Range<u64>> {
    let (from, to) = text.split_once("..").ok_or("seeds are a..b")?;
    Ok(from.parse()?..to.parse()?)
}

fn list(text: &str) -> Outcome<Vec<usize>> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

#[allow(clippy::print_stdout)]
fn say(what: &str) {
    println!("{what}");
}

const SHAPE: [usize; 2] = [12, 10];
const RANK: [usize; 2] = [3, 2];

/// Components and ranks that were planted, found by a selection among 1..15 components and all ranks.
///
/// A run counts as identifiable if the planted numbers explain fresh samples better than what was chosen, both fitted to the same samples.
fn planted(seeds: Range<u64>, components: &[usize], samples: &[usize], first: &[usize]) -> Outcome<()> {
    let mut table = Vec::new();
    for &k in components {
        for &n in samples {
            let (mut right_k, mut right_rank, mut fair, mut fair_k, mut fair_rank) = (0, 0, 0, 0, 0);
            for seed in seeds.clone() {
                let truth = mixture(1000 * k as u64 + seed, k)?;
                let seen = Samples::from_vec(&SHAPE, truth.sample(n, seed).samples)?;
                let fresh = Samples::from_vec(&SHAPE, truth.sample(5000, 77 + seed).samples)?;
                let options = SelectOptions {
                    most_components: 15,
                    choose_rank: true,
                    fit: FitOptions { seed, rank: first.to_vec(), ..FitOptions::default() },
                    ..SelectOptions::default()
                };
                let begun = Instant::now();
                let chosen = select(&seen, &options)?;
                let seconds = begun.elapsed().as_secs_f64();
                let (found, rank) = parts(&chosen);
                let (is_k, is_rank) = (found == k, rank == RANK);
                let ideal = FitOptions {
                    components: k,
                    rank: RANK.to_vec(),
                    start: Start::Model(Box::new(truth)),
                    ..FitOptions::default()
                };
                let ideal = fit(&seen, &ideal)?.model.score(&fresh)?;
                let ours = chosen.fit.model.score(&fresh)?;
                let is_fair = (is_k && is_rank) || ideal > ours;
                right_k += usize::from(is_k);
                right_rank += usize::from(is_rank);
                fair += usize::from(is_fair);
                fair_k += usize::from(is_fair && is_k);
                fair_rank += usize::from(is_fair && is_rank);
                say(&format!(
                    "K {k} N {n} seed {seed}: {found} {}x{}, fresh samples {ours:.3}, from the truth {ideal:.3}, {seconds:.1} s",
                    rank[0], rank[1]
                ));
            }
            let runs = (seeds.end - seeds.start) as usize;
            table.push(format!(
                "| {k} | {n} | {right_k} of {runs} | {right_rank} of {runs} | {fair_k} of {fair} | {fair_rank} of {fair} |"
            ));
        }
    }
    say("| K | N | right K | right ranks | K, where the planted numbers are better | ranks, likewise |");
    say(&table.join("\n"));
    Ok(())
}

fn parts(chosen: &Selection) -> (usize, Vec<usize>) {
    let best = chosen.best();
    (best.components, best.rank.clone())
}

/// A mixture of 12×10 with cores of 3×2, means far enough apart to be told and near enough to overlap in single cells.
fn mixture(seed: u64, components: usize) -> matmix::Result<Mixture> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    // The sum of twelve is as good as normal here.
    let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut parts = Vec::new();
    for _ in 0..components {
        let mean = (0..SHAPE[0] * SHAPE[1]).map(|_| 0.8 * normal()).collect();
        let loadings = (0..2).map(|d| Matrix::from_fn(SHAPE[d], RANK[d], |_, _| 0.7 * normal())).collect();
        parts.push(Component::new(&SHAPE, mean, loadings, 0.5)?);
    }
    let weights = (0..components).map(|k| 1.0 + (k % 3) as f64 / 2.0).collect();
    Mixture::new(&SHAPE, weights, parts)
}

/// A path K = 1..20 beside one fit of 20 components, in passes of 20 components over all samples.
fn path(seeds: Range<u64>) -> Outcome<()> {
    let digits = digits().samples.scaled(1.0 / 255.0)?;
    let drawn = Samples::from_vec(&SHAPE, mixture(5, 12)?.sample(3000, 1).samples)?;
    for (name, samples, rank) in [("digits", &digits, 4), ("planted", &drawn, 3)] {
        for seed in seeds.clone() {
            let options = FitOptions { components: 20, rank: vec![rank], seed, ..FitOptions::default() };
            let plain = fit(samples, &FitOptions { search: Search::None, ..options.clone() })?.history.passes;
            let begun = processor_seconds();
            let searched = fit(samples, &options)?.history.passes;
            let one = processor_seconds() - begun;
            let begun = processor_seconds();
            let selection = SelectOptions {
                most_components: 20,
                criterion: Criterion::Bic,
                fit: options,
                ..SelectOptions::default()
            };
            let chosen = select(samples, &selection)?;
            let seconds = processor_seconds() - begun;
            let passes = chosen.choice.passes;
            say(&format!(
                "{name} seed {seed}: the path {passes:.0} passes, {seconds:.1} s; a fit of 20 {searched:.0}, {one:.1} s, without a search {plain:.0}: {:.2} times \
                 the passes, {:.2} times the time, {:.2} times the passes of a fit without a search",
                passes / searched,
                seconds / one,
                passes / plain,
            ));
        }
    }
    Ok(())
}

/// What all threads have computed so far, in seconds of a processor; where the system does not say, what has passed on the clock.
fn processor_seconds() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        // The name in brackets may have spaces; user and system time are the 14th and 15th words.
        let words = stat.rsplit_once(')')?.1.split_whitespace();
        words.skip(11).take(2).map(|word| word.parse::<f64>().ok()).sum::<Option<f64>>()
    });
    ticks.map_or_else(|| BEGUN.elapsed().as_secs_f64(), |ticks| ticks / 100.0)
}

/// The chosen model beside the best of a full grid that is judged by the very samples in question: four fifths of the digits, and the other
/// fifth, which neither has seen.
fn grid(most: usize, ranks: &[usize], held: usize, seeds: Range<u64>, only: Option<&str>) -> Outcome<()> {
    let all = digits().samples.scaled(1.0 / 255.0)?;
    let places = |test: bool| (0..all.len()).filter(|n| (n % 5 == held) == test).collect::<Vec<_>>();
    let (seen, fresh) = (all.clone().select(&places(false))?, all.clone().select(&places(true))?);
    let mut ours = Vec::new();
    for seed in if only == Some("grid") { 0..0 } else { seeds } {
        let begun = processor_seconds();
        // A fifth is held out once, as the samples are that judge the grid.
        let options = SelectOptions {
            most_components: most,
            choose_rank: true,
            most_rank: vec![ranks.iter().copied().max().unwrap_or(1)],
            folds: 1,
            fit: FitOptions { seed, ..FitOptions::default() },
            ..SelectOptions::default()
        };
        let chosen = select(&seen, &options)?;
        let seconds = processor_seconds() - begun;
        let score = chosen.fit.model.score(&fresh)?;
        let (components, rank) = parts(&chosen);
        say(&format!(
            "held {held} seed {seed}: chosen K = {components}, {rank:?}, seen {:.2}, fresh samples {score:.2}, {seconds:.1} s, {} candidates",
            chosen.fit.log_likelihood(),
            chosen.choice.candidates.len()
        ));
        let begun = processor_seconds();
        let alone = fit(&seen, &FitOptions { components, rank, seed, ..FitOptions::default() })?;
        say(&format!(
            "the same numbers, fitted by themselves: seen {:.2}, fresh samples {:.2}, {:.1} s",
            alone.log_likelihood(),
            alone.model.score(&fresh)?,
            processor_seconds() - begun
        ));
        ours.push((score, seconds));
    }
    if only == Some("selection") {
        return Ok(());
    }
    let begun = processor_seconds();
    let mut best = (f64::NEG_INFINITY, 0, 0);
    for &r in ranks {
        let (mut row, row_begun) = (Vec::new(), processor_seconds());
        for components in 1..=most {
            let options = FitOptions { components, rank: vec![r], ..FitOptions::default() };
            let score = fit(&seen, &options)?.model.score(&fresh)?;
            row.push(format!("{score:.1}"));
            if score > best.0 {
                best = (score, components, r);
            }
        }
        say(&format!("{r}x{r}: {}, {:.1} s", row.join(" "), processor_seconds() - row_begun));
    }
    let whole = processor_seconds() - begun;
    let (score, k, r) = best;
    say(&format!(
        "the best of {} on the grid: K = {k}, {r}x{r}, {score:.2}, {whole:.1} s",
        most * ranks.len()
    ));
    for (ours, seconds) in ours {
        let percent = 100.0 * (ours - score) / score.abs();
        say(&format!("ours is {percent:+.2} % at {:.3} of its time", seconds / whole));
    }
    Ok(())
}
