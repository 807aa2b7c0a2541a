//! `matmix classify`: the class of every sample, by a model that was fitted with labels.

use std::path::PathBuf;

use matmix::data::{DataSet, KnownLabels, Samples};
use serde_json::{Value, json};

use super::assign;
use crate::data_args::{DataOptions, Seen};
use crate::device_args::DeviceArgs;
use crate::error::hinted;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{Rows, field, plural};
use crate::verdict::Verdict;

/// Find the class of every sample, and how probable it is.
///
/// The model is one of `matmix fit --supervised`. With labels (those of the data, or --labels) the accuracy and the confused classes are
/// printed; labels that are empty, NaN or --unlabeled are unknown and do not count.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In CSV, a label that a spreadsheet would take for a formula gets an apostrophe in front of it; with --json
labels are what they are.

Examples:
  matmix fit known/ --supervised -k 2 -r 8x8 -o classes.mm
  matmix classify classes.mm new/ -o found.csv
  matmix classify classes.mm test.npy --labels test.txt")]
pub(crate) struct Classify {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// A CSV file for the class of every sample; - is stdout, as if nothing is given and there are no labels.
    #[arg(long, short, value_name = "FOUND.csv")]
    output: Option<PathBuf>,
    /// A .npy or .csv file for the probabilities of all classes, one row per sample.
    #[arg(long, value_name = "P.npy|P.csv")]
    probabilities: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The label of samples whose class is not known, such as -1.
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    unlabeled: Option<String>,
    /// Print one JSON object with the class of every sample.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

impl Classify {
    pub(crate) fn run(mut self, quiet: bool) -> anyhow::Result<()> {
        self.options.reading.gaps = true;
        let inputs = self.options.inputs(&self.data);
        let target = Target::or_stdout(self.output.as_deref(), Kind::Table, &inputs, &self.overwrite)?;
        target.beside_json(self.json && self.output.is_some(), "FOUND.csv")?;
        let second = match &self.probabilities {
            Some(path) => Some(Target::numbers(path, &inputs, &self.overwrite)?),
            None => None,
        };
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("classes")?;
        let Some(classes) = mixture.classes() else {
            let message = format!(
                "{}: this model was fitted without labels and knows no classes",
                self.model.display()
            );
            return Err(hinted(message, "`matmix fit DATA --supervised -o MODEL` fits one that does"));
        };
        let names = classes.names();
        let n = seen.data.samples.len();
        let spinner = working(quiet, format!("classifying {}", plural(n, "sample")), &seen.data.samples);
        let backend = self.device.backend(&seen.view, mixture.n_components())?;
        let engine = backend.over(&seen.view)?;
        let all = mixture.class_probabilities(&*engine)?;
        drop(spinner);
        let found: Vec<(&str, f64)> = all
            .chunks_exact(names.len())
            .map(|p| {
                let best = assign::best(p);
                (names[best].as_str(), p[best])
            })
            .collect();
        if let Some(second) = &second {
            let columns = names.iter().map(|name| field(&format!("probability_{name}"))).collect();
            second.write_rows(&[n, names.len()], &Rows::of_samples(&seen, columns), |put| {
                put(&all);
                Ok(())
            })?;
            second.say_wrote(quiet, "", "");
        }
        let known = known(&seen.data, self.unlabeled.as_deref());
        let verdict = known.as_ref().map(|known| Verdict {
            names: &known.names,
            pairs: (0..n).filter_map(|i| Some((known.name(i)?, found[i].0))).collect(),
            words: ("sample", "right"),
        });
        if self.output.is_some() || (verdict.is_none() && !self.json) {
            target.write_text(&csv(&seen, known.as_ref(), &found))?;
            if !target.is_stdout() {
                target.say_wrote(quiet, "", "");
            }
        }
        if self.json {
            return output::json(&object(&seen, known.as_ref(), names, &found, verdict.as_ref()));
        }
        match verdict {
            Some(verdict) if self.output.is_some() && target.is_stdout() => {
                output::say(quiet, verdict.text().trim_end());
                Ok(())
            }
            Some(verdict) => output::result(&verdict.text()),
            None => Ok(()),
        }
    }
}

fn csv(seen: &Seen, known: Option<&KnownLabels>, found: &[(&str, f64)]) -> String {
    let mut text = String::from("sample,");
    for (column, there) in [("name,", seen.data.names.is_some()), ("label,", known.is_some())] {
        text.push_str(if there { column } else { "" });
    }
    text.push_str("class,probability\n");
    for (i, (class, probability)) in found.iter().enumerate() {
        let name = seen.name(i).map_or(String::new(), |name| field(name) + ",");
        let label = known.map_or(String::new(), |known| field(known.name(i).unwrap_or_default()) + ",");
        text.push_str(&format!("{i},{name}{label}{},{probability:.6}\n", field(class)));
    }
    text
}

fn object(
    seen: &Seen,
    known: Option<&KnownLabels>,
    names: &[String],
    found: &[(&str, f64)],
    verdict: Option<&Verdict<'_>>,
) -> Value {
    let one = |(i, (class, probability)): (usize, &(&str, f64))| {
        let mut one = json!({ "sample": i, "class": class, "probability": probability });
        if let Some(name) = seen.name(i) {
            one["name"] = name.into();
        }
        if let Some(known) = known {
            one["label"] = known.name(i).into();
        }
        one
    };
    let samples: Vec<Value> = found.iter().enumerate().map(one).collect();
    let mut all = json!({ "n_samples": found.len(), "classes": names, "samples": samples });
    if let Some(verdict) = verdict {
        all["accuracy"] = verdict.accuracy().into();
        all["right"] = verdict.hits().into();
        all["labelled"] = verdict.pairs.len().into();
    }
    all
}

/// The labels of a set that are known, if any is; those that are `unlabeled` are not.
fn known(data: &DataSet, unlabeled: Option<&str>) -> Option<KnownLabels> {
    let labels = data.labels.clone()?;
    Some(KnownLabels::without(labels, unlabeled)).filter(|known| known.n_known() > 0)
}

/// The samples of a set with what is known of their classes, and the names of these.
pub(super) fn labeled(
    data: &DataSet,
    unlabeled: Option<&str>,
    quiet: bool,
) -> anyhow::Result<(Samples<'static>, Vec<String>)> {
    let Some(known) = known(data, unlabeled) else {
        let message = format!("{}: no label is known, and --supervised needs some of every class", data.name);
        return Err(hinted(
            message,
            "give them with --labels FILE; lines that are empty, NaN or --unlabeled are not known",
        ));
    };
    if let [only] = &known.names[..] {
        output::say(quiet, &format!("note: the one class is {only}; every sample will be found to be of it"));
    }
    Ok((data.samples.clone().with_classes(known.index)?, known.names))
}
