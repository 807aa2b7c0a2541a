//! Loading chunks while others are worked on: a few threads, a bounded pool of buffers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::data::{Buffer, Samples};
use crate::error::{Error, Result};

/// More threads than this do not make a disk faster; decoding images is shared by as many.
const READERS: usize = 8;

/// The chunks that are on their way.
pub(super) struct Ahead {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The next chunk to load.
    next: usize,
    /// No chunk from here on is loaded: all of them are there, or one before has failed.
    end: usize,
    empty: Vec<Buffer>,
    ready: BTreeMap<usize, Result<Buffer>>,
    /// Nobody wants any more.
    over: bool,
}

impl Ahead {
    /// Loads the ranges in order into no more than so many buffers, as `work` takes them and gives them back.
    pub(super) fn run<R>(
        samples: &Samples<'_>,
        ranges: &[(usize, Range<usize>)],
        buffers: usize,
        work: impl FnOnce(&Ahead) -> Result<R>,
    ) -> Result<R> {
        let buffers = buffers.min(ranges.len()).max(1);
        let empty = vec![Buffer::new(); buffers];
        let state = State { next: 0, end: ranges.len(), empty, ready: BTreeMap::new(), over: false };
        let ahead = Ahead { state: Mutex::new(state), changed: Condvar::new() };
        std::thread::scope(|scope| {
            // Also when `work` fails or panics, so that the readers end and can be waited for.
            let _end = End(&ahead);
            let readers = rayon::current_num_threads().clamp(1, READERS).min(buffers);
            for at in 0..readers {
                let reader = std::thread::Builder::new().name(format!("matmix-read-{at}"));
                let started = reader.spawn_scoped(scope, || ahead.read(samples, ranges));
                // Fewer than planned will do.
                if let (Err(error), 0) = (started, at) {
                    return Err(Error::Engine { problem: format!("no thread could be started: {error}") });
                }
            }
            work(&ahead)
        })
    }

    /// Chunk `at`, as soon as it is there.
    pub(super) fn take(&self, at: usize) -> Result<Buffer> {
        let mut state = self.lock();
        loop {
            if let Some(buffer) = state.ready.remove(&at) {
                return buffer;
            }
            if at >= state.end {
                // Whoever goes through the chunks in order meets the failure first.
                return Err(Error::Engine { problem: "a chunk before this one could not be read".into() });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A buffer for the chunks to come.
    pub(super) fn give_back(&self, buffer: Buffer) {
        self.lock().empty.push(buffer);
        self.changed.notify_all();
    }

    /// What a reader does: the buffer first, then the next chunk, so that the chunk that is waited for always has one.
    fn read(&self, samples: &Samples<'_>, ranges: &[(usize, Range<usize>)]) {
        let mut state = self.lock();
        loop {
            if state.over || state.next >= state.end {
                return;
            }
            let Some(mut buffer) = state.empty.pop() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let at = state.next;
            state.next += 1;
            drop(state);
            // A decoder that panics must not leave anybody waiting.
            let load = AssertUnwindSafe(|| samples.load(ranges[at].1.clone(), &mut buffer));
            let loaded = catch_unwind(load).unwrap_or_else(|_| {
                Err(Error::Engine { problem: "the thread that reads the samples panicked".into() })
            });
            state = self.lock();
            if loaded.is_err() {
                // Nothing behind a failure is of use; what was begun will be there.
                state.end = state.next;
            }
            state.ready.insert(at, loaded.map(|()| buffer));
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct End<'a>(&'a Ahead);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}
