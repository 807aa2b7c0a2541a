//! `matmix reconstruct`: samples as a model sees them.

use std::path::PathBuf;

use matmix::data::Values;
use matmix::picture::ValueRange;
use matmix::{Backend, Model, Reconstruction, Samples};

use crate::data_args::{DataOptions, Seen, check_whole};
use crate::device_args::DeviceArgs;
use crate::output::{Goes, Overwrite};
use crate::progress::working;
use crate::table::{measured, plural};

/// Rebuild samples from their cores, in the shape they came in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix reconstruct digits.mm demo:mnist -o rebuilt.npy
  matmix reconstruct faces.mm faces/ -o rebuilt/")]
pub(crate) struct Reconstruct {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The .npy file to write, or a folder for one PNG per sample; - is an array on stdout.
    #[arg(long, short, value_name = "X.npy|FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Rebuild from all components, weighted by their responsibilities, and not from the most probable one.
    #[arg(long)]
    weighted: bool,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

impl Reconstruct {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let goes = Goes::new(&self.output, false, &inputs, &self.overwrite)?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        check_whole(&seen.file)?;
        goes.check(&seen.data)?;
        let backend = self.device.backend(&seen.view, seen.file.model.n_components())?;
        let spinner = working(
            quiet,
            format!("rebuilding {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        match &goes {
            Goes::Array(target) | Goes::Picture(target) => {
                let mut axes = vec![seen.data.samples.len()];
                axes.extend(seen.shape());
                target.write_chunks(&axes, |put| self.each(&*backend, &seen, &mut |x| put(&x)))?;
            }
            Goes::Folder(folder) => {
                let mut rebuilt = Vec::new();
                self.each(&*backend, &seen, &mut |x| rebuilt.extend(x))?;
                folder.write(&Samples::from_vec(seen.shape(), rebuilt)?, &seen.data, quiet)?;
            }
        }
        drop(spinner);
        let error = seen.file.model.reconstruction_error(&*backend.over(&seen.view)?)?
            * (seen.rows_each as f64).sqrt();
        let said = format!("reconstruction error {}; ", measured(error));
        goes.say_wrote(quiet, &said);
        Ok(())
    }

    fn each(
        &self,
        backend: &dyn Backend,
        seen: &Seen,
        put: &mut (dyn FnMut(Vec<f64>) + Send),
    ) -> matmix::Result<()> {
        let weighted = self.weighted && matches!(seen.file.model, Model::Mixture(_));
        let rule = if weighted { Reconstruction::Weighted } else { Reconstruction::MostProbable };
        seen.file.model.reconstruct_chunks(backend, &seen.view, rule, put)
    }
}

/// The range of a set's values.
pub(crate) fn range(samples: &Samples<'_>) -> matmix::Result<ValueRange> {
    let Values { low, high, .. } = Values::of(samples)?;
    Ok(ValueRange::Given(low, high))
}
