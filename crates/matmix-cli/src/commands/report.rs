//! `matmix report`: see the model in a browser.

use std::path::{Path, PathBuf};

use matmix::data::Labels;
use matmix::report::{Axis, Colours, Confusion, ReportOptions, html};
use matmix::{Distance, Recognizer};

use crate::data_args::{DataOptions, Seen};
use crate::error::hinted;
use crate::kind::Kind;
use crate::output::{Overwrite, Target};
use crate::progress::working;
use crate::table::plural;

/// Write one HTML file that shows a model and what it makes of samples; it opens in any browser, offline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix report digits.mm demo:mnist -o report.html
  matmix report eeg.mm windows.npy --axes 'channel, time (s)' --values 'amplitude (µV)'")]
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
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["auto", "grey", "sequential", "diverging"]), default_value = "auto")]
    colours: String,
    /// The names of the modes, such as "frequency (Hz), time (s)".
    #[arg(long, value_name = "NAME (UNIT), …")]
    axes: Option<String>,
    /// What the values are, such as "amplitude (µV)".
    #[arg(long, value_name = "NAME (UNIT)")]
    values: Option<String>,
    /// Add a recognition experiment: half of the samples of each label are the gallery, the others the probes.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["paper", "weighted", "fisher"]), value_name = "DISTANCE")]
    recognize: Option<String>,
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
        let labels = seen.data.labels.clone().filter(|_| seen.parts == 1);
        let mut options = ReportOptions {
            title: self.title.clone().unwrap_or_default(),
            data: short(&seen.data.name),
            colours: match self.colours.as_str() {
                "grey" => Colours::Grey,
                "sequential" => Colours::Sequential,
                "diverging" => Colours::Diverging,
                _ => Colours::Auto,
            },
            axes: self.axes.as_deref().map_or(vec![], |text| text.split(',').map(axis).collect()),
            value: self.values.as_deref().map(axis).unwrap_or_default(),
            ..ReportOptions::from_file(&seen.file)
        };
        if let Some(distance) = &self.recognize {
            let Some(labels) = &labels else {
                let message = format!("{}: without labels there is nothing to recognise", seen.data.name);
                return Err(hinted(message, "give them with --labels FILE"));
            };
            options.recognition = Some(recognition(&seen, labels, distance.parse()?)?);
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

/// `frequency (Hz)`: a name and, in brackets, a unit.
fn axis(text: &str) -> Axis {
    let text = text.trim();
    let (name, unit) = match text.strip_suffix(')').and_then(|t| t.rsplit_once('(')) {
        Some((name, unit)) => (name.trim(), unit.trim()),
        None => (text, ""),
    };
    Axis { name: name.into(), unit: unit.into(), ..Axis::default() }
}

/// Every other sample of each label recognised among the rest.
fn recognition(seen: &Seen, labels: &Labels, distance: Distance) -> anyhow::Result<Confusion> {
    let mut met = vec![0usize; labels.names.len()];
    let (mut gallery, mut probes) = (Vec::new(), Vec::new());
    for (n, &class) in labels.index.iter().enumerate() {
        if met[class].is_multiple_of(2) {
            gallery.push(n)
        } else {
            probes.push(n)
        }
        met[class] += 1;
    }
    let classes = |chosen: &[usize]| chosen.iter().map(|&n| labels.index[n]).collect::<Vec<_>>();
    let known = seen.view.clone().select(&gallery)?;
    let recognizer = Recognizer::new(&seen.file.model, &known, &classes(&gallery), distance)?;
    let found = recognizer.evaluate(&seen.view.clone().select(&probes)?, &classes(&probes))?;
    Ok(Confusion::new(distance.name(), labels, &found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_in_brackets() {
        let a = axis(" frequency (Hz) ");
        assert_eq!((a.name.as_str(), a.unit.as_str()), ("frequency", "Hz"));
        let a = axis("channel");
        assert_eq!((a.name.as_str(), a.unit.as_str()), ("channel", ""));
    }
}
