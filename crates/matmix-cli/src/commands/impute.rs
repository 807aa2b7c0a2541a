//! `matmix impute`: missing cells filled in.

use std::path::PathBuf;

use matmix::data::npy;
use matmix::{Event, Samples, Temper};

use crate::data_args::{DataOptions, Seen};
use crate::error::hinted;
use crate::numbers::whole;
use crate::output::{self, Goes, Overwrite, Target};
use crate::progress::working;
use crate::table::{Rows, column_names, count, plural};

/// Fill in cells that are missing (NaN) by what the model knows about the others; observed cells come back as they were.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix impute digits.mm broken.npy -o filled.npy --deviations uncertain.npy
  matmix impute digits.mm broken.npy -o draws.npy --draws 20 --seed 1
  matmix impute faces.mm cut-outs/ --missing alpha -o filled/")]
pub(crate) struct Impute {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples, with NaN where a cell is missing.
    #[arg(value_name = "DATA")]
    data: String,
    /// The .npy file to write, or a folder for one PNG per sample; - is an array on stdout.
    #[arg(long, short, value_name = "X.npy|FOLDER")]
    output: PathBuf,
    /// A .npy or .csv file for the standard deviation of every cell that was filled in; 0 where nothing was missing.
    #[arg(long, value_name = "SD.npy|SD.csv", conflicts_with = "draws")]
    deviations: Option<PathBuf>,
    /// Draw so many times from what the missing cells may be, and write all of it, instead of their means.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    draws: Option<usize>,
    /// The seed of the draws.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// How far observed cells are trusted: none is the exact posterior, a number below 1 less than that; auto is 0.1 for samples of which a
    /// large region is missing, and the exact posterior for the others.
    #[arg(long, value_parser = temper, allow_negative_numbers = true, value_name = "auto|none|0.1", default_value = "auto")]
    temper: Temper,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    options: DataOptions,
}

fn temper(text: &str) -> Result<Temper, String> {
    text.parse().map_err(|_| "it must be auto, none or a number above 0 and at most 1, such as 0.1".into())
}

impl Impute {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let goes = Goes::new(&self.output, false, &inputs, &self.overwrite)?;
        let second = match &self.deviations {
            Some(path) if *path == self.output => {
                let message = format!("{}: it cannot hold both values and deviations", path.display());
                return Err(hinted(message, "give -o and --deviations different names"));
            }
            Some(path) => Some(Target::numbers(path, &inputs, &self.overwrite)?),
            None => None,
        };
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("conditional means")?;
        goes.check(&seen.data)?;
        if self.draws.is_some() && !matches!(goes, Goes::Array(_)) {
            let message = format!("{}: draws do not go into pictures", self.output.display());
            return Err(hinted(message, "-o X.npy writes an array of all of them"));
        }
        let events = seen.file.history.iter().flat_map(|history| &history.events);
        for event in events.filter(|event| matches!(event, Event::SeldomObserved { .. })) {
            output::say(quiet, &format!("warning: {}", event.in_words()));
        }
        let n = seen.data.samples.len();
        let spinner = working(quiet, format!("filling in {}", plural(n, "sample")), &seen.data.samples);
        let mut axes = vec![n];
        axes.extend(seen.shape());
        if let (Some(draws), Goes::Array(target)) = (self.draws, &goes) {
            let drawn = mixture.impute_draws_by(&seen.view, draws, self.seed, self.temper)?;
            drop(spinner);
            axes.insert(0, draws);
            write(target, &axes, &drawn)?;
            target.say_wrote(quiet, &format!("{} of the missing cells; ", plural(draws, "draw")), "");
            return Ok(());
        }
        let filled = mixture.impute_by(&seen.view, self.temper)?;
        drop(spinner);
        match &goes {
            Goes::Array(target) | Goes::Picture(target) => write(target, &axes, &filled.values)?,
            Goes::Folder(folder) => {
                folder.write(&Samples::from_slice(seen.shape(), &filled.values)?, &seen.data, quiet)?;
            }
        }
        if let Some(second) = &second {
            let rows = Rows::of_samples(&seen, column_names("deviation", seen.shape()));
            second.write_rows(&axes, &rows, |put| {
                put(&filled.deviations);
                Ok(())
            })?;
        }
        if !filled.empty.is_empty() {
            let what = plural(filled.empty.len(), "sample");
            output::say(quiet, &format!("note: {what} without any number; the model's mean stands there"));
        }
        if self.temper == Temper::Auto && !filled.tempered.is_empty() {
            let what = plural(filled.tempered.len(), "sample");
            let note = format!(
                "note: {what} of which a large region is missing: the observed cells were trusted less there, --temper {} (--temper none \
                 for the exact posterior)",
                Temper::OF_BLOCKS
            );
            output::say(quiet, &note);
        }
        let share = 100.0 * filled.missing as f64 / filled.values.len() as f64;
        let said = format!("filled in {} cells ({share:.1} %); ", count(filled.missing));
        goes.say_wrote(quiet, &said);
        Ok(())
    }
}

fn write(target: &Target, axes: &[usize], values: &[f64]) -> anyhow::Result<()> {
    target.write(|out| npy::write_to::<f64>(out, axes, |put| put(values)))
}
