//! The pass of EM: the E-step, and expected sufficient statistics that need no old model (maths.md, eq. 9–12).

use super::precision::Precision;
use super::wire::{Reader, Writer};
use super::{Pass, Sums, mismatch};
use crate::error::{Error, Result, sides};
use crate::linalg::Matrix;
use crate::model::Mixture;
use crate::walk::Stage;

/// How many of the least likely samples a pass remembers, for re-seeding.
const WORST: usize = 32;

/// E-step of a model over the samples, or a part of them.
///
/// ```
/// use matmix::pass::{EmPass, Stage, Update};
/// use matmix::{Engine, FitOptions, Precision, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let model = fit(&samples, &FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() })?.model;
/// let pass = EmPass { model, update: Update::All, precision: Precision::Auto, stage: Stage::ALL };
/// let sums = (&samples as &dyn Engine).sums(&pass)?;
/// assert_eq!(sums.n_samples, 30);
/// assert!((sums.log_likelihood / sums.weight - pass.model.score(&samples)?).abs() < 1e-9);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmPass {
    /// The model so far.
    pub model: Mixture,
    /// What its sums update.
    pub update: Update,
    /// The precision of the contraction.
    pub precision: Precision,
    /// Which of the samples it goes over.
    pub stage: Stage,
}

/// Which loadings the sums of a pass update.
///
/// ```
/// use matmix::pass::{EmPass, LoadingSums, Stage, Update};
/// use matmix::{Component, Engine, Matrix, Mixture, Precision, Samples};
///
/// let loadings = vec![Matrix::identity(4, 2), Matrix::identity(3, 1)];
/// let model = Mixture::new(&[4, 3], vec![1.0], vec![Component::new(&[4, 3], vec![0.0; 12], loadings, 0.5)?])?;
/// let samples = Samples::from_vec(&[4, 3], (0..120).map(f64::from).collect::<Vec<_>>())?;
/// let pass = EmPass { model, update: Update::Mode(0), precision: Precision::Auto, stage: Stage::ALL };
/// let sums = (&samples as &dyn Engine).sums(&pass)?;
/// // What the 4×2 loadings of the first mode come from.
/// let LoadingSums::Mode { cross, gram, .. } = &sums.components[0].loadings else { panic!("of one mode") };
/// assert_eq!((cross.rows(), cross.cols(), gram.rows()), (4, 2, 2));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Those of all modes: the sums F and G whole.
    All,
    /// Those of one mode, counted from 0: F and G contracted with the loadings of the others.
    Mode(usize),
}

/// What one pass has found out about all samples.
///
/// ```
/// use matmix::pass::{EmPass, Stage, Update};
/// use matmix::{Engine, FitOptions, Precision, Samples, Start, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 2, rank: vec![1], max_iter: 1, ..FitOptions::default() };
/// let model = fit(&samples, &options)?.model;
/// let (update, precision, stage) = (Update::All, Precision::Auto, Stage::ALL);
/// let sums = (&samples as &dyn Engine).sums(&EmPass { model: model.clone(), update, precision, stage })?;
/// // The M-step: the next weights are the shares of the components.
/// let next = fit(&samples, &FitOptions { start: Start::Model(Box::new(model)), ..options })?.model;
/// for (weight, component) in next.weights().iter().zip(&sums.components) {
///     assert!((weight - component.weight / sums.weight).abs() < 1e-9);
/// }
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmSums {
    /// What they update.
    pub update: Update,
    /// How many samples were seen.
    pub n_samples: u64,
    /// How many densities ln p(X_n|k) were evaluated: at most samples × components, less where hopeless components were
    /// skipped.
    pub evaluated: u64,
    /// The sum of their weights.
    pub weight: f64,
    /// Σ_n w_n ln p(X_n).
    pub log_likelihood: f64,
    /// Σ_n w_n (ln p(X_n))².
    pub log_likelihood_squares: f64,
    /// −Σ_n w_n Σ_k γ ln γ.
    pub entropy: f64,
    /// Σ_n w_n ‖X_n − X̂_n‖², each sample reconstructed by its most probable component.
    pub squared_error: f64,
    /// One entry per component.
    pub components: Vec<ComponentSums>,
    /// The least likely samples of positive weight: (ln p(X_n), n), least first.
    pub worst: Vec<(f64, usize)>,
}

/// The sums of one component, with a = γ u (u = 1 for Gaussian noise) and M₀ the mean the pass was run with.
///
/// ```
/// use matmix::pass::{EmPass, Stage, Update};
/// use matmix::{Component, Engine, Matrix, Mixture, Precision, Samples};
///
/// // One component with its mean at 0: every sample belongs to it.
/// let component = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 0.5)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let samples = Samples::from_vec(&[2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let pass = EmPass { model, update: Update::All, precision: Precision::Auto, stage: Stage::ALL };
/// let sums = &(&samples as &dyn Engine).sums(&pass)?.components[0];
/// assert_eq!((sums.assigned, sums.weight, sums.scale), (2, 2.0, 2.0));
/// assert!((sums.shift[0] - 4.0).abs() < 1e-12 && (sums.shift[1] - 6.0).abs() < 1e-12);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentSums {
    /// How many samples have this as their most probable component.
    pub assigned: u64,
    /// N = Σ γ.
    pub weight: f64,
    /// W = Σ a.
    pub scale: f64,
    /// Σ γ E[ln u], which the degrees of freedom follow from; 0 for Gaussian noise.
    pub log_scale: f64,
    /// s = Σ a E‖X − M₀‖².
    pub squares: f64,
    /// m = Σ a E[X − M₀], P numbers.
    pub shift: Vec<f64>,
    /// b = Σ a Q, ρ numbers.
    pub core: Vec<f64>,
    /// The sums the loadings come from.
    pub loadings: LoadingSums,
}

/// F = Σ a E[(X − M₀) ⊗ B] and G = Σ E[a B ⊗ B].
///
/// ```
/// use matmix::pass::{EmPass, LoadingSums, Stage, Update};
/// use matmix::{Component, Engine, Matrix, Mixture, Precision, Samples};
///
/// // U = (1, 0)ᵀ and σ² = 1: the core of a sample x has the mean x₁/2 and the variance 1/2.
/// let component = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 1.0)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let samples = Samples::from_vec(&[2], vec![4.0, 6.0])?;
/// let pass = EmPass { model, update: Update::All, precision: Precision::Auto, stage: Stage::ALL };
/// let sums = (&samples as &dyn Engine).sums(&pass)?;
/// let LoadingSums::All { cross, gram } = &sums.components[0].loadings else { panic!("of all modes") };
/// assert!((gram[(0, 0)] - (2.0 * 2.0 + 0.5)).abs() < 1e-12);
/// assert!((cross[(0, 0)] - 2.0 * 4.0).abs() < 1e-12 && (cross[(0, 1)] - 2.0 * 6.0).abs() < 1e-12);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum LoadingSums {
    /// As they are.
    All {
        /// Fᵀ, ρ × P.
        cross: Matrix,
        /// G, ρ × ρ.
        gram: Matrix,
    },
    /// Contracted with the loadings of all modes but d.
    Mode {
        /// A = Σ a E[Z B_(d)ᵀ], p_d × r_d.
        cross: Matrix,
        /// H = Σ E[a B_(d) W B_(d)ᵀ], r_d × r_d.
        weighted_gram: Matrix,
        /// S = Σ E[a B_(d) B_(d)ᵀ], r_d × r_d.
        gram: Matrix,
    },
}

impl LoadingSums {
    fn zero(shape: &[usize], rank: &[usize], update: Update) -> Self {
        match update {
            Update::All => {
                let (size, core_len) = (shape.iter().product(), rank.iter().product());
                LoadingSums::All {
                    cross: Matrix::zeros(core_len, size),
                    gram: Matrix::zeros(core_len, core_len),
                }
            }
            Update::Mode(d) => LoadingSums::Mode {
                cross: Matrix::zeros(shape[d], rank[d]),
                weighted_gram: Matrix::zeros(rank[d], rank[d]),
                gram: Matrix::zeros(rank[d], rank[d]),
            },
        }
    }

    pub(crate) fn matrices(&self) -> Vec<&Matrix> {
        match self {
            LoadingSums::All { cross, gram } => vec![cross, gram],
            LoadingSums::Mode { cross, weighted_gram, gram } => vec![cross, weighted_gram, gram],
        }
    }

    fn matrices_mut(&mut self) -> Vec<&mut Matrix> {
        match self {
            LoadingSums::All { cross, gram } => vec![cross, gram],
            LoadingSums::Mode { cross, weighted_gram, gram } => vec![cross, weighted_gram, gram],
        }
    }
}

impl ComponentSums {
    /// The sums of no samples of this shape.
    pub(crate) fn zero(shape: &[usize], rank: &[usize], update: Update) -> Self {
        Self {
            assigned: 0,
            weight: 0.0,
            scale: 0.0,
            log_scale: 0.0,
            squares: 0.0,
            shift: vec![0.0; shape.iter().product()],
            core: vec![0.0; rank.iter().product()],
            loadings: LoadingSums::zero(shape, rank, update),
        }
    }

    /// Everything that adds, but the count: listed once, for adding, scaling and travelling.
    fn parts(&self) -> Vec<&[f64]> {
        let one = std::slice::from_ref::<f64>;
        let numbers = [&self.weight, &self.scale, &self.log_scale, &self.squares];
        let mut parts: Vec<&[f64]> = numbers.into_iter().map(one).collect();
        parts.extend([&self.shift[..], &self.core]);
        parts.extend(self.loadings.matrices().into_iter().map(Matrix::as_slice));
        parts
    }

    fn parts_mut(&mut self) -> Vec<&mut [f64]> {
        let one = std::slice::from_mut::<f64>;
        let mut parts = vec![
            one(&mut self.weight),
            one(&mut self.scale),
            one(&mut self.log_scale),
            one(&mut self.squares),
            &mut self.shift,
            &mut self.core,
        ];
        parts.extend(self.loadings.matrices_mut().into_iter().map(Matrix::as_mut_slice));
        parts
    }

    /// Adds others, times a factor.
    pub(crate) fn add_scaled(&mut self, factor: f64, other: &ComponentSums) {
        for (to, from) in self.parts_mut().into_iter().zip(other.parts()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
        }
    }

    fn merge(&mut self, other: &ComponentSums) {
        self.assigned += other.assigned;
        for (to, from) in self.parts_mut().into_iter().zip(other.parts()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }
}

impl EmSums {
    /// The sums of no samples.
    pub(crate) fn zero(model: &Mixture, update: Update) -> Self {
        let component = ComponentSums::zero(model.shape(), model.rank(), update);
        Self {
            update,
            n_samples: 0,
            evaluated: 0,
            weight: 0.0,
            log_likelihood: 0.0,
            log_likelihood_squares: 0.0,
            entropy: 0.0,
            squared_error: 0.0,
            components: vec![component; model.n_components()],
            worst: Vec::new(),
        }
    }

    /// Whether the other sums update the same of a model of the same size.
    fn like(&self, other: &EmSums) -> bool {
        let sizes = |sums: &EmSums| -> Vec<Vec<usize>> {
            sums.components.iter().map(|c| c.parts().iter().map(|p| p.len()).collect()).collect()
        };
        self.update == other.update && sizes(self) == sizes(other)
    }

    /// Adds the sums of samples that follow; they are known to be of the same pass.
    pub(crate) fn append(&mut self, other: &EmSums) {
        self.n_samples += other.n_samples;
        self.evaluated += other.evaluated;
        self.weight += other.weight;
        self.log_likelihood += other.log_likelihood;
        self.log_likelihood_squares += other.log_likelihood_squares;
        self.entropy += other.entropy;
        self.squared_error += other.squared_error;
        self.components.iter_mut().zip(&other.components).for_each(|(a, b)| a.merge(b));
        self.worst.extend(&other.worst);
        self.worst.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.worst.truncate(WORST);
    }

    /// Remembers a sample if it is among the least likely so far.
    pub(crate) fn note_likelihood(&mut self, log_likelihood: f64, sample: usize) {
        if self.worst.len() == WORST && self.worst.last().is_some_and(|w| log_likelihood >= w.0) {
            return;
        }
        let at = self.worst.partition_point(|w| w.0 <= log_likelihood);
        self.worst.insert(at, (log_likelihood, sample));
        self.worst.truncate(WORST);
    }

    /// The mean log-likelihood per sample.
    pub fn mean_log_likelihood(&self) -> f64 {
        self.log_likelihood / self.weight
    }

    /// The standard deviation of ln p(X) over the samples.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean_log_likelihood();
        (self.log_likelihood_squares / self.weight - mean * mean).max(0.0).sqrt()
    }

    /// e = sqrt(Σ ‖X − X̂‖² / N), the paper's reconstruction error.
    pub fn reconstruction_error(&self) -> f64 {
        (self.squared_error / self.weight).sqrt()
    }

    /// The memory one such value takes, roughly.
    pub(crate) fn bytes(shape: &[usize], rank: &[usize], components: usize, update: Update) -> usize {
        let (size, core_len): (usize, usize) = (shape.iter().product(), rank.iter().product());
        let loadings = match update {
            Update::All => (size + core_len).saturating_mul(core_len),
            Update::Mode(d) => (shape[d] + 2 * rank[d]) * rank[d],
        };
        components.saturating_mul((size + core_len).saturating_add(loadings)).saturating_mul(size_of::<f64>())
    }
}

impl Pass for EmPass {
    type Sums = EmSums;

    fn check(&self, shape: &[usize]) -> Result<()> {
        if self.model.shape() != shape {
            return Err(Error::ShapeMismatch {
                expected: self.model.shape().to_vec(),
                found: shape.to_vec(),
            });
        }
        match self.update {
            Update::Mode(d) if d >= shape.len() => {
                Err(Error::Task { problem: format!("mode {d} (from 0) of samples of {}", sides(shape)) })
            }
            Update::Mode(_) if shape.len() == 1 => Err(Error::Task {
                problem: "vectors have one mode, and to update it is to update all".into(),
            }),
            _ => Ok(()),
        }
    }

    fn stage(&self) -> Stage {
        self.stage
    }

    fn fits(&self, sums: &EmSums) -> bool {
        sums.like(&EmSums::zero(&self.model, self.update))
    }

    fn write(&self, to: &mut Writer) {
        self.update.write(to);
        to.name(self.precision.name());
        to.byte(self.stage.halvings());
        to.mixture(&self.model);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let update = Update::read(from)?;
        let precision = from.name()?.parse().map_err(|e: Error| from.wrong(e.to_string()))?;
        let stage = Stage::new(from.byte()?);
        let pass = EmPass { model: from.mixture()?, update, precision, stage };
        pass.check(pass.model.shape()).map_err(|e| from.wrong(e.to_string()))?;
        Ok(pass)
    }
}

impl Update {
    pub(super) fn write(self, to: &mut Writer) {
        match self {
            Update::All => to.byte(0),
            Update::Mode(d) => {
                to.byte(1);
                to.size(d);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        match from.byte()? {
            0 => Ok(Update::All),
            1 => Ok(Update::Mode(from.size()?)),
            other => Err(from.wrong(format!("{other} is nothing that sums could update"))),
        }
    }
}

impl Sums for EmSums {
    fn n_samples(&self) -> u64 {
        self.n_samples
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if !self.like(other) {
            return Err(mismatch(
                "they come from passes that update different things, or of different models",
            ));
        }
        self.append(other);
        Ok(())
    }

    fn renumber(&mut self, number: &dyn Fn(usize) -> usize) {
        self.worst.iter_mut().for_each(|(_, sample)| *sample = number(*sample));
    }

    fn write(&self, to: &mut Writer) {
        self.update.write(to);
        [self.n_samples, self.evaluated].into_iter().for_each(|x| to.number(x));
        let totals =
            [self.weight, self.log_likelihood, self.log_likelihood_squares, self.entropy, self.squared_error];
        totals.into_iter().for_each(|x| to.real(x));
        let first = self.components.first();
        let (size, core_len) = first.map_or((0, 0), |c| (c.shift.len(), c.core.len()));
        to.sizes(&[self.components.len(), size, core_len]);
        let matrices = first.map_or(vec![], |c| c.loadings.matrices());
        matrices.iter().for_each(|m| to.sizes(&[m.rows(), m.cols()]));
        for component in &self.components {
            to.number(component.assigned);
            component.parts().into_iter().flatten().for_each(|&x| to.real(x));
        }
        to.size(self.worst.len());
        for &(log_likelihood, sample) in &self.worst {
            to.real(log_likelihood);
            to.size(sample);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let update = Update::read(from)?;
        let (n_samples, evaluated) = (from.number()?, from.number()?);
        let totals = [from.real()?, from.real()?, from.real()?, from.real()?, from.real()?];
        let [weight, log_likelihood, log_likelihood_squares, entropy, squared_error] = totals;
        let [count, size, core_len] = from.fixed_sizes()?;
        if count == 0 && (size, core_len) != (0, 0) {
            return Err(from.wrong("they have sizes but no components"));
        }
        let kinds = if update == Update::All { 2 } else { 3 };
        let mut matrices = Vec::new();
        for _ in 0..if count > 0 { kinds } else { 0 } {
            matrices.push(from.fixed_sizes::<2>()?);
        }
        let numbers = matrices.iter().try_fold(size.checked_add(core_len), |sum, [rows, cols]| {
            Some(sum?.checked_add(rows.checked_mul(*cols)?))
        });
        let numbers = numbers.flatten().and_then(|n| n.checked_add(5)?.checked_mul(count));
        from.has_room(numbers.and_then(|n| n.checked_mul(8)))?;
        let matrix = |at: usize| {
            matrices.get(at).map_or(Matrix::zeros(0, 0), |&[rows, cols]| Matrix::zeros(rows, cols))
        };
        let loadings = match update {
            Update::All => LoadingSums::All { cross: matrix(0), gram: matrix(1) },
            Update::Mode(_) => {
                LoadingSums::Mode { cross: matrix(0), weighted_gram: matrix(1), gram: matrix(2) }
            }
        };
        let empty = ComponentSums {
            assigned: 0,
            weight: 0.0,
            scale: 0.0,
            log_scale: 0.0,
            squares: 0.0,
            shift: vec![0.0; size],
            core: vec![0.0; core_len],
            loadings,
        };
        let mut components = vec![empty; count];
        for component in &mut components {
            component.assigned = from.number()?;
            for x in component.parts_mut().into_iter().flatten() {
                *x = from.real()?;
            }
        }
        let worst = (0..from.count(16)?).map(|_| Ok((from.real()?, from.size()?))).collect::<Result<_>>()?;
        Ok(Self {
            update,
            n_samples,
            evaluated,
            weight,
            log_likelihood,
            log_likelihood_squares,
            entropy,
            squared_error,
            components,
            worst,
        })
    }
}
