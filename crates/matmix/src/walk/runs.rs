//! Runs in parallel, their results in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::cuts::{Cuts, RUN_LEAST, Run};
use super::read_ahead::{PER_WORKER, ReadAhead};
use super::tree::Reduction;
use crate::data::{Buffer, Chunk, Samples};
use crate::error::{Error, Result};
use crate::parallel;

/// Samples that are held side by side in a worker's scratch space, at most.
const BLOCK_SAMPLES: usize = 64;

/// Results that may wait for their turn to be added, beyond one per worker.
const WAITING_BYTES: usize = 32 << 20;

/// What is to be summed up over a set.
pub(crate) trait Job: Sync {
    /// What a worker reuses from run to run.
    type Scratch: Send;
    /// What a run gives.
    type Sum: Send;

    /// A worker's scratch space.
    fn scratch(&self) -> Self::Scratch;

    /// The sum of no samples.
    fn zero(&self) -> Self::Sum;

    /// Works through a chunk: the samples `range` of the set.
    fn add(
        &self,
        scratch: &mut Self::Scratch,
        range: Range<usize>,
        chunk: Chunk<'_>,
        sum: &mut Self::Sum,
    ) -> Result<()>;

    /// Brings whatever is left in the scratch space of a run to its sum.
    fn finish(&self, _scratch: &mut Self::Scratch, _sum: &mut Self::Sum) {}

    /// Adds the sum of the samples that follow.
    fn merge(&self, sum: &mut Self::Sum, following: &Self::Sum);

    /// The memory one sum takes, roughly.
    fn sum_bytes(&self) -> usize;

    /// The samples of a run, about, at least: many, where adding sums is much work.
    fn least(&self) -> usize {
        RUN_LEAST
    }

    /// The most samples of a chunk whose sum is handed on: few, where each of them is much work.
    fn most(&self) -> usize {
        usize::MAX
    }
}

/// The sum over all samples: those of runs one after the other, those of the parts along the one tree.
pub(crate) fn sum<J: Job>(samples: &Samples<'_>, job: &J) -> Result<J::Sum> {
    let mut tree = Reduction::new();
    let mut adding = |a: &mut J::Sum, b: &J::Sum| {
        job.merge(a, b);
        Ok(())
    };
    let mut current: Option<(usize, J::Sum)> = None;
    walk(&Cuts::for_sums(samples, job.least()), samples, job, &mut |run, result| {
        match &mut current {
            Some((part, sum)) if *part == run.part => adding(sum, &result)?,
            other => {
                if let Some((_, whole)) = other.replace((run.part, result)) {
                    tree.push(whole, &mut adding)?;
                }
            }
        }
        Ok(())
    })?;
    if let Some((_, whole)) = current {
        tree.push(whole, &mut adding)?;
    }
    tree.finish(&mut adding)?.ok_or(Error::EmptySet)
}

/// Hands the sum of every chunk to `take`, in order.
pub(crate) fn fold<J: Job>(
    samples: &Samples<'_>,
    job: &J,
    mut take: impl FnMut(J::Sum) + Send,
) -> Result<()> {
    walk(&Cuts::for_rows(samples, job.most()), samples, job, &mut |_, result| {
        take(result);
        Ok(())
    })
}

/// The sums of all runs, each handed to `take` when it is its turn.
fn walk<J: Job>(
    cuts: &Cuts,
    samples: &Samples<'_>,
    job: &J,
    take: &mut (dyn FnMut(&Run, J::Sum) -> Result<()> + Send),
) -> Result<()> {
    samples.check_unchanged()?;
    // Scratch space goes from run to run; it is large, and fresh memory has to be cleared by the system.
    let spare = Mutex::new(Vec::new());
    let results: Mutex<BTreeMap<usize, J::Sum>> = Mutex::new(BTreeMap::new());
    let begin = |_: usize| lock(&spare).pop().unwrap_or_else(|| job.scratch());
    let work = |run: usize, source: &Reading<'_>| {
        let mut scratch = begin(run);
        let mut sum = job.zero();
        source.each_chunk(run, &mut |range, chunk| job.add(&mut scratch, range, chunk, &mut sum))?;
        job.finish(&mut scratch, &mut sum);
        lock(&spare).push(scratch);
        lock(&results).insert(run, sum);
        Ok(())
    };
    let mut done = |run: usize| match lock(&results).remove(&run) {
        Some(sum) => take(&cuts.runs[run], sum),
        None => unreachable!("a run that is done has left its sum"),
    };
    drive(cuts, samples, job.sum_bytes(), &work, &mut done)
}

/// Where the chunks of a run come from.
enum Reading<'a> {
    /// Memory, or mapped files: they are borrowed.
    Borrowed(&'a Cuts, &'a Samples<'a>),
    /// They are loaded ahead.
    Loaded(&'a Cuts, &'a Samples<'a>, &'a ReadAhead<'a>),
}

impl Reading<'_> {
    fn each_chunk(
        &self,
        run: usize,
        work: &mut dyn FnMut(Range<usize>, Chunk<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Reading::Borrowed(cuts, samples) => {
                let mut buffer = Buffer::new();
                for range in &cuts.chunks[cuts.runs[run].chunks.clone()] {
                    work(range.clone(), samples.stored(range.clone(), &mut buffer)?)?;
                    count(samples, range.len())?;
                }
                Ok(())
            }
            Reading::Loaded(cuts, samples, ahead) => ahead.each_chunk(run, &mut |chunk, buffer| {
                let range = cuts.chunks[chunk].clone();
                work(range.clone(), buffer.chunk(samples.element()))?;
                count(samples, range.len())
            }),
        }
    }
}

/// So many more samples are done; an error if nobody wants the rest.
fn count(samples: &Samples<'_>, done: usize) -> Result<()> {
    samples.meter().map_or(Ok(()), |meter| meter.add(done))
}

/// The part of a walk that does not depend on what is computed.
fn drive(
    cuts: &Cuts,
    samples: &Samples<'_>,
    sum_bytes: usize,
    work: &(dyn Fn(usize, &Reading<'_>) -> Result<()> + Sync),
    done: &mut (dyn FnMut(usize) -> Result<()> + Send),
) -> Result<()> {
    if let Some(meter) = samples.meter() {
        meter.begin(samples.len());
        meter.add(0)?;
    }
    if samples.is_read_ahead() {
        let workers = affordable(samples, sum_bytes, cuts)?;
        return ReadAhead::run(samples, cuts, workers, &mut |ahead| {
            let source = Reading::Loaded(cuts, samples, ahead);
            in_order(cuts.runs.len(), workers, 1, &|run| work(run, &source), done)
        });
    }
    let workers = parallel::threads().min(cuts.runs.len());
    let source = Reading::Borrowed(cuts, samples);
    let waiting = WAITING_BYTES / sum_bytes.max(1) + 1;
    in_order(cuts.runs.len(), workers, waiting, &|run| work(run, &source), done)
}

/// Runs `work(0)` … on so many workers, which take them in order, and `done(0)` … one after the other, each as soon as it
/// and all before it have been worked on. Of several failures the first one counts.
fn in_order(
    count: usize,
    workers: usize,
    waiting: usize,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
    done: &mut (dyn FnMut(usize) -> Result<()> + Send),
) -> Result<()> {
    struct Turn<'a> {
        /// The first one that is not done.
        next: usize,
        /// Those after it that have been worked on.
        ready: BTreeMap<usize, Result<()>>,
        done: &'a mut (dyn FnMut(usize) -> Result<()> + Send),
        failure: Option<Error>,
    }
    let turn = Mutex::new(Turn { next: 0, ready: BTreeMap::new(), done, failure: None });
    let (changed, given_up) = (Condvar::new(), AtomicBool::new(false));
    let begun = AtomicUsize::new(0);
    parallel::each(workers, &|_| {
        loop {
            let at = begun.fetch_add(1, Ordering::Relaxed);
            if at >= count || given_up.load(Ordering::Relaxed) {
                return;
            }
            {
                // Whoever is at the first one that is not done never waits, so that everybody's turn comes.
                let mut turn = lock(&turn);
                while at > turn.next + workers + waiting && turn.failure.is_none() {
                    turn = changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
                }
            }
            // One that panics must not leave the others waiting for its turn.
            let worked = catch_unwind(AssertUnwindSafe(|| work(at)));
            let (result, panicked) = match worked {
                Ok(result) => (result, None),
                Err(panic) => (Err(Error::Engine { problem: "a worker panicked".into() }), Some(panic)),
            };
            let mut turn = lock(&turn);
            turn.ready.insert(at, result);
            while turn.failure.is_none()
                && let next = turn.next
                && let Some(result) = turn.ready.remove(&next)
            {
                turn.next += 1;
                if let Err(error) = result.and_then(|()| (turn.done)(next)) {
                    turn.failure = Some(error);
                    given_up.store(true, Ordering::Relaxed);
                }
            }
            drop(turn);
            changed.notify_all();
            if let Some(panic) = panicked {
                resume_unwind(panic);
            }
        }
    });
    match turn.into_inner().unwrap_or_else(PoisonError::into_inner).failure {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// How many workers there may be within the memory budget: buffers, waiting results, scratch space and the sums.
fn affordable(samples: &Samples<'_>, sum_bytes: usize, cuts: &Cuts) -> Result<usize> {
    let size = samples.sample_len();
    let chunk_bytes = cuts.longest() * size * samples.element().size();
    let scratch_bytes = sum_bytes.saturating_add(BLOCK_SAMPLES * size * size_of::<f64>());
    let needed = |workers: usize| {
        let results = (workers + 3).saturating_mul(sum_bytes);
        let buffers = (PER_WORKER * workers).saturating_mul(chunk_bytes);
        results.saturating_add(buffers).saturating_add(workers.saturating_mul(scratch_bytes)) as u64
    };
    let budget = samples.memory_budget();
    let most = parallel::threads().min(cuts.runs.len()).max(1);
    (1..=most)
        .rev()
        .find(|&workers| needed(workers) <= budget)
        .ok_or_else(|| Error::Memory { budget, needed: needed(1) })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::data::Meter;

    /// Counts samples, and asks for an end when it meets one of them.
    struct Counting<'a> {
        seen: AtomicU64,
        meter: &'a Meter,
        stop_at: usize,
    }

    impl Job for Counting<'_> {
        type Scratch = ();
        type Sum = ();

        fn scratch(&self) {}

        fn zero(&self) {}

        fn add(&self, (): &mut (), range: Range<usize>, _: Chunk<'_>, (): &mut ()) -> Result<()> {
            self.seen.fetch_add(range.len() as u64, Ordering::Relaxed);
            if range.contains(&self.stop_at) {
                self.meter.stop();
            }
            Ok(())
        }

        fn merge(&self, (): &mut (), (): &()) {}

        fn sum_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_pass_that_is_asked_to_stop_ends_between_two_chunks() {
        let meter = Arc::new(Meter::new());
        // Four chunks of 256 samples.
        let samples = Samples::from_vec(&[1], vec![1.0; 1024]).unwrap().with_meter(meter.clone());
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let pass = |stop_at: usize| {
            let job = Counting { seen: AtomicU64::new(0), meter: &meter, stop_at };
            let result = alone.install(|| sum(&samples, &job));
            (result, job.seen.into_inner())
        };
        assert_eq!(pass(usize::MAX), (Ok(()), 1024));
        assert_eq!(pass(256), (Err(Error::Stopped), 512));
        assert!(meter.is_stopped());
        assert_eq!(pass(usize::MAX), (Err(Error::Stopped), 0), "nor does another one begin");
    }

    #[test]
    fn results_are_done_in_order_and_the_first_failure_counts() {
        for workers in [1, 3, 8] {
            let seen = Mutex::new(Vec::new());
            let all = in_order(100, workers, 1, &|_| Ok(()), &mut |at| {
                lock(&seen).push(at);
                Ok(())
            });
            assert_eq!((all, lock(&seen).clone()), (Ok(()), (0..100).collect()));
            let fails = |at: usize| match at {
                17 | 40 => Err(Error::Overflow { sample: at }),
                _ => Ok(()),
            };
            let failed = in_order(100, workers, 1, &fails, &mut |_| Ok(()));
            assert_eq!(failed, Err(Error::Overflow { sample: 17 }));
        }
    }
}
