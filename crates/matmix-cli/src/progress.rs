//! Bars on stderr for whatever takes longer than a moment. Not a terminal, or `--quiet`: no bars.

use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use matmix::data::Reading;
use matmix::{Meter, Progress, Samples, SearchMove, SearchStep};

use crate::interrupt;
use crate::table::{count, measured};

/// A pass that is over sooner is not worth a word.
const LONG: Duration = Duration::from_secs(2);

fn bar(quiet: bool, len: u64, template: &str) -> ProgressBar {
    // Drawn on stderr; indicatif itself is silent where that is no terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}

/// A turning wheel for one piece of work on these samples; it goes when it is dropped.
pub(crate) fn working(quiet: bool, what: String, samples: &Samples<'_>) -> Working {
    let wheel = bar(quiet, 0, "{spinner} {msg} ({elapsed})");
    wheel.enable_steady_tick(Duration::from_millis(200));
    let words = Words::new(&wheel, samples);
    words.say(what);
    Working { wheel, words }
}

/// See [`working`].
pub(crate) struct Working {
    wheel: ProgressBar,
    words: Words,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.words.end();
        self.wheel.finish_and_clear();
    }
}

/// The words beside a bar: what was said last and, while a pass over the samples takes long, how far it has come.
struct Words {
    bar: ProgressBar,
    said: Arc<Mutex<String>>,
    watch: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Words {
    fn new(bar: &ProgressBar, samples: &Samples<'_>) -> Self {
        let said = Arc::new(Mutex::new(String::new()));
        // Nobody looks at a hidden bar.
        let meter = samples.meter().filter(|_| !bar.is_hidden()).cloned();
        let watch = meter.map(|meter| {
            let (end, ended) = channel();
            let (bar, said) = (bar.clone(), said.clone());
            let thread = std::thread::spawn(move || {
                let mut pass = Pass::new(&meter);
                while ended.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
                    let more = pass.words(&meter, Instant::now());
                    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    bar.set_message(format!("{said}{}", more.unwrap_or_default()));
                }
            });
            (end, thread)
        });
        Self { bar: bar.clone(), said, watch }
    }

    fn say(&self, what: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.set_message(what.clone());
        *said = what;
    }

    fn end(&mut self) {
        if let Some((end, thread)) = self.watch.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// The pass that is being watched.
struct Pass {
    number: u64,
    begun: Instant,
}

impl Pass {
    fn new(meter: &Meter) -> Self {
        Self { number: meter.read().passes, begun: Instant::now() }
    }

    /// What to say about the pass now, if it has been running for long.
    fn words(&mut self, meter: &Meter, now: Instant) -> Option<String> {
        let reading = meter.read();
        if reading.passes != self.number {
            (self.number, self.begun) = (reading.passes, now);
        }
        let running = now.duration_since(self.begun);
        if running < LONG || reading.done >= reading.total {
            return None;
        }
        Some(pass_words(reading, running))
    }
}

fn pass_words(reading: Reading, running: Duration) -> String {
    let Reading { done, total, .. } = reading;
    let mut words = format!("; pass: {} of {} samples", count(done as usize), count(total as usize));
    if done > 0 {
        let rate = done as f64 / running.as_secs_f64();
        let left = Duration::from_secs_f64((total - done) as f64 / rate);
        let left = HumanDuration(left);
        words.push_str(&format!(", {}/s, {left:#} left", count(rate as usize)));
    }
    words
}

/// A bar over a number of pieces of work.
pub(crate) fn steps(quiet: bool, len: usize) -> ProgressBar {
    let bar = bar(quiet, len as u64, "{bar:30} {pos}/{len} {msg}, {eta} left");
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The live line of a fit.
pub(crate) struct FitLine {
    bar: ProgressBar,
    words: Words,
    samples: usize,
}

impl FitLine {
    pub(crate) fn new(quiet: bool, samples: &Samples<'_>) -> Self {
        let bar = bar(quiet, 1, "{bar:20} {msg}");
        let words = Words::new(&bar, samples);
        words.say("starting".into());
        Self { bar, words, samples: samples.len() }
    }

    /// Shows one iteration; breaks after a signal. From the first one on there is a model to keep.
    pub(crate) fn show(&mut self, p: &Progress<'_>) -> ControlFlow<()> {
        let start =
            if p.n_init > 1 { format!("start {}/{}, ", p.restart + 1, p.n_init) } else { String::new() };
        if let Some(step) = p.search {
            self.words.say(format!("{start}{}", search_words(step)));
            return ControlFlow::Continue(());
        }
        interrupt::keep();
        self.bar.set_length((p.n_init * p.max_iter).max(1) as u64);
        let done = p.restart * p.max_iter + p.iteration;
        self.bar.set_position(done as u64);
        // Before the first iteration nobody knows.
        let left = match done {
            0 => String::new(),
            _ => format!(", {:#} left at most", HumanDuration(self.bar.eta())),
        };
        self.words.say(format!("{start}{}{left}", iteration_words(p, self.samples)));
        if interrupt::by().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(crate) fn clear(&mut self) {
        self.words.end();
        self.bar.finish_and_clear();
    }
}

/// Where a fit of so many samples stands.
fn iteration_words(p: &Progress<'_>, samples: usize) -> String {
    let part = match p.share {
        1.0 => String::new(),
        share => format!(" on 1/{} of the samples", (1.0 / share).round()),
    };
    let rate = samples as f64 * p.passes / p.seconds;
    format!(
        "iteration {}/{}{part}, log-likelihood {:.4}, error {}, {:.1} passes at {} samples/s",
        p.iteration,
        p.max_iter,
        p.log_likelihood,
        measured(p.reconstruction_error),
        p.passes,
        count(rate as usize)
    )
}

/// What a search has just done.
fn search_words(step: &SearchStep) -> String {
    let did = match (step.kind, step.count) {
        (SearchMove::Split, 1) => "a component was split".into(),
        (SearchMove::Split, count) => format!("{count} components were split"),
        (SearchMove::Merge, 1) => "a pair was merged".into(),
        (SearchMove::Merge, count) => format!("{count} pairs were merged"),
        (SearchMove::Exchange, _) => "a split was exchanged for a merge".into(),
        (SearchMove::Breathe, count) => format!("{count} were split and as many merged"),
        (SearchMove::Begin, 2..) => "no split gains anything, begun with all at once".into(),
        (SearchMove::Rank, _) => "other ranks were tried".into(),
        _ => "begun with one component".into(),
    };
    let kept = if step.kept { "" } else { ", which gained nothing" };
    format!("searching: {did}{kept}; K = {}, log-likelihood {:.4}", step.components, step.log_likelihood)
}

#[cfg(test)]
mod tests {
    use matmix::{FitOptions, Search};

    use super::*;

    #[test]
    fn an_iteration_says_what_it_has_cost() {
        let samples = Samples::from_vec(&[3], (0..360).map(f64::from).collect::<Vec<_>>()).unwrap();
        let options = FitOptions {
            rank: vec![1],
            search: Search::None,
            max_iter: 2,
            tol: 0.0,
            ..FitOptions::default()
        };
        let mut lines = vec![];
        let fitted = matmix::fit_with(&samples, &options, &mut |p| {
            lines.push((iteration_words(p, samples.len()), p.passes, p.seconds));
            ControlFlow::Continue(())
        });
        assert_eq!(lines.len(), 3, "{fitted:?}");
        for (t, (line, passes, seconds)) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("iteration {t}/2, log-likelihood -")), "{line}");
            let rate = count((120.0 * passes / seconds) as usize);
            assert!(line.ends_with(&format!(", {passes:.1} passes at {rate} samples/s")), "{line}");
        }
        assert_eq!(lines[2].1, 3.0);
    }

    #[test]
    fn a_search_says_what_it_does() {
        let step = |kind, count, kept| SearchStep { kind, count, components: 7, log_likelihood: -1.5, kept };
        assert_eq!(
            search_words(&step(SearchMove::Split, 3, true)),
            "searching: 3 components were split; K = 7, log-likelihood -1.5000"
        );
        assert_eq!(
            search_words(&step(SearchMove::Exchange, 1, false)),
            "searching: a split was exchanged for a merge, which gained nothing; K = 7, log-likelihood -1.5000"
        );
    }

    #[test]
    fn a_pass_is_worth_a_word_once_it_takes_long() {
        let meter = Meter::new();
        let mut pass = Pass::new(&meter);
        meter.begin(1_000_000);
        let begun = Instant::now();
        assert_eq!(pass.words(&meter, begun), None);
        meter.add(200_000).unwrap();
        assert_eq!(pass.words(&meter, begun + Duration::from_millis(1999)), None);
        let words = pass.words(&meter, begun + Duration::from_secs(4)).unwrap();
        assert_eq!(words, "; pass: 200,000 of 1,000,000 samples, 50,000/s, 16s left");
        // The next pass begins anew, and one that is done is not worth a word either.
        meter.begin(1_000_000);
        assert_eq!(pass.words(&meter, begun + Duration::from_secs(5)), None);
        meter.add(1_000_000).unwrap();
        assert_eq!(pass.words(&meter, begun + Duration::from_secs(9)), None);
    }

    #[test]
    fn nothing_is_said_about_a_rate_before_there_is_one() {
        let words = pass_words(Reading { passes: 1, done: 0, total: 10 }, Duration::from_secs(3));
        assert_eq!(words, "; pass: 0 of 10 samples");
    }
}
