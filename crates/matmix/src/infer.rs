//! What a fitted model says about samples: densities, responsibilities, cores, reconstructions.

use crate::cpu::Cpu;
use crate::data::Samples;
use crate::error::{Counted, Error, Result};
use crate::model::{Classes, Criteria, Density, Exponent, LowRank, Mixture, Model};
use crate::options::choices;
use crate::parallel;
use crate::pass::{AskPass, Backend, Engine, Question};

choices! {
    /// How a sample is rebuilt from its cores.
    ///
    /// ```
    /// use matmix::{Component, Matrix, Mixture, Reconstruction, Samples};
    ///
    /// // Two components around −1 and 1, and a sample right between them.
    /// let around = |mean: f64| Component::new(&[1], vec![mean], vec![Matrix::identity(1, 1)], 1.0);
    /// let model = Mixture::new(&[1], vec![1.0, 1.0], vec![around(-1.0)?, around(1.0)?])?;
    /// let sample = Samples::from_vec(&[1], vec![0.0])?;
    /// // Either of them would put it half way to its own mean; both together leave it where it is.
    /// let by_one = model.reconstruct(&sample, Reconstruction::MostProbable)?;
    /// let by_both = model.reconstruct(&sample, Reconstruction::Weighted)?;
    /// assert!((by_one[0].abs() - 0.5).abs() < 1e-12 && by_both[0].abs() < 1e-12);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Reconstruction {
        /// From the most probable component: the paper's rule.
        #[default]
        MostProbable = "most_probable",
        /// From all components, weighted by the responsibilities: the posterior mean of the noiseless sample.
        Weighted = "weighted",
    }
}

impl Reconstruction {
    fn question(self) -> Question {
        match self {
            Reconstruction::MostProbable => Question::Rebuilt,
            Reconstruction::Weighted => Question::Denoised,
        }
    }
}

/// Everything the paper asks for about new samples: all K cores, the γ's and the most probable component.
///
/// ```
/// use matmix::{Component, Matrix, Mixture, Samples};
///
/// let around = |mean: f64| Component::new(&[2], vec![mean; 2], vec![Matrix::identity(2, 1)], 1.0);
/// let model = Mixture::new(&[2], vec![1.0, 1.0], vec![around(0.0)?, around(50.0)?])?;
/// let found = model.project(&Samples::from_vec(&[2], vec![4.0, 1.0, 50.0, 50.0])?)?;
/// assert_eq!((&found.components[..], &found.responsibilities[..]), (&[0, 1][..], &[1.0, 0.0, 0.0, 1.0][..]));
/// // U = (1, 0)ᵀ and σ² = 1: a core is half of the first number less its mean. One under each component:
/// assert!((found.cores[0] - 2.0).abs() < 1e-12 && (found.cores[1] + 23.0).abs() < 1e-12);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Q_n^(k), N × K × ρ.
    pub cores: Vec<f64>,
    /// γ_nk, N × K.
    pub responsibilities: Vec<f64>,
    /// argmax_k γ_nk.
    pub components: Vec<usize>,
    /// ln p(X_n).
    pub log_likelihood: Vec<f64>,
}

/// The answers of a model to several questions about all samples, wherever they are, question by question.
pub(crate) fn ask<const N: usize>(
    model: Model,
    samples: &dyn Engine,
    questions: [Question; N],
) -> Result<[Vec<f64>; N]> {
    let pass = AskPass { model: model.into(), questions: questions.to_vec() };
    let answers = samples.sums(&pass)?;
    let widths: Vec<usize> = questions.iter().map(|q| q.width(&pass.model)).collect();
    let mut all = match N {
        1 => vec![answers.values],
        _ => answers.split(&widths),
    }
    .into_iter();
    Ok(std::array::from_fn(|_| all.next().unwrap_or_default()))
}

fn indices(values: Vec<f64>) -> Vec<usize> {
    values.into_iter().map(|k| k as usize).collect()
}

impl Mixture {
    fn ask<const N: usize>(&self, samples: &dyn Engine, questions: [Question; N]) -> Result<[Vec<f64>; N]> {
        ask(self.clone().into(), samples, questions)
    }

    /// ln p(X_n|k) for every sample and component, N × K.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn log_densities(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::LogDensities]).map(|[x]| x)
    }

    /// γ_nk = p(k|X_n) for every sample and component, N × K. Those below e⁻⁴⁰ of the largest are 0.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn responsibilities(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::Responsibilities]).map(|[x]| x)
    }

    /// The most probable component of every sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn assign(&self, samples: &dyn Engine) -> Result<Vec<usize>> {
        self.ask(samples, [Question::Component]).map(|[x]| indices(x))
    }

    /// p(c|X_n) for every sample and class, N × C: the responsibilities of the components of each class together.
    ///
    /// # Errors
    /// If the components belong to no classes, because no labels were known when they were fitted.
    pub fn class_probabilities(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        let classes = self.classes().ok_or(Error::NoClasses)?;
        Ok(classes.sums(&self.responsibilities(samples)?))
    }

    /// The most probable class of every sample, and its probability.
    ///
    /// # Errors
    /// As [`class_probabilities`](Self::class_probabilities).
    pub fn classify(&self, samples: &dyn Engine) -> Result<(Vec<usize>, Vec<f64>)> {
        let probabilities = self.class_probabilities(samples)?;
        let rows = probabilities.chunks_exact(self.classes().map_or(1, Classes::len));
        let best = |p: &[f64]| (1..p.len()).fold(0, |a, b| if p[b] > p[a] { b } else { a });
        Ok(rows.map(|p| (best(p), p[best(p)])).unzip())
    }

    /// ln p(X_n) for every sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn score_samples(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::LogLikelihood]).map(|[x]| x)
    }

    /// Scores that rank samples, those with missing cells included: the lower, the more of an outlier.
    ///
    /// ln p(X_n) for a complete sample. For one with missing cells ln p of a complete sample that is as far from the components, given how
    /// distances over its number of cells vary; ln p itself grows or falls with every cell that is observed, by the unit of the values.
    ///
    /// ```
    /// use matmix::{Component, Matrix, Missing, Mixture, Samples};
    ///
    /// let component = Component::new(&[4], vec![0.0; 4], vec![Matrix::identity(4, 1)], 0.01)?;
    /// let model = Mixture::new(&[4], vec![1.0], vec![component])?;
    /// // The second lacks half of its cells; the third is far off.
    /// let cells = [[0.5, 0.1, -0.1, 0.1], [0.5, 0.1, f64::NAN, f64::NAN], [0.5, 0.4, -0.4, 0.4]];
    /// let samples = Samples::from_vec(&[4], cells.concat())?.with_missing(Missing::Nan);
    /// let (log_likelihoods, scores) = (model.score_samples(&samples)?, model.typicality(&samples)?);
    /// assert_eq!((log_likelihoods[0], log_likelihoods[2]), (scores[0], scores[2]));
    /// // Density of a cell is above 1 here: the sample with fewer cells has the smaller likelihood.
    /// assert!(log_likelihoods[1] < log_likelihoods[0] - 1.0);
    /// assert!((scores[1] - scores[0]).abs() < 1.0 && scores[2] < scores[1] - 10.0);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn typicality(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::Typicality]).map(|[x]| x)
    }

    /// The (weighted) mean log-likelihood per sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn score(&self, samples: &dyn Engine) -> Result<f64> {
        Ok(mean(samples, &self.score_samples(samples)?))
    }

    /// All K cores, the responsibilities and the most probable component of every sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn project(&self, samples: &dyn Engine) -> Result<Projection> {
        let questions =
            [Question::AllCores, Question::Responsibilities, Question::Component, Question::LogLikelihood];
        let [cores, responsibilities, components, log_likelihood] = self.ask(samples, questions)?;
        Ok(Projection { cores, responsibilities, components: indices(components), log_likelihood })
    }

    /// The cores of every sample under all components, N × K·ρ: the paper's representation of a new sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn transform(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::AllCores]).map(|[x]| x)
    }

    /// The samples that cores under all components (N × K·ρ) and responsibilities (N × K) stand for, N × P.
    ///
    /// The cores of one component alone do not say how probable it is; without responsibilities the component whose core is
    /// most probable under its prior, π_k N(B_k; 0, I) or the t of its noise, is taken.
    ///
    /// # Errors
    /// If these are not whole sets of cores.
    pub fn inverse_transform(&self, cores: &[f64]) -> Result<Vec<f64>> {
        let (rho, k) = (self.core_len(), self.n_components());
        if !cores.len().is_multiple_of(rho * k) {
            return Err(Error::DataLength { shape: vec![k, rho], found: cores.len() });
        }
        let prior = |c: &crate::Component| Exponent::new(c.degrees_of_freedom(), rho as f64, 0.0);
        let priors: Vec<Exponent> = self.components().iter().map(prior).collect();
        let chosen: Vec<usize> = cores
            .chunks_exact(rho * k)
            .map(|all| {
                let prior = |j: usize| {
                    let core = &all[j * rho..(j + 1) * rho];
                    self.weights()[j].ln() + priors[j].log_density(core.iter().map(|b| b * b).sum())
                };
                (1..k).fold(0, |best, j| if prior(j) > prior(best) { j } else { best })
            })
            .collect();
        let of_chosen: Vec<f64> = cores
            .chunks_exact(rho * k)
            .zip(&chosen)
            .flat_map(|(all, &j)| all[j * rho..(j + 1) * rho].iter().copied())
            .collect();
        self.rebuild(&of_chosen, &chosen)
    }

    /// The core of the most probable component of every sample, N × ρ, and that component.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn cores(&self, samples: &dyn Engine) -> Result<(Vec<f64>, Vec<usize>)> {
        let [cores, components] = self.ask(samples, [Question::Core, Question::Component])?;
        Ok((cores, indices(components)))
    }

    /// L B Rᵀ + M for cores (N × ρ) of known components: the way back from [`cores`](Self::cores).
    ///
    /// # Errors
    /// If there are not as many cores as components, or one of these is not in the mixture.
    pub fn rebuild(&self, cores: &[f64], components: &[usize]) -> Result<Vec<f64>> {
        let rho = self.core_len();
        if !cores.len().is_multiple_of(rho) {
            return Err(Error::DataLength { shape: self.rank().to_vec(), found: cores.len() });
        }
        if cores.len() != rho * components.len() {
            let (expected, found) = (components.len(), cores.len() / rho);
            return Err(Error::Count { what: Counted::Cores, expected, found });
        }
        for &k in components {
            self.component(k)?;
        }
        let size = self.sample_len();
        let mut out = vec![0.0; components.len() * size];
        parallel::stretches(&mut out, 64 * size, |first, out| {
            for (n, x) in (first / size..).zip(out.chunks_exact_mut(size)) {
                let component = &self.components()[components[n]];
                x.copy_from_slice(&component.reconstruct(&cores[n * rho..(n + 1) * rho]));
            }
        });
        Ok(out)
    }

    /// The posterior variance of the cores, K × ρ. It does not depend on the sample, and the entries of a core
    /// are independent. With Student-t noise it is the variance where u = 1; given X it is (ν + δ)/(ν + P − 2) times as much.
    pub fn posterior_variance(&self) -> Vec<f64> {
        self.components().iter().flat_map(|c| Density::new(c).posterior_variance()).collect()
    }

    /// Every sample rebuilt from its cores, N × P.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruct(&self, samples: &dyn Engine, rule: Reconstruction) -> Result<Vec<f64>> {
        self.ask(samples, [rule.question()]).map(|[x]| x)
    }

    /// The same, a chunk of samples at a time and in order, for what does not fit memory.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruct_chunks(
        &self,
        samples: &Samples<'_>,
        rule: Reconstruction,
        each: impl FnMut(Vec<f64>) + Send,
    ) -> Result<()> {
        Model::from(self.clone()).reconstruct_chunks(Engine::backend(samples), samples, rule, each)
    }

    /// New samples without their noise: the posterior mean of the noiseless sample, N × P.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn denoise(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.reconstruct(samples, Reconstruction::Weighted)
    }

    /// ‖X_n − X̂_n‖² for every sample, rebuilt by its most probable component.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn squared_errors(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, [Question::SquaredError]).map(|[x]| x)
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruction_error(&self, samples: &dyn Engine) -> Result<f64> {
        Ok(mean(samples, &self.squared_errors(samples)?).sqrt())
    }

    /// Log-likelihood, BIC, AIC and ICL on these samples.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn evaluate(&self, samples: &dyn Engine) -> Result<Criteria> {
        let [likelihoods, entropies] = self.ask(samples, [Question::LogLikelihood, Question::Entropy])?;
        let n = samples.total_weight();
        Ok(self.criteria(n * mean(samples, &likelihoods), n * mean(samples, &entropies), n))
    }
}

impl LowRank {
    fn ask(&self, samples: &dyn Engine, question: Question) -> Result<Vec<f64>> {
        ask(self.clone().into(), samples, [question]).map(|[x]| x)
    }

    /// B_n = (X_n − M) ×_1 V^(1)ᵀ … ×_D V^(D)ᵀ for every sample, N × ρ.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn transform(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, Question::Core)
    }

    /// The samples cores (N × ρ) stand for, N × P.
    ///
    /// # Errors
    /// If these are no whole cores.
    pub fn inverse_transform(&self, cores: &[f64]) -> Result<Vec<f64>> {
        if !cores.len().is_multiple_of(self.core_len()) {
            return Err(Error::DataLength { shape: self.rank().to_vec(), found: cores.len() });
        }
        Ok(Cpu::best().rebuild(self, cores))
    }

    /// Every sample rebuilt from its core, N × P.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruct(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, Question::Rebuilt)
    }

    /// ‖X_n − X̂_n‖² for every sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn squared_errors(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        self.ask(samples, Question::SquaredError)
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruction_error(&self, samples: &dyn Engine) -> Result<f64> {
        Ok(mean(samples, &self.squared_errors(samples)?).sqrt())
    }
}

impl Model {
    /// Every sample rebuilt from its core (by its most probable component), N × P.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruct(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        ask(self.clone(), samples, [Question::Rebuilt]).map(|[x]| x)
    }

    /// The same, a chunk of samples at a time and in order, for what does not fit memory.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruct_chunks(
        &self,
        backend: &dyn Backend,
        samples: &Samples<'_>,
        rule: Reconstruction,
        mut each: impl FnMut(Vec<f64>) + Send,
    ) -> Result<()> {
        if samples.shape() != self.shape() {
            return Err(Error::ShapeMismatch {
                expected: self.shape().to_vec(),
                found: samples.shape().to_vec(),
            });
        }
        let pass = AskPass::one(self.clone(), rule.question());
        backend.ask(&pass, samples, &mut |answers| each(answers.values))
    }

    /// ‖X_n − X̂_n‖² for every sample.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn squared_errors(&self, samples: &dyn Engine) -> Result<Vec<f64>> {
        ask(self.clone(), samples, [Question::SquaredError]).map(|[x]| x)
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    ///
    /// # Errors
    /// If the samples have another shape than the model, or one of them is not finite or cannot be read.
    pub fn reconstruction_error(&self, samples: &dyn Engine) -> Result<f64> {
        Ok(mean(samples, &self.squared_errors(samples)?).sqrt())
    }
}

/// The weighted mean of one number per sample.
fn mean(samples: &dyn Engine, values: &[f64]) -> f64 {
    let sum: f64 = values.iter().enumerate().map(|(n, x)| x * samples.weight(n)).sum();
    sum / samples.total_weight()
}
