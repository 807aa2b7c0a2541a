//! `matmix sample`: new samples from a model.

use std::path::{Path, PathBuf};

use matmix::error::bytes;
use matmix::picture::{Grid, ValueRange};
use matmix::{Mixture, Model};

use crate::data_args::{load_model, memory, shape_of};
use crate::error::hinted;
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::table::plural;

/// Draw new samples from a model.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix sample digits.mm -n 64 -o new.png
  matmix sample digits.mm -n 10000 --seed 1 -o new.npy")]
pub(crate) struct Sample {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// How many.
    #[arg(long, short = 'n', value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 64)]
    count: usize,
    /// The seed; the first samples of a longer draw are those of a shorter one.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The .npy or .png file to write; - is an array on stdout.
    #[arg(long, short, value_name = "S.npy|S.png")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Leave the noise out: what the components can express.
    #[arg(long)]
    noiseless: bool,
    /// In a picture, every value becomes a square of so many pixels.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "PIXELS", default_value_t = 2)]
    enlarge: usize,
    /// How much memory the samples may take; what is free if not given.
    #[arg(long, value_parser = memory, value_name = "2GB")]
    memory: Option<u64>,
}

impl Sample {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        if self.count == 0 {
            return Err(hinted("-n 0: there is nothing to draw", "-n is the number of samples: -n 64"));
        }
        let picture = output::ends_with(&self.output, "png");
        let array = output::ends_with(&self.output, "npy") || self.output == Path::new("-");
        if !picture && !array && !output::is_stream(&self.output) {
            let message = format!("{}: neither .npy nor .png", self.output.display());
            return Err(hinted(message, "-o S.npy writes an array, -o S.png a picture"));
        }
        let kind = if picture { Kind::Picture } else { Kind::Array };
        let target = Target::new(&self.output, kind, &[], &self.overwrite)?;
        let file = load_model(&self.model)?;
        let shape = shape_of(&file);
        let Model::Mixture(mixture) = &file.model else {
            let name = file.name.as_deref().unwrap_or("this model");
            let message = format!("{name} has no noise model, and so nothing to draw samples from");
            return Err(hinted(
                message,
                "fit a mixture: --model ppca, psopca, mixppca, mp2dpca or mixb2dppca",
            ));
        };
        self.affordable(mixture)?;
        let drawn = mixture.try_sample(self.count, self.seed, !self.noiseless)?;
        if picture {
            let tiles: Vec<&[f64]> = drawn.samples.chunks_exact(mixture.sample_len()).collect();
            // A few extreme values would make all the others grey: the ends are those of all but one in a hundred.
            let mut sorted = drawn.samples.clone();
            sorted.sort_by(f64::total_cmp);
            let cut = sorted.len() / 200;
            let range = ValueRange::Given(sorted[cut], sorted[sorted.len() - 1 - cut]);
            let grid = Grid { enlarge: self.enlarge, range, ..Grid::default() };
            let png = grid.draw(&shape, &tiles)?.to_png()?;
            target.write(|out| out.write_all(&png))?;
        } else {
            let mut axes = vec![self.count];
            axes.extend(&shape);
            target.write_chunks(&axes, |put| {
                put(&drawn.samples);
                Ok(())
            })?;
        }
        target.say_wrote(quiet, &format!("drew {}; ", plural(self.count, "sample")), "");
        Ok(())
    }

    /// Whether the samples fit the budget, if there is one.
    fn affordable(&self, mixture: &Mixture) -> anyhow::Result<()> {
        let needed = mixture.drawn_bytes(self.count);
        match self.memory {
            Some(budget) if needed > u128::from(budget) => {
                let (samples, needed, budget) = (plural(self.count, "sample"), bytes(needed), bytes(budget));
                let message = format!("{samples} take {needed}, more than the budget of {budget}");
                Err(hinted(message, "draw fewer samples with -n; another --seed draws others"))
            }
            _ => Ok(()),
        }
    }
}
