//! What a fitted model says about samples: densities, responsibilities, cores, reconstructions.

use rayon::prelude::*;

use crate::data::{Model, Samples};
use crate::error::{Error, Result};
use crate::model::{Criteria, LowRank, Mixture};
use crate::pass::cores::{self, Wanted};
use crate::pass::inference::{Cores, infer};
use crate::pass::simd::Path;

/// How a sample is rebuilt from its cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reconstruction {
    /// From the most probable component: the paper's rule.
    #[default]
    MostProbable,
    /// From all components, weighted by the responsibilities: the posterior mean of the noiseless sample.
    Weighted,
}

/// Everything the paper asks for about new samples: all K cores, the γ's and the most probable component.
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

impl Mixture {
    /// ln p(X_n|k) for every sample and component, N × K.
    pub fn log_densities(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len() * self.n_components());
        infer(self, samples, Cores::None, 16 * self.n_components(), |i| i.log_density, |x| out.extend(x))?;
        Ok(out)
    }

    /// γ_nk = p(k|X_n) for every sample and component, N × K.
    pub fn responsibilities(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len() * self.n_components());
        infer(
            self,
            samples,
            Cores::None,
            16 * self.n_components(),
            |i| i.responsibilities,
            |x| out.extend(x),
        )?;
        Ok(out)
    }

    /// The most probable component of every sample.
    pub fn assign(&self, samples: &Samples<'_>) -> Result<Vec<usize>> {
        let mut out = Vec::with_capacity(samples.len());
        infer(self, samples, Cores::None, 16 * self.n_components(), |i| i.best, |x| out.extend(x))?;
        Ok(out)
    }

    /// ln p(X_n) for every sample.
    pub fn score_samples(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len());
        infer(self, samples, Cores::None, 16 * self.n_components(), |i| i.log_likelihood, |x| out.extend(x))?;
        Ok(out)
    }

    /// The (weighted) mean log-likelihood per sample.
    pub fn score(&self, samples: &Samples<'_>) -> Result<f64> {
        let scores = self.score_samples(samples)?;
        let sum: f64 = scores.iter().enumerate().map(|(n, s)| s * samples.weight(n)).sum();
        Ok(sum / samples.total_weight())
    }

    /// All K cores, the responsibilities and the most probable component of every sample.
    pub fn project(&self, samples: &Samples<'_>) -> Result<Projection> {
        let (n, k) = (samples.len(), self.n_components());
        let mut out = Projection {
            cores: Vec::with_capacity(n * k * self.core_len()),
            responsibilities: Vec::with_capacity(n * k),
            components: Vec::with_capacity(n),
            log_likelihood: Vec::with_capacity(n),
        };
        let bytes = 8 * k * (self.core_len() + 2);
        infer(
            self,
            samples,
            Cores::All,
            bytes,
            |i| i,
            |i| {
                out.cores.extend(i.cores);
                out.responsibilities.extend(i.responsibilities);
                out.components.extend(i.best);
                out.log_likelihood.extend(i.log_likelihood);
            },
        )?;
        Ok(out)
    }

    /// The core of the most probable component of every sample, N × ρ, and that component.
    pub fn transform(&self, samples: &Samples<'_>) -> Result<(Vec<f64>, Vec<usize>)> {
        let mut cores = Vec::with_capacity(samples.len() * self.core_len());
        let mut components = Vec::with_capacity(samples.len());
        let bytes = 8 * (self.core_len() + 2 * self.n_components());
        infer(
            self,
            samples,
            Cores::MostProbable,
            bytes,
            |i| (i.cores, i.best),
            |(c, b)| {
                cores.extend(c);
                components.extend(b);
            },
        )?;
        Ok((cores, components))
    }

    /// L B Rᵀ + M for cores (N × ρ) of known components: the way back from [`transform`](Self::transform).
    pub fn inverse_transform(&self, cores: &[f64], components: &[usize]) -> Result<Vec<f64>> {
        let rho = self.core_len();
        if !cores.len().is_multiple_of(rho) {
            return Err(Error::DataLength { shape: self.rank().to_vec(), found: cores.len() });
        }
        if cores.len() != rho * components.len() {
            let (expected, found) = (components.len(), cores.len() / rho);
            return Err(Error::Count { what: "cores", expected, found });
        }
        for &k in components {
            self.component(k)?;
        }
        let size = self.sample_len();
        let mut out = vec![0.0; components.len() * size];
        out.par_chunks_exact_mut(size)
            .zip(cores.par_chunks_exact(rho))
            .zip(components)
            .for_each(|((x, core), &k)| x.copy_from_slice(&self.components()[k].reconstruct(core)));
        Ok(out)
    }

    /// The posterior variance of the cores, K × ρ. It does not depend on the sample, and the entries of a core
    /// are independent.
    pub fn posterior_variance(&self) -> Vec<f64> {
        use crate::model::Density;
        self.components().iter().flat_map(|c| Density::new(c).posterior_variance()).collect()
    }

    /// Every sample rebuilt from its cores, N × P.
    pub fn reconstruct(&self, samples: &Samples<'_>, rule: Reconstruction) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len() * self.sample_len());
        self.reconstruct_chunks(samples, rule, |x| out.extend(x))?;
        Ok(out)
    }

    /// The same, a chunk of samples at a time and in order, for what does not fit memory.
    pub fn reconstruct_chunks(
        &self,
        samples: &Samples<'_>,
        rule: Reconstruction,
        mut each: impl FnMut(Vec<f64>),
    ) -> Result<()> {
        let (rho, k) = (self.core_len(), self.n_components());
        let wanted = match rule {
            Reconstruction::MostProbable => Cores::MostProbable,
            Reconstruction::Weighted => Cores::All,
        };
        let bytes = 8 * self.sample_len();
        infer(
            self,
            samples,
            wanted,
            bytes,
            |i| {
                let mut out = Vec::with_capacity(i.best.len() * self.sample_len());
                for n in 0..i.best.len() {
                    match rule {
                        Reconstruction::MostProbable => {
                            let core = &i.cores[n * rho..(n + 1) * rho];
                            out.extend(self.components()[i.best[n]].reconstruct(core));
                        }
                        Reconstruction::Weighted => {
                            let mut sum = vec![0.0; self.sample_len()];
                            for (j, component) in self.components().iter().enumerate() {
                                let gamma = i.responsibilities[n * k + j];
                                if gamma > 0.0 {
                                    let core = &i.cores[(n * k + j) * rho..(n * k + j + 1) * rho];
                                    let x = component.reconstruct(core);
                                    sum.iter_mut().zip(x).for_each(|(s, x)| *s += gamma * x);
                                }
                            }
                            out.extend(sum);
                        }
                    }
                }
                out
            },
            &mut each,
        )
    }

    /// New samples without their noise: the posterior mean of the noiseless sample, N × P.
    pub fn denoise(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        self.reconstruct(samples, Reconstruction::Weighted)
    }

    /// ‖X_n − X̂_n‖² for every sample, rebuilt by its most probable component.
    pub fn squared_errors(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len());
        infer(self, samples, Cores::None, 16 * self.n_components(), |i| i.squared_error, |x| out.extend(x))?;
        Ok(out)
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    pub fn reconstruction_error(&self, samples: &Samples<'_>) -> Result<f64> {
        root_mean(samples, &self.squared_errors(samples)?)
    }

    /// Log-likelihood, BIC, AIC and ICL on these samples.
    pub fn evaluate(&self, samples: &Samples<'_>) -> Result<Criteria> {
        let (mut likelihood, mut entropy) = (0.0, 0.0);
        let k = self.n_components();
        infer(
            self,
            samples,
            Cores::None,
            16 * k,
            |i| i,
            |i| {
                for (n, l) in i.range.clone().zip(&i.log_likelihood) {
                    likelihood += samples.weight(n) * l;
                }
                for (n, gammas) in i.range.clone().zip(i.responsibilities.chunks_exact(k)) {
                    let e: f64 = gammas.iter().filter(|g| **g > 0.0).map(|g| -g * g.ln()).sum();
                    entropy += samples.weight(n) * e;
                }
            },
        )?;
        Ok(self.criteria(likelihood, entropy, samples.total_weight()))
    }
}

impl LowRank {
    /// B_n = (X_n − M) ×_1 V^(1)ᵀ … ×_D V^(D)ᵀ for every sample, N × ρ.
    pub fn transform(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len() * self.core_len());
        cores::each_chunk(self, samples, Wanted::Cores, Path::best(), |x| out.extend(x))?;
        Ok(out)
    }

    /// The samples cores (N × ρ) stand for, N × P.
    pub fn inverse_transform(&self, cores: &[f64]) -> Result<Vec<f64>> {
        if !cores.len().is_multiple_of(self.core_len()) {
            return Err(Error::DataLength { shape: self.rank().to_vec(), found: cores.len() });
        }
        Ok(cores::rebuild(self, cores, Path::best()))
    }

    /// Every sample rebuilt from its core, N × P.
    pub fn reconstruct(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len() * self.sample_len());
        cores::each_chunk(self, samples, Wanted::Rebuilt, Path::best(), |x| out.extend(x))?;
        Ok(out)
    }

    /// ‖X_n − X̂_n‖² for every sample.
    pub fn squared_errors(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(samples.len());
        cores::each_chunk(self, samples, Wanted::SquaredError, Path::best(), |x| out.extend(x))?;
        Ok(out)
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    pub fn reconstruction_error(&self, samples: &Samples<'_>) -> Result<f64> {
        root_mean(samples, &self.squared_errors(samples)?)
    }
}

impl Model {
    /// Every sample rebuilt from its core (by its most probable component), N × P.
    pub fn reconstruct(&self, samples: &Samples<'_>) -> Result<Vec<f64>> {
        match self {
            Model::Mixture(m) => m.reconstruct(samples, Reconstruction::MostProbable),
            Model::LowRank(m) => m.reconstruct(samples),
        }
    }

    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    pub fn reconstruction_error(&self, samples: &Samples<'_>) -> Result<f64> {
        match self {
            Model::Mixture(m) => m.reconstruction_error(samples),
            Model::LowRank(m) => m.reconstruction_error(samples),
        }
    }
}

fn root_mean(samples: &Samples<'_>, squares: &[f64]) -> Result<f64> {
    let sum: f64 = squares.iter().enumerate().map(|(n, e)| e * samples.weight(n)).sum();
    Ok((sum / samples.total_weight()).sqrt())
}
