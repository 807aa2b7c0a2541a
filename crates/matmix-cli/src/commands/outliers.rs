//! `matmix outliers`: the samples a model finds least likely.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use matmix::picture::Grid;
use matmix::{FitOptions, Missing, Preset, Progress, detector_size};
use serde_json::json;

use super::score::{Scores, scored};
use crate::data_args::{DataOptions, Seen, is_model};
use crate::device_args::DeviceArgs;
use crate::error::hinted;
use crate::fit_args::{file_of, warn};
use crate::interrupt;
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::progress::{FitLine, working};
use crate::table::{field, plural};

/// Tiles of the picture, at most.
const SHOWN: usize = 100;

/// List the samples that a model finds least likely.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = "\
Examples:
  matmix outliers demo:mnist --contamination 0.02
  matmix outliers digits.mm demo:mnist --contamination 0.02
  matmix outliers parts.mm new/ --threshold -1200 -o outliers.csv --picture outliers.png

`matmix fit --model mixppca --noise t` fits a model with heavy tails, on which outliers among its samples have less influence.")]
pub(crate) struct Outliers {
    /// The model file; without it, a small mixture of PPCA is fitted to DATA.
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The share of the samples that are called outliers.
    #[arg(long, value_parser = share, value_name = "SHARE", default_value = "0.05", conflicts_with = "threshold")]
    contamination: f64,
    /// Largest score of an outlier, such as a threshold found on other samples. The score is ln p; of a sample with missing cells, that of a
    /// complete sample as far from the model.
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// The table to write, least likely first; stdout if not given, or -.
    #[arg(long, short, value_name = "OUTLIERS.csv")]
    output: Option<PathBuf>,
    /// Draw the outliers, least likely first, as a PNG.
    #[arg(long, value_name = "GRID.png")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Components of the mixture fitted without MODEL [default: 1 to 3, by held-out likelihood].
    #[arg(long, short = 'k', value_parser = at_least_one, allow_negative_numbers = true, value_name = "K", conflicts_with = "model", help_heading = "Fit")]
    components: Option<usize>,
    /// Factors of each component without MODEL [default: up to 32, by held-out likelihood].
    #[arg(long, short = 'r', value_parser = at_least_one, allow_negative_numbers = true, value_name = "R", conflicts_with = "model", help_heading = "Fit")]
    rank: Option<usize>,
    /// Seed of the fit without MODEL.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = FitOptions::default().seed, conflicts_with = "model", help_heading = "Fit")]
    seed: u64,
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

fn at_least_one(text: &str) -> Result<usize, String> {
    match whole::<usize>(text)? {
        0 => Err("it must be at least 1".into()),
        number => Ok(number),
    }
}

impl Outliers {
    /// The data as the model sees it: that of the file, or one that is fitted to the data.
    fn seen(&self, quiet: bool) -> anyhow::Result<Seen> {
        if let Some(model) = &self.model {
            return Seen::new(model, &self.data, &self.options);
        }
        if is_model(Path::new(&self.data)) {
            let message = format!("{} is a model, and no data were given", self.data);
            return Err(hinted(message, "matmix outliers MODEL DATA"));
        }
        let data = self.options.open(&self.data)?;
        let (samples, preset) = (&data.samples, Preset::MixPpca);
        let missing = self.options.reading.missing();
        let options = FitOptions { seed: self.seed, missing, ..FitOptions::default() };
        let view = preset.view(samples)?.with_missing(if missing == Missing::Nan {
            missing
        } else {
            samples.missing()
        });
        let backend = self.device.backend(samples, self.components.unwrap_or(1))?;
        let (components, factors) = {
            let _working = working(quiet, "choosing components and factors".into(), samples);
            let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
            detector_size(&*backend.over(&view)?, self.components, self.rank, &options, go_on)?
        };
        let options = FitOptions { components, rank: vec![factors], ..options };
        let mut line = FitLine::new(quiet, samples);
        let fit = preset.fit_by(&*backend, samples, &options, &mut |p| line.show(p));
        line.clear();
        let fit = fit?;
        interrupt::kept();
        warn(&fit.history, options.tol, quiet);
        let (components, factors) = (plural(components, "component"), plural(factors, "factor"));
        output::say(quiet, &format!("fitted a mixture of PPCA: {components} with {factors} each"));
        let file = file_of(&fit, self.options.remembered(&data, None)?, &options);
        let view = file.view(samples)?;
        Ok(Seen { file, data, view, rows_each: 1 })
    }

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
        let seen = self.seen(quiet)?;
        let Scores { log_likelihood, ranked_by: scores, order, note } =
            Scores::of(&seen, &self.device, quiet)?;
        if let Some(note) = note {
            output::say(quiet, &format!("note: {note}"));
        }
        let n = scores.len();
        let count = match self.threshold {
            Some(threshold) => order.partition_point(|&i| scores[i] < threshold),
            // Rounding must not decide about shares such as 0.1.
            None => (n as f64 * self.contamination * (1.0 + 1e-12)) as usize,
        };
        let threshold = self.threshold.unwrap_or_else(|| order.get(count).map_or(f64::NAN, |&i| scores[i]));
        let found = &order[..count];
        let text = if self.json {
            self.object(&seen, (&log_likelihood, &scores), found, threshold)?
        } else {
            csv(&seen, (&log_likelihood, &scores), found)
        };
        target.write_text(&text)?;
        let said = format!(
            "{} of {}, with a score below {threshold:.4}",
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

    fn object(
        &self,
        seen: &Seen,
        (log_likelihood, scores): (&[f64], &[f64]),
        found: &[usize],
        threshold: f64,
    ) -> anyhow::Result<String> {
        let one = |&i: &usize| scored(seen, log_likelihood, scores, i);
        output::json_text(&json!({
            "n_samples": scores.len(), "n_outliers": found.len(), "threshold": threshold,
            "outliers": found.iter().map(one).collect::<Vec<_>>(),
        }))
    }
}

fn csv(seen: &Seen, (log_likelihood, scores): (&[f64], &[f64]), found: &[usize]) -> String {
    let labels = seen.data.labels.as_ref();
    let mut text = String::from("sample,");
    text.push_str(if seen.data.names.is_some() { "name," } else { "" });
    text.push_str(if labels.is_some() { "label," } else { "" });
    text.push_str("log_likelihood,score\n");
    for &i in found {
        let name = seen.name(i).map_or(String::new(), |name| field(name) + ",");
        let label = labels.map_or(String::new(), |labels| field(labels.name(i)) + ",");
        text.push_str(&format!("{i},{name}{label}{},{}\n", log_likelihood[i], scores[i]));
    }
    text
}
