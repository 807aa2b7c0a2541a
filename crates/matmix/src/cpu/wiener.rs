//! Samples without their noise: the evaluator, and rows of posterior means.

use pulp::{Simd, WithSimd};

use super::evaluator::{Consumer, Evaluator, EvaluatorScratch, Found, Way};
use super::load::Stored;
use super::plan::cheapest_last;
use super::redo::{self, Work};
use crate::data::Samples;
use crate::error::Result;
use crate::linalg::expand;
use crate::pass::{Answers, Filter, Precision};
use crate::simd::{Instructions, Real};

/// Responsibilities below this are nothing to a mean.
const NEGLIGIBLE: f64 = 1e-6;

/// The posterior means of all samples, a chunk at a time and in order.
pub(super) fn filter(
    of: Filter<'_>,
    samples: &Samples<'_>,
    on: Instructions,
    each: &mut (dyn FnMut(Vec<f64>) + Send),
) -> Result<()> {
    let double = Precision::Auto.is_double(samples.element(), of.model);
    redo::fold(samples, on, double, &Filtering { of, samples: samples.len() }, |rows| each(rows.values))
}

struct Filtering<'a> {
    of: Filter<'a>,
    samples: usize,
}

/// What a thread reuses.
struct FilterScratch<T> {
    evaluator: EvaluatorScratch<T>,
    core: Vec<f64>,
    centred: Vec<T>,
}

impl Work for Filtering<'_> {
    type Sum = Answers;
    type Setup<T: Real> = Evaluator<T>;
    type Scratch<T: Real> = FilterScratch<T>;

    fn setup<T: Real>(&self) -> Evaluator<T> {
        let model = self.of.model;
        Evaluator::new(model, cheapest_last(model.shape(), model.rank()), Way::Best(self.samples))
    }

    fn scratch<T: Real>(&self, evaluator: &Evaluator<T>) -> FilterScratch<T> {
        FilterScratch {
            evaluator: evaluator.scratch(),
            core: vec![0.0; self.of.model.core_len()],
            centred: vec![T::from_f64(0.0); self.of.model.sample_len()],
        }
    }

    fn zero(&self) -> Answers {
        Answers::none(self.of.model.sample_len())
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        scratch: &mut FilterScratch<T>,
        stored: Stored<'_>,
        rows: &mut Answers,
        left_out: &mut Vec<usize>,
    ) {
        rows.make_room(stored.place + stored.count());
        on.run::<T, _>(Batch { of: self.of, evaluator, scratch, stored, rows, left_out });
    }

    fn merge(&self, sum: &mut Answers, following: &Answers) {
        sum.append(following);
    }

    fn sum_bytes(&self) -> usize {
        Answers::chunk_bytes(self.of.model.sample_len())
    }
}

struct Batch<'a, T> {
    of: Filter<'a>,
    evaluator: &'a Evaluator<T>,
    scratch: &'a mut FilterScratch<T>,
    stored: Stored<'a>,
    rows: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for Batch<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { of, evaluator, scratch, stored, rows, left_out } = self;
        let FilterScratch { evaluator: room, core, centred } = scratch;
        evaluator.show(simd, room, stored, &mut Writing { of, core, centred, rows, left_out });
    }
}

struct Writing<'a, T> {
    of: Filter<'a>,
    core: &'a mut [f64],
    centred: &'a mut [T],
    rows: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> Consumer<T> for Writing<'_, T> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, _: S, found: &Found<'_, T>) {
        write(self, found);
    }

    #[inline(always)]
    fn leave_out(&mut self, n: usize) {
        self.left_out.push(n);
    }
}

/// One row. A function of its own: nothing in it is a matter of vectors.
fn write<T: Real>(to: &mut Writing<'_, T>, found: &Found<'_, T>) {
    let Writing { of, core, centred, rows, .. } = to;
    let row = rows.row(found.stored.place + found.n);
    row.fill(0.0);
    for (&k, &gamma) in found.components.iter().zip(found.gamma) {
        if gamma < NEGLIGIBLE {
            continue;
        }
        let component = &of.model.components()[k];
        found.core(k, core);
        found.centred(k, centred);
        let (kept, explained) = (gamma * of.kept[k], gamma * (1.0 - of.kept[k]));
        let rebuilt = expand(core, component.loadings());
        let parts = component.mean().iter().zip(&rebuilt).zip(centred.iter());
        for (x, ((mean, rebuilt), centred)) in row.iter_mut().zip(parts) {
            *x += gamma * mean + explained * rebuilt + kept * centred.to_f64();
        }
    }
}
