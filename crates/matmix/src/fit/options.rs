//! What a user can choose about a fit.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::Missing;
use crate::error::{Error, Result};
use crate::model::{Classes, Mixture, Noise, ranks_for};
use crate::options::choices;
use crate::pass::{Engine, Precision};

choices! {
    /// Which algorithm maximises the likelihood.
    ///
    /// ```
    /// use matmix::{Algorithm, FitOptions, Samples, fit};
    ///
    /// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let options = FitOptions { components: 2, rank: vec![2, 1], max_iter: 4, tol: 0.0, ..FitOptions::default() };
    /// let paper = fit(&samples, &FitOptions { algorithm: Algorithm::Paper, ..options.clone() })?;
    /// let exact = fit(&samples, &FitOptions { algorithm: "exact".parse()?, ..options })?;
    /// assert_eq!((paper.n_iterations(), exact.n_iterations()), (4, 4));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Algorithm {
        /// EM with the exact posterior and parameter expansion: any order, never decreasing.
        #[default]
        Exact = "exact",
        /// Algorithm 1 of the paper as printed, order 2 only: variational EM, plain and slow.
        Paper = "paper",
    }
}

choices! {
    /// When the change of one iteration is small enough to stop.
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, StopReason, StopRule, fit};
    ///
    /// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let stop = StopRule::ReconstructionError;
    /// let options = FitOptions { rank: vec![2, 1], stop, tol: 0.01, max_iter: 1000, ..FitOptions::default() };
    /// let fitted = fit(&samples, &options)?;
    /// assert_eq!(fitted.stop(), StopReason::Converged);
    /// let [.., before, last] = fitted.history.reconstruction_error[..] else { panic!("one iteration at least") };
    /// assert!((last - before).abs() <= 0.01 * last);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum StopRule {
        /// |l(t) − l(t−1)| ≤ tol · max(1, |l(t)|) for the mean log-likelihood l. The l of the right side is that of samples in units of about
        /// their standard deviation, so that no unit of the data is stopped in earlier than another.
        #[default]
        LogLikelihood = "likelihood",
        /// |e(t) − e(t−1)| ≤ tol · e(t) for the reconstruction error e. Deviation: the paper's rule has no e(t) on the right, and depends on the
        /// unit of the data.
        ReconstructionError = "error",
    }
}

choices! {
    /// Whether the start of an exact fit is searched for.
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, Search, fit};
    ///
    /// // Three groups of forty.
    /// let numbers: Vec<f64> = (0..1440).map(|i| f64::from((i * 37) % 101 + i / 480 * 500)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let options = FitOptions { components: 3, rank: vec![1], search: Search::Auto, ..FitOptions::default() };
    /// let fitted = fit(&samples, &options)?;
    /// assert_eq!(fitted.assigned, [40, 40, 40]);
    /// assert!(fitted.history.search.is_some());
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Search {
        /// From one component, by splits and merges on the samples they concern: a better optimum for about twice the passes of
        /// a plain fit on small sets, for fewer than those on large ones. Only instead of the start from k-means.
        #[default]
        Auto = "auto",
        /// The start as it is.
        None = "none",
    }
}

/// The degrees of freedom of Student-t noise.
///
/// ```
/// use matmix::{Dof, FitOptions, Noise, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let dof: Dof = "5".parse()?;
/// assert_eq!(dof, Dof::Fixed(5.0));
/// let options = FitOptions { components: 2, rank: vec![1], noise: Noise::T, dof, ..FitOptions::default() };
/// assert_eq!(fit(&samples, &options)?.model.degrees_of_freedom(), Some(vec![5.0, 5.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "DofWritten", try_from = "DofWritten")]
#[non_exhaustive]
pub enum Dof {
    /// Estimated for every component.
    #[default]
    Estimated,
    /// Estimated, the same for all components.
    Shared,
    /// Given.
    Fixed(f64),
}

impl Dof {
    /// Those that have a name; all others are numbers.
    pub const NAMED: &[Self] = &[Dof::Estimated, Dof::Shared];
}

/// A word or a number.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum DofWritten {
    Word(String),
    Number(f64),
}

impl From<Dof> for DofWritten {
    fn from(dof: Dof) -> Self {
        match dof {
            Dof::Fixed(degrees) => DofWritten::Number(degrees),
            word => DofWritten::Word(word.to_string()),
        }
    }
}

impl TryFrom<DofWritten> for Dof {
    type Error = Error;

    fn try_from(written: DofWritten) -> Result<Self> {
        match written {
            DofWritten::Word(word) => word.parse(),
            DofWritten::Number(degrees) => Ok(Dof::Fixed(degrees)),
        }
    }
}

impl std::fmt::Display for Dof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dof::Estimated => f.write_str("estimated"),
            Dof::Shared => f.write_str("shared"),
            Dof::Fixed(degrees) => write!(f, "{degrees}"),
        }
    }
}

impl std::str::FromStr for Dof {
    type Err = Error;

    fn from_str(written: &str) -> Result<Self> {
        let named = Self::NAMED.iter().copied().find(|dof| dof.to_string() == written);
        match (named, written.parse()) {
            (Some(dof), _) => Ok(dof),
            (_, Ok(degrees)) => Ok(Dof::Fixed(degrees)),
            _ => Err(Error::Option {
                option: "dof",
                value: format!("`{written}`"),
                expected: "`estimated`, `shared` or a positive number",
            }),
        }
    }
}

/// Where a fit begins.
///
/// ```
/// use matmix::{FitOptions, Samples, Start, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 2, rank: vec![1], max_iter: 3, ..FitOptions::default() };
/// let first = fit(&samples, &options)?;
/// // Goes on from where the first fit has ended.
/// let start = Start::Model(Box::new(first.model.clone()));
/// let second = fit(&samples, &FitOptions { start, ..options })?;
/// assert!((second.history.log_likelihood[0] - first.log_likelihood()).abs() < 1e-9);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Start {
    /// k-means++ and a few Lloyd steps, then `LowRank` in each cluster.
    #[default]
    #[serde(rename = "kmeans")]
    KMeans,
    /// The paper's: equal weights, distinct random samples as means, standard normal loadings, σ² = 1.
    #[serde(rename = "random")]
    Random,
    /// A given model of the same shape, rank and number of components.
    #[serde(rename = "model", skip_deserializing, serialize_with = "only_that_there_is_one")]
    Model(Box<Mixture>),
}

/// The model itself goes into the identity of a fit as the numbers it is made of.
fn only_that_there_is_one<M, S: serde::Serializer>(_: &M, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_unit()
}

impl Start {
    /// Those that have a name and need nothing else.
    pub const NAMED: &[Self] = &[Start::KMeans, Start::Random];

    /// Its name: `kmeans`, `random` or `model`.
    pub fn name(&self) -> &'static str {
        match self {
            Start::KMeans => "kmeans",
            Start::Random => "random",
            Start::Model(_) => "model",
        }
    }
}

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Start {
    type Err = Error;

    /// One of those that have a name; a model has to be given as one.
    fn from_str(name: &str) -> Result<Self> {
        Self::NAMED.iter().find(|start| start.name() == name).cloned().ok_or_else(|| {
            let expected = Self::NAMED.iter().map(Start::name).collect();
            Error::Choice { what: "Start", name: name.into(), expected }
        })
    }
}

/// Where, how often, and whether to go on from what is there.
///
/// ```
/// use matmix::{Checkpoint, FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let folder = tempfile::tempdir().unwrap();
/// let checkpoint = Checkpoint { path: folder.path().join("fit.checkpoint"), every: 1, resume: true };
/// let whole = FitOptions { components: 2, rank: vec![1], max_iter: 8, tol: 0.0, ..FitOptions::default() };
/// let kept = FitOptions { checkpoint: Some(checkpoint), ..whole.clone() };
/// fit(&samples, &FitOptions { max_iter: 3, ..kept.clone() })?;
/// // Five more iterations give the same bits as eight without a break.
/// assert_eq!(fit(&samples, &kept)?.model, fit(&samples, &whole)?.model);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The file; replaced as a whole each time.
    pub path: PathBuf,
    /// After how many iterations.
    pub every: usize,
    /// Whether to go on from the file if it is there. A missing file is a fresh start; one of another fit is an error.
    pub resume: bool,
}

/// The options of a fit. `..FitOptions::default()` fills in the rest.
///
/// ```
/// use matmix::{FitOptions, Noise, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 2, rank: vec![2, 1], n_init: 3, seed: 1, ..FitOptions::default() };
/// let model = fit(&samples, &options)?.model;
/// assert_eq!((model.n_components(), model.rank(), model.noise()), (2, &[2, 1][..], Noise::Gaussian));
/// // What cannot be meant is said before anything is read.
/// assert!(FitOptions { components: 31, ..options }.validate(&samples).is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitOptions {
    /// K; with `classes`, the components of every class.
    pub components: usize,
    /// The names of the classes of the samples, where some of these are [labelled](crate::Samples::with_classes). Every class has
    /// components of its own, and labelled samples stay within them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The shape of the cores: one number for all modes or one per mode. Empty means min(4, side).
    pub rank: Vec<usize>,
    /// The distribution of samples around the mean of their component.
    pub noise: Noise,
    /// The degrees of freedom of Student-t noise.
    pub dof: Dof,
    /// What NaN in the samples is: `nan` makes it a cell that was not observed, also where the samples do not say so themselves.
    pub missing: Missing,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Where to begin.
    pub start: Start,
    /// Whether better clusters than those of k-means are searched for before the first iteration.
    pub search: Search,
    /// How many times to begin; the fit with the largest log-likelihood is kept.
    pub n_init: usize,
    /// The largest number of iterations (each one cycle over all modes) per start.
    pub max_iter: usize,
    /// Whether the exact algorithm may guess, once it has become slow, where its iterations are heading. A guess is only
    /// kept if the likelihood does not fall.
    pub accelerate: bool,
    /// Whether early iterations of the exact algorithm may see a part of the samples only, where there are thousands of them.
    /// Whether a fit has converged is always judged on all of them.
    pub stages: bool,
    /// Convergence tolerance: the relative change that ends the fit; 0 runs all iterations.
    pub tol: f64,
    /// The change of what.
    pub stop: StopRule,
    /// The seed of everything random. The same seed gives the same bits on any number of threads.
    pub seed: u64,
    /// How many threads; `None` uses the threads of the pool this is called from (all cores by default).
    pub threads: Option<usize>,
    /// The precision of the contraction of the samples.
    pub precision: Precision,
    /// The smallest noise variance of a component, relative to the data's mean variance per element.
    pub noise_floor: f64,
    /// Whether columns of the loadings that have fallen to the noise in every component are dropped at the end, and the fit goes on
    /// without them.
    pub prune: bool,
    /// Where to keep the state of a long fit.
    pub checkpoint: Option<Checkpoint>,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            components: 1,
            classes: vec![],
            rank: vec![],
            noise: Noise::default(),
            dof: Dof::default(),
            missing: Missing::default(),
            algorithm: Algorithm::default(),
            start: Start::default(),
            search: Search::default(),
            n_init: 1,
            max_iter: 100,
            accelerate: true,
            stages: true,
            tol: 1e-6,
            stop: StopRule::default(),
            seed: 0,
            threads: None,
            precision: Precision::default(),
            noise_floor: 1e-6,
            prune: false,
            checkpoint: None,
        }
    }
}

impl FitOptions {
    /// The components of all classes together.
    pub fn n_components(&self) -> usize {
        self.components.saturating_mul(self.classes.len().max(1))
    }

    /// What decides the model, as its file keeps it. Where the state is kept and how many threads there are does not, a model to begin
    /// with is only named, and what nobody has chosen is left out.
    pub fn described(&self) -> serde_json::Value {
        let deciding = Self { checkpoint: None, threads: None, ..self.clone() };
        let mut described = serde_json::to_value(deciding).unwrap_or_default();
        if let Some(options) = described.as_object_mut() {
            options.insert("start".into(), self.start.name().into());
            options.retain(|_, value| !value.is_null());
        }
        described
    }

    /// One rank per mode for samples of this shape.
    ///
    /// # Errors
    /// If the ranks do not fit it.
    pub fn rank_for(&self, shape: &[usize]) -> Result<Vec<usize>> {
        if self.rank.is_empty() {
            return Ok(shape.iter().map(|&p| p.min(4)).collect());
        }
        ranks_for(shape, &self.rank)
    }

    /// Checks the options, by themselves and against the samples.
    ///
    /// # Errors
    /// The first option that is out of its range, or that does not fit the samples.
    pub fn validate(&self, samples: &dyn Engine) -> Result<()> {
        let out_of_range = |option, value: String, expected| Err(Error::Option { option, value, expected });
        if self.components == 0 {
            return Err(Error::Components { value: "0".into(), expected: "at least 1" });
        }
        if self.n_components() > samples.n_effective() {
            return Err(Error::TooManyComponents {
                components: self.n_components(),
                samples: samples.n_effective(),
            });
        }
        if self.n_init == 0 {
            return out_of_range("n_init", "0".into(), "at least 1");
        }
        if !(self.tol.is_finite() && self.tol >= 0.0) {
            return out_of_range("tol", self.tol.to_string(), "a finite number of at least 0");
        }
        if !(self.noise_floor.is_finite() && self.noise_floor > 0.0 && self.noise_floor < 1.0) {
            return out_of_range("noise_floor", self.noise_floor.to_string(), "between 0 and 1");
        }
        self.validate_noise()?;
        self.validate_missing(samples)?;
        self.validate_classes(samples)?;
        if self.prune && self.algorithm == Algorithm::Paper {
            return out_of_range("prune", "true".into(), "left out for the paper's algorithm");
        }
        if self.threads == Some(0) {
            return out_of_range("threads", "0".into(), "at least 1");
        }
        if self.checkpoint.as_ref().is_some_and(|c| c.every == 0) {
            return out_of_range("checkpoint.every", "0".into(), "at least 1");
        }
        let rank = self.rank_for(samples.shape())?;
        if self.algorithm == Algorithm::Paper && samples.order() != 2 {
            return Err(Error::Order { what: "the paper's algorithm", expected: 2, found: samples.order() });
        }
        if self.algorithm == Algorithm::Paper && samples.local().is_none() {
            return Err(paper_is_local());
        }
        if let Start::Model(model) = &self.start {
            if model.shape() != samples.shape() {
                return Err(Error::ShapeMismatch {
                    expected: model.shape().to_vec(),
                    found: samples.shape().to_vec(),
                });
            }
            if model.n_components() != self.n_components() {
                let k = model.n_components();
                let value = format!("a model of {k} components");
                return Err(Error::Start { value, expected: "a model of as many components" });
            }
            if model.rank() != rank {
                let value = format!("a model of rank {}", crate::error::sides(model.rank()));
                return Err(Error::Start { value, expected: "a model of the same rank" });
            }
        }
        Ok(())
    }

    /// Checks what is known about the classes of the samples.
    fn validate_classes(&self, samples: &dyn Engine) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        let known = samples.classes().unwrap_or_default();
        if self.classes.is_empty() {
            return match known.iter().any(Option::is_some) {
                true => wrong("classes", "empty".into(), "the names of the classes of labelled samples"),
                false => Ok(()),
            };
        }
        Classes::even(self.classes.clone(), self.components)?;
        if self.algorithm == Algorithm::Paper {
            return wrong("algorithm", "`paper`".into(), "`exact` where labels are known");
        }
        if self.prune {
            return wrong("prune", "true".into(), "left out where labels are known");
        }
        if let Start::Model(model) = &self.start {
            return match model.classes().is_some_and(|classes| classes.names() == self.classes) {
                true => Ok(()),
                false => {
                    let value = "a model of other classes".into();
                    Err(Error::Start { value, expected: "a model of the same classes" })
                }
            };
        }
        let mut labelled = vec![0; self.classes.len()];
        for (n, class) in known.iter().enumerate() {
            let Some(class) = class.map(|class| class as usize) else { continue };
            match labelled.get_mut(class) {
                Some(count) => *count += usize::from(samples.weight(n) > 0.0),
                None => {
                    return wrong(
                        "classes",
                        format!("{} names", self.classes.len()),
                        "one for every class of the samples",
                    );
                }
            }
        }
        match labelled.iter().position(|&count| count < self.components) {
            Some(class) => Err(Error::TooFewLabelled {
                class: self.classes[class].clone(),
                labelled: labelled[class],
                components: self.components,
            }),
            None => Ok(()),
        }
    }

    /// Checks what NaN means.
    fn validate_missing(&self, samples: &dyn Engine) -> Result<()> {
        let wrong = |expected| Err(Error::Option { option: "missing", value: "`nan`".into(), expected });
        if [self.missing, samples.missing()] == [Missing::Error; 2] {
            return Ok(());
        }
        if self.algorithm == Algorithm::Paper {
            return wrong("`error` for the paper's algorithm, whose updates are those of complete samples");
        }
        if samples.missing() == Missing::Error && samples.local().is_none() {
            return wrong("`error` unless whoever holds the samples knows about it, too");
        }
        Ok(())
    }

    /// Checks what says how samples are distributed around their means.
    fn validate_noise(&self) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        match self.dof {
            Dof::Estimated => {}
            dof if self.noise == Noise::Gaussian => {
                return wrong("dof", dof.to_string(), "left out unless the noise is `t`");
            }
            Dof::Fixed(degrees) if !(degrees.is_finite() && degrees > 0.0) => {
                return wrong("dof", degrees.to_string(), "`estimated`, `shared` or a positive number");
            }
            _ => {}
        }
        if self.noise == Noise::T && self.algorithm == Algorithm::Paper {
            return wrong("noise", "`t`".into(), "`gaussian` for the paper's algorithm");
        }
        Ok(())
    }
}

/// The paper's algorithm is not made of passes.
pub(super) fn paper_is_local() -> Error {
    let expected = "`exact` for samples that this process cannot read";
    Error::Option { option: "algorithm", value: "`paper`".into(), expected }
}
