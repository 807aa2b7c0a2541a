//! A block of samples, one per lane: contraction and densities.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::super::contract::{From, Loading, Place, add_inner_products, contract_fibres, contract_mode};
use super::super::densities::{Densities, squared_distance};
use super::super::load::{Block, Fetch};
use super::super::plan::{Plan, Step};
use super::pack::{Packed, Panel, Piece};
use crate::simd::Aligned;
use crate::simd::{Real, has_many_registers};

/// A block of samples and what the model makes of it.
pub(crate) struct SampleBlock<T> {
    packed: Packed<T>,
    /// What comes out of each step of the contraction of X − M, `[component][element][lane]`.
    stages: Vec<Aligned<T>>,
    /// ⟨X − G, M − G⟩, `[component][lane]`.
    inner: Vec<f64>,
    /// Component k is in slot k.
    pub(crate) densities: Densities,
}

impl<T: Real> SampleBlock<T> {
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
    pub(crate) fn evaluate<S: Simd>(&mut self, simd: S, plan: &Plan<T>, of: &Block<'_>) {
        simd.vectorize(Evaluate { block: self, plan, of });
    }

    #[inline(always)]
    fn evaluate_on<S: Simd>(&mut self, simd: S, plan: &Plan<T>, of: &Block<'_>) {
        let lanes = self.densities.samples;
        self.inner.fill(0.0);
        self.packed.norms.fill(0.0);
        for (p, panel) in plan.panels.iter().enumerate() {
            self.packed.fill(simd, panel, of, &plan.reference);
            let fetch = match plan.panels.get(p + 1) {
                Some(panel) => of.fetch_own(&panel.runs),
                None => of.fetch_next(&plan.panels[0].runs),
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
        self.find_densities(plan, of);
    }

    /// The first step reads the samples: every component takes its turn on a piece while it is in cache.
    #[inline(always)]
    fn contract_panel<S: Simd>(&mut self, simd: S, plan: &Plan<T>, panel: &Panel, mut fetch: Fetch<'_>) {
        let step = plan.steps[0];
        let vectors = self.densities.samples * size_of::<T>() / size_of::<T::Vector<S>>();
        let out_len = step.out_len() * vectors;
        let (x, out) = (&self.packed.x[..], &mut self.stages[0][..]);
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
                        Some((second, rest)) if second.range == range && has_many_registers::<S>() => {
                            let fibres = [place(piece, k), place(second, k)];
                            contract_fibres(simd, loading, &fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                        _ => {
                            let fibres = [place(piece, k)];
                            contract_fibres(simd, loading, &fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn find_densities(&mut self, plan: &Plan<T>, of: &Block<'_>) {
        let lanes = self.densities.samples;
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
            for lane in 0..of.count() {
                let terms = (self.packed.norms[lane], self.inner[k * lanes + lane]);
                let directly = || loaded_distance(plan, k, of, lane);
                self.densities.set((k, lane), component, terms, explained[lane], directly);
            }
        }
    }

    /// Forgets the sample of a lane whose numbers left the range of the working precision: it must not spoil the sums that
    /// are made of all lanes.
    #[cold]
    pub(crate) fn clear(&mut self, lane: usize) {
        let lanes = self.densities.samples;
        for stage in &mut self.stages {
            stage.iter_mut().skip(lane).step_by(lanes).for_each(|x| *x = T::from_f64(0.0));
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
        self.y(plan, k).iter().skip(lane).step_by(self.densities.samples).copied()
    }

    /// Z under component `k`: what went into the last step. Vectors have none.
    #[inline(always)]
    pub(crate) fn z(&self, plan: &Plan<T>, k: usize) -> &[T] {
        self.stage(plan, plan.steps.len() - 2, k)
    }

    #[inline(always)]
    fn stage(&self, plan: &Plan<T>, step: usize, k: usize) -> &[T] {
        let len = plan.steps[step].out_len() * self.densities.samples;
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
    x: &[T],
    vectors: usize,
    inner: &mut [f64],
) {
    let lanes = vectors * size_of::<T::Vector<S>>() / size_of::<T>();
    let x = &x[rows.start * lanes..rows.end * lanes];
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
fn loaded_distance<T: Real>(plan: &Plan<T>, k: usize, of: &Block<'_>, lane: usize) -> f64 {
    let mut x = vec![T::from_f64(0.0); plan.sample_len];
    of.stored.load(of.place(lane), 0..plan.sample_len, &plan.reference, &mut x);
    squared_distance(&x, plan.components[k].offset.iter().map(|&m| T::from_f64(m)))
}

struct Evaluate<'a, T> {
    block: &'a mut SampleBlock<T>,
    plan: &'a Plan<T>,
    of: &'a Block<'a>,
}

impl<T: Real> WithSimd for Evaluate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.block.evaluate_on(simd, self.plan, self.of);
    }
}
