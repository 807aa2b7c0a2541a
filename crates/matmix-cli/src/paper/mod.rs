//! `matmix paper`: the experiments of Ju, Sun, Gao, Liu, Hu, "Mixture of bilateral-projection two-dimensional
//! probabilistic principal component analysis" (arXiv 1601.01431), with the published values beside ours.
//!
//! | file | what |
//! |---|---|
//! | `digits`, `faces`, `patches` | the experiments, and beyond them recognition by patches |
//! | `method`, `split` | the models it compares; which images are for what |
//! | `published` | what the paper printed |
//! | `store`, `figure` | results on disk and as charts |

mod digits;
mod faces;
mod figure;
mod method;
mod patches;
mod published;
mod split;
mod store;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use matmix::data::{DataSet, OpenOptions, open};
use matmix::picture::{Grid, Image, ValueRange};
use matmix::{Algorithm, Model, Preset, Samples};

use crate::data_args::scale;
use crate::error::hinted;
use crate::fit_args::choice;
use crate::numbers::whole;
use crate::output;

/// Run the experiments of the paper and print the published values beside ours.
///
/// T = 50 iterations, ε = 1e-3 for recognition, the ranks and numbers of components of the tables, 10 repeats. Every
/// result is kept as it comes: a run that was stopped goes on where it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix paper digits --repeats 2
  matmix paper yale --data Yale_64x64.mat")]
pub(crate) struct Paper {
    /// Which experiment.
    #[arg(value_enum, default_value = "digits")]
    experiment: Experiment,
    /// The data: your copy of the faces; the embedded digits if not given.
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// paper: Algorithm 1 and the random start as printed; exact: exact EM from k-means.
    #[arg(long, value_parser = choice(Algorithm::ALL), default_value_t = Algorithm::Paper)]
    algorithm: Algorithm,
    /// How often everything is repeated with another seed and, where the paper draws one, another split.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 10)]
    repeats: usize,
    /// Keep the split of the first repeat: only the starts differ.
    #[arg(long)]
    same_split: bool,
    /// Multiply every pixel; the paper does not say.
    #[arg(long, value_parser = scale, value_name = "FACTOR", default_value = "1/255")]
    scale: f64,
    /// Only the recognition by patches, which is not the paper's.
    #[arg(long)]
    only_patches: bool,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The folder for results, tables and figures; matmix-paper/EXPERIMENT-ALGORITHM if not given.
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Reconstruction of 1000 digits, K = 2, 5, 10.
    Digits,
    /// Reconstruction and recognition of 15 people, 11 images each.
    Yale,
    /// 30 people, 14 images each.
    Ar,
    /// 50 people, 7 images each.
    Feret,
}

impl Experiment {
    fn name(self) -> &'static str {
        match self {
            Experiment::Digits => "digits",
            Experiment::Yale => "yale",
            Experiment::Ar => "ar",
            Experiment::Feret => "feret",
        }
    }

    /// The size the paper brings images to.
    fn size(self) -> (usize, usize) {
        match self {
            Experiment::Digits => (28, 28),
            Experiment::Yale => (64, 64),
            Experiment::Ar => (50, 40),
            Experiment::Feret => (32, 32),
        }
    }
}

/// Everything an experiment needs.
struct Setting {
    experiment: Experiment,
    data: DataSet,
    algorithm: Algorithm,
    repeats: usize,
    same_split: bool,
    only_patches: bool,
    seed: u64,
    folder: PathBuf,
    quiet: bool,
}

impl Paper {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        if self.repeats == 0 {
            return Err(hinted("--repeats 0: nothing to do", "the paper repeats everything 10 times"));
        }
        if self.only_patches && self.experiment == Experiment::Digits {
            let message = "the digits of the paper are rebuilt, not recognised";
            return Err(hinted(message, "--only-patches goes with yale, ar and feret"));
        }
        let data = self.open()?;
        let folder = self.output.clone().unwrap_or_else(|| {
            Path::new("matmix-paper").join(format!("{}-{}", self.experiment.name(), self.algorithm.name()))
        });
        output::make_folder(&folder)?;
        output::check(&folder.join("report.md"))?;
        let setting = Setting {
            experiment: self.experiment,
            data,
            algorithm: self.algorithm,
            repeats: self.repeats,
            same_split: self.same_split,
            only_patches: self.only_patches,
            seed: self.seed,
            folder,
            quiet,
        };
        let report = match self.experiment {
            Experiment::Digits => digits::run(&setting)?,
            _ => faces::run(&setting)?,
        };
        output::text(&setting.folder.join("report.md"), &report)?;
        output::say(quiet, &format!("wrote results, tables and figures to {}", setting.folder.display()));
        output::result(&report)
    }

    fn open(&self) -> anyhow::Result<DataSet> {
        let scale = Some(self.scale);
        let Some(spec) = &self.data else {
            if self.experiment == Experiment::Digits {
                return Ok(open("demo:mnist", &OpenOptions { scale, ..OpenOptions::default() })?);
            }
            let name = self.experiment.name();
            let message =
                format!("`matmix paper {name}` needs your copy of the faces: they may not be passed on");
            return Err(hinted(
                message,
                "--data takes a .mat file with fea and gnd, or a folder with one folder per person",
            ));
        };
        let (rows, columns) = self.experiment.size();
        let folder = Path::new(spec).is_dir();
        let options = OpenOptions {
            scale,
            resize: folder.then_some((rows, columns)),
            shape: (!folder).then(|| vec![rows, columns]),
            ..OpenOptions::default()
        };
        Ok(open(spec, &options)?)
    }
}

impl Setting {
    fn store(&self) -> anyhow::Result<store::Store> {
        let samples = &self.data.samples;
        let settings = serde_json::json!({
            "experiment": self.experiment.name(),
            "algorithm": self.algorithm.name(),
            "samples": samples.len(),
            "shape": samples.shape(),
            "data": checksum(samples)?,
            "seed": self.seed,
            "same_split": self.same_split,
        });
        store::Store::open(&self.folder, &settings)
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        output::text(&self.folder.join(name), text)
    }
}

/// Whether two runs are over the same numbers.
fn checksum(samples: &Samples<'_>) -> anyhow::Result<String> {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for n in 0..samples.len() {
        for x in samples.to_f64(n..n + 1)? {
            hash = (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}

/// Originals in the first row, what each model makes of them below.
fn rows(chosen: &Samples<'_>, models: &[(Preset, Model)], enlarge: usize) -> anyhow::Result<Image> {
    let size = chosen.sample_len();
    let cut = |x: Vec<f64>| x.chunks_exact(size).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let mut all = vec![cut(chosen.to_f64(0..chosen.len())?)];
    for (preset, model) in models {
        all.push(cut(model.reconstruct(&preset.view(chosen)?)?));
    }
    let grid =
        Grid { enlarge, gap: 6, range: ValueRange::Given(0.0, 255.0 * chosen.scale()), ..Grid::default() };
    Ok(grid.draw_rows(chosen.shape(), &all)?)
}

/// Mean and standard deviation (with n − 1) of what was measured.
fn mean_std(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, if values.len() > 1 { (square / (n - 1.0)).sqrt() } else { 0.0 })
}
