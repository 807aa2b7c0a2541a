//! How far a pass has come: counted by those who run it, looked at by whoever wants to know, or wants it to end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts the samples of the pass under way. One that is attached to [`Samples`](crate::Samples) may be read at any time, from any
/// thread.
#[derive(Debug, Default)]
pub struct Meter {
    passes: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::Samples;
    use crate::error::Error;
    use crate::pass::chunks::fold;

    #[test]
    fn a_pass_that_is_asked_to_stop_ends_between_two_chunks() {
        let meter = Arc::new(Meter::new());
        // Five chunks of 2,048 samples.
        let samples = Samples::from_vec(&[1], vec![1.0; 5 * 2048]).unwrap().with_meter(meter.clone());
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let pass = |stop_at: usize| {
            let seen = AtomicU64::new(0);
            let result = alone.install(|| {
                let map = |_: &mut (), range: std::ops::Range<usize>, _: crate::data::Chunk<'_>| {
                    seen.fetch_add(range.len() as u64, Ordering::Relaxed);
                    if range.contains(&stop_at) {
                        meter.stop();
                    }
                    Ok(())
                };
                fold(&samples, 8, || (), map, |()| {})
            });
            (result, seen.into_inner())
        };
        assert_eq!(pass(usize::MAX), (Ok(()), 5 * 2048));
        assert_eq!(pass(2048), (Err(Error::Stopped), 2 * 2048));
        assert!(meter.is_stopped());
        assert_eq!(pass(usize::MAX), (Err(Error::Stopped), 0), "nor does another one begin");
    }
}
