//! Packing: samples side by side, one per lane, a panel at a time.
//!
//! A panel is a part of the elements of all samples of a block that fits the second-level cache; small samples are one
//! panel. Inside it the mode that is contracted first lies innermost (before the lanes), so that the kernel walks
//! along contiguous memory whatever the mode and whatever the order.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::super::load::{Block, Fetch};
use super::super::plan::Step;
use crate::simd::Aligned;
use crate::simd::{MAX_TILE, Real};

/// Vectors of 64 bytes per row of a block, which is one element of all its samples: 32 samples in single precision, 16
/// in double. Twice as many do not contract faster, and what is made of them leaves the second-level cache.
const ROW_VECTORS: usize = 2;

/// Rows per panel: 128 KB.
const PANEL_ROWS: usize = 1024;

/// The longest stretch of a fibre that is contracted at a time, so that two of them take half of the first-level cache.
const PIECE_ROWS: usize = 64;

/// Rows of all pieces that are contracted with one component after the other: 16 KB.
const GROUP_ROWS: usize = 128;

/// Elements packed at a time, so that the rows written stay in the first-level cache. Twice as many are no faster, half as many are 15 % slower with
/// AVX-512.
const PACK_ELEMENTS: usize = 128;

/// Packing a sample costs about as much as so many multiply-adds per element, and so does reading it with components side by side, its norm and its
/// products with means (measured: a pass over 28×28 samples with K = 1 takes 1.3 µs a sample, of which contractions are a tenth).
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

    /// Packs `panel` of a block of samples (at most as many as there are lanes), less `reference`.
    pub(crate) fn fill<S: Simd>(&mut self, simd: S, panel: &Panel, of: &Block<'_>, reference: &[T]) {
        simd.vectorize(Fill { packed: self, panel, of, reference });
    }

    #[inline(always)]
    fn transpose<S: Simd>(&mut self, panel: &Panel, of: &Block<'_>, reference: &[T]) {
        let stored = of.stored;
        let (lanes, tile) = (self.lanes, T::TILE);
        let whole = of.count() / tile * tile;
        let zero = T::from_f64(0.0);
        // Stretches of as many samples as a tile has rows.
        let mut values = [[zero; PACK_ELEMENTS]; MAX_TILE];
        let mut places = &panel.rows[..];
        for run in &panel.runs {
            for start in run.clone().step_by(PACK_ELEMENTS) {
                let end = (start + PACK_ELEMENTS).min(run.end);
                let (length, tiles) = (end - start, (end - start) / tile * tile);
                let rows = &places[..length];
                for n in (0..whole).step_by(tile) {
                    // Samples lie so far apart that no machine guesses what comes next: the same stretch of the next
                    // samples, or the next stretch of the first ones. A row is asked for after each that is loaded: all at
                    // once would wait for each other.
                    let (next, from) = if n + tile < whole { (n + tile, start) } else { (0, end) };
                    for r in 0..tile {
                        stored.load(of.place(n + r), start..end, reference, &mut values[r]);
                        stored.fetch(of.place(next + r), from..(from + PACK_ELEMENTS).min(run.end));
                    }
                    let mut squares = [zero; MAX_TILE];
                    let out = &mut self.x[n..];
                    for i in (0..tiles).step_by(tile) {
                        T::transpose::<S, _>((&values, i), out, lanes, &rows[i..i + tile], &mut squares);
                    }
                    for r in 0..tile {
                        self.norms[n + r] += squares[r].to_f64();
                        self.put(n + r, &values[r], tiles..length, rows);
                    }
                }
                // What does not fill a tile. The squares are added in the same order and precision as in a tile, so that no
                // sample depends on its place in the block.
                for n in whole..of.count() {
                    let values = &mut values[0];
                    stored.load(of.place(n), start..end, reference, values);
                    let mut square = zero;
                    for i in 0..tiles {
                        self.x[rows[i] as usize * lanes + n] = values[i];
                        square += values[i] * values[i];
                    }
                    self.norms[n] += square.to_f64();
                    self.put(n, values, tiles..length, rows);
                }
                places = &places[length..];
            }
        }
    }

    /// The last elements of a stretch of sample `n`, which fill no tile.
    #[inline(always)]
    fn put(&mut self, n: usize, values: &[T], of: Range<usize>, rows: &[u32]) {
        let mut square = 0.0;
        for i in of {
            self.x[rows[i] as usize * self.lanes + n] = values[i];
            square += values[i].to_f64() * values[i].to_f64();
        }
        self.norms[n] += square;
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

    /// Packs the samples of a block, less `reference`.
    pub(crate) fn fill<S: Simd>(&mut self, simd: S, block: &Block<'_>, reference: &[T]) {
        self.packed.norms.fill(0.0);
        self.packed.fill(simd, &self.panel, block, reference);
    }

    /// Brings the samples that will be packed next into cache.
    pub(crate) fn fetch<'a>(&'a self, block: &Block<'a>) -> Fetch<'a> {
        block.fetch_next(&self.panel.runs)
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
    of: &'a Block<'a>,
    reference: &'a [T],
}

impl<T: Real> WithSimd for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { packed, panel, of, reference } = self;
        if of.count() < packed.lanes {
            packed.x.fill(T::from_f64(0.0));
        }
        packed.transpose::<S>(panel, of, reference);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Stored;
    use super::*;
    use crate::data::{Chunk, Samples};
    use crate::simd::Instructions;

    struct Norms<'a>(&'a Samples<'a>, Range<usize>, &'a [f32], &'a mut PackedWhole<f32>);

    impl WithSimd for Norms<'_> {
        type Output = Vec<f64>;

        fn with_simd<S: Simd>(self, simd: S) -> Vec<f64> {
            let Norms(samples, range, x, packed) = self;
            let count = range.len();
            let size = samples.sample_len();
            let chunk = Chunk::F32(&x[range.start * size..range.end * size]);
            let stored = Stored::new(samples, range, chunk);
            stored.blocks(count).for_each(|block| packed.fill(simd, &block, &vec![0.1; size]));
            packed.norms()[..count].to_vec()
        }
    }

    #[test]
    fn a_norm_does_not_depend_on_the_place_in_the_block() {
        let size = 133;
        let x: Vec<f32> = (0..32 * size).map(|i| (i as f32 * 0.618).fract()).collect();
        let samples = Samples::from_slice(&[size], &x).unwrap().scaled(0.7).unwrap();
        for on in Instructions::available().into_iter().filter(|&on| on != Instructions::Portable) {
            let packed = &mut PackedWhole::new(size);
            let all = on.run::<f32, _>(Norms(&samples, 0..32, &x, packed));
            for n in 0..32 {
                // Alone it fills no tile.
                let alone = on.run::<f32, _>(Norms(&samples, n..n + 1, &x, packed));
                assert_eq!(alone, all[n..n + 1], "{on}, sample {n}");
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
