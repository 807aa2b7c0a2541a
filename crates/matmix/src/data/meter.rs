//! How far a pass has come: counted by those who run it, looked at, and ended, by whoever wants to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Counts the samples of the pass under way. One that is attached to [`Samples`](crate::Samples) may be read at any time, from any
/// thread, and may end the pass.
///
/// ```
/// use std::sync::Arc;
/// use matmix::{Meter, Samples};
///
/// let meter = Arc::new(Meter::new());
/// let samples = Samples::from_vec(&[2], vec![0.0; 20])?.with_meter(meter.clone());
/// assert_eq!(meter.read().passes, 0);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Meter {
    passes: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
}

/// What a [`Meter`] says.
///
/// ```
/// use std::sync::Arc;
/// use matmix::data::Reading;
/// use matmix::pass::{MomentsPass, Task};
/// use matmix::{Cpu, Meter, Samples};
///
/// let meter = Arc::new(Meter::new());
/// let samples = Samples::from_vec(&[2], vec![0.0; 20])?.with_meter(meter.clone());
/// Task::from(MomentsPass { origin: vec![0.0; 2], digest: false }).run(&Cpu::best(), &samples, 0)?;
/// assert_eq!(meter.read(), Reading { passes: 1, done: 10, total: 10 });
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// How many passes have been begun.
    pub passes: u64,
    /// How many samples the last of them has behind it.
    pub done: u64,
    /// How many samples it goes over.
    pub total: u64,
}

impl Meter {
    /// A meter that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a pass over so many samples.
    pub fn begin(&self, total: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total as u64, Ordering::Relaxed);
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more samples are done.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the pass is to end here.
    pub fn add(&self, samples: usize) -> Result<()> {
        self.done.fetch_add(samples as u64, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Asks the pass under way, and every pass to come, to end: it does between two chunks, with
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked for an end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Where the pass stands.
    pub fn read(&self) -> Reading {
        Reading {
            passes: self.passes.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}
