//! Packing: how samples become lanes, a panel at a time.
//!
//! A panel is a part of the elements of all samples of a block that fits the second-level cache; small samples are one
//! panel. Inside it the mode that is contracted first lies innermost (before the lanes), so that the kernel walks
//! along contiguous memory whatever the mode and whatever the order.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::plan::Step;
use super::simd::Real;
use super::transpose::MAX_TILE;
use crate::data::Chunk;

/// Vectors of 64 bytes per row of a block, which is one element of all its samples: 32 samples in single precision, 16
/// in double. Twice as many do not contract faster, and what is made of them leaves the second-level cache.
const ROW_VECTORS: usize = 2;

/// Rows per panel: 128 KB.
const PANEL_ROWS: usize = 1024;

/// The longest stretch of a fibre that is contracted at a time, so that two of them take half of the first-level cache.
const PIECE_ROWS: usize = 64;

/// Rows of all pieces that are contracted with one component after the other: 16 KB.
const GROUP_ROWS: usize = 128;

/// Elements packed at a time, so that the rows written stay in the first-level cache.
const PACK_ELEMENTS: usize = 64;

/// Packing a sample costs about as much as so many multiply-adds per element.
pub(crate) const PACKING: usize = 20;

/// The number of samples per block.
pub(crate) fn lanes<T: Real>() -> usize {
    ROW_VECTORS * T::LANES
}

/// A stretch of one fibre (all elements of the mode that is contracted, at fixed other indices) in a panel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    /// The indices before and after the contracted mode.
    pub(crate) fibre: (usize, usize),
    /// Which part of the mode.
    pub(crate) range: Range<usize>,
    /// Where it begins in the panel.
    pub(crate) row: usize,
}

/// Which elements are packed together, and where they go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panel {
    /// How many elements the panels before this one hold.
    pub(crate) start: usize,
    /// Elements that lie next to each other in a sample.
    pub(crate) runs: Vec<Range<usize>>,
    /// The row of each element, run after run.
    pub(crate) rows: Vec<u32>,
    pub(crate) pieces: Vec<Piece>,
}

impl Panel {
    /// All elements in the order they are stored in.
    pub(crate) fn whole(sample_len: usize) -> Self {
        let rows: Vec<u32> = (0..sample_len as u32).collect();
        Self { runs: std::iter::once(0..sample_len).collect(), rows, ..Self::default() }
    }

    /// The part of a sample with these indices before, in and after the mode of side `n`.
    fn part(n: usize, after: usize, before: Range<usize>, along: Range<usize>, behind: Range<usize>) -> Self {
        let mut panel = Self::default();
        let fibres = before.len() * behind.len();
        let fibre = |o: usize, m: usize| (o - before.start) * behind.len() + (m - behind.start);
        let pieces = along.len().div_ceil(PIECE_ROWS);
        let ends: Vec<usize> = (0..=pieces).map(|t| along.len() * t / pieces).collect();
        for o in before.clone() {
            let mut t = 0;
            for i in along.clone() {
                let run = (o * n + i) * after + behind.start..(o * n + i) * after + behind.end;
                match panel.runs.last_mut() {
                    Some(last) if last.end == run.start => last.end = run.end,
                    _ => panel.runs.push(run),
                }
                // Rows follow the pieces: stretch by stretch, fibre by fibre.
                let i = i - along.start;
                t += usize::from(i == ends[t + 1]);
                let (from, to) = (ends[t], ends[t + 1]);
                let row = |m: usize| fibres * from + fibre(o, m) * (to - from) + i - from;
                panel.rows.extend(behind.clone().map(|m| row(m) as u32));
            }
        }
        for (&from, &to) in ends.iter().zip(&ends[1..]) {
            for o in before.clone() {
                for m in behind.clone() {
                    let range = along.start + from..along.start + to;
                    let row = fibres * from + fibre(o, m) * (to - from);
                    panel.pieces.push(Piece { fibre: (o, m), range, row });
                }
            }
        }
        panel
    }

    /// The pieces in groups that stay in the first-level cache while every component takes its turn.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Piece]> {
        let mut left = &self.pieces[..];
        std::iter::from_fn(move || {
            let first = left.first()?;
            let fits = |p: &&Piece| p.row + p.range.len() - first.row <= GROUP_ROWS;
            let count = left.iter().take_while(fits).count().max(1);
            let (group, rest) = left.split_at(count);
            left = rest;
            Some(group)
        })
    }

    /// The panels of samples whose contraction begins with `step`.
    pub(crate) fn all(step: &Step) -> Vec<Panel> {
        let &Step { before, n, after, .. } = step;
        let slab = n * after;
        let mut panels = Vec::new();
        if slab <= PANEL_ROWS {
            let slabs = PANEL_ROWS / slab;
            for o in (0..before).step_by(slabs) {
                panels.push(Panel::part(n, after, o..(o + slabs).min(before), 0..n, 0..after));
            }
            return counted(panels);
        }
        // Part of one slab: at least as wide as a tile of the transposition, so that whole tiles can be read.
        let width = (PANEL_ROWS / n / MAX_TILE * MAX_TILE).clamp(MAX_TILE.min(after), after);
        let height = (PANEL_ROWS / width).clamp(GROUP_ROWS.min(n), n);
        for o in 0..before {
            for m in (0..after).step_by(width) {
                for i in (0..n).step_by(height) {
                    let (along, behind) = (i..(i + height).min(n), m..(m + width).min(after));
                    panels.push(Panel::part(n, after, o..o + 1, along, behind));
                }
            }
        }
        counted(panels)
    }
}

/// The panels, each knowing where it begins.
fn counted(mut panels: Vec<Panel>) -> Vec<Panel> {
    let mut start = 0;
    for panel in &mut panels {
        panel.start = start;
        start += panel.rows.len();
    }
    panels
}

/// Packed elements less a reference, `x[row][lane]`; lanes without a sample are zero.
pub(crate) struct Packed<T> {
    pub(crate) lanes: usize,
    pub(crate) x: Aligned<T>,
    /// ‖X − G‖² per lane, of all panels packed since it was last cleared.
    pub(crate) norms: Vec<f64>,
}

impl<T: Real> Packed<T> {
    /// Room for the largest of these panels.
    pub(crate) fn new<'a>(panels: impl IntoIterator<Item = &'a Panel>) -> Self {
        let rows = panels.into_iter().map(|p| p.rows.len()).max().unwrap_or(0);
        let lanes = lanes::<T>();
        Self { lanes, x: Aligned::new(T::from_f64(0.0), rows * lanes), norms: vec![0.0; lanes] }
    }

    /// Packs `panel` of the samples `of` this chunk (at most as many as there are lanes), scaled, less `reference`.
    pub(crate) fn fill<S: Simd>(
        &mut self,
        simd: S,
        panel: &Panel,
        chunk: Chunk<'_>,
        of: Range<usize>,
        scale: f64,
        reference: &[T],
    ) {
        simd.vectorize(Fill { packed: self, panel, chunk, of, scale, reference });
    }

    #[inline(always)]
    fn transpose<S: Simd, E: Copy>(
        &mut self,
        panel: &Panel,
        x: &[E],
        of: Range<usize>,
        reference: &[T],
        centre: impl Fn(E, T) -> T,
    ) {
        let (size, lanes, tile) = (reference.len(), self.lanes, T::TILE);
        let whole = of.len() / tile * tile;
        let mut values = [[T::from_f64(0.0); MAX_TILE]; MAX_TILE];
        let mut places = &panel.rows[..];
        for run in &panel.runs {
            for start in run.clone().step_by(PACK_ELEMENTS) {
                let end = (start + PACK_ELEMENTS).min(run.end);
                let tiles = start + (end - start) / tile * tile;
                let (centres, rows) = (&reference[start..tiles], &places[..tiles - start]);
                for n in (0..whole).step_by(tile) {
                    let mut squares = [T::from_f64(0.0); MAX_TILE];
                    let mut from = [&x[..0]; MAX_TILE];
                    for r in 0..tile {
                        let first = (of.start + n + r) * size;
                        from[r] = &x[first + start..first + tiles];
                    }
                    let out = &mut self.x[n..];
                    for i in (0..tiles - start).step_by(tile) {
                        let g = &centres[i..i + tile];
                        for r in 0..tile {
                            let (from, row) = (&from[r][i..i + tile], &mut values[r]);
                            for c in 0..tile {
                                row[c] = centre(from[c], g[c]);
                            }
                        }
                        T::transpose::<S>(&values, out, lanes, &rows[i..i + tile], &mut squares);
                    }
                    for (norm, square) in self.norms[n..n + tile].iter_mut().zip(&squares) {
                        *norm += square.to_f64();
                    }
                }
                // What does not fill a tile: the last samples, and the last elements of all samples. The squares are added
                // in the same order and precision as in a tile, so that no sample depends on its place in the block.
                for (n, sample) in of.clone().enumerate() {
                    let first = sample * size;
                    let mut pack = |i: usize| {
                        let value = centre(x[first + i], reference[i]);
                        self.x[places[i - start] as usize * lanes + n] = value;
                        value
                    };
                    if n >= whole {
                        let mut square = T::from_f64(0.0);
                        for i in start..tiles {
                            let value = pack(i);
                            square += value * value;
                        }
                        self.norms[n] += square.to_f64();
                    }
                    let mut square = 0.0;
                    for i in tiles..end {
                        let value = pack(i).to_f64();
                        square += value * value;
                    }
                    self.norms[n] += square;
                }
                places = &places[end - start..];
            }
        }
    }
}

/// Whole samples, packed in the order in which they lie: for passes that are not a matter of cache.
pub(crate) struct PackedWhole<T> {
    panel: Panel,
    packed: Packed<T>,
    pub(crate) lanes: usize,
}

impl<T: Real> PackedWhole<T> {
    pub(crate) fn new(sample_len: usize) -> Self {
        let panel = Panel::whole(sample_len);
        let packed = Packed::new([&panel]);
        Self { lanes: packed.lanes, panel, packed }
    }

    /// Packs samples `range` of the chunk, scaled, less `reference`.
    pub(crate) fn fill<S: Simd>(
        &mut self,
        simd: S,
        chunk: Chunk<'_>,
        range: Range<usize>,
        scale: f64,
        reference: &[T],
    ) {
        self.packed.norms.fill(0.0);
        self.packed.fill(simd, &self.panel, chunk, range, scale, reference);
    }

    /// Brings samples that will be packed next into cache.
    pub(crate) fn fetch<'a>(&'a self, chunk: Chunk<'a>, of: Range<usize>) -> Fetch<'a> {
        Fetch::new(chunk, self.panel.rows.len(), &self.panel, of)
    }

    /// `x[element][lane]`.
    pub(crate) fn x(&self) -> &[T] {
        &self.packed.x
    }

    pub(crate) fn x_mut(&mut self) -> &mut [T] {
        &mut self.packed.x
    }

    /// ‖X − G‖² per lane.
    pub(crate) fn norms(&self) -> &[f64] {
        &self.packed.norms
    }
}

struct Fill<'a, T> {
    packed: &'a mut Packed<T>,
    panel: &'a Panel,
    chunk: Chunk<'a>,
    of: Range<usize>,
    scale: f64,
    reference: &'a [T],
}

impl<T: Real> WithSimd for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { packed, panel, chunk, of, scale, reference } = self;
        if of.len() < packed.lanes {
            packed.x.fill(T::from_f64(0.0));
        }
        let scale = T::from_f64(scale);
        let centre = |x: T, g: T| x * scale - g;
        match chunk {
            Chunk::U8(x) => {
                packed.transpose::<S, _>(panel, x, of, reference, |x, g| centre(T::from_f64(f64::from(x)), g))
            }
            Chunk::F32(x) => {
                packed.transpose::<S, _>(panel, x, of, reference, |x, g| centre(T::from_f64(f64::from(x)), g))
            }
            Chunk::F64(x) => {
                packed.transpose::<S, _>(panel, x, of, reference, |x, g| centre(T::from_f64(x), g))
            }
        }
    }
}

/// Brings samples that will be needed next into cache, a few lines at a time: while a block is contracted nothing else is
/// read, and otherwise reading them would have to wait for every line.
pub(crate) struct Fetch<'a> {
    bytes: &'a [u8],
    /// Bytes per element and per sample.
    element: usize,
    sample: usize,
    of: Range<usize>,
    runs: &'a [Range<usize>],
    /// The next line: which sample, which run, how far into it.
    at: (usize, usize, usize),
}

/// What the processor moves at a time.
const LINE: usize = 64;

impl<'a> Fetch<'a> {
    /// The part of the samples `of` a chunk that belongs to `panel`.
    pub(crate) fn new(chunk: Chunk<'a>, sample_len: usize, panel: &'a Panel, of: Range<usize>) -> Self {
        let element = chunk.element().size();
        let at = (of.start, 0, 0);
        Self { bytes: chunk.bytes(), element, sample: sample_len * element, of, runs: &panel.runs, at }
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
            let from = n * self.sample + start + offset;
            let bytes = &self.bytes[from..from + (length - offset).min(left * LINE)];
            for line in bytes.chunks(LINE) {
                prefetch(&line[0]);
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

/// Asks for the line this byte is in.
#[inline(always)]
fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it reads nothing, writes nothing and cannot fault, and the address is that of
        // a live byte.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(byte).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::simd::Path;

    struct Norms<'a>(&'a [f32], usize, &'a mut PackedWhole<f32>);

    impl WithSimd for Norms<'_> {
        type Output = Vec<f64>;

        fn with_simd<S: Simd>(self, simd: S) -> Vec<f64> {
            let Norms(x, size, packed) = self;
            packed.fill(simd, Chunk::F32(x), 0..x.len() / size, 0.7, &vec![0.1; size]);
            packed.norms()[..x.len() / size].to_vec()
        }
    }

    #[test]
    fn a_norm_does_not_depend_on_the_place_in_the_block() {
        let size = 133;
        let x: Vec<f32> = (0..32 * size).map(|i| (i as f32 * 0.618).fract()).collect();
        for path in Path::available() {
            let packed = &mut PackedWhole::new(size);
            let all = path.run(Norms(&x, size, packed));
            for n in 0..32 {
                // Alone it fills no tile.
                let alone = path.run(Norms(&x[n * size..(n + 1) * size], size, packed));
                assert_eq!(alone, all[n..n + 1], "{path:?}, sample {n}");
            }
        }
    }

    #[test]
    fn panels_hold_every_element_once_with_the_contracted_mode_innermost() {
        for (before, n, after) in
            [(1, 28, 28), (28, 28, 1), (1, 5000, 1), (3, 70, 40), (1, 64, 64), (2, 600, 9), (1, 300, 3)]
        {
            let panels = Panel::all(&Step { mode: 0, before, n, after, cols: 1 });
            let mut seen = vec![0; before * n * after];
            for panel in &panels {
                let elements: Vec<usize> = panel.runs.iter().flat_map(Clone::clone).collect();
                assert_eq!(elements.len(), panel.rows.len());
                let mut at = vec![usize::MAX; elements.len()];
                for (&element, &row) in elements.iter().zip(&panel.rows) {
                    seen[element] += 1;
                    at[row as usize] = element;
                }
                let mut covered = 0;
                for Piece { fibre: (o, m), range, row } in &panel.pieces {
                    assert!(range.len() <= PIECE_ROWS);
                    for (offset, i) in range.clone().enumerate() {
                        assert_eq!(at[row + offset], (o * n + i) * after + m);
                        covered += 1;
                    }
                }
                assert_eq!(covered, elements.len());
            }
            assert!(seen.iter().all(|&s| s == 1), "{before} {n} {after}");
        }
    }
}
