//! `matmix demo`: the paper's claim on the embedded digits, in a few seconds.

use std::path::PathBuf;

use matmix::data::{Labels, digits};
use matmix::error::sides;
use matmix::picture::{Grid, ValueRange};
use matmix::report::{ReportOptions, write_report};
use matmix::{FitOptions, Model, Preset, Samples};

use crate::commands::compare::Compared;
use crate::commands::montage::spaced;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::progress::steps;
use crate::table::{Table, count, number};

/// Compare GLRAM, the mixture of PPCA and mixB2DPPCA on 1000 embedded digits, and see the last in a report.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix demo
  matmix demo -o /tmp/digits")]
pub(crate) struct Demo {
    /// The folder for the picture and the report; made if it is not there.
    #[arg(long, short, value_name = "FOLDER", default_value = "demo")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl Demo {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let drawn = self.output.join("montage.png");
        output::make_folder(&self.output)?;
        let page = self.output.join("report.html");
        Target::new(&drawn, Kind::Picture, &[], &self.overwrite)?;
        Target::new(&page, Kind::Page, &[], &self.overwrite)?;
        let digits = digits();
        let samples = digits.samples.scaled(1.0 / 255.0)?;
        let labels = digits.labels.unwrap_or_else(|| Labels::new(vec![String::new(); samples.len()]));
        // Every fifth digit is kept for the test; the set is sorted by digit, so that each is there as often.
        let (test, train): (Vec<usize>, Vec<usize>) = (0..samples.len()).partition(|n| n % 5 == 4);
        let (seen, unseen) = (samples.clone().select(&train)?, samples.select(&test)?);
        let options = FitOptions { components: 10, rank: vec![4, 4], ..FitOptions::default() };
        let presets = [Preset::Glram, Preset::MixPpca, Preset::MixB2dPpca];
        let bar = steps(quiet, presets.len());
        let mut results = Vec::new();
        for preset in presets {
            bar.set_message(preset.name());
            results.push(Compared::new(preset, &seen, Some(&unseen), &options)?);
            bar.inc(1);
        }
        bar.set_message("pictures");
        picture(&unseen, &results)?.write_png(&drawn)?;
        if let Some(last) = results.last()
            && let Model::Mixture(model) = &last.model
        {
            let options = ReportOptions {
                data: "demo:mnist".into(),
                model: last.preset.name().into(),
                labels: Some(labels.select(&train)?),
                history: Some(last.history.clone()),
                seed: Some(options.seed),
                ..ReportOptions::default()
            };
            write_report(model, &seen, &options, &page)?;
        }
        bar.finish_and_clear();
        let (drawn, page) = (drawn.display().to_string(), page.display().to_string());
        output::result(&words(&seen, &unseen, &results, &drawn, &page))
    }
}

/// Unseen digits in the first row, what the three models make of them below.
fn picture(unseen: &Samples<'_>, results: &[Compared]) -> anyhow::Result<matmix::picture::Image> {
    let chosen = unseen.clone().select(&spaced(unseen.len(), 10))?;
    let size = chosen.sample_len();
    let rows = |x: Vec<f64>| x.chunks_exact(size).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let mut all = vec![rows(chosen.to_f64(0..chosen.len())?)];
    for result in results {
        all.push(rows(result.model.reconstruct(&result.preset.view(&chosen)?)?));
    }
    let grid = Grid { enlarge: 3, gap: 6, range: ValueRange::Given(0.0, 1.0), ..Grid::default() };
    Ok(grid.draw_rows(chosen.shape(), &all)?)
}

fn words(
    seen: &Samples<'_>,
    unseen: &Samples<'_>,
    results: &[Compared],
    picture: &str,
    page: &str,
) -> String {
    let mut table =
        Table::new(["model", "components", "core", "parameters", "error, seen", "error, unseen", "seconds"]);
    for r in results {
        let name = match r.preset {
            Preset::Glram => "GLRAM",
            Preset::MixPpca => "mixture of PPCA",
            _ => "mixB2DPPCA",
        };
        table.row([
            name.to_string(),
            r.model.n_components().to_string(),
            sides(r.model.rank()),
            count(r.model.n_parameters()),
            number(r.error, 3),
            number(r.held_out_error, 3),
            number(r.seconds, 1),
        ]);
    }
    format!(
        "Every {} digit becomes 16 numbers: the error of what is rebuilt from them, over {} digits each model was\n\
         fitted to and {} it has never seen.\n\n{table}\n\
         {picture} shows ten unseen digits in its first row and below them what GLRAM, the mixture of PPCA and\n\
         mixB2DPPCA rebuild. {page} shows the last of them in a browser: components, loadings, a latent\n\
         explorer, outliers.\n\n\
         Try your own images next: `matmix fit FOLDER -k 10 -r 4x4 --scale 1/255 -o MODEL`. Then\n\
         `matmix report MODEL FOLDER -o report.html` shows what the model has seen in them.\n",
        sides(seen.shape()),
        seen.len(),
        unseen.len(),
    )
}
