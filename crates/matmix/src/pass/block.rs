//! A block of samples, one per lane: contraction and densities.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::contract::{
    From, Loading, Place, add_inner_products, contract_fibres, contract_mode, has_room_for_pairs,
};
use super::pack::{Fetch, Packed, Panel, Piece};
use super::plan::Plan;
use super::simd::Real;
use crate::data::Chunk;
use crate::model::not_negative;

/// A squared distance below this share of the squares it is the difference of has lost too many digits: components
/// that lie far apart compared with their spread.
const CANCELLED: f64 = 1e-3;

/// Which samples of a chunk make up a block.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a> {
    pub(crate) chunk: Chunk<'a>,
    pub(crate) scale: f64,
    /// The samples of this block, by their place in the chunk: at most as many as there are lanes.
    pub(crate) of: &'a [u32],
    /// Those of the next one, which are fetched into cache on the way.
    pub(crate) next: &'a [u32],
}

/// Where the samples of a block come from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a, T> {
    /// A chunk, from which they are packed.
    Chunk(Picked<'a>),
    /// One per lane already, less the reference: `x[element][lane]`, and ‖X − G‖² per lane.
    Lanes { x: &'a [T], norms: &'a [f64] },
}

/// A block of samples and what the model makes of it. The components that were evaluated are counted in slots.
pub(crate) struct Block<T> {
    packed: Packed<T>,
    pub(crate) lanes: usize,
    /// What comes out of each step of the contraction of X − M, `[slot][element][lane]`.
    stages: Vec<Vec<T>>,
    /// ⟨X − G, M − G⟩, `[slot][lane]`.
    inner: Vec<f64>,
    /// ‖X − M‖², `[slot][lane]`.
    pub(crate) squared_distance: Vec<f64>,
    /// ln p(X|k), `[slot][lane]`.
    pub(crate) log_density: Vec<f64>,
    /// ‖X − X̂‖², `[slot][lane]`.
    pub(crate) squared_error: Vec<f64>,
}

impl<T: Real> Block<T> {
    pub(crate) fn new(plan: &Plan<T>) -> Self {
        let packed = Packed::new(&plan.panels);
        let lanes = packed.lanes;
        let per_lane = plan.components.len() * lanes;
        let stages = plan.steps.iter().map(|s| vec![T::from_f64(0.0); s.out_len() * per_lane]).collect();
        Self {
            packed,
            lanes,
            stages,
            inner: vec![0.0; per_lane],
            squared_distance: vec![0.0; per_lane],
            log_density: vec![0.0; per_lane],
            squared_error: vec![0.0; per_lane],
        }
    }

    /// The E-step on one block: contracts it with these components and evaluates their densities, each in its slot. The
    /// first `done` of them have already been evaluated on this block.
    pub(crate) fn evaluate<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        origin: Origin<'_, T>,
        components: &[usize],
        done: usize,
    ) {
        simd.vectorize(Evaluate { block: self, plan, origin, components, done });
    }

    #[inline(always)]
    fn evaluate_on<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        origin: Origin<'_, T>,
        components: &[usize],
        done: usize,
    ) {
        let lanes = self.lanes;
        let new = done..components.len();
        self.inner[done * lanes..components.len() * lanes].fill(0.0);
        // A single panel is still there.
        let packed = done > 0 && plan.panels.len() == 1;
        if !packed {
            self.packed.norms.fill(0.0);
        }
        for (p, panel) in plan.panels.iter().enumerate() {
            let mut fetch = None;
            match origin {
                Origin::Chunk(_) if packed => {}
                Origin::Chunk(Picked { chunk, scale, of, next }) => {
                    self.packed.fill(simd, panel, chunk, of, scale, &plan.reference);
                    fetch = Some(match plan.panels.get(p + 1) {
                        Some(panel) => Fetch::new(chunk, plan.sample_len, panel, of),
                        None => Fetch::new(chunk, plan.sample_len, &plan.panels[0], next),
                    });
                }
                Origin::Lanes { x, norms } => {
                    for (element, &row) in panel.runs.iter().flat_map(Clone::clone).zip(&panel.rows) {
                        let row = row as usize;
                        self.packed.x[row * lanes..(row + 1) * lanes]
                            .copy_from_slice(&x[element * lanes..(element + 1) * lanes]);
                    }
                    self.packed.norms.copy_from_slice(norms);
                }
            }
            self.contract_panel(simd, plan, panel, components, new.clone(), fetch);
        }
        for t in 1..plan.steps.len() {
            let step = plan.steps[t];
            let (done, rest) = self.stages.split_at_mut(t);
            let (from, to) = (&done[t - 1], &mut rest[0]);
            let (in_len, out_len) = (plan.steps[t - 1].out_len() * lanes, step.out_len() * lanes);
            for slot in new.clone() {
                let k = components[slot];
                contract_mode(
                    simd,
                    &from[slot * in_len..(slot + 1) * in_len],
                    (step.before, step.n, step.after),
                    &plan.components[k].loadings[step.mode],
                    step.cols,
                    lanes,
                    &mut to[slot * out_len..(slot + 1) * out_len],
                );
            }
        }
        self.densities(plan, origin, components, new);
    }

    /// The first step reads the samples: every component takes its turn on a piece while it is in cache.
    #[inline(always)]
    fn contract_panel<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        panel: &Panel,
        components: &[usize],
        slots: Range<usize>,
        mut fetch: Option<Fetch<'_>>,
    ) {
        let step = plan.steps[0];
        let vectors = self.lanes * size_of::<T>() / size_of::<T::Vector<S>>();
        let out_len = step.out_len() * vectors;
        let x = T::vectors::<S>(&self.packed.x);
        let out = T::vectors_mut::<S>(&mut self.stages[0]);
        let lines = fetch.as_ref().map_or(0, Fetch::lines);
        let share = lines.div_ceil(panel.pieces.len() * slots.len().max(1));
        for group in panel.groups() {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            let rows = first.row..last.row + last.range.len();
            let inner = &mut self.inner[..];
            inner_products(simd, plan, panel.start, rows, components, slots.clone(), x, vectors, inner);
            let place = |piece: &Piece, slot: usize| {
                let (o, m) = piece.fibre;
                let offset = o * step.cols * step.after + m;
                Place { x: piece.row * vectors, out: slot * out_len + offset * vectors, offset }
            };
            for slot in slots.clone() {
                let component = &plan.components[components[slot]];
                if let Some(fetch) = &mut fetch {
                    fetch.advance(share * group.len());
                }
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
                            let fibres = [place(piece, slot), place(second, slot)];
                            contract_fibres(simd, loading, fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                        _ => {
                            let fibres = [place(piece, slot)];
                            contract_fibres(simd, loading, fibres, x, vectors, out, stride, vectors);
                            pieces = rest;
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn densities(
        &mut self,
        plan: &Plan<T>,
        origin: Origin<'_, T>,
        components: &[usize],
        slots: Range<usize>,
    ) {
        let lanes = self.lanes;
        let mut explained = vec![0.0; lanes];
        let mut removed = vec![0.0; lanes];
        let y = self.stages.last().map_or(&[][..], Vec::as_slice);
        for slot in slots {
            let k = components[slot];
            let component = &plan.components[k];
            explained.fill(0.0);
            removed.fill(0.0);
            let y = &y[slot * plan.core_len * lanes..(slot + 1) * plan.core_len * lanes];
            for (j, row) in y.chunks_exact(lanes).enumerate() {
                let (precision, factor) = (component.density.precision[j], component.density.explained[j]);
                for lane in 0..lanes {
                    let y = row[lane].to_f64();
                    explained[lane] += y * y * precision;
                    removed[lane] += y * y * factor;
                }
            }
            let at = slot * lanes..(slot + 1) * lanes;
            let (distance, inner) = (&mut self.squared_distance[at.clone()], &self.inner[at.clone()]);
            let (density, error) = (&mut self.log_density[at.clone()], &mut self.squared_error[at]);
            for lane in 0..lanes {
                let squares = self.packed.norms[lane] + component.mean_norm;
                let mut d = squares - 2.0 * inner[lane];
                if d < CANCELLED * squares {
                    d = squared_distance(plan, k, origin, lane);
                }
                distance[lane] = d;
                density[lane] = component.density.log_density(d, explained[lane]);
                error[lane] = not_negative(d - removed[lane]);
            }
        }
    }

    /// Y under the component in `slot`, `[core][lane]`.
    #[inline(always)]
    pub(crate) fn y(&self, plan: &Plan<T>, slot: usize) -> &[T] {
        self.stage(plan, plan.steps.len() - 1, slot)
    }

    /// Z under the component in `slot`: what went into the last step. Vectors have none.
    #[inline(always)]
    pub(crate) fn z(&self, plan: &Plan<T>, slot: usize) -> &[T] {
        self.stage(plan, plan.steps.len() - 2, slot)
    }

    #[inline(always)]
    fn stage(&self, plan: &Plan<T>, step: usize, slot: usize) -> &[T] {
        let len = plan.steps[step].out_len() * self.lanes;
        &self.stages[step][slot * len..(slot + 1) * len]
    }
}

/// ⟨X − G, M − G⟩ of the rows of a panel, for four components at a time.
#[inline(always)]
fn inner_products<T: Real, S: Simd>(
    simd: S,
    plan: &Plan<T>,
    panel_start: usize,
    rows: Range<usize>,
    components: &[usize],
    slots: Range<usize>,
    x: &[T::Vector<S>],
    vectors: usize,
    inner: &mut [f64],
) {
    let lanes = vectors * size_of::<T::Vector<S>>() / size_of::<T>();
    let x = &x[rows.start * vectors..rows.end * vectors];
    let mean = |k: usize| &plan.components[k].mean[panel_start + rows.start..panel_start + rows.end];
    let mut slot = slots.start;
    while slot + 4 <= slots.end {
        let k = &components[slot..slot + 4];
        let means = [mean(k[0]), mean(k[1]), mean(k[2]), mean(k[3])];
        add_inner_products(simd, means, x, vectors, &mut inner[slot * lanes..(slot + 4) * lanes]);
        slot += 4;
    }
    for slot in slot..slots.end {
        let at = slot * lanes..(slot + 1) * lanes;
        add_inner_products(simd, [mean(components[slot])], x, vectors, &mut inner[at]);
    }
}

/// ‖X − M‖² of one lane, difference by difference.
#[cold]
fn squared_distance<T: Real>(plan: &Plan<T>, k: usize, origin: Origin<'_, T>, lane: usize) -> f64 {
    let size = plan.sample_len;
    let offset = &plan.components[k].offset;
    let distance = |x: &dyn Fn(usize) -> T| {
        (0..size).map(|i| (x(i) - T::from_f64(offset[i])).to_f64()).map(|d| d * d).sum()
    };
    match origin {
        // A lane without a sample.
        Origin::Chunk(picked) if lane >= picked.of.len() => 0.0,
        Origin::Chunk(picked) => {
            let (first, scale) = (picked.of[lane] as usize * size, T::from_f64(picked.scale));
            distance(&|i| T::from_f64(picked.chunk.get(first + i)) * scale - plan.reference[i])
        }
        Origin::Lanes { x, norms } => distance(&|i| x[i * norms.len() + lane]),
    }
}

struct Evaluate<'a, T> {
    block: &'a mut Block<T>,
    plan: &'a Plan<T>,
    origin: Origin<'a, T>,
    components: &'a [usize],
    done: usize,
}

impl<T: Real> WithSimd for Evaluate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.block.evaluate_on(simd, self.plan, self.origin, self.components, self.done);
    }
}
