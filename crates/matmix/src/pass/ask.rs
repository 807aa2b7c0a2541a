//! What a fitted model says about every sample: questions travel as passes, too.

use std::sync::Arc;

use super::wire::{Reader, Writer};
use super::{Pass, Sums, same};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::choices;

choices! {
    /// Something a model can be asked about a sample.
    ///
    /// ```
    /// use matmix::pass::Question;
    /// use matmix::{Component, Matrix, Mixture, Model};
    ///
    /// let around = |mean: f64| Component::new(&[3], vec![mean; 3], vec![Matrix::identity(3, 2)], 0.1);
    /// let model = Model::from(Mixture::new(&[3], vec![1.0, 1.0], vec![around(0.0)?, around(9.0)?])?);
    /// let width = |name: &str| name.parse::<Question>().map(|question| question.width(&model));
    /// // One number, one per component, a core, the cores of both components, a sample.
    /// assert_eq!((width("component")?, width("responsibilities")?), (1, 2));
    /// assert_eq!((width("core")?, width("all_cores")?, width("rebuilt")?), (2, 4, 3));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Question {
        /// The most probable component.
        #[default]
        Component = "component",
        /// ln p(X).
        LogLikelihood = "log_likelihood",
        /// ln p(X); for a sample with missing cells that of a complete sample that is as far from the components.
        Typicality = "typicality",
        /// −Σ_k γ ln γ.
        Entropy = "entropy",
        /// ‖X − X̂‖², rebuilt by the most probable component.
        SquaredError = "squared_error",
        /// ln p(X|k) of all components.
        LogDensities = "log_densities",
        /// γ of all components.
        Responsibilities = "responsibilities",
        /// The core under the most probable component.
        Core = "core",
        /// The cores under all components.
        AllCores = "all_cores",
        /// X̂, rebuilt by the most probable component.
        Rebuilt = "rebuilt",
        /// The posterior mean of the noiseless sample: rebuilt by all components, weighted by γ.
        Denoised = "denoised",
    }
}

impl Question {
    /// How many numbers answer it.
    pub fn width(self, model: &Model) -> usize {
        let components = model.n_components();
        match self {
            Self::Component | Self::LogLikelihood | Self::Typicality | Self::Entropy | Self::SquaredError => {
                1
            }
            Self::LogDensities | Self::Responsibilities => components,
            Self::Core => model.core_len(),
            Self::AllCores => components * model.core_len(),
            Self::Rebuilt | Self::Denoised => model.sample_len(),
        }
    }

    /// Whether a model without noise can answer it.
    fn is_for_low_rank(self) -> bool {
        matches!(self, Self::Core | Self::Rebuilt | Self::SquaredError)
    }
}

/// Some questions to a model about every sample.
///
/// ```
/// use matmix::pass::{AskPass, Question};
/// use matmix::{Component, Engine, Matrix, Mixture, Model, Samples};
///
/// let around = |mean: f64| Component::new(&[2], vec![mean; 2], vec![Matrix::identity(2, 1)], 0.1);
/// let model = Model::from(Mixture::new(&[2], vec![1.0, 1.0], vec![around(0.0)?, around(9.0)?])?);
/// let samples = Samples::from_vec(&[2], vec![0.1, 0.0, 9.0, 9.1])?;
/// let pass = AskPass { model: model.into(), questions: vec![Question::Component, Question::Responsibilities] };
/// let answers = (&samples as &dyn Engine).sums(&pass)?;
/// // The component and the two responsibilities of each sample.
/// assert_eq!(answers.values, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AskPass {
    /// The model.
    pub model: Arc<Model>,
    /// The questions; a sample's answers follow one another in their order.
    pub questions: Vec<Question>,
}

/// The answers, sample after sample.
///
/// ```
/// use matmix::pass::{Answers, Sums};
///
/// let mut answers = Answers { width: 2, values: vec![1.0, 2.0] };
/// answers.merge(&Answers { width: 2, values: vec![3.0, 4.0, 5.0, 6.0] })?;
/// assert_eq!((answers.n_samples(), &answers.values[4..]), (3, &[5.0, 6.0][..]));
/// // Answers to other questions are refused.
/// assert!(answers.merge(&Answers { width: 1, values: vec![7.0] }).is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answers {
    /// Numbers per sample.
    pub width: usize,
    /// All of them.
    pub values: Vec<f64>,
}

impl AskPass {
    /// One question.
    pub(crate) fn one(model: Model, question: Question) -> Self {
        Self { model: Arc::new(model), questions: vec![question] }
    }

    /// How many numbers it gives per sample.
    pub fn width(&self) -> usize {
        self.questions.iter().map(|q| q.width(&self.model)).sum()
    }

    /// Whether the answers need every component evaluated, also those that are hopeless for a sample.
    pub(crate) fn needs_all(&self) -> bool {
        self.questions.iter().any(|q| matches!(q, Question::LogDensities | Question::AllCores))
    }
}

impl Answers {
    /// Those about no sample yet.
    pub(crate) fn none(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    /// Makes room for the first so many samples; one that is done again in double has its place already.
    pub(crate) fn make_room(&mut self, samples: usize) {
        if self.values.len() < samples * self.width {
            self.values.resize(samples * self.width, 0.0);
        }
    }

    /// The row of the sample at a place there is room for.
    #[inline(always)]
    pub(crate) fn row(&mut self, place: usize) -> &mut [f64] {
        &mut self.values[place * self.width..(place + 1) * self.width]
    }

    /// Adds the answers about the samples that follow.
    pub(crate) fn append(&mut self, following: &Self) {
        self.values.extend_from_slice(&following.values);
    }

    /// The bytes of those about a chunk of samples, about.
    pub(crate) fn chunk_bytes(width: usize) -> usize {
        width * size_of::<f64>() * 1024
    }

    /// The answers to each of several questions, which take so many numbers.
    pub(crate) fn split(&self, widths: &[usize]) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> =
            widths.iter().map(|w| Vec::with_capacity(w * self.values.len() / self.width.max(1))).collect();
        for sample in self.values.chunks_exact(self.width.max(1)) {
            let mut rest = sample;
            for (to, &width) in out.iter_mut().zip(widths) {
                let (taken, left) = rest.split_at(width);
                to.extend_from_slice(taken);
                rest = left;
            }
        }
        out
    }
}

impl Pass for AskPass {
    type Sums = Answers;

    fn check(&self, shape: &[usize]) -> Result<()> {
        if self.model.shape() != shape {
            return Err(Error::ShapeMismatch {
                expected: self.model.shape().to_vec(),
                found: shape.to_vec(),
            });
        }
        let wrong = |problem: String| Err(Error::Task { problem });
        match (&*self.model, self.questions.iter().find(|q| !q.is_for_low_rank())) {
            _ if self.questions.is_empty() => wrong("there are no questions".into()),
            (Model::LowRank(_), Some(question)) => {
                wrong(format!("a model without noise has no answer to `{question}`"))
            }
            _ => Ok(()),
        }
    }

    fn fits(&self, sums: &Answers) -> bool {
        sums.width == self.width()
    }

    fn write(&self, to: &mut Writer) {
        to.size(self.questions.len());
        self.questions.iter().for_each(|q| to.name(q.name()));
        to.model(&self.model);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let question =
            |from: &mut Reader<'_>| from.name()?.parse().map_err(|e: Error| from.wrong(e.to_string()));
        let questions = (0..from.count(8)?).map(|_| question(from)).collect::<Result<_>>()?;
        Ok(Self { questions, model: Arc::new(from.model()?) })
    }
}

impl Sums for Answers {
    fn n_samples(&self) -> u64 {
        (self.values.len() / self.width.max(1)) as u64
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        same("numbers per sample", self.width, other.width)?;
        self.append(other);
        Ok(())
    }

    fn write(&self, to: &mut Writer) {
        to.size(self.width);
        to.reals(&self.values);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (width, values) = (from.size()?, from.reals()?);
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(from.wrong("the number of answers does not fit the samples"));
        }
        Ok(Self { width, values })
    }
}
