//! A block of samples, one per lane: contraction and densities.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::contract::{
    From, Loading, Place, add_inner_products, contract_fibres, contract_mode, has_room_for_pairs,
};
use super::densities::Densities;
use super::pack::{Fetch, Packed, Panel, Piece};
use super::plan::{Plan, Step};
use super::simd::Real;
use crate::data::Chunk;

/// Which samples of a chunk make up a block.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a> {
    pub(crate) chunk: Chunk<'a>,
    pub(crate) scale: f64,
    /// The first one, by its place in the chunk, and how many: at most as many as there are lanes.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// How many the next block has, which are fetched into cache on the way.
    pub(crate) next: usize,
}

impl<'a> Picked<'a> {
    /// The samples of a chunk of `total`, at most `lanes` at a time.
    pub(crate) fn all(
        chunk: Chunk<'a>,
        scale: f64,
        total: usize,
        lanes: usize,
    ) -> impl Iterator<Item = Self> {
        (0..total).step_by(lanes).map(move |first| {
            let count = lanes.min(total - first);
            Self { chunk, scale, first, count, next: lanes.min(total - first - count) }
        })
    }

    /// The samples of this block.
    pub(crate) fn of(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    /// The samples of the next one.
    pub(crate) fn after(&self) -> Range<usize> {
        let end = self.first + self.count;
        end..end + self.next
    }
}

/// A block of samples and what the model makes of it.
pub(crate) struct Block<T> {
    packed: Packed<T>,
    /// What comes out of each step of the contraction of X − M, `[component][element][lane]`.
    stages: Vec<Aligned<T>>,
    /// ⟨X − G, M − G⟩, `[component][lane]`.
    inner: Vec<f64>,
    /// Component k is in slot k.
    pub(crate) densities: Densities,
}

impl<T: Real> Block<T> {
    pub(crate) fn new(plan: &Plan<T>) -> Self {
        let packed = Packed::new(&plan.panels);
        let (k, lanes) = (plan.components.len(), packed.lanes);
        let zeros = |s: &Step| Aligned::new(T::from_f64(0.0), s.out_len() * k * lanes);
        Self {
            packed,
            stages: plan.steps.iter().map(zeros).collect(),
            inner: vec![0.0; k * lanes],
            densities: Densities::new(k, lanes),
        }
    }

    /// The E-step on one block: contracts it with all components and evaluates their densities.
    pub(crate) fn evaluate<S: Simd>(&mut self, simd: S, plan: &Plan<T>, picked: Picked<'_>) {
        simd.vectorize(Evaluate { block: self, plan, picked });
    }

    #[inline(always)]
    fn evaluate_on<S: Simd>(&mut self, simd: S, plan: &Plan<T>, picked: Picked<'_>) {
        let lanes = self.densities.lanes;
        self.inner.fill(0.0);
        self.packed.norms.fill(0.0);
        let Picked { chunk, scale, .. } = picked;
        for (p, panel) in plan.panels.iter().enumerate() {
            self.packed.fill(simd, panel, chunk, picked.of(), scale, &plan.reference);
            let fetch = match plan.panels.get(p + 1) {
                Some(panel) => Fetch::new(chunk, plan.sample_len, panel, picked.of()),
                None => Fetch::new(chunk, plan.sample_len, &plan.panels[0], picked.after()),
            };
            self.contract_panel(simd, plan, panel, fetch);
        }
        for t in 1..plan.steps.len() {
            let step = plan.steps[t];
            let (done, rest) = self.stages.split_at_mut(t);
            let (from, to) = (&done[t - 1], &mut rest[0]);
            let (in_len, out_len) = (plan.steps[t - 1].out_len() * lanes, step.out_len() * lanes);
            for (k, component) in plan.components.iter().enumerate() {
                contract_mode(
                    simd,
                    &from[k * in_len..(k + 1) * in_len],
                    (step.before, step.n, step.after),
                    &component.loadings[step.mode],
                    step.cols,
                    lanes,
                    &mut to[k * out_len..(k + 1) * out_len],
                );
            }
        }
        self.find_densities(plan, picked);
    }

    /// The first step reads the samples: every component takes its turn on a piece while it is in cache.
    #[inline(always)]
    fn contract_panel<S: Simd>(&mut self, simd: S, plan: &Plan<T>, panel: &Panel, mut fetch: Fetch<'_>) {
        let step = plan.steps[0];
        let vectors = self.densities.lanes * size_of::<T>() / size_of::<T::Vector<S>>();
        let out_len = step.out_len() * vectors;
        let x = T::vectors::<S>(&self.packed.x);
        let out = T::vectors_mut::<S>(&mut self.stages[0]);
        let share = fetch.lines().div_ceil(panel.pieces.len() * plan.components.len());
        for group in panel.groups() {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            let rows = first.row..last.row + last.range.len();
            inner_products(simd, plan, panel.start, rows, x, vectors, &mut self.inner);
            let place = |piece: &Piece, k: usize| {
                let (o, m) = piece.fibre;
                let offset = o * step.cols * step.after + m;
                Place { x: piece.row * vectors, out: k * out_len + offset * vectors, offset }
            };
            for (k, component) in plan.components.iter().enumerate() {
                fetch.advance(share * group.len());
                let mut pieces = group;
                while let Some((piece, rest)) = pieces.split_first() {
                    let range = piece.range.clone();
                    let loading = Loading {
                        u: &component.loadings[step.mode][range.start * step.cols..range.end * step.cols],
                        n: range.len(),
                        cols: step.cols,
                        from: if range.start > 0 {
                            From::There
                        } else {
                            From::Offset { offset: &component.start, stride: step.after }
                        },
                    };
                    let stride = step.after * vectors;
                    match rest.split_first() {
                        Some((second, rest)) if second.range == range && has_room_for_pairs::<S>() => {
                            let fibres = [place(piece, k), place(second, k)];
                            contract_fibres(simd, loading, fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                        _ => {
                            let fibres = [place(piece, k)];
                            contract_fibres(simd, loading, fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn find_densities(&mut self, plan: &Plan<T>, picked: Picked<'_>) {
        let lanes = self.densities.lanes;
        let mut explained = vec![0.0; lanes];
        let y = self.stages.last().map_or(&[][..], |y| y);
        for (k, component) in plan.components.iter().enumerate() {
            explained.fill(0.0);
            let y = &y[k * plan.core_len * lanes..(k + 1) * plan.core_len * lanes];
            for (j, row) in y.chunks_exact(lanes).enumerate() {
                let precision = component.density.precision[j];
                for lane in 0..lanes {
                    let y = row[lane].to_f64();
                    explained[lane] += y * y * precision;
                }
            }
            for lane in 0..picked.count {
                let terms = (self.packed.norms[lane], self.inner[k * lanes + lane]);
                let directly = || squared_distance(plan, k, picked, lane);
                self.densities.set((k, lane), component, terms, explained[lane], directly);
            }
        }
    }

    /// Y under component `k`, `[core][lane]`.
    #[inline(always)]
    pub(crate) fn y(&self, plan: &Plan<T>, k: usize) -> &[T] {
        self.stage(plan, plan.steps.len() - 1, k)
    }

    /// Y of one sample under component `k`.
    #[inline(always)]
    pub(crate) fn y_of(&self, plan: &Plan<T>, k: usize, lane: usize) -> impl Iterator<Item = T> {
        self.y(plan, k).iter().skip(lane).step_by(self.densities.lanes).copied()
    }

    /// Z under component `k`: what went into the last step. Vectors have none.
    #[inline(always)]
    pub(crate) fn z(&self, plan: &Plan<T>, k: usize) -> &[T] {
        self.stage(plan, plan.steps.len() - 2, k)
    }

    #[inline(always)]
    fn stage(&self, plan: &Plan<T>, step: usize, k: usize) -> &[T] {
        let len = plan.steps[step].out_len() * self.densities.lanes;
        &self.stages[step][k * len..(k + 1) * len]
    }
}

/// ⟨X − G, M − G⟩ of the rows of a panel, for four components at a time.
#[inline(always)]
fn inner_products<T: Real, S: Simd>(
    simd: S,
    plan: &Plan<T>,
    panel_start: usize,
    rows: Range<usize>,
    x: &[T::Vector<S>],
    vectors: usize,
    inner: &mut [f64],
) {
    let lanes = vectors * size_of::<T::Vector<S>>() / size_of::<T>();
    let x = &x[rows.start * vectors..rows.end * vectors];
    let mean = |k: usize| &plan.components[k].mean[panel_start + rows.start..panel_start + rows.end];
    let count = plan.components.len();
    let mut k = 0;
    while k + 4 <= count {
        let means = [mean(k), mean(k + 1), mean(k + 2), mean(k + 3)];
        add_inner_products(simd, means, x, vectors, &mut inner[k * lanes..(k + 4) * lanes]);
        k += 4;
    }
    for k in k..count {
        add_inner_products(simd, [mean(k)], x, vectors, &mut inner[k * lanes..(k + 1) * lanes]);
    }
}

/// ‖X − M‖² of one lane, difference by difference.
#[cold]
fn squared_distance<T: Real>(plan: &Plan<T>, k: usize, picked: Picked<'_>, lane: usize) -> f64 {
    let size = plan.sample_len;
    let offset = &plan.components[k].offset;
    let (first, scale) = ((picked.first + lane) * size, T::from_f64(picked.scale));
    let x = |i: usize| T::from_f64(picked.chunk.get(first + i)) * scale - plan.reference[i];
    (0..size).map(|i| (x(i) - T::from_f64(offset[i])).to_f64()).map(|d| d * d).sum()
}

struct Evaluate<'a, T> {
    block: &'a mut Block<T>,
    plan: &'a Plan<T>,
    picked: Picked<'a>,
}

impl<T: Real> WithSimd for Evaluate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.block.evaluate_on(simd, self.plan, self.picked);
    }
}
