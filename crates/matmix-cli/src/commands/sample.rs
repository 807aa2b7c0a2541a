//! `matmix sample`: new samples from a model.

use std::path::PathBuf;

use matmix::Model;
use matmix::data::npy;
use matmix::picture::{Grid, ValueRange};

use crate::data_args::{load_model, shape_of};
use crate::error::hinted;
use crate::output;
use crate::table::plural;

/// Draw new samples from a model.
#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// How many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 64)]
    count: usize,
    /// The seed; the first samples of a longer draw are those of a shorter one.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The .npy or .png file to write.
    #[arg(long, short, value_name = "S.npy|S.png")]
    output: PathBuf,
    /// Leave the noise out: what the components can express.
    #[arg(long)]
    noiseless: bool,
    /// In a picture, every value becomes a square of so many pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 2)]
    enlarge: usize,
}

impl Sample {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        output::check(&self.output)?;
        if self.count == 0 {
            return Err(hinted("-n 0: there is nothing to draw", "-n is the number of samples: -n 64"));
        }
        let picture = output::ends_with(&self.output, "png");
        if !picture && !output::ends_with(&self.output, "npy") {
            let message = format!("{}: neither .npy nor .png", self.output.display());
            return Err(hinted(message, "-o S.npy writes an array, -o S.png a picture"));
        }
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
        let drawn = match self.noiseless {
            true => mixture.sample_noiseless(self.count, self.seed),
            false => mixture.sample(self.count, self.seed),
        };
        if picture {
            let tiles: Vec<&[f64]> = drawn.samples.chunks_exact(mixture.sample_len()).collect();
            // A few extreme values would make all the others grey: the ends are those of all but one in a hundred.
            let mut sorted = drawn.samples.clone();
            sorted.sort_by(f64::total_cmp);
            let cut = sorted.len() / 200;
            let range = ValueRange::Given(sorted[cut], sorted[sorted.len() - 1 - cut]);
            Grid { enlarge: self.enlarge, range, ..Grid::default() }
                .draw(&shape, &tiles)?
                .write_png(&self.output)?;
        } else {
            let mut axes = vec![self.count];
            axes.extend(&shape);
            npy::write_array(&self.output, &axes, &drawn.samples)?;
        }
        output::say(
            quiet,
            &format!("drew {}; wrote {}", plural(self.count, "sample"), self.output.display()),
        );
        Ok(())
    }
}
