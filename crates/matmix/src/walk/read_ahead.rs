//! Loading chunks while others are worked on: a few threads, a bounded number of buffers.
//!
//! Every run that is being worked on has one buffer in use and one that is filled meanwhile; the first chunks of the
//! runs that come next are loaded, too. A run has its buffers to itself, so that nobody waits for somebody who waits.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::cuts::Cuts;
use crate::data::{Buffer, Samples};
use crate::error::{Error, Result};
use crate::parallel;

/// More threads than this do not make a disk faster; decoding images is shared by as many.
const READERS: usize = 8;

/// Buffers of a run that is being worked on: one in use, one that is filled.
const PER_RUN: usize = 2;

/// Buffers per worker, at most: those of its run and one for a run that comes next.
pub(super) const PER_WORKER: usize = PER_RUN + 1;

/// The chunks that are on their way.
pub(super) struct ReadAhead<'a> {
    samples: &'a Samples<'a>,
    cuts: &'a Cuts,
    workers: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The first run that nobody has begun.
    next_run: usize,
    /// The runs that hold buffers.
    runs: BTreeMap<usize, RunState>,
    spare: Vec<Buffer>,
    /// Nobody wants any more.
    over: bool,
}

#[derive(Default)]
struct RunState {
    /// How many of its chunks were begun to be loaded.
    begun: usize,
    /// How many buffers it holds.
    buffers: usize,
    ready: BTreeMap<usize, Result<Buffer>>,
    begun_by_worker: bool,
}

impl<'a> ReadAhead<'a> {
    /// Loads chunks as `work` asks for them, for so many workers at a time.
    pub(super) fn run(
        samples: &'a Samples<'a>,
        cuts: &'a Cuts,
        workers: usize,
        work: &mut dyn FnMut(&ReadAhead<'_>) -> Result<()>,
    ) -> Result<()> {
        let state = State { next_run: 0, runs: BTreeMap::new(), spare: Vec::new(), over: false };
        let ahead = ReadAhead { samples, cuts, workers, state: Mutex::new(state), changed: Condvar::new() };
        std::thread::scope(|scope| {
            // Also when `work` fails or panics, so that the readers end and can be waited for.
            let _end = End(&ahead);
            for at in 0..parallel::threads().clamp(1, READERS).min(PER_WORKER * workers) {
                let reader = std::thread::Builder::new().name(format!("matmix-read-{at}"));
                let started = reader.spawn_scoped(scope, || ahead.read());
                // Fewer than planned will do.
                if let (Err(error), 0) = (started, at) {
                    return Err(Error::Engine { problem: format!("no thread could be started: {error}") });
                }
            }
            work(&ahead)
        })
    }

    /// Lets `work` see the chunks of a run, one after the other.
    pub(super) fn each_chunk(
        &self,
        run: usize,
        work: &mut dyn FnMut(usize, &Buffer) -> Result<()>,
    ) -> Result<()> {
        {
            let mut state = self.lock();
            state.next_run = state.next_run.max(run + 1);
            state.runs.entry(run).or_default().begun_by_worker = true;
            self.changed.notify_all();
        }
        let mut result = Ok(());
        for chunk in self.cuts.runs[run].chunks.clone() {
            match self.take(run, chunk) {
                Err(error) => result = Err(error),
                Ok(buffer) => {
                    result = work(chunk, &buffer);
                    self.give_back(run, buffer);
                }
            }
            if result.is_err() {
                break;
            }
        }
        let mut state = self.lock();
        if let Some(done) = state.runs.remove(&run) {
            state.spare.extend(done.ready.into_values().flatten());
        }
        self.changed.notify_all();
        result
    }

    fn take(&self, run: usize, chunk: usize) -> Result<Buffer> {
        let mut state = self.lock();
        loop {
            if let Some(buffer) = state.runs.get_mut(&run).and_then(|run| run.ready.remove(&chunk)) {
                return buffer;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, run: usize, buffer: Buffer) {
        let mut state = self.lock();
        state.spare.push(buffer);
        if let Some(run) = state.runs.get_mut(&run) {
            run.buffers -= 1;
        }
        self.changed.notify_all();
    }

    /// The chunk that will be needed soonest and may have a buffer: the next of a run that is being worked on before the
    /// first of one that comes later.
    fn wanted(&self, state: &State) -> Option<(usize, usize)> {
        let next_of =
            |run: usize, begun: usize| self.cuts.runs[run].chunks.clone().nth(begun).map(|c| (run, c));
        let working = state.runs.iter().filter(|(_, s)| s.begun_by_worker && s.buffers < PER_RUN);
        let working = working.filter_map(|(&run, s)| Some((s.buffers, next_of(run, s.begun)?)));
        if let Some((_, soonest)) = working.min_by_key(|(buffers, _)| *buffers) {
            return Some(soonest);
        }
        let coming = state.next_run..(state.next_run + self.workers).min(self.cuts.runs.len());
        coming.filter(|run| !state.runs.contains_key(run)).find_map(|run| next_of(run, 0))
    }

    /// What a reader does.
    fn read(&self) {
        let mut state = self.lock();
        loop {
            if state.over {
                return;
            }
            let Some((run, chunk)) = self.wanted(&state) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let of = state.runs.entry(run).or_default();
            of.begun += 1;
            of.buffers += 1;
            let mut buffer = state.spare.pop().unwrap_or_default();
            drop(state);
            // A decoder that panics must not leave anybody waiting.
            let load = AssertUnwindSafe(|| self.samples.load(self.cuts.chunks[chunk].clone(), &mut buffer));
            let loaded = catch_unwind(load).unwrap_or_else(|_| {
                Err(Error::Engine { problem: "the thread that reads the samples panicked".into() })
            });
            state = self.lock();
            // A run that failed meanwhile wants nothing any more.
            if let Some(of) = state.runs.get_mut(&run) {
                of.ready.insert(chunk, loaded.map(|()| buffer));
            }
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct End<'a, 'b>(&'a ReadAhead<'b>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}
