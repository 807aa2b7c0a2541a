//! Splitting a set into chunks of a fixed size, running them in parallel and adding in order.

use std::ops::Range;

use rayon::prelude::*;

use crate::data::Samples;
use crate::error::Result;

/// Elements per chunk: enough work to share out, few enough results to add.
const CHUNK_ELEMENTS: usize = 1 << 19;

/// The number of samples per chunk. It depends on the shape of the samples alone: never on the number of threads,
/// of samples or of components, so that sums come out with the same bits everywhere.
pub(crate) fn chunk_len(sample_len: usize) -> usize {
    (CHUNK_ELEMENTS / sample_len).next_multiple_of(64).clamp(64, 2048)
}

/// The chunks of a set, in order.
pub(crate) fn ranges(samples: &Samples<'_>) -> Vec<Range<usize>> {
    let step = chunk_len(samples.sample_len());
    (0..samples.len()).step_by(step).map(|start| start..(start + step).min(samples.len())).collect()
}

/// Runs `map` on every chunk in parallel and hands the results to `fold` in the order of the chunks. A worker's
/// scratch space is made by `scratch` and reused. The first chunk that fails (in order) decides the error.
pub(crate) fn fold<W, R: Send>(
    samples: &Samples<'_>,
    result_bytes: usize,
    scratch: impl Fn() -> W + Sync + Send,
    map: impl Fn(&mut W, Range<usize>) -> Result<R> + Sync + Send,
    mut fold: impl FnMut(R),
) -> Result<()> {
    let ranges = ranges(samples);
    // Results wait until their turn to be added: as many chunks at a time as keep the threads busy and
    // the waiting results small.
    let threads = rayon::current_num_threads();
    let wave = (64 << 20) / result_bytes.max(1);
    let wave = wave.clamp(2 * threads, 64 * threads);
    for wave in ranges.chunks(wave) {
        let results: Vec<Result<R>> =
            wave.par_iter().with_max_len(1).map_init(&scratch, |w, range| map(w, range.clone())).collect();
        for result in results {
            fold(result?);
        }
    }
    Ok(())
}
