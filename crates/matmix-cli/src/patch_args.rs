//! The options of a fit to windows of the samples.

use matmix::Samples;
use matmix::data::Patches;

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
    #[arg(long, value_parser = contrast, value_name = "0.1|kept|none", default_value = "0.1", requires = "patches")]
    contrast: Contrast,
    /// So many windows, drawn at random, and not all of them.
    #[arg(long, value_parser = whole::<usize>, value_name = "N", requires = "patches")]
    draw: Option<usize>,
}

/// What is done to windows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Contrast {
    /// They are brought to like contrast: the share of the mean variance.
    Like(f64),
    /// Their means are taken off.
    Kept,
    None,
}

fn contrast(text: &str) -> Result<Contrast, String> {
    match text {
        "none" => return Ok(Contrast::None),
        "kept" => return Ok(Contrast::Kept),
        _ => {}
    }
    let share = text.parse().ok().filter(|share: &f64| share.is_finite() && *share > 0.0);
    share.map(Contrast::Like).ok_or_else(|| "it must be a number above 0, kept or none".into())
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
        seed: u64,
    ) -> anyhow::Result<Option<(Samples<'static>, Patches)>> {
        let Some(size) = &self.patches else { return Ok(None) };
        let plain = Patches { size: size.0.clone(), stride: self.stride.0.clone(), ..Patches::new(1) };
        let patches = match self.contrast {
            Contrast::Like(share) => plain.normalised(images, share, seed)?,
            Contrast::Kept => plain.centred(),
            Contrast::None => plain,
        };
        let samples = match self.draw {
            Some(count) => patches.drawn(images, count, seed)?,
            None => patches.of(images)?,
        };
        Ok(Some((samples, patches)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contrast_is_a_share_or_a_word() {
        assert_eq!((contrast("0.1"), contrast("none")), (Ok(Contrast::Like(0.1)), Ok(Contrast::None)));
        assert_eq!(contrast("kept"), Ok(Contrast::Kept));
        for text in ["0", "-1", "inf", "some"] {
            assert!(contrast(text).is_err(), "{text}");
        }
    }
}
