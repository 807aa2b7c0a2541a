//! The published names: each is one of the two model types with a few options set.

use crate::data::{Input, Missing, ModelFile, Samples};
use crate::error::{Error, Result};
use crate::fit::{FitOptions, LowRankOptions, Observer, fit_low_rank_on, fit_on};
use crate::model::{History, Model};
use crate::options::named;
use crate::pass::{Backend, Engine, MissingCells};

named! {
    /// A model by the name it was published under.
    ///
    /// ```
    /// use matmix::{Preset, Samples};
    ///
    /// let preset: Preset = "mixppca".parse()?;
    /// assert!(preset.is_mixture() && preset.fits_order(2));
    /// // It looks at matrices as vectors, with as many factors as a core has entries.
    /// let samples = Samples::from_vec(&[4, 3], vec![0.0; 120])?;
    /// assert_eq!((preset.view(&samples)?.shape(), preset.rank(&[4, 3], &[2, 2])), (&[12][..], vec![4]));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Preset {
        /// Principal component analysis of the flattened samples.
        Pca = "pca",
        /// Two-dimensional PCA (Yang, Zhang, Frangi, Yang 2004): the rows are kept whole, the columns reduced.
        TwoDPca = "2dpca",
        /// Generalized low rank approximations of matrices (Ye 2005): both modes reduced, not centred.
        Glram = "glram",
        /// Multilinear PCA (Lu, Plataniotis, Venetsanopoulos 2008): every mode reduced, centred.
        Mpca = "mpca",
        /// Probabilistic PCA (Tipping, Bishop 1999) of the flattened samples.
        Ppca = "ppca",
        /// Probabilistic second-order PCA (Yu, Bi, Ye 2011): matrices, one component.
        Psopca = "psopca",
        /// Mixture of probabilistic PCA (Tipping, Bishop 1999) of the flattened samples.
        MixPpca = "mixppca",
        /// Mixture of probabilistic 2DPCA (Wang, Chen, Hu, Luo 2008): a mixture over the rows of the matrices.
        Mp2dPca = "mp2dpca",
        /// Mixture of bilateral-projection 2DPPCA (Ju, Sun, Gao, Liu, Hu 2016): the paper's model, for any order.
        MixB2dPpca = "mixb2dppca",
    }
}

/// What a preset gives: a model and, in both cases, e over the iterations.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::{FitOptions, Model, Preset, Samples};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() };
/// let fit = |preset: Preset| preset.fit(&samples, &options, &mut |_| ControlFlow::Continue(()));
/// let (glram, mixture) = (fit(Preset::Glram)?, fit(Preset::MixB2dPpca)?);
/// assert!(matches!(glram.model, Model::LowRank(_)) && glram.history.log_likelihood.is_empty());
/// assert_eq!((mixture.model.n_components(), mixture.assigned.iter().sum::<u64>()), (2, 30));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PresetFit {
    /// Which preset.
    pub preset: Preset,
    /// The model.
    pub model: Model,
    /// Its history; a `LowRank` has no log-likelihood.
    pub history: History,
    /// How many samples have each component as their most probable one; empty for a `LowRank`.
    pub assigned: Vec<u64>,
    /// What was not observed of the samples.
    pub missing: MissingCells,
    /// How many cells were observed of no sample at all.
    pub never_observed: usize,
}

impl Preset {
    /// All names.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|p| p.name()).collect()
    }

    /// The default for samples of an order and a number of components: the probabilistic model of that order.
    pub fn for_order(order: usize, components: usize) -> Preset {
        match (order, components) {
            (1, 1) => Preset::Ppca,
            (1, _) => Preset::MixPpca,
            (2, 1) => Preset::Psopca,
            _ => Preset::MixB2dPpca,
        }
    }

    /// Whether it is a mixture with a noise model; otherwise it is a `LowRank`.
    pub fn is_mixture(self) -> bool {
        matches!(self, Preset::Ppca | Preset::Psopca | Preset::MixPpca | Preset::Mp2dPca | Preset::MixB2dPpca)
    }

    /// Whether it can be fitted to samples of this order.
    pub fn fits_order(self, order: usize) -> bool {
        match self {
            Preset::Pca | Preset::Ppca | Preset::MixPpca => true,
            Preset::TwoDPca | Preset::Glram | Preset::Psopca | Preset::Mp2dPca => order == 2,
            Preset::Mpca | Preset::MixB2dPpca => order >= 2,
        }
    }

    /// The number of components it uses when K were asked for.
    pub fn components(self, k: usize) -> usize {
        match self {
            Preset::MixPpca | Preset::Mp2dPca | Preset::MixB2dPpca => k,
            _ => 1,
        }
    }

    /// The samples as this preset sees them: flattened, split into rows, or as they are.
    ///
    /// # Errors
    /// If the preset is for samples with another number of modes.
    pub fn view<'a>(self, samples: &Samples<'a>) -> Result<Samples<'a>> {
        if !self.fits_order(samples.order()) {
            let expected = 2;
            return Err(Error::Order { what: self.name(), expected, found: samples.order() });
        }
        match self {
            Preset::Pca | Preset::Ppca | Preset::MixPpca => samples.clone().reshaped(&[samples.sample_len()]),
            Preset::Mp2dPca => samples.clone().rows(),
            _ => Ok(samples.clone()),
        }
    }

    /// The ranks this preset uses when cores of shape `rank` were asked for samples of `shape`: those presets that
    /// flatten the samples get as many factors as such a core has entries, unless one number was given.
    pub fn rank(self, shape: &[usize], rank: &[usize]) -> Vec<usize> {
        let flattens = matches!(self, Preset::Pca | Preset::Ppca | Preset::MixPpca);
        let each: Vec<usize> = match rank {
            [one] if flattens => vec![*one],
            [] => shape.iter().map(|&p| p.min(4)).collect(),
            [one] if shape.len() > 1 => vec![*one; shape.len()],
            given => given.to_vec(),
        };
        match self {
            _ if flattens && each.len() == shape.len() => vec![each.iter().product()],
            Preset::TwoDPca if each.len() == 2 => vec![shape[0], each[1]],
            Preset::Mp2dPca if each.len() == 2 => vec![each[1]],
            _ => each,
        }
    }

    /// Fits the preset to samples; `options.components` and `options.rank` mean what the caller asked for, and the
    /// preset makes of them what it needs. `observer` is called for mixtures.
    ///
    /// # Errors
    /// As [`fit`](fn@crate::fit), and if the preset is for samples with another number of modes.
    pub fn fit(
        self,
        samples: &Samples<'_>,
        options: &FitOptions,
        observer: &mut Observer<'_>,
    ) -> Result<PresetFit> {
        self.fit_by(Engine::backend(samples), samples, options, observer)
    }

    /// The same, computed by a given backend.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and whatever the backend can cause.
    pub fn fit_by(
        self,
        backend: &dyn Backend,
        samples: &Samples<'_>,
        options: &FitOptions,
        observer: &mut Observer<'_>,
    ) -> Result<PresetFit> {
        let view = self.view(samples)?;
        let engine = backend.over(&view)?;
        let rank = self.rank(samples.shape(), &options.rank);
        if self.is_mixture() {
            let components = self.components(options.components);
            let fit = fit_on(&*engine, &FitOptions { components, rank, ..options.clone() }, observer)?;
            let (model, history) = (Model::Mixture(fit.model), fit.history);
            let (assigned, missing, never_observed) = (fit.assigned, fit.missing, fit.never_observed);
            return Ok(PresetFit { preset: self, model, history, assigned, missing, never_observed });
        }
        let told = if options.missing == Missing::Nan { Missing::Nan } else { view.missing() };
        let options = LowRankOptions {
            rank,
            centred: self != Preset::Glram,
            max_iter: options.max_iter,
            tol: options.tol,
            threads: options.threads,
        };
        let started = std::time::Instant::now();
        // Told before anything is read: what cannot be fitted with holes says so.
        let view = view.clone().with_missing(told);
        let fit = fit_low_rank_on(&*backend.over(&view)?, &options)?;
        let history = History {
            reconstruction_error: fit.reconstruction_error,
            samples: view.len(),
            passes: fit.passes,
            stop: Some(fit.stop),
            seconds: started.elapsed().as_secs_f64(),
            ..History::default()
        };
        let (model, missing) = (Model::LowRank(fit.model), MissingCells::default());
        Ok(PresetFit { preset: self, model, history, assigned: vec![], missing, never_observed: 0 })
    }
}

impl ModelFile {
    /// The samples as this model sees them: as they are if their shape is the model's, otherwise the way the preset it
    /// was fitted as looks at samples. A model of vectors whose preset is unknown takes samples of as many numbers. A model of
    /// patches sees those of the samples.
    ///
    /// # Errors
    /// If the samples cannot be seen so: they have another shape, or more or fewer numbers.
    pub fn view<'a>(&self, samples: &Samples<'a>) -> Result<Samples<'a>> {
        match self.input.as_ref().and_then(|input| input.patches.as_ref()) {
            Some(patches) => self.view_of(&patches.of(samples)?),
            None => {
                self.check_arrangement(samples.shape())?;
                self.view_of(samples)
            }
        }
    }

    /// Refuses samples of as many numbers as those of the fit in another arrangement: flattened, they would pass for these.
    fn check_arrangement(&self, found: &[usize]) -> Result<()> {
        let Some(Input { shape: expected, .. }) = &self.input else { return Ok(()) };
        let longer = |shape: &[usize]| shape.iter().copied().filter(|&side| side > 1).collect::<Vec<_>>();
        let is_flat = found.len() == 1 || expected.len() == 1;
        let as_many = found.iter().product::<usize>() == expected.iter().product::<usize>();
        if as_many && !is_flat && longer(found) != longer(expected) {
            return Err(Error::ShapeMismatch { expected: expected.clone(), found: found.to_vec() });
        }
        Ok(())
    }

    fn view_of<'a>(&self, samples: &Samples<'a>) -> Result<Samples<'a>> {
        let shape = self.model.shape();
        if samples.shape() == shape {
            return Ok(samples.clone());
        }
        let preset = self.name.as_deref().and_then(|name| name.parse::<Preset>().ok());
        let viewed = match preset {
            Some(preset) => preset.view(samples).ok(),
            None => samples.clone().reshaped(&[samples.sample_len()]).ok(),
        };
        viewed
            .filter(|v| v.shape() == shape)
            .ok_or_else(|| Error::ShapeMismatch { expected: shape.to_vec(), found: samples.shape().to_vec() })
    }
}

impl std::str::FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let wanted = name.to_ascii_lowercase();
        let found = Self::ALL.iter().copied().find(|p| p.name() == wanted);
        found.ok_or_else(|| Error::UnknownPreset { name: name.into(), known: Self::names() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_that_flatten_take_one_number_as_it_is_and_multiply_several() {
        let rank = |preset: Preset, rank: &[usize]| preset.rank(&[28, 20], rank);
        assert_eq!(rank(Preset::MixPpca, &[16]), [16]);
        assert_eq!(rank(Preset::MixPpca, &[4, 3]), [12]);
        assert_eq!(rank(Preset::Ppca, &[]), [16]);
        assert_eq!(Preset::Ppca.rank(&[3], &[]), [3]);
        assert_eq!(rank(Preset::MixB2dPpca, &[5]), [5, 5]);
        assert_eq!(rank(Preset::TwoDPca, &[5]), [28, 5]);
        assert_eq!(rank(Preset::Mp2dPca, &[5]), [5]);
    }

    #[test]
    fn a_model_sees_samples_the_way_its_preset_does() {
        let numbers: Vec<f64> = (0..240).map(|i| f64::from((i * 37) % 101)).collect();
        let samples = Samples::from_vec(&[4, 3], numbers.clone()).unwrap();
        let options = FitOptions { components: 2, rank: vec![2, 1], max_iter: 2, ..FitOptions::default() };
        let file = |preset: Preset| {
            let fit = preset.fit(&samples, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
            ModelFile { name: Some(preset.name().into()), ..ModelFile::new(fit.model) }
        };
        let seen = |preset| {
            let view = file(preset).view(&samples).unwrap();
            (view.len(), view.shape().to_vec())
        };
        assert_eq!(seen(Preset::MixB2dPpca), (20, vec![4, 3]));
        assert_eq!(seen(Preset::MixPpca), (20, vec![12]));
        assert_eq!(seen(Preset::Mp2dPca), (80, vec![3]));
        let other = Samples::from_vec(&[3, 4], numbers).unwrap();
        let refused = file(Preset::MixB2dPpca).view(&other).unwrap_err();
        assert_eq!(refused, Error::ShapeMismatch { expected: vec![4, 3], found: vec![3, 4] });
        assert!(file(Preset::Mp2dPca).view(&other).is_err());
    }
}
