//! Splitting a set into chunks of a fixed size, running them in parallel and adding in order.
//!
//! The one place that walks over samples. Chunks of samples that are in memory or mapped are borrowed; those that are
//! not, or that would not fit the memory budget, are loaded ahead ([`ahead`](super::ahead)) while others are worked on.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::ahead::Ahead;
use super::tree::Reduction;
use crate::data::{Buffer, Chunk, Samples};
use crate::error::{Error, Result};

/// Elements per chunk: enough work to share out, few enough results to add.
const CHUNK_ELEMENTS: usize = 1 << 19;

/// Samples that are packed side by side in a worker's scratch space, at most.
const BLOCK_SAMPLES: usize = 64;

/// The number of samples per chunk. It depends on the shape of the samples alone: never on the number of threads,
/// of samples or of components, so that sums come out with the same bits everywhere.
pub(crate) fn chunk_len(sample_len: usize) -> usize {
    (CHUNK_ELEMENTS / sample_len).next_multiple_of(64).clamp(64, 2048)
}

/// The chunks of a set, in order, each with the number of its part. No chunk spans two parts.
pub(crate) fn ranges(samples: &Samples<'_>) -> Vec<(usize, Range<usize>)> {
    let step = chunk_len(samples.sample_len());
    let mut ranges = Vec::new();
    for (part, whole) in samples.parts().into_iter().enumerate() {
        let starts = whole.clone().step_by(step);
        ranges.extend(starts.map(|start| (part, start..(start + step).min(whole.end))));
    }
    ranges
}

/// Runs `map` on every chunk in parallel and hands the results to `fold` in the order of the chunks. A worker's
/// scratch space is made by `scratch` and reused. The first chunk that fails (in order) decides the error.
pub(crate) fn fold<W: Send, R: Send>(
    samples: &Samples<'_>,
    result_bytes: usize,
    scratch: impl Fn() -> W + Sync + Send,
    map: impl Fn(&mut W, Range<usize>, Chunk<'_>) -> Result<R> + Sync + Send,
    mut fold: impl FnMut(R),
) -> Result<()> {
    let take = |_: usize, result| {
        fold(result);
        Ok(())
    };
    walk(samples, result_bytes, scratch, map, take)
}

/// Runs `map` on every chunk in parallel and adds the results: those of a part one after the other, those of the parts
/// along the one tree.
pub(crate) fn sum<W: Send, R: Send>(
    samples: &Samples<'_>,
    result_bytes: usize,
    scratch: impl Fn() -> W + Sync + Send,
    map: impl Fn(&mut W, Range<usize>, Chunk<'_>) -> Result<R> + Sync + Send,
    mut add: impl FnMut(&mut R, &R),
) -> Result<R> {
    let mut tree = Reduction::new();
    let mut adding = |a: &mut R, b: &R| {
        add(a, b);
        Ok(())
    };
    let mut current: Option<(usize, R)> = None;
    let take = |part: usize, result: R| {
        match &mut current {
            Some((of, sum)) if *of == part => adding(sum, &result)?,
            other => {
                if let Some((_, whole)) = other.replace((part, result)) {
                    tree.push(whole, &mut adding)?;
                }
            }
        }
        Ok(())
    };
    walk(samples, result_bytes, scratch, map, take)?;
    if let Some((_, whole)) = current {
        tree.push(whole, &mut adding)?;
    }
    tree.finish(&mut adding)?.ok_or(Error::EmptySet)
}

fn walk<W: Send, R: Send>(
    samples: &Samples<'_>,
    result_bytes: usize,
    scratch: impl Fn() -> W + Sync + Send,
    map: impl Fn(&mut W, Range<usize>, Chunk<'_>) -> Result<R> + Sync + Send,
    mut take: impl FnMut(usize, R) -> Result<()>,
) -> Result<()> {
    samples.check_unchanged()?;
    let ranges = ranges(samples);
    let meter = samples.meter();
    if let Some(meter) = meter {
        meter.begin(samples.len());
    }
    // Scratch space goes from chunk to chunk; it is large, and fresh memory has to be cleared by the system.
    let spare = Mutex::new(Vec::new());
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let map = |range: &Range<usize>, chunk: Chunk<'_>| {
        let kept = spare().pop();
        let mut w = kept.unwrap_or_else(&scratch);
        let result = map(&mut w, range.clone(), chunk);
        spare().push(w);
        if let Some(meter) = meter {
            meter.add(range.len());
        }
        result
    };
    if samples.is_read_ahead() {
        let wave = affordable(samples, result_bytes, &ranges)?;
        return Ahead::run(samples, &ranges, 2 * wave, |ahead| {
            for wave in (0..ranges.len()).collect::<Vec<_>>().chunks(wave) {
                let buffers: Vec<Result<Buffer>> = wave.iter().map(|&at| ahead.take(at)).collect();
                let results: Vec<Result<R>> = wave
                    .par_iter()
                    .zip(&buffers)
                    .with_max_len(1)
                    .map(|(&at, buffer)| {
                        let buffer = buffer.as_ref().map_err(Error::clone)?;
                        map(&ranges[at].1, buffer.chunk(samples.element()))
                    })
                    .collect();
                buffers.into_iter().flatten().for_each(|buffer| ahead.give_back(buffer));
                for (&at, result) in wave.iter().zip(results) {
                    take(ranges[at].0, result?)?;
                }
            }
            Ok(())
        });
    }
    // Results wait until their turn to be added: as many chunks at a time as keep the threads busy and
    // the waiting results small.
    let threads = rayon::current_num_threads();
    let wave = (32 << 20) / result_bytes.max(1);
    let wave = wave.clamp(2 * threads, 64 * threads);
    for wave in ranges.chunks(wave) {
        let results: Vec<Result<R>> = wave
            .par_iter()
            .with_max_len(1)
            .map_init(Buffer::new, |buffer, (_, range)| map(range, samples.stored(range.clone(), buffer)?))
            .collect();
        for ((part, _), result) in wave.iter().zip(results) {
            take(*part, result?)?;
        }
    }
    Ok(())
}

/// How many chunks may be worked on at a time, while as many are loaded, within the memory budget: buffers, waiting
/// results, the scratch space of the workers and the sums.
fn affordable(samples: &Samples<'_>, result_bytes: usize, ranges: &[(usize, Range<usize>)]) -> Result<usize> {
    let size = samples.sample_len();
    let longest = ranges.iter().map(|(_, range)| range.len()).max().unwrap_or(0);
    let chunk_bytes = longest * size * samples.element().size();
    let scratch_bytes = result_bytes.saturating_add(BLOCK_SAMPLES * size * size_of::<f64>());
    let threads = rayon::current_num_threads();
    let needed = |wave: usize| {
        let results = (wave + 2).saturating_mul(result_bytes);
        let buffers = (2 * wave).saturating_mul(chunk_bytes);
        results.saturating_add(buffers).saturating_add(wave.min(threads).saturating_mul(scratch_bytes)) as u64
    };
    let budget = samples.memory_budget();
    let most = (4 * threads).min(ranges.len()).max(1);
    (1..=most)
        .rev()
        .find(|&wave| needed(wave) <= budget)
        .ok_or_else(|| Error::Memory { budget, needed: needed(1) })
}
