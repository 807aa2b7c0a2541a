//! `matmix denoise`: images without their noise.

use std::path::PathBuf;

use matmix::{FitOptions, PatchDenoiser, PatchDenoiserOptions, Samples, estimate_noise};

use crate::data_args::{DataOptions, Sides, load_model, rank, shape};
use crate::error::hinted;
use crate::kind::Kind;
use crate::numbers::{real, whole};
use crate::output::{self, Goes, Overwrite, Target};
use crate::progress::working;
use crate::table::{measured, plural};

/// Take noise out of images by a mixture over their patches.
///
/// The mixture is fitted to the noisy images themselves, or given: one of patches of images without noise. DATA may be a single picture.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix denoise noisy.png -o clean.png
  matmix denoise scans/ -o clean/ --sigma 25
  matmix fit photos/ --patches 8 --contrast kept --draw 100000 -k 32 -r 6 -o photos.mm
  matmix denoise noisy.png -m photos.mm -o clean.png")]
pub(crate) struct Denoise {
    /// The noisy images, or one picture.
    #[arg(value_name = "DATA")]
    data: String,
    /// The picture to write, if there is one; a folder for one PNG per image; or a .npy file: - is an array on stdout.
    #[arg(long, short, value_name = "CLEAN.png|FOLDER|X.npy")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The standard deviation of the noise, in units of the values (25, say, for bytes as they are); estimated if not given.
    #[arg(long, value_parser = above_zero, allow_negative_numbers = true, value_name = "SIGMA")]
    sigma: Option<f64>,
    /// A model of patches without noise, made by `matmix fit --patches 8 --contrast kept`.
    #[arg(long, short, value_name = "MODEL", conflicts_with_all = ["patches", "components", "rank", "save"])]
    model: Option<PathBuf>,
    /// The size of the patches.
    #[arg(long, value_parser = shape, value_name = "8|8x8", default_value = "8")]
    patches: Sides,
    /// K: the number of components of the mixture over patches.
    #[arg(long, short = 'k', value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "K", default_value_t = PatchDenoiserOptions::default().fit.components)]
    components: usize,
    /// The shape of the cores; 5 per mode if not given.
    #[arg(long, short, value_parser = rank, value_name = "5x5")]
    rank: Option<Sides>,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Keep the mixture, its noise taken off, in this model file.
    #[arg(long, value_name = "MODEL")]
    save: Option<PathBuf>,
    #[command(flatten)]
    options: DataOptions,
}

impl Denoise {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let goes = Goes::new(&self.output, true, &inputs, &self.overwrite)?;
        let kept = match &self.save {
            Some(path) => Some(Target::new(path, Kind::Model, &inputs, &self.overwrite)?),
            None => None,
        };
        let file = self.model.as_deref().map(load_model).transpose()?;
        let data = self.options.open_pictures(file.as_ref(), &self.data)?;
        let images = &data.samples;
        let n = images.len();
        if matches!(goes, Goes::Picture(_)) && n != 1 {
            let message = format!("{} do not go into one picture", plural(n, "image"));
            return Err(hinted(message, "-o FOLDER writes one PNG per image, -o X.npy an array"));
        }
        if images.order() < 2 {
            let message = format!("{}: its samples are no images but rows of numbers", data.name);
            return Err(hinted(
                message,
                "--shape says what they are: an array has to be image × row × column",
            ));
        }
        goes.check(&data)?;
        let spinner = working(quiet, format!("looking at the patches of {}", plural(n, "image")), images);
        let noise = self.sigma.map_or_else(|| estimate_noise(images), Ok)?;
        let denoiser = match &file {
            Some(file) => PatchDenoiser::from_file(file).map_err(|error| {
                let hint = "`matmix fit DATA --patches 8 --contrast kept` makes a model of patches; one of whole samples goes with \
                            `matmix reconstruct --weighted`";
                hinted(error.to_string(), hint)
            })?,
            None => PatchDenoiser::fit_noisy(images, noise, &self.fitting())?,
        };
        if let Some(kept) = kept {
            let mut file = denoiser.to_file(images)?;
            file.options = self.fitting().fit.described();
            file.input = file.input.map(|input| self.options.reading.remembered(input, None, &data));
            kept.write(|out| out.write_all(&file.to_bytes()))?;
        }
        let how = if self.sigma.is_some() { "" } else { " (estimated)" };
        let said = format!("noise of standard deviation {}{how}; ", measured(noise));
        match &goes {
            Goes::Array(target) => {
                let mut axes = vec![n];
                axes.extend(images.shape());
                target
                    .write_chunks(&axes, |put| denoiser.denoise_each(images, noise, |image| put(&image)))?;
            }
            Goes::Picture(target) => {
                let clean = Samples::from_vec(images.shape(), denoiser.denoise(images, noise)?)?;
                let png = output::drawn(&data, quiet)?.sample_png(&clean, 0)?;
                target.write(|out| out.write_all(&png))?;
            }
            Goes::Folder(folder) => {
                let clean = Samples::from_vec(images.shape(), denoiser.denoise(images, noise)?)?;
                folder.write(&clean, &data, quiet)?;
            }
        }
        drop(spinner);
        goes.say_wrote(quiet, &said);
        Ok(())
    }

    fn fitting(&self) -> PatchDenoiserOptions {
        let usual = PatchDenoiserOptions::default();
        PatchDenoiserOptions {
            size: self.patches.0.clone(),
            fit: FitOptions {
                components: self.components,
                rank: self.rank.as_ref().map(|rank| rank.0.clone()).unwrap_or_default(),
                seed: self.seed,
                ..usual.fit
            },
            ..usual
        }
    }
}

fn above_zero(text: &str) -> Result<f64, String> {
    real(text)
        .ok()
        .filter(|sigma| *sigma > 0.0)
        .ok_or_else(|| "it must be a number above 0, such as 25".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_defaults_are_the_librarys() {
        let asked = crate::Cli::parse_from(["matmix", "denoise", "x.png", "-o", "y.png"]).command;
        let crate::Command::Denoise(denoise) = asked else { panic!("{asked:?}") };
        assert_eq!(denoise.fitting(), PatchDenoiserOptions::default());
    }
}
