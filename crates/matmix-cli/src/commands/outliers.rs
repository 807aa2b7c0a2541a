//! `matmix outliers`: the samples a model finds least likely.

use std::path::PathBuf;

use matmix::picture::Grid;
use serde_json::json;

use super::score::{Scores, scored};
use crate::data_args::{DataOptions, Seen};
use crate::device_args::DeviceArgs;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::table::{field, plural};

/// Tiles of the picture, at most.
const SHOWN: usize = 100;

/// List the samples that a model finds least likely.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix outliers digits.mm demo:mnist --contamination 0.02
  matmix outliers parts.mm new/ --threshold -1200 -o outliers.csv --picture outliers.png

A fit with heavy tails (`matmix fit --noise t`) does not let the outliers among its samples decide the model.")]
pub(crate) struct Outliers {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The share of the samples that are called outliers.
    #[arg(long, value_parser = share, value_name = "SHARE", default_value = "0.05", conflicts_with = "threshold")]
    contamination: f64,
    /// The log-likelihood below which a sample is an outlier, such as one that was found on other samples.
    #[arg(long, value_name = "LN P", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// The table to write, least likely first; stdout if not given, or -.
    #[arg(long, short, value_name = "OUTLIERS.csv")]
    output: Option<PathBuf>,
    /// Draw the outliers, least likely first, as a PNG.
    #[arg(long, value_name = "GRID.png")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Write one JSON object instead of CSV.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 0.5 => Ok(share),
        _ => Err("it must be a share above 0 and at most 0.5, such as 0.05".into()),
    }
}

impl Outliers {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let kind = if self.json { Kind::Json } else { Kind::Table };
        let target = Target::or_stdout(self.output.as_deref(), kind, &inputs, &self.overwrite)?;
        let picture = match &self.picture {
            Some(path) => {
                output::check_png(path, "--picture outliers.png")?;
                Some(Target::new(path, Kind::Picture, &inputs, &self.overwrite)?)
            }
            None => None,
        };
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let Scores { values: scores, order } = Scores::of(&seen, &self.device, quiet)?;
        let n = scores.len();
        let count = match self.threshold {
            Some(threshold) => order.partition_point(|&i| scores[i] < threshold),
            // Rounding must not decide about shares such as 0.1.
            None => (n as f64 * self.contamination * (1.0 + 1e-12)) as usize,
        };
        let threshold = self.threshold.unwrap_or_else(|| order.get(count).map_or(f64::NAN, |&i| scores[i]));
        let found = &order[..count];
        let text = if self.json {
            self.object(&seen, &scores, found, threshold)?
        } else {
            csv(&seen, &scores, found)
        };
        target.write_text(&text)?;
        let said = format!(
            "{} of {}, with ln p below {threshold:.4}",
            plural(count, "outlier"),
            plural(n, "sample")
        );
        output::say(quiet, &said);
        if !target.is_stdout() {
            target.say_wrote(quiet, "", "");
        }
        if let Some(picture) = picture.filter(|_| count > 0) {
            let grid = Grid { enlarge: 2, ..Grid::default() };
            let image = grid.draw_samples(&seen.data.samples, &found[..count.min(SHOWN)])?;
            let png = image.to_png()?;
            picture.write(|out| out.write_all(&png))?;
            picture.say_wrote(quiet, "", &format!(" ({}×{} pixels)", image.width, image.height));
        }
        Ok(())
    }

    fn object(&self, seen: &Seen, scores: &[f64], found: &[usize], threshold: f64) -> anyhow::Result<String> {
        let one = |&i: &usize| scored(seen, scores, i);
        output::json_text(&json!({
            "n_samples": scores.len(), "n_outliers": found.len(), "threshold": threshold,
            "outliers": found.iter().map(one).collect::<Vec<_>>(),
        }))
    }
}

fn csv(seen: &Seen, scores: &[f64], found: &[usize]) -> String {
    let labels = seen.data.labels.as_ref();
    let mut text = String::from("sample,");
    text.push_str(if seen.data.names.is_some() { "name," } else { "" });
    text.push_str(if labels.is_some() { "label," } else { "" });
    text.push_str("log_likelihood\n");
    for &i in found {
        let name = seen.name(i).map_or(String::new(), |name| field(name) + ",");
        let label = labels.map_or(String::new(), |labels| field(labels.name(i)) + ",");
        text.push_str(&format!("{i},{name}{label}{}\n", scores[i]));
    }
    text
}
