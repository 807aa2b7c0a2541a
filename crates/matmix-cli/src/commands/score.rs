//! `matmix score`: how likely samples are.

use std::path::PathBuf;

use matmix::{History, Missing};
use serde_json::{Value, json};

use crate::data_args::{DataOptions, Seen};
use crate::device_args::DeviceArgs;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{Rows, Table, plural};

/// The log-likelihood of every sample; the least likely ones are those a model has not seen the like of.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix score digits.mm demo:mnist --worst 10
  matmix score digits.mm new.npy -o scores.npy --json")]
pub(crate) struct Score {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// A .npy or .csv file for the log-likelihood of every sample; - is an array on stdout.
    #[arg(long, short, value_name = "S.npy|S.csv")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// List the N least likely samples; those with missing cells by the score that compares with ln p of complete ones.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    worst: Option<usize>,
    /// Print one JSON object with the log-likelihood of every sample.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

impl Score {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let target = match &self.output {
            Some(path) => Some(Target::numbers(path, &inputs, &self.overwrite)?),
            None => None,
        };
        let on_stdout = target.as_ref().is_some_and(Target::is_stdout);
        target.iter().try_for_each(|target| target.beside_json(self.json, "S.npy"))?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let Scores { log_likelihood: scores, ranked_by, order, note } =
            Scores::of(&seen, &self.device, quiet)?;
        let n = scores.len();
        if let Some(target) = &target {
            let rows = Rows::of_samples(&seen, vec!["log_likelihood".into()]);
            target.write_rows(&[n], &rows, |put| {
                put(&scores);
                Ok(())
            })?;
            target.say_wrote(quiet, "", "");
        }
        let worst = self.worst.map(|worst| &order[..worst.min(n)]);
        if let (Some(_), Some(note)) = (worst, note) {
            output::say(quiet, &format!("note: {note}"));
        }
        let mean = scores.iter().sum::<f64>() / n as f64;
        if self.json {
            return output::json(&object(&seen, (&scores, &ranked_by), mean, worst));
        }
        let text = words(&seen, (&scores, &ranked_by), mean, worst);
        if on_stdout {
            output::say(quiet, text.trim_end());
            return Ok(());
        }
        output::result(&text)
    }
}

/// Log-likelihood and score of every sample, and the order of the samples by score, outliers first.
pub(crate) struct Scores {
    pub(crate) log_likelihood: Vec<f64>,
    /// ln p of complete samples, and what compares with it of others.
    pub(crate) ranked_by: Vec<f64>,
    pub(crate) order: Vec<usize>,
    /// Warning about components left out of the scores.
    pub(crate) note: Option<String>,
}

impl Scores {
    pub(crate) fn of(seen: &Seen, device: &DeviceArgs, quiet: bool) -> anyhow::Result<Self> {
        let mixture = seen.mixture("likelihood")?;
        let n = seen.data.samples.len();
        let _working = working(quiet, format!("scoring {}", plural(n, "sample")), &seen.data.samples);
        let backend = device.backend(&seen.view, mixture.n_components())?;
        let engine = backend.over(&seen.view)?;
        // The rows of a sample are independent in a model of rows: their log-likelihoods add up.
        let total = |rows: Vec<f64>| -> Vec<f64> {
            rows.chunks_exact(seen.rows_each).map(|rows| rows.iter().sum()).collect()
        };
        let log_likelihood = total(mixture.score_samples(&*engine)?);
        let supported = mixture.supported(seen.file.history.as_ref().unwrap_or(&History::default()));
        // Of complete samples both are the same: no second pass.
        let ranked_by = if seen.view.missing() == Missing::Nan || supported.is_reduced {
            total(supported.model.typicality(&*engine)?)
        } else {
            log_likelihood.clone()
        };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| ranked_by[a].total_cmp(&ranked_by[b]).then(a.cmp(&b)));
        Ok(Self { log_likelihood, ranked_by, order, note: supported.in_words() })
    }
}

/// One sample with its score, for JSON.
pub(crate) fn scored(seen: &Seen, scores: &[f64], ranked_by: &[f64], i: usize) -> Value {
    let mut one = json!({ "sample": i, "log_likelihood": scores[i], "score": ranked_by[i] });
    if let Some(labels) = &seen.data.labels {
        one["label"] = labels.name(i).into();
    }
    if let Some(name) = seen.name(i) {
        one["name"] = name.into();
    }
    one
}

fn words(seen: &Seen, (scores, ranked_by): (&[f64], &[f64]), mean: f64, worst: Option<&[usize]>) -> String {
    let mut text = format!("mean log-likelihood {mean:.4} over {}\n", plural(scores.len(), "sample"));
    if let Some(worst) = worst {
        let mut head = vec!["sample", "log-likelihood"];
        // Of complete samples both are the same.
        let both = scores != ranked_by;
        head.extend(both.then_some("score"));
        if seen.data.labels.is_some() {
            head.insert(1, "label");
        }
        if seen.data.names.is_some() {
            head.insert(1, "name");
        }
        let mut table = Table::new(head);
        for &i in worst {
            let mut row = vec![i.to_string(), format!("{:.4}", scores[i])];
            row.extend(both.then(|| format!("{:.4}", ranked_by[i])));
            if let Some(labels) = &seen.data.labels {
                row.insert(1, labels.name(i).to_string());
            }
            if let Some(name) = seen.name(i) {
                row.insert(1, name.to_string());
            }
            table.row(row);
        }
        text.push_str(&format!("\n{table}"));
    }
    text
}

fn object(seen: &Seen, (scores, ranked_by): (&[f64], &[f64]), mean: f64, worst: Option<&[usize]>) -> Value {
    let mut all = json!({
        "n_samples": scores.len(), "mean_log_likelihood": mean, "log_likelihood": scores,
    });
    if let Some(names) = &seen.data.names {
        all["names"] = names.iter().map(String::as_str).collect();
    }
    if let Some(worst) = worst {
        let one = |&i: &usize| scored(seen, scores, ranked_by, i);
        all["worst"] = worst.iter().map(one).collect();
    }
    all
}
