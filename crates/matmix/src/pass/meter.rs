//! How far a pass has come: counted by those who run it, looked at by whoever wants to know.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the samples of the pass under way. One that is attached to [`Samples`](crate::Samples) may be read at any time, from any
/// thread.
#[derive(Debug, Default)]
pub struct Meter {
    passes: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
}

/// What a [`Meter`] says.
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
    pub fn add(&self, samples: usize) {
        self.done.fetch_add(samples as u64, Ordering::Relaxed);
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
