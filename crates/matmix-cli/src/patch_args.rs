//! The options of a fit to windows of the samples.

use matmix::data::{Contrast, Patches};
use matmix::{FitOptions, Samples};

use crate::data_args::{Sides, shape};
use crate::numbers::whole;

/// Windows of the samples instead of the samples themselves.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Patches")]
pub(crate) struct PatchArgs {
    /// Fit to all windows of this size of the samples: one side for all modes (short modes are kept whole), or one per mode.
    #[arg(long, value_parser = shape, value_name = "6|6x6")]
    patches: Option<Sides>,
    /// How far one window is from the next.
    #[arg(long, value_parser = shape, value_name = "1", default_value = "1", requires = "patches")]
    stride: Sides,
    /// Every window minus its mean, divided by √(its variance + c), where c is this share of the mean variance of all windows; kept
    /// takes nothing but the means off (for `matmix denoise`), none leaves windows as they are.
    #[arg(long, value_parser = contrast, value_name = "0.1|kept|none", default_value_t, requires = "patches")]
    contrast: Contrast,
    /// So many windows, drawn at random, and not all of them.
    #[arg(long, value_parser = whole::<usize>, value_name = "N", requires = "patches")]
    draw: Option<usize>,
}

fn contrast(text: &str) -> Result<Contrast, String> {
    text.parse().map_err(|_| "it must be a number above 0, kept or none".into())
}

impl PatchArgs {
    /// Whether windows were asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.patches.is_some()
    }

    /// The windows of these images, if windows were asked for, and which they are.
    pub(crate) fn of(
        &self,
        images: &Samples<'static>,
        fit: &FitOptions,
    ) -> anyhow::Result<Option<(Samples<'static>, Patches)>> {
        let Some(size) = &self.patches else { return Ok(None) };
        let plain = Patches { size: size.0.clone(), stride: self.stride.0.clone(), ..Patches::new(1) };
        plain.check_components(images, fit.n_components())?;
        let patches = plain.with_contrast(images, self.contrast, fit.seed)?;
        let samples = match self.draw {
            Some(count) => patches.drawn(images, count, fit.seed)?,
            None => patches.of(images)?,
        };
        Ok(Some((samples, patches)))
    }
}
