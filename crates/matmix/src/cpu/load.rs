//! From elements as they are stored to numbers a kernel works on: the one place that writes element × scale − reference.

use std::ops::Range;

use crate::data::{Buffer, Chunk, Samples};
use crate::simd::Real;

/// Samples as they are stored, and what makes numbers of them.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    chunk: Chunk<'a>,
    pub(crate) sample_len: usize,
    scale: f64,
    weights: Option<&'a [f64]>,
    classes: Option<&'a [Option<u32>]>,
    /// The number of the first one in the whole set.
    pub(crate) first: usize,
    /// Its place in the chunk that these were taken from.
    pub(crate) place: usize,
    /// Which of them are walked over, ascending; all of them if it is not told.
    chosen: Option<&'a [usize]>,
}

impl<'a> Stored<'a> {
    /// Samples `range` of a set, which are in `chunk`.
    pub(crate) fn new(samples: &'a Samples<'_>, range: Range<usize>, chunk: Chunk<'a>) -> Self {
        Self {
            chunk,
            sample_len: samples.sample_len(),
            scale: samples.scale(),
            weights: samples.weights().map(|w| &w[range.clone()]),
            classes: samples.classes().map(|c| &c[range.clone()]),
            first: range.start,
            place: 0,
            chosen: None,
        }
    }

    /// Samples of this length that belong to no set.
    pub(crate) fn plain(chunk: Chunk<'a>, sample_len: usize) -> Self {
        let (weights, classes) = (None, None);
        Self { chunk, sample_len, scale: 1.0, weights, classes, first: 0, place: 0, chosen: None }
    }

    /// The same, of which only some are walked over: they keep their places.
    pub(crate) fn choosing<'b>(self, chosen: &'b [usize]) -> Stored<'b>
    where
        'a: 'b,
    {
        Stored { chosen: Some(chosen), ..self }
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.chunk.len() / self.sample_len
    }

    /// Sample `n` of these alone.
    pub(crate) fn only(&self, n: usize) -> Self {
        Self {
            chunk: self.chunk.slice(n * self.sample_len..(n + 1) * self.sample_len),
            weights: self.weights.map(|w| &w[n..n + 1]),
            classes: self.classes.map(|c| &c[n..n + 1]),
            first: self.first + n,
            place: self.place + n,
            chosen: None,
            ..*self
        }
    }

    /// The weight of sample `n` of these.
    #[inline(always)]
    pub(crate) fn weight(&self, n: usize) -> f64 {
        self.weights.map_or(1.0, |w| w[n])
    }

    /// The class of sample `n` of these, where it is known.
    #[inline(always)]
    pub(crate) fn class(&self, n: usize) -> Option<u32> {
        self.classes.and_then(|c| c[n])
    }

    /// Whether there are weights.
    pub(crate) fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// x − g of some elements of sample `n` of these, in the working precision; `reference` has one g per element of a sample.
    #[inline(always)]
    pub(crate) fn load<T: Real>(&self, n: usize, elements: Range<usize>, reference: &[T], out: &mut [T]) {
        self.combine(n, elements, reference, out, |_, x| x);
    }

    /// Asks for some elements of sample `n` of these, which are loaded next.
    #[inline(always)]
    pub(crate) fn fetch(&self, n: usize, elements: Range<usize>) {
        let (size, from) = (self.chunk.element().size(), n * self.sample_len);
        let bytes = &self.chunk.bytes()[(from + elements.start) * size..(from + elements.end) * size];
        for line in bytes.chunks(LINE) {
            prefetch::<true, _>(&line[0]);
        }
    }

    /// Adds `factor` times x − g of sample `n` of these to `out`.
    #[inline(always)]
    pub(crate) fn add<T: Real>(&self, n: usize, factor: T, reference: &[T], out: &mut [T]) {
        self.combine(n, 0..self.sample_len, reference, out, |sum, x| sum + factor * x);
    }

    /// Makes of every number in `out` and of x − g what `with` says.
    #[inline(always)]
    fn combine<T: Real>(
        &self,
        n: usize,
        elements: Range<usize>,
        reference: &[T],
        out: &mut [T],
        with: impl Fn(T, T) -> T,
    ) {
        let scale = T::from_f64(self.scale);
        let from = n * self.sample_len;
        let (from, reference) = (from + elements.start..from + elements.end, &reference[elements]);
        // Plain loops: an iterator's `for_each` may be compiled apart, without the wide instructions.
        macro_rules! load {
            ($x:expr) => {{
                let x = &$x[from];
                let out = &mut out[..x.len()];
                for i in 0..x.len() {
                    out[i] = with(out[i], T::from_f64(f64::from(x[i])) * scale - reference[i]);
                }
            }};
        }
        match self.chunk {
            Chunk::U8(x) => load!(x),
            Chunk::F32(x) => load!(x),
            Chunk::F64(x) => load!(x),
        }
    }

    /// Whether each element of sample `n` of these is NaN: bits, 64 to a word, added to `words`.
    #[inline(always)]
    pub(crate) fn nan_bits(&self, n: usize, words: &mut Vec<u64>) {
        let of = n * self.sample_len..(n + 1) * self.sample_len;
        macro_rules! bits {
            ($x:expr) => {
                for elements in $x[of].chunks(64) {
                    let mut word = 0;
                    for i in 0..elements.len() {
                        word |= u64::from(elements[i].is_nan()) << i;
                    }
                    words.push(word);
                }
            };
        }
        match self.chunk {
            // Whole numbers are all there.
            Chunk::U8(_) => words.extend(std::iter::repeat_n(0, self.sample_len.div_ceil(64))),
            Chunk::F32(x) => bits!(x),
            Chunk::F64(x) => bits!(x),
        }
    }

    /// Some of these, with `values` in the place of NaN.
    pub(crate) fn filled(&self, which: &[usize], values: &[f64]) -> Copied {
        let mut buffer = Buffer::new();
        for &n in which {
            buffer.extend(self.chunk.slice(n * self.sample_len..(n + 1) * self.sample_len));
        }
        let value = |i: usize| values[i % self.sample_len] / self.scale;
        buffer.f32.iter_mut().enumerate().filter(|(_, x)| x.is_nan()).for_each(|(i, x)| *x = value(i) as f32);
        buffer.f64.iter_mut().enumerate().filter(|(_, x)| x.is_nan()).for_each(|(i, x)| *x = value(i));
        self.copied(which, buffer, self.sample_len)
    }

    /// Some cells of some of these: smaller samples.
    pub(crate) fn cells(&self, which: &[usize], cells: &[usize]) -> Copied {
        let mut buffer = Buffer::new();
        macro_rules! gather {
            ($x:expr, $to:ident) => {
                for &n in which {
                    let x = &$x[n * self.sample_len..(n + 1) * self.sample_len];
                    buffer.$to.extend(cells.iter().map(|&i| x[i]));
                }
            };
        }
        match self.chunk {
            Chunk::U8(x) => gather!(x, u8),
            Chunk::F32(x) => gather!(x, f32),
            Chunk::F64(x) => gather!(x, f64),
        }
        self.copied(which, buffer, cells.len())
    }

    fn copied(&self, which: &[usize], buffer: Buffer, sample_len: usize) -> Copied {
        let weights = self.weights.map(|w| which.iter().map(|&n| w[n]).collect());
        let classes = self.classes.map(|c| which.iter().map(|&n| c[n]).collect());
        Copied { buffer, sample_len, weights, classes }
    }

    /// How many are walked over.
    fn chosen_count(&self) -> usize {
        self.chosen.map_or(self.count(), <[usize]>::len)
    }

    /// The place of the one that comes after `at` others.
    #[inline(always)]
    fn chosen(&self, at: usize) -> usize {
        self.chosen.map_or(at, |chosen| chosen[at])
    }

    /// The places of those that are walked over.
    pub(crate) fn walk(self) -> impl Iterator<Item = usize> {
        (0..self.chosen_count()).map(move |at| self.chosen(at))
    }

    /// Those that are walked over in blocks of at most so many.
    pub(crate) fn blocks(self, length: usize) -> impl Iterator<Item = Block<'a>> {
        let total = self.chosen_count();
        (0..total).step_by(length).map(move |first| {
            let end = (first + length).min(total);
            Block { stored: self, of: first..end, next: end..(end + length).min(total) }
        })
    }
}

/// Samples that were made of others.
pub(crate) struct Copied {
    buffer: Buffer,
    sample_len: usize,
    weights: Option<Vec<f64>>,
    classes: Option<Vec<Option<u32>>>,
}

impl Copied {
    /// As samples like those they were made of.
    pub(crate) fn stored<'a>(&'a self, like: Stored<'a>) -> Stored<'a> {
        let (weights, classes) = (self.weights.as_deref(), self.classes.as_deref());
        let chunk = self.buffer.chunk(like.chunk.element());
        Stored { chunk, sample_len: self.sample_len, weights, classes, chosen: None, ..like }
    }
}

/// Some samples that are worked on together, and those that come next, which are fetched into cache on the way.
#[derive(Clone)]
pub(crate) struct Block<'a> {
    pub(crate) stored: Stored<'a>,
    /// Counted among those that are walked over.
    of: Range<usize>,
    next: Range<usize>,
}

impl<'a> Block<'a> {
    /// How many samples there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }

    /// Whether none comes before it.
    pub(crate) fn is_first(&self) -> bool {
        self.of.start == 0
    }

    /// The place of one of its samples among those that are stored.
    #[inline(always)]
    pub(crate) fn place(&self, sample: usize) -> usize {
        self.stored.chosen(self.of.start + sample)
    }

    /// The places of all its samples.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.count()).map(|sample| self.place(sample))
    }

    /// Brings these elements of its own samples into cache.
    pub(crate) fn fetch_own(&self, elements: &'a [Range<usize>]) -> Fetch<'a> {
        Fetch::new(self.stored, elements, self.of.clone())
    }

    /// Brings these elements of the samples of the next block into cache.
    pub(crate) fn fetch_next(&self, elements: &'a [Range<usize>]) -> Fetch<'a> {
        Fetch::new(self.stored, elements, self.next.clone())
    }
}

/// Brings samples that will be needed next into cache, a few lines at a time: while a block is contracted nothing else is
/// read, and otherwise reading them would have to wait for every line.
pub(crate) struct Fetch<'a> {
    stored: Stored<'a>,
    bytes: &'a [u8],
    /// Bytes per element and per sample.
    element: usize,
    sample: usize,
    /// Counted among the samples that are walked over.
    of: Range<usize>,
    /// Elements that lie next to each other in a sample.
    runs: &'a [Range<usize>],
    /// The next line: which sample, which run, how far into it.
    at: (usize, usize, usize),
}

/// What the processor moves at a time.
const LINE: usize = 64;

impl<'a> Fetch<'a> {
    fn new(stored: Stored<'a>, runs: &'a [Range<usize>], of: Range<usize>) -> Self {
        let element = stored.chunk.element().size();
        let at = (of.start, 0, 0);
        let (bytes, sample) = (stored.chunk.bytes(), stored.sample_len * element);
        Self { stored, bytes, element, sample, of, runs, at }
    }

    /// The number of lines there are.
    pub(crate) fn lines(&self) -> usize {
        let lines: usize = self.runs.iter().map(|r| (r.len() * self.element).div_ceil(LINE)).sum();
        lines * self.of.len()
    }

    /// Asks for the next lines.
    #[inline(always)]
    pub(crate) fn advance(&mut self, lines: usize) {
        let (mut n, mut run, mut offset) = self.at;
        let mut left = lines;
        while left > 0 && n < self.of.end {
            let (start, length) = (self.runs[run].start * self.element, self.runs[run].len() * self.element);
            let from = self.stored.chosen(n) * self.sample + start + offset;
            let bytes = &self.bytes[from..from + (length - offset).min(left * LINE)];
            for line in bytes.chunks(LINE) {
                prefetch::<false, _>(&line[0]);
            }
            left -= bytes.len().div_ceil(LINE);
            offset += bytes.len();
            if offset == length {
                (run, offset) = (run + 1, 0);
                if run == self.runs.len() {
                    (n, run) = (n + 1, 0);
                }
            }
        }
        self.at = (n, run, offset);
    }
}

/// Asks for the line this number begins in: into the first-level cache if it is wanted `SOON`, otherwise into the second.
#[inline(always)]
pub(crate) fn prefetch<const SOON: bool, N>(number: &N) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let line = std::ptr::from_ref(number).cast();
        // SAFETY: a prefetch is a hint: it reads nothing, writes nothing and cannot fault, and the address is that of
        // a live number.
        #[allow(unsafe_code)]
        unsafe {
            match SOON {
                true => _mm_prefetch::<_MM_HINT_T0>(line),
                false => _mm_prefetch::<_MM_HINT_T1>(line),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_gives_the_same_numbers() {
        let bytes: Vec<u8> = (0..60).map(|i| (i * 37 % 251) as u8).collect();
        let (single, double): (Vec<f32>, Vec<f64>) =
            bytes.iter().map(|&x| (f32::from(x), f64::from(x))).unzip();
        let reference: Vec<f64> = (0..20).map(|i| f64::from(i) * 0.5).collect();
        let expected: Vec<f64> = (3..11).map(|i| 0.25 * double[40 + i] - reference[i]).collect();
        let samples = Samples::from_vec(&[4, 5], double.clone()).unwrap().scaled(0.25).unwrap();
        for chunk in [Chunk::U8(&bytes), Chunk::F32(&single), Chunk::F64(&double)] {
            let stored = Stored::new(&samples, 0..3, chunk);
            assert_eq!((stored.count(), stored.only(2).count(), stored.only(2).first), (3, 1, 2));
            for (n, stored) in [(2, stored), (0, stored.only(2))] {
                let mut out = [0.0; 8];
                stored.load(n, 3..11, &reference, &mut out);
                assert_eq!(out[..], expected);
            }
        }
    }

    #[test]
    fn those_that_are_chosen_are_walked_over_and_keep_their_places() {
        let x: Vec<f32> = (0..20).map(|i| i as f32).collect();
        let stored = Stored::plain(Chunk::F32(&x), 2);
        assert_eq!(stored.walk().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        let some = stored.choosing(&[1, 4, 5, 9]);
        assert_eq!((some.count(), some.walk().collect::<Vec<_>>()), (10, vec![1, 4, 5, 9]));
        let blocks: Vec<Vec<usize>> = some.blocks(3).map(|block| block.places().collect()).collect();
        assert_eq!(blocks, [vec![1, 4, 5], vec![9]]);
        assert_eq!(some.blocks(3).map(|block| block.is_first()).collect::<Vec<_>>(), [true, false]);
        assert_eq!((some.only(4).count(), some.only(4).walk().count()), (1, 1));
    }
}
