//! `matmix impute`: missing cells filled in.

use std::path::PathBuf;

use matmix::data::npy;

use crate::data_args::{DataOptions, Seen};
use crate::error::hinted;
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{count, plural};

/// Fill in cells that are missing (NaN) by what the model knows about the others; observed cells come back as they were.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix impute digits.mm broken.npy -o filled.npy --deviations uncertain.npy
  matmix impute digits.mm broken.npy -o draws.npy --draws 20 --seed 1")]
pub(crate) struct Impute {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples, with NaN where a cell is missing.
    #[arg(value_name = "DATA")]
    data: String,
    /// The .npy file to write; - is stdout.
    #[arg(long, short, value_name = "X.npy")]
    output: PathBuf,
    /// A .npy file for the standard deviation of every cell that was filled in; 0 where nothing was missing.
    #[arg(long, value_name = "SD.npy", conflicts_with = "draws")]
    deviations: Option<PathBuf>,
    /// Draw so many times from what the missing cells may be, and write all of it, instead of their means.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    draws: Option<usize>,
    /// The seed of the draws.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    options: DataOptions,
}

impl Impute {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let target = Target::new(&self.output, Kind::Array, &inputs, &self.overwrite)?;
        let second = match &self.deviations {
            Some(path) if *path == self.output => {
                let message = format!("{}: it cannot hold both values and deviations", path.display());
                return Err(hinted(message, "give -o and --deviations different names"));
            }
            Some(path) => Some(Target::new(path, Kind::Array, &inputs, &self.overwrite)?),
            None => None,
        };
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("conditional means")?;
        let n = seen.data.samples.len();
        let spinner = working(quiet, format!("filling in {}", plural(n, "sample")), &seen.data.samples);
        let mut axes = vec![n];
        axes.extend(seen.shape());
        if let Some(draws) = self.draws {
            let drawn = mixture.impute_draws(&seen.view, draws, self.seed)?;
            drop(spinner);
            axes.insert(0, draws);
            write(&target, &axes, &drawn)?;
            target.say_wrote(quiet, &format!("{} of the missing cells; ", plural(draws, "draw")), "");
            return Ok(());
        }
        let filled = mixture.impute(&seen.view)?;
        drop(spinner);
        write(&target, &axes, &filled.values)?;
        if let Some(second) = &second {
            write(second, &axes, &filled.deviations)?;
        }
        if !filled.empty.is_empty() {
            let what = plural(filled.empty.len(), "sample");
            output::say(quiet, &format!("note: {what} without any number; the model's mean stands there"));
        }
        let share = 100.0 * filled.missing as f64 / filled.values.len() as f64;
        let said = format!("filled in {} cells ({share:.1} %); ", count(filled.missing));
        target.say_wrote(quiet, &said, "");
        Ok(())
    }
}

fn write(target: &Target, axes: &[usize], values: &[f64]) -> anyhow::Result<()> {
    target.write(|out| npy::write_to::<f64>(out, axes, |put| put(values)))
}
