//! `matmix montage`: pictures of samples, means and reconstructions.

use std::path::{Path, PathBuf};

use matmix::picture::{Grid, ValueRange};
use matmix::{Model, ModelFile};

use crate::commands::reconstruct::range;
use crate::data_args::{DataOptions, check_whole, is_model, load_model, shape_of, view};
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};

/// Draw samples, the means of a model, or samples and their reconstructions in rows.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix montage demo:mnist -o digits.png
  matmix montage demo:mnist --model digits.mm -n 10 -o rebuilt.png")]
pub(crate) struct Montage {
    /// Data, or a model file to see its means.
    #[arg(value_name = "DATA|MODEL")]
    what: String,
    /// The picture to write; - is stdout.
    #[arg(long, short, value_name = "GRID.png")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Rebuild the samples with this model, a row each; may be given several times.
    #[arg(long, value_name = "MODEL")]
    model: Vec<PathBuf>,
    /// How many samples, evenly spaced over the set; 10 with models, 64 without, if not given.
    #[arg(long, short = 'n', value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    count: Option<usize>,
    /// Tiles per row; as square as possible if not given.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    columns: Option<usize>,
    /// Every value becomes a square of so many pixels.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "PIXELS", default_value_t = 2)]
    enlarge: usize,
    #[command(flatten)]
    options: DataOptions,
}

impl Montage {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.what);
        let target = Target::new(&self.output, Kind::Picture, &inputs, &self.overwrite)?;
        if !target.is_stdout() {
            output::check_png(&self.output, "-o grid.png")?;
        }
        let grid = Grid { columns: self.columns, enlarge: self.enlarge, ..Grid::default() };
        let image = if is_model(Path::new(&self.what)) {
            let file = ModelFile::load(&self.what)?;
            let means: Vec<&[f64]> = match &file.model {
                Model::Mixture(m) => m.components().iter().map(|c| c.mean()).collect(),
                Model::LowRank(m) => vec![m.mean()],
                _ => anyhow::bail!("models of this kind have no mean"),
            };
            grid.draw(&shape_of(&file), &means)?
        } else {
            self.samples(grid)?
        };
        let png = image.to_png()?;
        target.write(|out| out.write_all(&png))?;
        target.say_wrote(quiet, "", &format!(" ({}×{} pixels)", image.width, image.height));
        Ok(())
    }

    fn samples(&self, grid: Grid) -> anyhow::Result<matmix::picture::Image> {
        let files: Vec<ModelFile> =
            self.model.iter().map(|path| load_model(path)).collect::<anyhow::Result<_>>()?;
        for (file, path) in files.iter().zip(&self.model).skip(1) {
            self.options.reading.check_alike((&files[0], &self.model[0]), (file, path))?;
        }
        let data = match files.first() {
            Some(first) => self.options.open_for(first, &self.what)?,
            None => self.options.open(&self.what)?,
        };
        for (file, path) in files.iter().zip(&self.model) {
            check_whole(file)?;
            view(file, path, &data)?;
        }
        let samples = data.samples;
        let chosen = spaced(samples.len(), self.count.unwrap_or(if files.is_empty() { 64 } else { 10 }));
        let chosen = samples.clone().select(&chosen)?;
        let size = chosen.sample_len();
        let rows = |x: Vec<f64>| x.chunks_exact(size).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let originals = rows(chosen.to_f64(0..chosen.len())?);
        if files.is_empty() {
            return Ok(grid.draw(chosen.shape(), &originals)?);
        }
        let mut all = vec![originals];
        for file in &files {
            all.push(rows(file.model.reconstruct(&file.view(&chosen)?)?));
        }
        let ValueRange::Given(low, high) = range(&chosen)? else { unreachable!("a range was measured") };
        Ok(Grid { range: ValueRange::Given(low, high), ..grid }.draw_rows(chosen.shape(), &all)?)
    }
}

/// `count` places evenly spaced over `len`, from the first on.
pub(crate) fn spaced(len: usize, count: usize) -> Vec<usize> {
    let count = count.clamp(1, len);
    (0..count).map(|i| i * len / count).collect()
}
