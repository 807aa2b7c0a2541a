//! The one evaluator: a model made ready for samples, which it shows, evaluated, to whoever sums up or answers questions.
//!
//! It owns the choice between the two arrangements (samples side by side, components side by side) and the bounds that tell
//! hopeless components. EM is this and sums; inference is this and rows.

use std::sync::OnceLock;

use pulp::{Simd, WithSimd};

use super::bounds::{Bounds, Coarse, HOPELESS, are_useful};
use super::components_abreast::{Stack, StackedModel};
use super::densities::Densities;
use super::load::{Block, Stored};
use super::partial::PartialModel;
use super::plan::Plan;
use super::samples_abreast::SampleBlock;
use crate::model::Mixture;
use crate::simd::Real;

/// How an evaluator goes about its work; the results are the same up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Whatever is fastest for so many samples, without components that are hopeless for a sample.
    Best(usize),
    /// The fastest way to evaluate all densities.
    AllDensities,
    /// All densities, samples side by side.
    #[cfg(test)]
    SamplesAbreast,
    /// All densities, components side by side.
    #[cfg(test)]
    ComponentsAbreast,
}

/// A model made ready.
pub(super) struct Evaluator<T> {
    pub(super) plan: Plan<T>,
    /// Its components side by side, where that is faster than samples side by side.
    pub(super) stacked: Option<StackedModel<T>>,
    /// What tells hopeless components, where that is worth it.
    coarse: Option<Coarse<T>>,
    /// All components.
    all: Vec<usize>,
    /// Responsibilities below e^this, relative to the largest, are zero.
    pub(super) cutoff: f64,
    /// The model made ready for samples with missing cells, when the first of them is met.
    partial: OnceLock<PartialModel<T>>,
}

/// What a thread reuses.
pub(super) struct EvaluatorScratch<T> {
    kernel: Kernel<T>,
    /// The components that are evaluated for a sample.
    some: Vec<usize>,
    /// Their responsibilities.
    gamma: Vec<f64>,
}

enum Kernel<T> {
    Samples(SampleBlock<T>),
    Components(Stack<T>, Option<Box<Bounds<T>>>),
}

impl<T> Kernel<T> {
    /// The samples of a block.
    fn samples(&self) -> usize {
        match self {
            Kernel::Samples(block) => block.densities.samples,
            Kernel::Components(stack, _) => stack.densities.samples,
        }
    }
}

/// Whoever wants to know what a model makes of samples.
pub(super) trait Consumer<T: Real> {
    /// One sample, evaluated.
    fn sample<S: Simd>(&mut self, simd: S, found: &Found<'_, T>);

    /// A sample whose numbers left the range of the working precision, by its place among those that were stored.
    fn leave_out(&mut self, n: usize);

    /// All samples of a block, side by side, have been shown.
    fn block<S: Simd>(&mut self, _simd: S, _plan: &Plan<T>, _block: &SampleBlock<T>) {}
}

/// One evaluated sample.
pub(super) struct Found<'a, T> {
    pub(super) plan: &'a Plan<T>,
    pub(super) evaluated: Evaluated<'a, T>,
    /// Its place in the block.
    pub(super) sample: usize,
    /// The block it is in, and its place among the samples that were stored.
    pub(super) stored: Stored<'a>,
    pub(super) n: usize,
    /// The components that were evaluated, one per slot; all others are hopeless.
    pub(super) components: &'a [usize],
    /// γ, one per slot.
    pub(super) gamma: &'a [f64],
    /// The slot of the most probable component.
    pub(super) best: usize,
    pub(super) log_likelihood: f64,
}

/// The block a sample is in, in either arrangement.
#[derive(Clone, Copy)]
pub(super) enum Evaluated<'a, T> {
    Samples(&'a SampleBlock<T>),
    Components(&'a StackedModel<T>, &'a Stack<T>),
}

impl<'a, T> Evaluated<'a, T> {
    fn densities(&self) -> &'a Densities {
        match self {
            Evaluated::Samples(block) => &block.densities,
            Evaluated::Components(_, stack) => &stack.densities,
        }
    }
}

impl<T: Real> Found<'_, T> {
    /// ‖X − M‖² under the component in a slot.
    #[inline(always)]
    pub(super) fn squared_distance(&self, slot: usize) -> f64 {
        let densities = self.evaluated.densities();
        densities.squared_distance[slot * densities.samples + self.sample]
    }

    /// δ under the component in a slot.
    #[inline(always)]
    pub(super) fn mahalanobis(&self, slot: usize) -> f64 {
        let densities = self.evaluated.densities();
        densities.mahalanobis[slot * densities.samples + self.sample]
    }

    /// ln p(X|k) under the component in a slot.
    #[inline(always)]
    pub(super) fn log_density(&self, slot: usize) -> f64 {
        let densities = self.evaluated.densities();
        densities.log_density[slot * densities.samples + self.sample] + self.plan.log_unit
    }

    /// ‖X − X̂‖², rebuilt by the most probable component.
    #[inline(always)]
    pub(super) fn squared_error(&self) -> f64 {
        let k = self.components[self.best];
        let explained = match self.evaluated {
            Evaluated::Samples(block) => {
                self.plan.components[k].explained(block.y_of(self.plan, k, self.sample))
            }
            Evaluated::Components(stacked, stack) => stack.explained(stacked, k, self.sample),
        };
        self.evaluated.densities().squared_error((self.best, self.sample), explained)
    }

    /// The posterior mean Q of the core under component `k`, in double precision.
    #[inline(always)]
    pub(super) fn core(&self, k: usize, out: &mut [f64]) {
        let precision = &self.plan.components[k].density.precision;
        match self.evaluated {
            Evaluated::Samples(block) => {
                let y = block.y_of(self.plan, k, self.sample);
                out.iter_mut().zip(y).zip(precision).for_each(|((q, y), p)| *q = y.to_f64() * p);
            }
            Evaluated::Components(stacked, stack) => {
                stack.exact_core(stacked, k, self.sample, precision, out);
            }
        }
    }

    /// Q under component `k` in the working precision.
    #[inline(always)]
    pub(super) fn rounded_core(&self, k: usize, out: &mut [T]) {
        match self.evaluated {
            Evaluated::Samples(block) => {
                let precision = &self.plan.components[k].density.precision;
                let y = block.y_of(self.plan, k, self.sample);
                out.iter_mut().zip(y).zip(precision).for_each(|((q, y), &p)| *q = y * T::from_f64(p));
            }
            Evaluated::Components(stacked, stack) => stack.core(stacked, k, self.sample, out),
        }
    }

    /// X − M under component `k` in the working precision; `spare` has room for a sample.
    #[inline(always)]
    pub(super) fn centred(&self, k: usize, out: &mut [T]) {
        let size = self.plan.sample_len;
        let out = &mut out[..size];
        match self.evaluated {
            Evaluated::Samples(_) => {
                self.stored.load(self.n, 0..size, &self.plan.reference, out);
                let mean = &self.plan.components[k].rounded_offset[..size];
                for i in 0..size {
                    out[i] = out[i] - mean[i];
                }
            }
            Evaluated::Components(stacked, stack) => {
                let x = &stack.sample(stacked, self.sample, size)[..size];
                let mean = &stacked.mean(k)[..size];
                for i in 0..size {
                    out[i] = x[i] - mean[i];
                }
            }
        }
    }
}

impl<T: Real> Evaluator<T> {
    /// A model ready for a pass in whose contraction mode `last` comes last.
    pub(super) fn new(model: &Mixture, last: usize, way: Way) -> Self {
        let plan = Plan::new(model, last);
        let stacked = match way {
            Way::Best(_) | Way::AllDensities => StackedModel::is_faster(&plan),
            #[cfg(test)]
            Way::SamplesAbreast => false,
            #[cfg(test)]
            Way::ComponentsAbreast => true,
        };
        let coarse = match way {
            Way::Best(samples) if stacked => Coarse::new(model, &plan.reference, samples),
            _ => None,
        };
        // Whoever wants to see all densities wants to see all responsibilities.
        let cutoff = if matches!(way, Way::Best(_)) { -HOPELESS } else { f64::NEG_INFINITY };
        let all = (0..model.n_components()).collect();
        let stacked = stacked.then(|| StackedModel::new(&plan));
        Self { stacked, plan, coarse, all, cutoff, partial: OnceLock::new() }
    }

    /// The model for samples with missing cells.
    pub(super) fn partial(&self, model: &Mixture) -> &PartialModel<T> {
        self.partial.get_or_init(|| PartialModel::new(model, &self.plan))
    }

    pub(super) fn scratch(&self) -> EvaluatorScratch<T> {
        let k = self.all.len();
        let kernel = match &self.stacked {
            Some(stacked) => {
                let bounds = self.coarse.as_ref().map(|coarse| Box::new(coarse.scratch()));
                Kernel::Components(Stack::new(stacked, k), bounds)
            }
            None => Kernel::Samples(SampleBlock::new(&self.plan)),
        };
        EvaluatorScratch { kernel, some: Vec::with_capacity(k), gamma: vec![0.0; k] }
    }

    /// Evaluates samples and shows them to `consumer`, one after the other.
    #[inline(always)]
    pub(super) fn show<S: Simd, C: Consumer<T>>(
        &self,
        simd: S,
        scratch: &mut EvaluatorScratch<T>,
        stored: Stored<'_>,
        consumer: &mut C,
    ) {
        let EvaluatorScratch { kernel, some, gamma } = scratch;
        let mut bounded = self.coarse.is_some();
        for of in stored.blocks(kernel.samples()) {
            // A function of its own, which is the same whoever is shown the samples.
            simd.vectorize(EvaluateBlock { evaluator: self, kernel, of: &of, bounded });
            let mut evaluated = 0;
            for sample in 0..of.count() {
                let components = match &mut *kernel {
                    Kernel::Components(stack, Some(bounds)) if bounded => {
                        let of_class = (sample, of.stored.class(of.place(sample)));
                        let bounds = bounds.of(sample);
                        stack.evaluate_likely(simd, &self.plan, self.stacked(), of_class, bounds, some);
                        &*some
                    }
                    _ => &self.all,
                };
                evaluated += components.len();
                let found = self.found(self.evaluated(kernel), &of, sample, components, gamma);
                if found.log_likelihood.is_finite() {
                    consumer.sample(simd, &found);
                } else {
                    consumer.leave_out(of.place(sample));
                    if let Kernel::Samples(block) = kernel {
                        block.clear(sample);
                    }
                }
            }
            if let Kernel::Samples(block) = kernel {
                consumer.block(simd, &self.plan, block);
            }
            // The first block tells whether the bounds save anything.
            if of.is_first() && !are_useful(evaluated, of.count() * self.all.len()) {
                bounded = false;
            }
        }
    }

    fn evaluated<'a>(&'a self, kernel: &'a Kernel<T>) -> Evaluated<'a, T> {
        match kernel {
            Kernel::Samples(block) => Evaluated::Samples(block),
            Kernel::Components(stack, _) => Evaluated::Components(self.stacked(), stack),
        }
    }

    fn stacked(&self) -> &StackedModel<T> {
        match &self.stacked {
            Some(stacked) => stacked,
            None => unreachable!("a stack is made of stacked components"),
        }
    }

    #[inline(always)]
    fn found<'a>(
        &'a self,
        evaluated: Evaluated<'a, T>,
        of: &Block<'a>,
        sample: usize,
        components: &'a [usize],
        gamma: &'a mut [f64],
    ) -> Found<'a, T> {
        let densities = evaluated.densities();
        let class = of.stored.class(of.place(sample));
        let (best, log_likelihood) =
            densities.responsibilities(&self.plan, components, (sample, class), self.cutoff, gamma);
        Found {
            plan: &self.plan,
            evaluated,
            sample,
            stored: of.stored,
            n: of.place(sample),
            components,
            gamma: &gamma[..components.len()],
            best,
            log_likelihood,
        }
    }
}

/// Evaluates a block of samples: all components, or bounds on them if these are wanted.
struct EvaluateBlock<'a, 'b, T> {
    evaluator: &'a Evaluator<T>,
    kernel: &'a mut Kernel<T>,
    of: &'a Block<'b>,
    bounded: bool,
}

impl<T: Real> WithSimd for EvaluateBlock<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { evaluator, kernel, of, bounded } = self;
        let plan = &evaluator.plan;
        match kernel {
            Kernel::Samples(block) => block.evaluate(simd, plan, of),
            Kernel::Components(stack, bounds) => {
                let stacked = evaluator.stacked();
                stack.load(simd, stacked, of, &plan.reference);
                let fetch = stacked.fetch(of);
                match evaluator.coarse.as_ref().zip(bounds.as_deref_mut()) {
                    Some((coarse, bounds)) if bounded => {
                        bounds.find(simd, coarse, stack.x(), of.count(), fetch);
                    }
                    _ => stack.evaluate(simd, plan, stacked, &evaluator.all, of.count(), fetch),
                }
            }
        }
    }
}
