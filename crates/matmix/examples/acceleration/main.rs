//! How many passes over the data a fit needs, plain and with an accelerator on top: the evidence behind
//! "Fewer passes" in docs/performance.md.
//!
//! ```sh
//! cargo run --release --example acceleration -- [--seeds 11] [--only "SQUAREM, late"] \
//!     [digits] [digits=20] [planted] [planted=7] [faces.mat ...]
//! ```
//!
//! `digits=20` has 20 components, `planted=7` other planted data; `--only` compares plain iterations with one method.
//!
//! One iteration of the library, AECM over the modes with parameter expansion, is the map F. An accelerator guesses
//! from a few iterates where they are heading. A guess is kept only if the likelihood says so:
//!
//! - `known`: it must not be below the last likelihood that is known anyway, that of the model the iteration began with.
//!   The evaluation of a guess that is kept is the first pass of the next iteration, so only a refused one costs a pass.
//! - `late`: the same, but only once an iteration gains little, [`LATE`] nats for every number of a sample. Before that, samples are
//!   still looking for their component, and a long step can take them to another one.
//! - `strict`: it must not be below the likelihood of F's own result. That one is then evaluated, too: every guess
//!   costs a pass.

#![allow(clippy::print_stdout)]

mod accelerators;

use accelerators::{Accelerator, Anderson, Overrelaxed, Plain};
use matmix::data::{OpenOptions, digits, open};
use matmix::fit::accelerate::{LATE, Squarem, aligned, coordinates, metric, model_at};
use matmix::{Component, Event, FitOptions, Matrix, Mixture, Precision, Samples, Start, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

type Failure = Box<dyn std::error::Error>;
type Make = fn() -> Box<dyn Accelerator>;

/// How close to the final log-likelihood of the plain iterations is close enough.
const CLOSE: f64 = 1e-6;
/// A relative change this small ends a run.
const STILL: f64 = 1e-10;
/// Plain iterations at most; the others may make as many passes.
const ITERATIONS: usize = 1000;

/// When a guess is made and kept.
#[derive(Clone, Copy, PartialEq)]
enum Test {
    Known,
    Late,
    Strict,
}

/// Samples and the model to fit to them.
struct Problem {
    name: String,
    samples: Samples<'static>,
    components: usize,
    rank: Vec<usize>,
}

/// A model, its log-likelihood and what one iteration makes of it.
struct Step {
    log_likelihood: f64,
    next: Mixture,
    next_log_likelihood: f64,
    /// Something other than the map happened: a dying component was moved.
    moved: bool,
}

impl Problem {
    fn options(&self, start: Start, seed: u64, max_iter: usize) -> FitOptions {
        let (components, rank) = (self.components, self.rank.clone());
        // In single precision, likelihoods that differ by 1e-10 could not be told apart.
        let precision = Precision::Double;
        FitOptions {
            components,
            rank,
            start,
            seed,
            max_iter,
            accelerate: false,
            tol: 0.0,
            precision,
            ..FitOptions::default()
        }
    }

    fn start(&self, seed: u64) -> Result<Mixture, Failure> {
        Ok(fit(&self.samples, &self.options(Start::KMeans, seed, 0))?.model)
    }

    fn step(&self, model: &Mixture) -> Result<Step, Failure> {
        let fitted = fit(&self.samples, &self.options(Start::Model(Box::new(model.clone())), 0, 1))?;
        let &[log_likelihood, next_log_likelihood] = fitted.history.log_likelihood.as_slice() else {
            return Err("one iteration has two likelihoods".into());
        };
        let moved = fitted.history.events.iter().any(|e| matches!(e, Event::Moved { .. }));
        Ok(Step { log_likelihood, next: fitted.model, next_log_likelihood, moved })
    }
}

/// What came of one run.
struct Run {
    /// Passes made and the log-likelihood known by then.
    trace: Vec<(usize, f64)>,
    guesses: usize,
    refused: usize,
}

impl Run {
    fn last(&self) -> f64 {
        self.trace.last().map_or(f64::NEG_INFINITY, |&(_, l)| l)
    }

    /// Passes until a log-likelihood is reached; infinitely many if it never is.
    fn passes_to(&self, target: f64) -> f64 {
        self.trace.iter().find(|&&(_, l)| l >= target).map_or(f64::INFINITY, |&(passes, _)| passes as f64)
    }

    /// Passes until the log-likelihood is close to where this run ends.
    fn passes_to_end(&self) -> f64 {
        self.passes_to(self.last() - CLOSE * self.last().abs())
    }
}

/// Runs an accelerator from a start to its end.
fn run(
    problem: &Problem,
    start: &Mixture,
    accelerator: &mut dyn Accelerator,
    test: Test,
) -> Result<Run, Failure> {
    let strict = test == Test::Strict;
    let order = problem.rank.len();
    let mut step = problem.step(start)?;
    let mut x = coordinates(start, 1.0);
    // The evaluation of the start, which is the first pass of the first iteration.
    let mut out = Run { trace: vec![(1, step.log_likelihood)], guesses: 0, refused: 0 };
    let mut passes = 1;
    let late = LATE * problem.samples.sample_len() as f64;
    let (mut gain, mut still) = (f64::INFINITY, 0);
    // Two in a row: a guess may be kept that is no better than what was there.
    while passes < 1 + order * ITERATIONS && still < 2 {
        passes += order - 1;
        let image = aligned(&step.next, &x, 1.0);
        let wait = step.moved || (test == Test::Late && gain > late);
        let guess = if wait {
            accelerator.restart();
            None
        } else {
            accelerator.guess(&x, &image, &metric(&step.next))
        };
        let before = step.log_likelihood;
        let mut kept = false;
        if let Some(guess) = guess {
            out.guesses += 1;
            passes += 1 + usize::from(strict);
            let bar = if strict { step.next_log_likelihood } else { step.log_likelihood };
            let tried = model_at(&step.next, &guess, (0.0, 1.0, 0.5))
                .and_then(|model| Some((problem.step(&model).ok()?, model)));
            if let Some((there, model)) = tried.filter(|(there, _)| there.log_likelihood >= bar) {
                x = aligned(&model, &guess, 1.0);
                step = there;
                kept = true;
            } else {
                out.refused += 1;
            }
            accelerator.kept(kept);
            passes += usize::from(!kept && !strict);
        } else {
            passes += 1;
        }
        if !kept {
            x = image;
            step = problem.step(&step.next)?;
        }
        out.trace.push((passes, step.log_likelihood));
        gain = step.log_likelihood - before;
        still = if gain <= STILL * before.abs().max(1.0) { still + 1 } else { 0 };
    }
    Ok(out)
}

/// Data drawn from a mixture of four components with noise of variance 1, whose means lie `spread` apart in every
/// element and whose loadings have entries of size `signal`.
fn planted(name: &str, spread: f64, signal: f64, seed: u64) -> Result<Problem, Failure> {
    let (shape, rank, components) = ([16, 12], [3, 2], 4);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || -> f64 { rng.sample(StandardNormal) };
    let mut parts = Vec::new();
    for _ in 0..components {
        let mean = (0..16 * 12).map(|_| spread * normal()).collect();
        let loadings =
            shape.iter().zip(rank).map(|(&p, r)| Matrix::from_fn(p, r, |_, _| signal * normal())).collect();
        parts.push(Component::new(&shape, mean, loadings, 1.0)?);
    }
    let drawn = Mixture::new(&shape, vec![1.0; components], parts)?.sample(1000, seed);
    let samples = Samples::from_vec(&shape, drawn.samples)?;
    Ok(Problem { name: name.into(), samples, components, rank: rank.to_vec() })
}

fn problems(argument: &str) -> Result<Vec<Problem>, Failure> {
    let (kind, number) = argument.split_once('=').unwrap_or((argument, ""));
    let number = |usual: u64| if number.is_empty() { Ok(usual) } else { number.parse() };
    Ok(match kind {
        "digits" => {
            let samples = digits().samples.scaled(1.0 / 255.0)?;
            let of = |components: usize| {
                let name = format!("digits, K = {components}, 4×4");
                Problem { name, samples: samples.clone(), components, rank: vec![4, 4] }
            };
            if argument == kind { vec![of(5), of(10)] } else { vec![of(number(10)? as usize)] }
        }
        "planted" => {
            let seed = number(1)?;
            vec![
                planted("planted, far apart, strong cores", 1.0, 0.5, seed)?,
                planted("planted, far apart, weak cores", 1.0, 0.25, seed)?,
                planted("planted, overlapping, strong cores", 0.05, 0.5, seed + 1)?,
                planted("planted, overlapping, weak cores", 0.1, 0.3, seed + 1)?,
            ]
        }
        file => {
            let options = OpenOptions { scale: Some(1.0 / 255.0), ..OpenOptions::default() };
            let samples = open(file, &options)?.samples;
            vec![Problem { name: "faces, K = 3, 8×8".into(), samples, components: 3, rank: vec![8, 8] }]
        }
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2])
}

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut seeds = 11;
    if let Some(at) = arguments.iter().position(|a| a == "--seeds") {
        seeds = arguments.get(at + 1).ok_or("--seeds needs a number")?.parse()?;
        arguments.drain(at..at + 2);
    }
    if seeds == 0 {
        return Err("--seeds needs a number of at least 1".into());
    }
    let mut only = None;
    if let Some(at) = arguments.iter().position(|a| a == "--only") {
        only = Some(arguments.get(at + 1).ok_or("--only needs a method")?.clone());
        arguments.drain(at..at + 2);
    }
    if arguments.is_empty() {
        arguments = vec!["digits".into(), "planted".into()];
    }
    println!(
        "| data | method | passes to plain's end | passes to own end | of plain | end better, same, worse | mean difference | refused |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for argument in &arguments {
        for problem in problems(argument)? {
            compare(&problem, seeds, only.as_deref())?;
        }
    }
    Ok(())
}

fn compare(problem: &Problem, seeds: u64, only: Option<&str>) -> Result<(), Failure> {
    let starts = (0..seeds).map(|seed| problem.start(seed)).collect::<Result<Vec<_>, _>>()?;
    let mut ends = Vec::new();
    let mut own_plain = Vec::new();
    for start in &starts {
        let plain = run(problem, start, &mut Plain, Test::Known)?;
        ends.push(plain.last());
        own_plain.push(plain.passes_to_end());
    }
    let methods: [(&str, Make); 6] = [
        ("plain", || Box::new(Plain)),
        ("over-relaxation", || Box::new(Overrelaxed::up_to(f64::INFINITY))),
        ("over-relaxation up to 1.8", || Box::new(Overrelaxed::up_to(1.8))),
        ("SQUAREM", || Box::<Squarem>::default()),
        ("Anderson 3", || Box::new(Anderson::new(3))),
        ("Anderson 5", || Box::new(Anderson::new(5))),
    ];
    for (method, make) in methods {
        for (test, suffix) in [(Test::Known, ", known"), (Test::Late, ", late"), (Test::Strict, ", strict")] {
            let name = if method == "plain" { method.to_string() } else { format!("{method}{suffix}") };
            let twice = method == "plain" && test != Test::Known;
            if twice || only.is_some_and(|only| method != "plain" && name != only) {
                continue;
            }
            let (mut to_plain, mut to_own, mut ratios) = (vec![], vec![], vec![]);
            let (mut guesses, mut refused, mut against, mut differences) = (0, 0, [0; 3], 0.0);
            for ((start, &end), &plain) in starts.iter().zip(&ends).zip(&own_plain) {
                let run = run(problem, start, &mut *make(), test)?;
                let close = CLOSE * end.abs();
                to_plain.push(run.passes_to(end - close));
                to_own.push(run.passes_to_end());
                ratios.push(run.passes_to_end() / plain);
                let place =
                    if run.last() > end + close { 0 } else { 1 + usize::from(run.last() < end - close) };
                against[place] += 1;
                differences += (run.last() - end) / end.abs();
                guesses += run.guesses;
                refused += run.refused;
            }
            println!(
                "| {} | {name} | {:.0} | {:.0} | {:.0} % | {}, {}, {} | {:+.1e} | {refused} of {guesses} |",
                problem.name,
                median(to_plain),
                median(to_own),
                100.0 * median(ratios),
                against[0],
                against[1],
                against[2],
                differences / seeds as f64,
            );
        }
    }
    Ok(())
}
