//! Images as Fisher vectors: how a mixture over the patches would have to change to like the patches of an image better.
//!
//! ```text
//! per cell of a grid of triangular windows w and per component k, with γ and Q from the model's own E-step:
//!   Σ_t w_t γ_tk Q_tk / √π_k          ∂ ln p / ∂ (mean of the core)
//!   Σ_t w_t γ_tk (Q_tk² + v_k − 1) / √(2 π_k)          ∂ ln p / ∂ (log variance of the core)
//! each as sign(x) √|x|; every cell scaled to unit length
//! ```
//!
//! Perronnin, Sánchez and Mensink (2010) have these for mixtures of diagonal Gaussians over descriptors of patches; here the descriptor is the
//! core.

use std::ops::ControlFlow;

use crate::data::{Contrast, Input, ModelFile, Patches, Samples, complete};
use crate::error::{Error, Result};
use crate::fit::{FitOptions, Search, fit_on};
use crate::model::{Mixture, Model};
use crate::pass::{Backend, Engine, Pool, drawn_once};

/// The options of a [`PatchFisher`].
///
/// ```
/// use matmix::{FitOptions, PatchFisher, PatchFisherOptions, Samples};
///
/// let pixels: Vec<f64> = (0..3 * 256).map(|i| f64::from((i * i) % 101)).collect();
/// let images = Samples::from_vec(&[16, 16], pixels)?;
/// let fit = FitOptions { components: 3, rank: vec![2], max_iter: 3, ..FitOptions::default() };
/// let options = PatchFisherOptions { size: vec![4], stride: vec![2], grid: 1, fit, ..Default::default() };
/// let fisher = PatchFisher::fit(&images, &options)?;
/// // One cell, three components, the first and the second order of 2×2 cores.
/// assert_eq!(fisher.width(&[16, 16])?, 3 * 2 * 4);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatchFisherOptions {
    /// The sides of the patches: one for all modes or one per mode.
    pub size: Vec<usize>,
    /// How far one patch is from the next.
    pub stride: Vec<usize>,
    /// What is added to the variance of a patch before its root divides it, as a share of the mean variance.
    pub contrast: f64,
    /// The cells along each mode; fewer where there are fewer positions.
    pub grid: usize,
    /// The mixture is fitted to so many patches, drawn at random, or to all if there are fewer.
    pub max_patches: usize,
    /// The fit of the mixture. Its seed also draws the patches.
    pub fit: FitOptions,
}

impl Default for PatchFisherOptions {
    fn default() -> Self {
        Self {
            size: vec![6],
            stride: vec![1],
            contrast: Contrast::SHARE,
            grid: 5,
            max_patches: 20_000,
            // Twenty iterations are enough, converged or not.
            // Patches are hundreds of thousands, and their likelihood is not what counts: no search.
            fit: FitOptions { components: 16, max_iter: 20, search: Search::None, ..FitOptions::default() },
        }
    }
}

/// A mixture over the patches of images, and the grid over which what it says about them is summed up.
///
/// ```
/// use matmix::{FitOptions, PatchFisher, PatchFisherOptions, Samples};
///
/// let pixels: Vec<u8> = (0..6 * 16 * 16).map(|i| (i * i % 251) as u8).collect();
/// let images = Samples::from_vec(&[16, 16], pixels)?;
/// let fit = FitOptions { components: 2, rank: vec![2], max_iter: 3, ..FitOptions::default() };
/// let fisher = PatchFisher::fit(&images, &PatchFisherOptions { fit, grid: 3, ..Default::default() })?;
/// // 3×3 cells, 2 components, the first and the second order of 2×2 cores.
/// assert_eq!(fisher.width(&[16, 16])?, 9 * 2 * 2 * 4);
/// assert_eq!(fisher.features(&images)?.len(), 6 * 144);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PatchFisher {
    model: Mixture,
    patches: Patches,
    grid: usize,
}

impl PatchFisher {
    /// Fits the mixture to patches of these images.
    ///
    /// # Errors
    /// Options out of their range, images smaller than a patch, and whatever can go wrong with a fit.
    pub fn fit(images: &Samples<'_>, options: &PatchFisherOptions) -> Result<Self> {
        Self::fit_by(Engine::backend(images), images, options)
    }

    /// The same, computed by this backend.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and whatever keeps the backend from it.
    pub fn fit_by(backend: &dyn Backend, images: &Samples<'_>, options: &PatchFisherOptions) -> Result<Self> {
        let patches =
            Patches { size: options.size.clone(), stride: options.stride.clone(), ..Patches::new(1) };
        let patches = patches.normalised(images, options.contrast, options.fit.seed)?;
        patches.check_components(images, options.fit.components)?;
        let drawn = drawn_once(&patches, images, options.max_patches, options.fit.seed)?;
        let fitted = fit_on(&*backend.over(&drawn)?, &options.fit, &mut |_| ControlFlow::Continue(()))?;
        Self::new(fitted.model, patches, options.grid)
    }

    /// From a mixture over such patches.
    ///
    /// # Errors
    /// Patches that are not of like contrast, and a grid without cells.
    pub fn new(model: Mixture, patches: Patches, grid: usize) -> Result<Self> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        match patches.floor {
            Some(floor) if floor.is_finite() && floor >= 0.0 => {}
            floor => return wrong("floor", format!("{floor:?}"), "that of patches of like contrast"),
        }
        if !(1..=64).contains(&grid) {
            return wrong("grid", grid.to_string(), "between 1 and 64");
        }
        Ok(Self { model, patches, grid })
    }

    /// From the file of a mixture over patches.
    ///
    /// # Errors
    /// If it holds another model.
    pub fn from_file(file: &ModelFile, grid: usize) -> Result<Self> {
        let patches = file.input.as_ref().and_then(|input| input.patches.clone());
        match (&file.model, patches) {
            (Model::Mixture(model), Some(patches)) => Self::new(model.clone(), patches, grid),
            _ => Err(Error::Model { problem: "a mixture over patches is needed here".into() }),
        }
    }

    /// The file of the mixture, for images like these.
    ///
    /// # Errors
    /// If the images cannot be read.
    pub fn to_file(&self, images: &Samples<'_>) -> Result<ModelFile> {
        let input = Input::of(images.shape(), images)?.with_patches(self.patches.clone());
        Ok(ModelFile { input: Some(input), ..ModelFile::new(Model::Mixture(self.model.clone())) })
    }

    /// The mixture over the patches.
    pub fn model(&self) -> &Mixture {
        &self.model
    }

    /// The patches.
    pub fn patches(&self) -> &Patches {
        &self.patches
    }

    /// The cells along each mode, at most.
    pub fn grid(&self) -> usize {
        self.grid
    }

    /// The numbers of the vector of an image of this shape.
    ///
    /// # Errors
    /// If such an image has no such patches.
    pub fn width(&self, image: &[usize]) -> Result<usize> {
        Ok(self.pass(image)?.width())
    }

    /// The vectors of all images, N × [`width`](Self::width): cell after cell, component after component, first and second order.
    ///
    /// # Errors
    /// Images without such patches, or that are not finite.
    pub fn features(&self, images: &Samples<'_>) -> Result<Vec<f32>> {
        let mut all = Vec::with_capacity(images.len().saturating_mul(self.width(images.shape())?));
        self.features_each(images, |some| all.extend(some))?;
        Ok(all)
    }

    /// The same, a few images at a time and in order, for what does not fit memory.
    ///
    /// # Errors
    /// As [`features`](Self::features).
    pub fn features_each(&self, images: &Samples<'_>, each: impl FnMut(Vec<f32>) + Send) -> Result<()> {
        self.features_chunks(Engine::backend(images), images, each)
    }

    /// The same, computed by this backend.
    ///
    /// # Errors
    /// As [`features`](Self::features), and whatever keeps the backend from it.
    pub fn features_chunks(
        &self,
        backend: &dyn Backend,
        images: &Samples<'_>,
        mut each: impl FnMut(Vec<f32>) + Send,
    ) -> Result<()> {
        complete(images)?;
        backend.pool(&self.pass(images.shape())?, images, &mut each)
    }

    fn pass(&self, image: &[usize]) -> Result<Pool<'_>> {
        Pool::new(&self.model, &self.patches, image, self.grid)
    }
}
