//! Where a set is cut into chunks and runs.

use std::ops::Range;

use crate::data::Samples;

/// Elements per chunk: enough to be worth a read, few enough that several fit the memory budget.
const CHUNK_ELEMENTS: usize = 1 << 19;

/// Runs of a part, at most: enough for many threads, few enough that their sums are cheap to add.
const RUNS: usize = 64;

/// Samples of a run of a small part, about, unless whoever sums them up wants more: adding the sums of fewer would cost as much
/// as making them.
pub(crate) const RUN_LEAST: usize = 256;

/// The same where sums are large: that they are cleared, brought to double precision and added to others is as much as many samples.
pub(crate) const RUN_OF_LARGE_SUMS: usize = 768;

/// The cuts of a set.
pub(super) struct Cuts {
    /// Which samples, each chunk within one part.
    pub(super) chunks: Vec<Range<usize>>,
    pub(super) runs: Vec<Run>,
}

/// Consecutive chunks of one part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) part: usize,
    pub(super) chunks: Range<usize>,
}

impl Cuts {
    /// For sums: as many chunks to a run as there have to be, and about so many samples, at least.
    pub(super) fn for_sums(samples: &Samples<'_>, least: usize) -> Self {
        Self::new(samples, least..usize::MAX, |chunks| chunks.div_ceil(RUNS))
    }

    /// For results that are handed on chunk by chunk, each of at most so many samples.
    pub(super) fn for_rows(samples: &Samples<'_>, most: usize) -> Self {
        Self::new(samples, RUN_LEAST..most, |_| 1)
    }

    fn new(samples: &Samples<'_>, lengths: Range<usize>, chunks_per_run: impl Fn(usize) -> usize) -> Self {
        let mut cuts = Self { chunks: Vec::new(), runs: Vec::new() };
        for (part, whole) in samples.parts().into_iter().enumerate() {
            let first = cuts.chunks.len();
            let step = chunk_len(samples.sample_len(), whole.len(), lengths.start).min(lengths.end);
            let starts = whole.clone().step_by(step);
            cuts.chunks.extend(starts.map(|start| start..(start + step).min(whole.end)));
            let end = cuts.chunks.len();
            let length = chunks_per_run(end - first).max(1);
            let starts = (first..end).step_by(length);
            cuts.runs.extend(starts.map(|from| Run { part, chunks: from..(from + length).min(end) }));
        }
        cuts
    }

    /// The samples of the longest chunk.
    pub(super) fn longest(&self) -> usize {
        self.chunks.iter().map(Range::len).max().unwrap_or(0)
    }
}

/// The number of samples per chunk. It depends on the shape of the samples, the size of their part and what is asked alone.
fn chunk_len(sample_len: usize, part_len: usize, least: usize) -> usize {
    let most = (CHUNK_ELEMENTS / sample_len).next_multiple_of(64).clamp(64, 2048);
    // A small part is shared out evenly: its runs are single chunks.
    let runs = part_len.div_ceil(least).clamp(1, RUNS);
    most.min(part_len.div_ceil(runs).next_multiple_of(32))
}

/// The samples whose sums are made together, about, in a set of so many.
pub(crate) fn samples_per_run(samples: usize) -> usize {
    samples.div_ceil(RUNS).max(RUN_LEAST.min(samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts_of(n: usize, least: usize) -> Cuts {
        Cuts::for_sums(&Samples::from_vec(&[28, 28], vec![0u8; 784 * n]).unwrap(), least)
    }

    fn cuts(n: usize) -> Cuts {
        cuts_of(n, RUN_LEAST)
    }

    #[test]
    fn every_sample_is_in_one_chunk_and_every_chunk_in_one_run() {
        for n in [1, 255, 256, 1000, 5000, 60_000] {
            let cuts = cuts(n);
            assert_eq!(
                cuts.chunks.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                (0..n).collect::<Vec<_>>()
            );
            let of_runs: Vec<usize> = cuts.runs.iter().flat_map(|r| r.chunks.clone()).collect();
            assert_eq!(of_runs, (0..cuts.chunks.len()).collect::<Vec<_>>());
            assert!(cuts.runs.len() <= RUNS);
        }
        assert_eq!(cuts(1000).runs.len(), 4);
        assert_eq!(cuts_of(1000, 500).runs.len(), 2);
        assert_eq!((cuts(1).chunks.len(), cuts(1).chunks[0].clone()), (1, 0..1));
    }
}
