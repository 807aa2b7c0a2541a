//! `matmix assign`: which component each sample belongs to.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::data_args::{DataOptions, Seen};
use crate::device_args::DeviceArgs;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{field, plural};

/// Write the most probable component and all responsibilities of every sample as CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In CSV, a label that a spreadsheet would take for a formula gets an apostrophe in front of it; with --json
labels are what they are.

Examples:
  matmix assign digits.mm demo:mnist -o components.csv
  matmix assign digits.mm demo:mnist --limit 5 --json")]
pub(crate) struct Assign {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The file to write; stdout if not given, or -.
    #[arg(long, short, value_name = "A.csv")]
    output: Option<PathBuf>,
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

impl Assign {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let kind = if self.json { Kind::Json } else { Kind::Table };
        let inputs = self.options.inputs(&self.data);
        let target = Target::or_stdout(self.output.as_deref(), kind, &inputs, &self.overwrite)?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("responsibilities")?;
        let spinner = working(
            quiet,
            format!("assigning {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        let k = mixture.n_components();
        let backend = self.device.backend(&seen.view, k)?;
        let gamma = mixture.responsibilities(&*backend.over(&seen.view)?)?;
        drop(spinner);
        let text =
            if self.json { output::json_text(&object(&seen, &gamma, k))? } else { csv(&seen, &gamma, k) };
        target.write_text(&text)?;
        if !target.is_stdout() {
            target.say_wrote(quiet, "", "");
        }
        Ok(())
    }
}

/// The most probable component or class: the first of equals, as the library decides it.
pub(crate) fn best(gamma: &[f64]) -> usize {
    (0..gamma.len()).fold(0, |best, j| if gamma[j] > gamma[best] { j } else { best })
}

pub(crate) fn csv(seen: &Seen, gamma: &[f64], k: usize) -> String {
    let labels = seen.data.labels.as_ref();
    let mut text = String::from("sample");
    if seen.rows_each > 1 {
        text.push_str(",row");
    }
    if seen.data.names.is_some() {
        text.push_str(",name");
    }
    if labels.is_some() {
        text.push_str(",label");
    }
    text.push_str(",component");
    (0..k).for_each(|j| text.push_str(&format!(",responsibility_{j}")));
    text.push('\n');
    for (n, row) in gamma.chunks_exact(k).enumerate() {
        let sample = n / seen.rows_each;
        text.push_str(&sample.to_string());
        if seen.rows_each > 1 {
            text.push_str(&format!(",{}", n % seen.rows_each));
        }
        if let Some(name) = seen.name(sample) {
            text.push_str(&format!(",{}", field(name)));
        }
        if let Some(labels) = labels {
            text.push_str(&format!(",{}", field(labels.name(sample))));
        }
        text.push_str(&format!(",{}", best(row)));
        row.iter().for_each(|g| text.push_str(&format!(",{g:.6}")));
        text.push('\n');
    }
    text
}

pub(crate) fn object(seen: &Seen, gamma: &[f64], k: usize) -> Value {
    let one = |(n, row): (usize, &[f64])| {
        let sample = n / seen.rows_each;
        let mut one = json!({ "sample": sample, "component": best(row), "responsibilities": row });
        if seen.rows_each > 1 {
            one["row"] = (n % seen.rows_each).into();
        }
        if let Some(name) = seen.name(sample) {
            one["name"] = name.into();
        }
        if let Some(labels) = &seen.data.labels {
            one["label"] = labels.name(sample).into();
        }
        one
    };
    let samples: Vec<Value> = gamma.chunks_exact(k).enumerate().map(one).collect();
    json!({ "n_samples": seen.data.samples.len(), "n_components": k, "samples": samples })
}
