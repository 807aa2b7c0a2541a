//! What computes: the processor, with whatever instruction set it has.
//!
//! | file | what |
//! |---|---|
//! | [`load`] | from stored elements to numbers; blocks of samples; fetching them into cache |
//! | [`redo`] | what leaves the range of single precision is done in double |
//! | [`plan`] | a model made ready |
//! | [`evaluator`] | the one evaluator: a model, samples, and whoever wants to know |
//! | [`samples_abreast`], [`components_abreast`] | its two arrangements |
//! | [`densities`] | densities and responsibilities |
//! | [`bounds`] | which components need not be looked at |
//! | [`contract`] | the kernel of samples side by side: one mode against a loading matrix |
//! | [`joint`] | the sums that update every mode |
//! | [`partial`] | samples of which cells are missing |
//! | [`gram`] | Σ x xᵀ |
//! | [`matching`] | bounds of distances between features |
//! | [`pool`] | windows of images, summed up over cells |
//! | [`em`], [`infer`], [`cores`], [`impute`], [`moments`], [`nearest`], [`scatter`], [`wiener`] | the passes |
//! | [`oracle`] | tests: every instruction set against the equations written out |

mod bounds;
mod components_abreast;
mod contract;
mod cores;
mod densities;
mod em;
mod evaluator;
mod gram;
mod impute;
mod infer;
mod joint;
mod load;
mod matching;
mod moments;
mod nearest;
#[cfg(test)]
mod oracle;
mod partial;
mod plan;
mod pool;
mod redo;
mod samples_abreast;
mod scatter;
mod wiener;

use crate::data::{Element, Missing, Samples};
use crate::error::Result;
use crate::model::{LowRank, Model};
use crate::pass::{
    Answers, AnySums, AskPass, Backend, DistancesPass, EmPass, EmSums, Engine, Filter, GroupSums, GroupsPass,
    Impute, Imputed, MomentSums, MomentsPass, Pool, ScatterPass, ScatterSums, Task,
};
use crate::simd::Instructions;

#[cfg(feature = "cuda")]
pub(crate) use bounds::HOPELESS;
pub(crate) use matching::{MATCHED, MatchBlock, MatchBounds, MatchScratch, match_rounding};

/// The processor of this machine, as a [`Backend`].
///
/// ```
/// use matmix::{Backend, Cpu};
///
/// assert!(Cpu::best().name().starts_with("cpu"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    on: Instructions,
}

impl Cpu {
    /// With the best instruction set it has.
    pub fn best() -> Self {
        Self { on: Instructions::best() }
    }

    /// With each instruction set it has, best first.
    pub fn all() -> Vec<Self> {
        Instructions::available().into_iter().map(|on| Self { on }).collect()
    }

    /// Whether there are kernels in single precision, which [`match_bounds`](Self::match_bounds) is one of.
    pub(crate) fn can_match(self) -> bool {
        self.on != Instructions::Portable
    }

    /// Bounds of the distances between two blocks of features.
    pub(crate) fn match_bounds(self, job: MatchBounds<'_>) {
        self.on.run::<f32, _>(job);
    }

    /// The samples that cores (N × ρ) stand for, N × P.
    pub(crate) fn rebuild(self, model: &LowRank, cores: &[f64]) -> Vec<f64> {
        cores::rebuild(model, cores, self.on)
    }

    /// One pass in which every density is evaluated, also those of components that are hopeless for a sample: to compare with.
    #[doc(hidden)]
    pub fn em_of_all(self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums> {
        em::em_by(pass, samples, self.on, evaluator::Way::AllDensities)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::best()
    }
}

impl Backend for Cpu {
    fn name(&self) -> String {
        format!("cpu ({})", self.on)
    }

    fn overhead(&self) -> usize {
        samples_abreast::PACKING
    }

    fn em(&self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums> {
        em::em(pass, samples, self.on)
    }

    fn moments(&self, pass: &MomentsPass, samples: &Samples<'_>, first: usize) -> Result<MomentSums> {
        moments::moments(pass, samples, first, self.on)
    }

    fn scatter(&self, pass: &ScatterPass, samples: &Samples<'_>) -> Result<ScatterSums> {
        scatter::scatter(pass, samples, self.on)
    }

    fn groups(&self, pass: &GroupsPass, samples: &Samples<'_>) -> Result<GroupSums> {
        nearest::groups(pass, samples, self.on)
    }

    fn distances(&self, pass: &DistancesPass, samples: &Samples<'_>) -> Result<Answers> {
        nearest::distances(pass, samples, self.on)
    }

    fn ask(
        &self,
        pass: &AskPass,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Answers) + Send),
    ) -> Result<()> {
        match &*pass.model {
            Model::Mixture(model) => infer::ask(pass, model, samples, self.on, each),
            Model::LowRank(model) => cores::ask(pass, model, samples, self.on, each),
        }
    }

    fn filter(
        &self,
        question: &Filter<'_>,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f64>) + Send),
    ) -> Result<()> {
        wiener::filter(*question, samples, self.on, each)
    }

    fn pool(
        &self,
        question: &Pool<'_>,
        images: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f32>) + Send),
    ) -> Result<()> {
        pool::pool(question, images, self.on, each)
    }

    fn impute(&self, question: &Impute<'_>, samples: &Samples<'_>) -> Result<Imputed> {
        impute::impute(question, samples)
    }

    fn impute_draws(
        &self,
        question: &Impute<'_>,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<f64>> {
        impute::draws(question, samples, draws, seed)
    }

    fn over<'a>(&'a self, samples: &'a Samples<'a>) -> Result<Box<dyn Engine + 'a>> {
        Ok(Box::new(Local { samples, backend: self }))
    }
}

/// Samples of this process and what computes passes over them.
pub(crate) struct Local<'a> {
    pub(crate) samples: &'a Samples<'a>,
    pub(crate) backend: &'a dyn Backend,
}

/// The processor, where nothing else was asked for.
fn default_backend() -> &'static Cpu {
    static BEST: std::sync::OnceLock<Cpu> = std::sync::OnceLock::new();
    BEST.get_or_init(Cpu::best)
}

impl Engine for Local<'_> {
    fn shape(&self) -> &[usize] {
        self.samples.shape()
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn element(&self) -> Element {
        self.samples.element()
    }

    fn scale(&self) -> f64 {
        self.samples.scale()
    }

    fn missing(&self) -> Missing {
        self.samples.missing()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.samples.weights()
    }

    fn classes(&self) -> Option<&[Option<u32>]> {
        self.samples.classes()
    }

    fn run(&self, task: &Task) -> Result<AnySums> {
        task.run(self.backend, self.samples, 0)
    }

    fn backend(&self) -> &dyn Backend {
        self.backend
    }

    fn local(&self) -> Option<&Samples<'_>> {
        Some(self.samples)
    }
}

/// Samples of this process are worked on by its processor, unless another backend is asked for an engine over them.
impl Engine for Samples<'_> {
    fn shape(&self) -> &[usize] {
        Samples::shape(self)
    }

    fn len(&self) -> usize {
        Samples::len(self)
    }

    fn element(&self) -> Element {
        Samples::element(self)
    }

    fn scale(&self) -> f64 {
        Samples::scale(self)
    }

    fn missing(&self) -> Missing {
        Samples::missing(self)
    }

    fn weights(&self) -> Option<&[f64]> {
        Samples::weights(self)
    }

    fn classes(&self) -> Option<&[Option<u32>]> {
        Samples::classes(self)
    }

    fn run(&self, task: &Task) -> Result<AnySums> {
        task.run(default_backend(), self, 0)
    }

    fn backend(&self) -> &dyn Backend {
        default_backend()
    }

    fn local(&self) -> Option<&Samples<'_>> {
        Some(self)
    }
}
