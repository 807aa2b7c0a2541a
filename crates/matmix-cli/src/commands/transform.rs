//! `matmix transform`: from samples to their cores.

use std::path::PathBuf;

use matmix::{Model, PatchFisher, PatchFisherOptions};

use crate::data_args::{DataOptions, Seen};
use crate::device_args::DeviceArgs;
use crate::error::hinted;
use crate::numbers::whole;
use crate::output::{Overwrite, Target};
use crate::progress::working;
use crate::table::{Rows, column_names, plural};

/// Write the cores of samples: the small matrices a model reduces them to.
///
/// The core of each sample's most probable component, N × r × c; with --all the cores of all components,
/// N × K × r × c. `matmix assign` says which component that is. A model of patches has a core for every window of a sample; with
/// --fisher what it says about them is summed up to one vector per sample, in single precision.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix transform digits.mm demo:mnist -o cores.npy
  matmix transform digits.mm demo:mnist --all -o - > cores.npy
  matmix transform patches.mm faces/ --fisher -o vectors.npy")]
pub(crate) struct Transform {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The .npy or .csv file to write; - is an array on stdout.
    #[arg(long, short, value_name = "F.npy|F.csv")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Write the cores of all K components.
    #[arg(long, conflicts_with = "fisher")]
    all: bool,
    /// Write Fisher vectors over the patches: N × (cells · K · 2 · r · c).
    #[arg(long)]
    fisher: bool,
    /// The cells along each mode over which patches are summed up.
    #[arg(long, value_parser = whole::<usize>, value_name = "N", default_value_t = PatchFisherOptions::default().grid, requires = "fisher")]
    grid: usize,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

impl Transform {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let target = Target::numbers(&self.output, &inputs, &self.overwrite)?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        if self.fisher {
            return self.fisher(&seen, &target, quiet);
        }
        let spinner = working(
            quiet,
            format!("projecting {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        let backend = self.device.backend(&seen.view, seen.file.model.n_components())?;
        let engine = backend.over(&seen.view)?;
        let cores = match &seen.file.model {
            Model::Mixture(m) if self.all => m.project(&*engine)?.cores,
            Model::Mixture(m) => m.cores(&*engine)?.0,
            Model::LowRank(m) => m.transform(&*engine)?,
            _ => anyhow::bail!("models of this kind have no cores"),
        };
        let (mut axes, rank) = (seen.axes(), seen.file.model.rank());
        let mut columns = column_names("core", rank);
        if self.all {
            let components = column_names("component", &[seen.file.model.n_components()]);
            let each =
                |component: &String| columns.iter().map(|core| format!("{component}_{core}")).collect();
            columns = components.iter().flat_map::<Vec<String>, _>(each).collect();
            axes.push(components.len());
        }
        axes.extend(rank);
        target.write_rows(&axes, &Rows::new(&seen, columns), |put| {
            put(&cores);
            Ok(())
        })?;
        drop(spinner);
        target.say_wrote(quiet, "", &format!(" ({})", matmix::error::sides(&axes)));
        Ok(())
    }

    fn fisher(&self, seen: &Seen, target: &Target, quiet: bool) -> anyhow::Result<()> {
        let images = &seen.data.samples;
        let fisher = PatchFisher::from_file(&seen.file, self.grid).map_err(|error| {
            hinted(error.to_string(), "`matmix fit DATA --patches 6 -k 16 -o MODEL` makes a model of patches")
        })?;
        let axes = [images.len(), fisher.width(images.shape())?];
        let spinner =
            working(quiet, format!("looking at the patches of {}", plural(axes[0], "image")), images);
        // A vector belongs to a sample, however many windows that has.
        let rows = Rows::of_samples(seen, column_names("feature", &axes[1..]));
        target.write_rows::<f32>(&axes, &rows, |put| fisher.features_each(images, |some| put(&some)))?;
        drop(spinner);
        target.say_wrote(quiet, "", &format!(" ({})", matmix::error::sides(&axes)));
        Ok(())
    }
}
