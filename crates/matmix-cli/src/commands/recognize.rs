//! `matmix recognize`: whose face is it?

use std::ops::Range;
use std::path::PathBuf;

use matmix::data::{DataSet, files_of};
use matmix::{Distance, ModelFile, Recognizer};
use serde_json::json;

use crate::data_args::{self, Reading, load_model, range};
use crate::error::hinted;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{Table, field, plural};

/// Find for every probe the nearest sample of a gallery, in the space of the cores.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix recognize faces.mm --gallery known/ --probe new/ -o found.csv
  matmix recognize faces.mm --gallery a.npy --gallery-labels a.txt --probe b.npy --distance fisher")]
pub(crate) struct Recognize {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples whose labels are known.
    #[arg(long, value_name = "DATA")]
    gallery: String,
    /// The samples to recognise.
    #[arg(long, value_name = "DATA")]
    probe: String,
    /// paper: the sum over all components; weighted: by the responsibilities; fisher: a discriminant learned on the
    /// gallery.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["paper", "weighted", "fisher"]), default_value = "paper")]
    distance: String,
    /// The labels of the gallery: text lines, .npy or IDX.
    #[arg(long, value_name = "FILE")]
    gallery_labels: Option<PathBuf>,
    /// The labels of the probes.
    #[arg(long, value_name = "FILE")]
    probe_labels: Option<PathBuf>,
    /// Take only these samples of the gallery.
    #[arg(long, value_parser = range, value_name = "0:500")]
    gallery_take: Option<Range<usize>>,
    /// Take only these samples of the probes.
    #[arg(long, value_parser = range, value_name = "500:")]
    probe_take: Option<Range<usize>>,
    /// A CSV file for what was found for every probe; - is stdout.
    #[arg(long, short, value_name = "FOUND.csv")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Print the accuracy as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Recognize {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs: Vec<PathBuf> = [files_of(&self.gallery), files_of(&self.probe)]
            .into_iter()
            .flatten()
            .chain(self.gallery_labels.clone())
            .chain(self.probe_labels.clone())
            .collect();
        let target = Target::or_stdout(self.output.as_deref(), Kind::Table, &inputs, &self.overwrite)?;
        if self.json && self.output.is_some() && target.is_stdout() {
            let message = "-o - cannot be used together with --json";
            return Err(hinted(message, "one of them can be on stdout: -o FOUND.csv --json"));
        }
        let file = load_model(&self.model)?;
        let open = |spec: &str, labels: &Option<PathBuf>, take| {
            self.reading.open_for(&file, spec, labels.as_deref(), take)
        };
        let gallery = open(&self.gallery, &self.gallery_labels, self.gallery_take.as_ref())?;
        let probe = open(&self.probe, &self.probe_labels, self.probe_take.as_ref())?;
        let known = gallery.labels.clone().ok_or_else(|| {
            hinted(
                format!("{}: the gallery has no labels", gallery.name),
                "give them with --gallery-labels FILE",
            )
        })?;
        let (g, p) = (self.view(&file, &gallery)?, self.view(&file, &probe)?);
        let spinner =
            working(quiet, format!("comparing {}", plural(probe.samples.len(), "probe")), &probe.samples);
        let distance: Distance = self.distance.parse()?;
        let nearest = Recognizer::new(&file.model, &g, &known.index, distance)?.neighbours(&p, 1)?;
        drop(spinner);
        let found: Vec<&str> = nearest.iter().map(|n| known.names[n[0].class].as_str()).collect();
        let mut csv = String::from("probe,");
        let name =
            |data: &DataSet, i: usize| data.names.as_ref().map_or(String::new(), |n| field(&n[i]) + ",");
        for (column, there) in [("name,", probe.names.is_some()), ("label,", probe.labels.is_some())] {
            csv.push_str(if there { column } else { "" });
        }
        csv.push_str("found,neighbour,");
        csv.push_str(if gallery.names.is_some() { "neighbour_name,distance\n" } else { "distance\n" });
        for (i, n) in nearest.iter().enumerate() {
            let label = probe.labels.as_ref().map_or(String::new(), |l| field(l.name(i)) + ",");
            let (own, other) = (name(&probe, i), name(&gallery, n[0].index));
            let (found, at, distance) = (field(found[i]), n[0].index, n[0].distance);
            csv.push_str(&format!("{i},{own}{label}{found},{at},{other}{distance:.6}\n"));
        }
        let Some(labels) = &probe.labels else {
            return target.write_text(&csv);
        };
        if self.output.is_some() {
            target.write_text(&csv)?;
            target.say_wrote(quiet, "", "");
        }
        let right = |i: usize| labels.name(i) == found[i];
        let n = labels.len();
        let hits = (0..n).filter(|&i| right(i)).count();
        let accuracy = hits as f64 / n as f64;
        if self.json {
            return output::json(&json!({
                "accuracy": accuracy, "recognised": hits, "probes": n, "gallery": gallery.samples.len(),
                "distance": self.distance,
            }));
        }
        let mut text = format!("accuracy {accuracy:.4}: {hits} of {} recognised\n", plural(n, "probe"));
        if labels.names.len() <= 40 {
            let mut table = Table::new(["label", "probes", "recognised"]);
            for (class, name) in labels.names.iter().enumerate() {
                let of: Vec<usize> = (0..n).filter(|&i| labels.index[i] == class).collect();
                let hits = of.iter().filter(|&&i| right(i)).count();
                table.row([name.clone(), of.len().to_string(), hits.to_string()]);
            }
            text.push_str(&format!("\n{table}"));
        }
        if self.output.is_some() && target.is_stdout() {
            output::say(quiet, text.trim_end());
            return Ok(());
        }
        output::result(&text)
    }

    /// The samples as the model sees them, if it sees each of them as one.
    fn view(&self, file: &ModelFile, data: &DataSet) -> anyhow::Result<matmix::Samples<'static>> {
        let view = data_args::view(file, &self.model, data)?;
        if view.len() != data.samples.len() {
            let message = "a model of rows has no core for a whole sample, so that none can be recognised";
            return Err(hinted(message, "fit --model mixb2dppca or mixppca for recognition"));
        }
        Ok(view)
    }
}
