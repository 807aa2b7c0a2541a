//! How a set is read: which samples stand where in the source, and whether they are borrowed or loaded.

use std::ops::Range;
use std::sync::Arc;

use super::meter::Meter;
use super::missing::Missing;
use super::samples::{DEFAULT_BUDGET, Samples};
use super::source::{Buffer, Chunk, DeviceMemory, Residence, neighbours};
use crate::error::{Error, Result};

impl Samples<'_> {
    /// Where the samples are.
    pub fn residence(&self) -> Residence {
        self.source.residence()
    }

    /// Where in the memory of a GPU these samples lie, one after the other, if they do: a selection does not.
    #[doc(hidden)]
    pub fn device_memory(&self) -> Option<DeviceMemory> {
        self.source.device_memory().filter(|_| self.selection.is_none())
    }

    /// Whether what holds the samples is still what it was when it was opened: a file that was written to, cut short or
    /// replaced is an error. Every pass asks before it begins.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_unchanged(&self) -> Result<()> {
        self.source.check()
    }

    /// The bytes of all samples as they are stored.
    pub fn stored_bytes(&self) -> u64 {
        (self.len() as u64).saturating_mul((self.sample_len() * self.element().size()) as u64)
    }

    pub(crate) fn memory_budget(&self) -> u64 {
        self.budget.unwrap_or(DEFAULT_BUDGET)
    }

    /// What counts the samples of a pass, if anything does.
    pub fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// Whether a pass has the samples loaded ahead instead of borrowing them.
    pub(crate) fn is_read_ahead(&self) -> bool {
        match self.residence() {
            Residence::Memory => false,
            Residence::Mapped => self.budget.is_some_and(|budget| self.stored_bytes() > budget),
            Residence::Elsewhere => true,
        }
    }

    /// The parts of the set (files, say), in order. Samples that were selected in the order of the source are still in
    /// the parts they come from; in any other order they are one part.
    pub fn parts(&self) -> Vec<Range<usize>> {
        let sizes = self.source.parts();
        let in_order = self.selection.as_ref().is_none_or(|places| places.is_sorted());
        if sizes.len() <= 1 || !in_order {
            return std::iter::once(0..self.len()).collect();
        }
        let mut ends = Vec::with_capacity(sizes.len());
        let mut end = 0;
        for size in sizes {
            end += size * self.split;
            ends.push(match &self.selection {
                None => end,
                Some(places) => places.partition_point(|&place| place < end),
            });
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, &end)| start..end).filter(|part| !part.is_empty()).collect()
    }

    /// Puts samples `range`, as they are stored, into the buffer: without mapped memory, on this thread.
    pub(crate) fn load(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        buffer.clear();
        self.runs(range).into_iter().try_for_each(|run| {
            if self.split == 1 {
                return self.source.load(run, buffer);
            }
            let size = self.sample_len();
            let whole = run.start / self.split..run.end.div_ceil(self.split);
            let first = run.start - whole.start * self.split;
            let mut samples = Buffer::new();
            self.source.load(whole, &mut samples)?;
            buffer.extend(samples.chunk(self.element()).slice(first * size..(first + run.len()) * size));
            Ok(())
        })
    }

    /// The places of samples `range` in the source, neighbours taken together.
    fn runs(&self, range: Range<usize>) -> Vec<Range<usize>> {
        self.selection
            .as_ref()
            .map_or_else(|| vec![range.clone()], |places| neighbours(&places[range.clone()]))
    }

    /// Samples `range` as they are stored, NOT yet multiplied by [`scale`](Self::scale).
    ///
    /// # Errors
    /// If the samples cannot be read.
    pub fn stored<'b>(&'b self, range: Range<usize>, buffer: &'b mut Buffer) -> Result<Chunk<'b>> {
        assert!(range.start <= range.end && range.end <= self.len(), "a range within the set");
        // Mapped pages would count as memory.
        if self.is_read_ahead() && self.residence() == Residence::Mapped {
            self.load(range, buffer)?;
            return Ok(buffer.chunk(self.element()));
        }
        let runs = self.runs(range.clone());
        if let [run] = runs.as_slice() {
            return self.stored_parts(run.clone(), buffer);
        }
        let mut one = Buffer::new();
        buffer.clear();
        if let (1, Some(places)) = (self.split, &self.selection) {
            self.source.pick(&places[range], buffer)?;
            return Ok(buffer.chunk(self.element()));
        }
        for run in runs {
            buffer.extend(self.stored_parts(run, &mut one)?);
        }
        Ok(buffer.chunk(self.element()))
    }

    /// Samples `range` in double precision and scaled: for whatever is not worth a kernel.
    ///
    /// # Errors
    /// If the samples cannot be read.
    pub fn to_f64(&self, range: Range<usize>) -> Result<Vec<f64>> {
        let mut buffer = Buffer::new();
        let chunk = self.stored(range, &mut buffer)?;
        Ok((0..chunk.len()).map(|i| chunk.get(i) * self.scale).collect())
    }

    /// Looks for infinity in `range`, and for NaN where it is not a missing cell; the message of a failed pass comes from here.
    ///
    /// # Errors
    /// If there is any, with the sample it is in, or the samples cannot be read.
    pub fn check_finite(&self, range: Range<usize>) -> Result<()> {
        let mut buffer = Buffer::new();
        let chunk = self.stored(range.clone(), &mut buffer)?;
        let size = self.sample_len();
        for i in 0..chunk.len() {
            let value = chunk.get(i) * self.scale;
            let is_missing = value.is_nan() && self.missing == Missing::Nan;
            if !(value.is_finite() || is_missing) {
                let mut rest = i % size;
                let mut position = vec![0; self.order()];
                for (at, &side) in position.iter_mut().zip(&self.shape).rev() {
                    *at = rest % side;
                    rest /= side;
                }
                return Err(Error::NotFinite { sample: range.start + i / size, position, value });
            }
        }
        Ok(())
    }

    fn stored_parts<'b>(&'b self, range: Range<usize>, buffer: &'b mut Buffer) -> Result<Chunk<'b>> {
        if self.split == 1 {
            return self.source.read(range, buffer);
        }
        let size = self.sample_len();
        let whole = range.start / self.split..range.end.div_ceil(self.split);
        let first = range.start - whole.start * self.split;
        let count = range.len();
        let chunk = self.source.read(whole, buffer)?;
        Ok(chunk.slice(first * size..(first + count) * size))
    }
}
