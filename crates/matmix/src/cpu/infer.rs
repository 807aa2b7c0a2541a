//! Questions to a mixture: the evaluator, and rows of answers.

use pulp::{Simd, WithSimd};

use super::evaluator::{Consumer, Evaluator, EvaluatorScratch, Found, Way};
use super::load::Stored;
use super::partial::{PartialConsumer, PartialFound};
use super::plan::cheapest_last;
use super::redo::{self, Work};
use crate::data::Samples;
use crate::error::Result;
use crate::model::{Mixture, Typicality};
use crate::pass::{Answers, AskPass, Precision, Question};
use crate::simd::{Instructions, Real};

/// Answers the questions of a pass about all samples, a chunk at a time.
pub(super) fn ask(
    pass: &AskPass,
    model: &Mixture,
    samples: &Samples<'_>,
    on: Instructions,
    each: impl FnMut(Answers) + Send,
) -> Result<()> {
    let double = Precision::Auto.is_double(samples.element(), model);
    let way = if pass.needs_all() { Way::AllDensities } else { Way::Best(samples.len()) };
    redo::fold(samples, on, double, &Ask { pass, model, way, typicality: Typicality::new(model) }, each)
}

struct Ask<'a> {
    pass: &'a AskPass,
    model: &'a Mixture,
    way: Way,
    typicality: Typicality,
}

impl Work for Ask<'_> {
    type Sum = Answers;
    type Setup<T: Real> = Evaluator<T>;
    type Scratch<T: Real> = EvaluatorScratch<T>;

    fn setup<T: Real>(&self) -> Evaluator<T> {
        Evaluator::new(self.model, cheapest_last(self.model.shape(), self.model.rank()), self.way)
    }

    fn scratch<T: Real>(&self, evaluator: &Evaluator<T>) -> EvaluatorScratch<T> {
        evaluator.scratch()
    }

    fn zero(&self) -> Answers {
        Answers::none(self.pass.width())
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        scratch: &mut EvaluatorScratch<T>,
        stored: Stored<'_>,
        sum: &mut Answers,
        left_out: &mut Vec<usize>,
    ) {
        sum.make_room(stored.place + stored.count());
        on.run::<T, _>(Answer { ask: self, evaluator, scratch, stored, sum, left_out });
    }

    fn add_partial<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        _: &mut EvaluatorScratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        sum: &mut Answers,
        left_out: &mut Vec<usize>,
    ) {
        sum.make_room(stored.place + stored.count());
        on.run::<T, _>(AnswerPartial { ask: self, evaluator, stored, holes, sum, left_out });
    }

    fn merge(&self, sum: &mut Answers, following: &Answers) {
        sum.append(following);
    }

    fn sum_bytes(&self) -> usize {
        Answers::chunk_bytes(self.pass.width())
    }
}

struct Answer<'a, T> {
    ask: &'a Ask<'a>,
    evaluator: &'a Evaluator<T>,
    scratch: &'a mut EvaluatorScratch<T>,
    stored: Stored<'a>,
    sum: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for Answer<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { ask, evaluator, scratch, stored, sum, left_out } = self;
        let core = vec![0.0; ask.model.core_len()];
        evaluator.show(simd, scratch, stored, &mut Answering { ask, sum, left_out, core });
    }
}

struct AnswerPartial<'a, T> {
    ask: &'a Ask<'a>,
    evaluator: &'a Evaluator<T>,
    stored: Stored<'a>,
    holes: &'a [usize],
    sum: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for AnswerPartial<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { ask, evaluator, stored, holes, sum, left_out } = self;
        let of = evaluator.partial(ask.model);
        let core = vec![0.0; ask.model.core_len()];
        // The consumer of complete samples counts what it leaves out itself.
        let mut answering = Answering { ask, sum, left_out: &mut Vec::new(), core };
        of.show(simd, &mut of.scratch(), stored, holes, evaluator.cutoff, &mut answering, left_out);
    }
}

struct Answering<'a> {
    ask: &'a Ask<'a>,
    sum: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
    /// Room for a core.
    core: Vec<f64>,
}

impl<T: Real> Consumer<T> for Answering<'_> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, _: S, found: &Found<'_, T>) {
        let place = found.stored.place + found.n;
        answer(self.ask, found, self.sum.row(place), &mut self.core);
    }

    #[inline(always)]
    fn leave_out(&mut self, n: usize) {
        self.left_out.push(n);
    }
}

impl<T: Real> PartialConsumer<T> for Answering<'_> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, _: S, found: &PartialFound<'_, T>) {
        let place = found.stored.place + found.n;
        answer(self.ask, found, self.sum.row(place), &mut self.core);
    }
}

/// What is known about an evaluated sample, complete or not.
trait Known {
    /// The components that were evaluated, one per slot, with their γ; all others are hopeless.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)>;
    fn best(&self) -> usize;
    fn log_likelihood(&self) -> f64;
    fn log_density(&self, slot: usize) -> f64;
    /// ln p(X), or that of a complete sample as far away.
    fn typicality(&self, of: &Typicality) -> f64;
    /// Over the observed cells.
    fn squared_error(&self) -> f64;
    fn core(&self, k: usize, out: &mut [f64]);
}

impl<T: Real> Known for Found<'_, T> {
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        self.components.iter().copied().zip(self.gamma.iter().copied())
    }

    fn best(&self) -> usize {
        self.components[self.best]
    }

    fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    fn log_density(&self, slot: usize) -> f64 {
        Found::log_density(self, slot)
    }

    fn typicality(&self, _: &Typicality) -> f64 {
        self.log_likelihood
    }

    fn squared_error(&self) -> f64 {
        Found::squared_error(self)
    }

    fn core(&self, k: usize, out: &mut [f64]) {
        Found::core(self, k, out);
    }
}

impl<T: Real> Known for PartialFound<'_, T> {
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        self.gamma().iter().copied().enumerate()
    }

    fn best(&self) -> usize {
        self.best
    }

    fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    fn log_density(&self, slot: usize) -> f64 {
        PartialFound::log_density(self, slot)
    }

    fn typicality(&self, of: &Typicality) -> f64 {
        of.score(self.observed(), self.distances())
    }

    fn squared_error(&self) -> f64 {
        PartialFound::squared_error(self)
    }

    fn core(&self, k: usize, out: &mut [f64]) {
        PartialFound::core(self, k, out);
    }
}

/// The answers about one sample. A function of its own: nothing in it is a matter of vectors.
fn answer(ask: &Ask<'_>, found: &impl Known, row: &mut [f64], core: &mut [f64]) {
    let Ask { pass, model, typicality, .. } = ask;
    let best = found.best();
    let (mut rest, rho) = (row, model.core_len());
    for question in &pass.questions {
        let (out, left) = rest.split_at_mut(question.width(&pass.model));
        rest = left;
        match question {
            Question::Component => out[0] = best as f64,
            Question::LogLikelihood => out[0] = found.log_likelihood(),
            Question::Typicality => out[0] = found.typicality(typicality),
            Question::Entropy => {
                let uncertain = found.shares().map(|(_, g)| g).filter(|&g| g > 0.0 && g < 1.0);
                out[0] = uncertain.map(|g| -g * g.ln()).sum();
            }
            Question::SquaredError => out[0] = found.squared_error(),
            Question::LogDensities => {
                found.shares().enumerate().for_each(|(slot, (k, _))| out[k] = found.log_density(slot));
            }
            Question::Responsibilities => {
                out.fill(0.0);
                found.shares().for_each(|(k, gamma)| out[k] = gamma);
            }
            Question::Core => found.core(best, out),
            Question::AllCores => {
                out.chunks_exact_mut(rho).enumerate().for_each(|(k, out)| found.core(k, out));
            }
            Question::Rebuilt => {
                found.core(best, core);
                out.copy_from_slice(&model.components()[best].reconstruct(core));
            }
            Question::Denoised => {
                out.fill(0.0);
                for (k, gamma) in found.shares().filter(|(_, gamma)| *gamma > 0.0) {
                    found.core(k, core);
                    let x = model.components()[k].reconstruct(core);
                    out.iter_mut().zip(x).for_each(|(to, x)| *to += gamma * x);
                }
            }
        }
    }
}
