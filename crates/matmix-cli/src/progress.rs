//! Bars on stderr for whatever takes longer than a moment. Not a terminal, or `--quiet`: no bars.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use matmix::Progress;

fn bar(quiet: bool, len: u64, template: &str) -> ProgressBar {
    // Drawn on stderr; indicatif itself is silent where that is no terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}

/// A turning wheel for one piece of work; it goes when it is dropped.
pub(crate) fn working(quiet: bool, what: String) -> Working {
    let wheel = bar(quiet, 0, "{spinner} {msg} ({elapsed})");
    wheel.set_message(what);
    wheel.enable_steady_tick(Duration::from_millis(200));
    Working(wheel)
}

/// See [`working`].
pub(crate) struct Working(ProgressBar);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
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
    interrupted: Interrupted,
}

impl FitLine {
    pub(crate) fn new(quiet: bool, interrupted: Interrupted) -> Self {
        Self { bar: bar(quiet, 1, "{bar:20} {msg}, {eta} left at most"), interrupted }
    }

    /// Shows one iteration; breaks after Ctrl-C.
    pub(crate) fn show(&mut self, p: &Progress<'_>) -> ControlFlow<()> {
        self.bar.set_length((p.n_init * p.max_iter).max(1) as u64);
        let start =
            if p.n_init > 1 { format!("start {}/{}, ", p.restart + 1, p.n_init) } else { String::new() };
        self.bar.set_message(format!(
            "{start}iteration {}/{}, log-likelihood {:.4}, error {:.4}",
            p.iteration, p.max_iter, p.log_likelihood, p.reconstruction_error
        ));
        self.bar.set_position((p.restart * p.max_iter + p.iteration) as u64);
        if self.interrupted.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Whether somebody pressed Ctrl-C.
#[derive(Debug, Clone)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// From now on the first Ctrl-C only sets the flag, the second one ends the program.
    pub(crate) fn watch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = flag.clone();
        // Without a handler Ctrl-C ends the program at once: no reason not to fit.
        let _ = ctrlc::set_handler(move || {
            if seen.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        Self(flag)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
