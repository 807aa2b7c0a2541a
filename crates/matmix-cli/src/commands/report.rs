//! `matmix report`: see the model in a browser.

use std::path::{Path, PathBuf};

use matmix::report::{Axis, Colours, HeldOut, ReportOptions, html, recognise};
use matmix::{Distance, Samples};

use crate::data_args::{DataOptions, Seen, view};
use crate::error::hinted;
use crate::fit_args::choice;
use crate::kind::Kind;
use crate::output::{Overwrite, Target};
use crate::progress::working;
use crate::table::plural;

/// Write one HTML file that shows a model and what it makes of samples; it opens in any browser, offline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix report digits.mm demo:mnist -o report.html
  matmix report digits.mm train.npy --held-out test.npy
  matmix report eeg.mm windows.npy --axes 'channel, time (s)=0:2.5' --values 'amplitude (µV)'")]
pub(crate) struct Report {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples: those of the fit, or new ones.
    #[arg(value_name = "DATA")]
    data: String,
    /// The page to write; - is stdout.
    #[arg(long, short, value_name = "REPORT.html", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The heading; the name of the data if not given.
    #[arg(long)]
    title: Option<String>,
    /// How values become colours.
    #[arg(long, value_parser = choice(Colours::ALL), default_value_t)]
    colours: Colours,
    /// The names of the modes, and the coordinates of their ends, such as "frequency (Hz)=0:500, time (s)=0:2.5".
    #[arg(long, value_name = "NAME (UNIT)=FROM:TO, …")]
    axes: Option<String>,
    /// What the values are, such as "amplitude (µV)".
    #[arg(long, value_name = "NAME (UNIT)")]
    values: Option<String>,
    /// Add a recognition experiment: half of the samples of each label are the gallery, the others the probes.
    #[arg(long, value_parser = choice(Distance::ALL), value_name = "DISTANCE")]
    recognize: Option<Distance>,
    /// Samples that the model was not fitted to: the summary tells how well it does on them.
    #[arg(long, value_name = "DATA")]
    held_out: Option<String>,
    #[command(flatten)]
    options: DataOptions,
}

impl Report {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let target = Target::new(&self.output, Kind::Page, &inputs, &self.overwrite)?;
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("report")?;
        let spinner = working(quiet, format!("looking at {}", plural(seen.view.len(), "sample")), &seen.view);
        // The rows of a sample are samples of their own here, and have no labels.
        let labels = seen.data.labels.clone().filter(|_| seen.rows_each == 1);
        let mut options = ReportOptions {
            title: self.title.clone().unwrap_or_default(),
            data: short(&seen.data.name),
            colours: self.colours,
            axes: self.axes.as_deref().map_or(Ok(vec![]), |text| axes(text, &seen.view))?,
            value: self.values.as_deref().map_or(Ok(Axis::default()), |text| Axis::parse(text, 1))?,
            names: seen.data.names.clone().filter(|_| seen.rows_each == 1).unwrap_or_default(),
            ..ReportOptions::from_file(&seen.file)
        };
        if let Some(distance) = self.recognize {
            let Some(labels) = &labels else {
                let message = format!("{}: without labels there is nothing to recognise", seen.data.name);
                return Err(hinted(message, "give them with --labels FILE"));
            };
            options.recognition = Some(recognise(&seen.file.model, &seen.view, labels, distance)?);
        }
        if let Some(held_out) = &self.held_out {
            // Labels and a choice of samples are those of the other data.
            let data = self.options.reading.open_for(&seen.file, held_out, None, None)?;
            options.held_out = Some(HeldOut::new(mixture, &view(&seen.file, &self.model, &data)?)?);
        }
        options.labels = labels;
        let page = html(mixture, &seen.view, &options)?;
        drop(spinner);
        target.write_text(&page)?;
        target.say_wrote(quiet, "", "; open it in a browser");
        Ok(())
    }
}

/// The last part of a path: a page that is handed on need not tell where its data lay.
fn short(name: &str) -> String {
    let last = Path::new(name).file_name().map(|last| last.to_string_lossy().into_owned());
    last.filter(|_| Path::new(name).is_absolute()).unwrap_or_else(|| name.to_owned())
}

/// One axis per mode, as far as they are given: the page's own check counts them.
fn axes(text: &str, samples: &Samples<'_>) -> matmix::Result<Vec<Axis>> {
    let sides = samples.shape().iter().copied().chain(std::iter::repeat(1));
    text.split(',').zip(sides).map(|(axis, side)| Axis::parse(axis, side)).collect()
}
