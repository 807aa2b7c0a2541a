//! `matmix transform`: from samples to their cores.

use std::path::PathBuf;

use matmix::Model;
use matmix::data::npy;

use crate::data_args::{DataOptions, Seen};
use crate::output;
use crate::progress::working;
use crate::table::plural;

/// Write the cores of samples: the small matrices a model reduces them to.
///
/// The core of each sample's most probable component, N × r × c; with --all the cores of all components,
/// N × K × r × c. `matmix assign` says which component that is.
#[derive(Debug, clap::Args)]
pub(crate) struct Transform {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The .npy file to write.
    #[arg(long, short, value_name = "F.npy")]
    output: PathBuf,
    /// Write the cores of all K components.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: DataOptions,
}

impl Transform {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        output::check(&self.output)?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let spinner = working(
            quiet,
            format!("projecting {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        let cores = match &seen.file.model {
            Model::Mixture(m) if self.all => m.project(&seen.view)?.cores,
            Model::Mixture(m) => m.cores(&seen.view)?.0,
            Model::LowRank(m) => m.transform(&seen.view)?,
        };
        let mut axes = seen.axes();
        if self.all {
            axes.push(seen.file.model.n_components());
        }
        axes.extend(seen.file.model.rank());
        npy::write_array(&self.output, &axes, &cores)?;
        drop(spinner);
        let shape = matmix::error::sides(&axes);
        output::say(quiet, &format!("wrote {} ({shape})", self.output.display()));
        Ok(())
    }
}
