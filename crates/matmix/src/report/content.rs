//! The data contract between the library and the page: everything the report shows, as plain values.
//!
//! [`Content`] is written into the page as JSON. The template renders its text and tables, so that the report can be
//! read without a script; `report.js` draws its pictures and charts. Positions (`typical`, `outliers`, …) point into
//! [`StoredSamples`], never into the user's data; `index` there leads back to the data.
//!
//! Not part of the interface but for what [`ReportOptions`](super::ReportOptions) is made of: public for the tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::agreement::Agreement;
use super::held_out::HeldOut;
use super::options::Colours;
use super::recognition::Confusion;
use super::words::{duration, grouped, short, with_digits};
use crate::error::{Error, Result, sides};

/// Everything one report shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Content {
    /// The heading of the page.
    pub title: String,
    /// What was fitted to what, and how well.
    pub summary: Summary,
    /// What a careful reader should know before believing the figures; whole sentences.
    pub warnings: Vec<String>,
    /// How a sample becomes a picture.
    pub view: View,
    /// One entry per iteration.
    pub history: Vec<Step>,
    /// What components and ranks were chosen from, where they were.
    pub chosen: Option<Chosen>,
    /// The components of the mixture.
    pub components: Vec<Component>,
    /// The samples that travel with the page.
    pub samples: StoredSamples,
    /// Positions of a spread of samples, from the best reconstructed to the worst.
    pub reconstructions: Vec<usize>,
    /// Positions of the least likely samples, the least likely first.
    pub outliers: Vec<usize>,
    /// The log-likelihoods of ALL samples, counted.
    pub histogram: Histogram,
    /// What the two axes of the map are.
    pub map: Map,
    /// Components against labels, where labels were given.
    pub agreement: Option<Agreement>,
    /// The recognition experiment, where it was asked for.
    pub recognition: Option<Confusion>,
    /// What was missing and what the model fills in, where cells are missing.
    pub missing: Option<MissingCells>,
}

/// What was missing of the samples, and what the model fills in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissingCells {
    /// How many cells are missing, of all samples.
    pub cells: usize,
    /// Of how many.
    pub of: usize,
    /// How many samples lack at least one.
    pub samples: usize,
    /// How many samples have none.
    pub empty: usize,
    /// How many cells no sample has.
    pub never: usize,
    /// Where the first of those are.
    pub never_named: Vec<String>,
    /// The share of the samples that lack each cell, in the page's shape.
    pub share: Floats,
    /// The samples with most missing cells, the worst first.
    pub lacking: Vec<Lacking>,
    /// Of how many of the samples that are shown filled in a large region is missing, so that observed cells were trusted less.
    pub tempered: usize,
    /// Some samples filled in, from those with the fewest missing cells to those with the most.
    pub filled: Vec<Filled>,
}

impl MissingCells {
    pub(crate) fn in_words(&self) -> String {
        let share = short(100.0 * self.cells as f64 / self.of as f64);
        format!(
            "{} of {} ({share} %), in {} samples",
            grouped(self.cells),
            grouped(self.of),
            grouped(self.samples)
        )
    }
}

/// A sample with many missing cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lacking {
    /// Its position on the page.
    pub sample: usize,
    /// Where it is in the user's data.
    pub index: usize,
    /// What it is called, where samples have names. Not trusted.
    pub name: String,
    /// How many of its cells are missing.
    pub missing: usize,
}

/// A sample whose missing cells were filled in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filled {
    /// Its position on the page.
    pub sample: usize,
    /// Observed cells as they were, the others by their conditional means; in the page's shape.
    pub values: Floats,
    /// The standard deviation of each cell given the observed ones; 0 where it was observed.
    pub deviations: Floats,
}

/// The head of the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The name of the data: a file name, or what the caller says.
    pub data: String,
    /// The number of samples.
    pub samples: usize,
    /// The shape of one sample.
    pub shape: Vec<usize>,
    /// The element type the samples are stored in.
    pub element: String,
    /// The published name of the model, `mixB2DPPCA` say.
    pub model: String,
    /// K.
    pub components: usize,
    /// The ranks, one per mode.
    pub ranks: Vec<usize>,
    /// Numbers in the data over numbers in the model and the cores.
    pub compression_ratio: f64,
    /// The number of free parameters.
    pub free_parameters: usize,
    /// Σ ln p(X_n).
    pub log_likelihood: f64,
    /// e = √(Σ‖X − X̂‖²/N), the error of the paper.
    pub reconstruction_error: f64,
    /// The share of the variance that is explained: 1 − Σ‖X − X̂‖²/Σ‖X − M‖², M being the mean of all samples.
    pub explained: f64,
    /// Bayesian information criterion; smaller is better.
    pub bic: f64,
    /// Iterations of the fit by the share of the samples they saw, where known.
    pub stages: Option<Vec<(f64, usize)>>,
    /// What a search for the start did, in words, if there was one.
    pub search: Option<String>,
    /// Passes over all samples, where known: one over a part counts as its share.
    pub passes: Option<f64>,
    /// Samples read per second of the fit, where known.
    pub samples_per_second: Option<f64>,
    /// Why the fit stopped, in words, where known.
    pub stop_reason: Option<String>,
    /// The fit's wall time, where known.
    pub seconds: Option<f64>,
    /// The seed, where known.
    pub seed: Option<u64>,
    /// The version of matmix that wrote the report.
    pub version: String,
    /// Further facts: the metadata of the model file. Neither side is trusted.
    pub metadata: Vec<(String, String)>,
    /// How well the model does on samples it was not fitted to, where they were given.
    pub held_out: Option<HeldOut>,
    /// How many cells were missing, in words, where any was.
    pub missing: Option<String>,
}

/// One line of the summary table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value, as people read it.
    pub value: String,
}

impl Summary {
    /// The summary as lines of a table.
    pub fn facts(&self) -> Vec<Fact> {
        let unknown = || "not recorded".to_owned();
        let cores = sides(&self.ranks);
        let fitted = [
            ("Data", self.data.clone()),
            ("Samples", format!("{} of {} ({})", grouped(self.samples), sides(&self.shape), self.element)),
            ("Model", self.model.clone()),
            ("Components (K)", self.components.to_string()),
            ("Ranks", if self.ranks.len() == 1 { cores } else { format!("{cores} cores") }),
            ("Compression", format!("{} : 1", short(self.compression_ratio))),
            ("Free parameters", grouped(self.free_parameters)),
            ("Log-likelihood", with_digits(self.log_likelihood)),
            ("… per sample", with_digits(self.log_likelihood / self.samples.max(1) as f64)),
            (
                "Reconstruction error",
                format!(
                    "{} ({} % of the variance explained)",
                    short(self.reconstruction_error),
                    short(100.0 * self.explained)
                ),
            ),
            ("BIC", with_digits(self.bic)),
        ];
        let missing = self.missing.clone().map(|text| ("Missing cells", text));
        let held_out = self.held_out.as_ref().map(|held_out| ("Held out", held_out.in_words()));
        let search = self.search.clone().map(|text| ("Search", text));
        let run = [
            ("Iterations", self.stages.as_deref().map_or_else(unknown, iterations)),
            ("Passes over all samples", self.passes.map_or_else(unknown, |passes| format!("{passes:.1}"))),
            ("Stopped because", self.stop_reason.clone().unwrap_or_else(unknown)),
            ("Time", self.seconds.map_or_else(unknown, duration)),
            ("Samples per second", self.samples_per_second.map_or_else(unknown, short)),
            ("Seed", self.seed.map_or_else(unknown, |s| s.to_string())),
            ("Version", format!("matmix {}", self.version)),
        ];
        let known = fitted
            .into_iter()
            .chain(missing)
            .chain(held_out)
            .chain(search)
            .chain(run)
            .map(|(name, value)| (name.to_owned(), value));
        let further = self.metadata.iter().cloned();
        known.chain(further).map(|(name, value)| Fact { name, value }).collect()
    }
}

/// How many iterations there were, and how many of them saw a part of the samples.
fn iterations(stages: &[(f64, usize)]) -> String {
    let all: usize = stages.iter().map(|(_, count)| count).sum();
    let some = stages.iter().filter(|(share, _)| *share < 1.0);
    let some: Vec<String> = some.map(|(share, count)| format!("{count} on 1/{:.0}", 1.0 / share)).collect();
    match some[..] {
        [] => all.to_string(),
        _ => format!("{all}, of them {} of the samples", some.join(", ")),
    }
}

/// How a sample is laid out as a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Order 1: a curve.
    Curve,
    /// Order 2: a picture.
    Matrix,
    /// Order 3 with three channels: a colour picture.
    Colour,
    /// Any other order: one picture per slice.
    Slices,
}

/// The name, unit and scale of one mode, or of the values.
///
/// ```
/// use matmix::Samples;
/// use matmix::report::{Axis, ReportOptions};
///
/// // Four channels, 128 times a second.
/// let channel = Axis { name: "channel".into(), start: 1.0, step: 1.0, ..Axis::default() };
/// let time = Axis { name: "time".into(), unit: "s".into(), start: 0.0, step: 1.0 / 128.0 };
/// let options = ReportOptions { axes: vec![channel, time], ..ReportOptions::default() };
/// let recordings = Samples::from_vec(&[4, 256], vec![0f32; 3 * 4 * 256])?;
/// assert_eq!(options.validate(&recordings), Ok(()));
/// // One axis per mode.
/// assert!(options.validate(&recordings.reshaped(&[1024])?).is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Axis {
    /// `frequency`, say.
    pub name: String,
    /// `Hz`, say.
    pub unit: String,
    /// The coordinate of the first entry.
    pub start: f64,
    /// The step from one entry to the next; 0 means that entries are just counted.
    pub step: f64,
}

impl Axis {
    /// Reads `time`, `time (s)` or `time (s)=0:2.5`: a name, in brackets a unit, and the coordinates of the first and the
    /// last of `entries`.
    ///
    /// ```
    /// use matmix::report::Axis;
    ///
    /// let time = Axis::parse("time (s)=0:2.5", 6)?;
    /// assert_eq!((time.name.as_str(), time.unit.as_str(), time.step), ("time", "s", 0.5));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// Coordinates that are not two different numbers.
    pub fn parse(text: &str, entries: usize) -> Result<Self> {
        let (words, range) = match text.rsplit_once('=') {
            Some((words, range)) => (words, Some(range)),
            None => (text, None),
        };
        let words = words.trim();
        let (name, unit) = match words.strip_suffix(')').and_then(|t| t.rsplit_once('(')) {
            Some((name, unit)) => (name.trim(), unit.trim()),
            None => (words, ""),
        };
        let mut axis = Self { name: name.into(), unit: unit.into(), ..Self::default() };
        if let Some(range) = range {
            let ends = range.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
            let (first, last) = ends.filter(|(a, b)| a != b).ok_or_else(|| Error::Option {
                option: "axes",
                value: text.trim().to_owned(),
                expected: "a name and the coordinates of its ends, such as \"time (s)=0:2.5\"",
            })?;
            axis.start = first;
            axis.step = (last - first) / entries.saturating_sub(1).max(1) as f64;
        }
        Ok(axis)
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| x.is_finite())
}

/// How a sample becomes a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// The layout.
    pub kind: Kind,
    /// The shape of the arrays of this page: the samples' shape, or smaller where blocks were averaged.
    pub shape: Vec<usize>,
    /// How many entries along each mode one entry of the page averages.
    pub block: Vec<usize>,
    /// The mode that runs down the picture (for a curve: along it).
    pub row_mode: usize,
    /// The mode that runs across the picture.
    pub column_mode: usize,
    /// How numbers become colours; never `Auto` in a finished page.
    pub colours: Colours,
    /// The value at the dark or negative end of the colours.
    pub low: f64,
    /// The value at the light or positive end.
    pub high: f64,
    /// One axis per mode, or none.
    pub axes: Vec<Axis>,
    /// What the values are.
    pub value: Axis,
}

/// One iteration of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// Counted from 1.
    pub iteration: usize,
    /// Mean log-likelihood of a sample.
    pub log_likelihood: f64,
    /// Reconstruction error e(t).
    pub error: f64,
}

/// The candidates of a selection: components against ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// What was chosen and why, in a sentence or two.
    pub advice: String,
    /// What the values of the table are.
    pub decided: String,
    /// The ranks, one per column.
    pub ranks: Vec<String>,
    /// One row for every number of components.
    pub rows: Vec<ChosenRow>,
    /// How much of the variance the chosen ranks have, mode by mode.
    pub screes: Vec<Scree>,
}

/// The candidates of one number of components.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenRow {
    /// K.
    pub components: usize,
    /// One cell for every rank; none where it was not tried.
    pub cells: Vec<Option<Tried>>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What decided, as people read it.
    pub value: String,
    /// From 0 for the worst candidate to 8 for the best.
    pub shade: usize,
    /// Whether it was chosen.
    pub chosen: bool,
}

/// The variance along the directions of a mode, around the means of the components.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scree {
    /// The mode, counted from 0.
    pub mode: usize,
    /// Its rank.
    pub rank: usize,
    /// How many directions it has.
    pub columns: usize,
    /// The share of the variance that the first `rank` of them have.
    pub share: f64,
}

/// One component and what shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Component {
    /// π_k.
    pub weight: f64,
    /// σ_k².
    pub noise_variance: f64,
    /// How many samples have this component as their most likely one.
    pub samples: usize,
    /// M_k in the page's shape.
    pub mean: Floats,
    /// U_k^(d), row-major (side of the page's shape × rank), one per mode.
    pub loadings: Vec<Floats>,
    /// The core entries that move the picture most, the strongest first.
    pub entries: Vec<Entry>,
    /// For each mode the shares of the variance within the component along its principal directions, the largest first;
    /// empty where they were not computed.
    pub spectra: Vec<Vec<f64>>,
    /// Positions of its most likely samples.
    pub typical: Vec<usize>,
    /// Positions of its least likely samples.
    pub untypical: Vec<usize>,
    /// What to know about it: re-seeded, noise at its floor.
    pub notes: Vec<String>,
}

/// One core entry B_j and the picture l_i r_jᵀ that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its index in each mode, counted from 0.
    pub position: Vec<usize>,
    /// s_j / Σ s: its share of the variance the loadings explain.
    pub share: f64,
}

/// The samples that travel with the page, column by column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StoredSamples {
    /// Where each is in the user's data, counted from 0.
    pub index: Vec<usize>,
    /// What each is called, where samples have names. Not trusted.
    pub name: Vec<String>,
    /// Its most likely component.
    pub component: Vec<usize>,
    /// The probability of that component.
    pub responsibility: Floats,
    /// Which of `label_names` it has; empty without labels.
    pub label: Vec<usize>,
    /// The labels as they were given. Not trusted.
    pub label_names: Vec<String>,
    /// ln p(X_n).
    pub log_likelihood: Floats,
    /// The score that ranks samples: ln p(X_n) of complete samples where all components are supported.
    pub score: Floats,
    /// ‖X − X̂‖.
    pub error: Floats,
    /// ‖X − X̂‖ / ‖X − M‖, M being the mean of all samples.
    pub relative_error: Floats,
    /// The posterior mean of the core under that component, ρ numbers each.
    pub core: Floats,
    /// First coordinate on the map.
    pub x: Floats,
    /// Second coordinate on the map.
    pub y: Floats,
    /// How many of them, from the first, have their elements in `pixels`.
    pub pictures: usize,
    /// Their elements in the page's shape, each quantised to a byte between its `low` and its `high`.
    pub pixels: Bytes,
    /// The value of byte 0, one per picture.
    pub low: Floats,
    /// The value of byte 255, one per picture.
    pub high: Floats,
    /// How many cells each lacks; empty where no sample lacks any.
    pub missing: Vec<usize>,
    /// Which elements of the pictures were not observed: a bit each, the first one the lowest of its byte. Empty where all were.
    pub holes: Bytes,
}

/// Counts between edges.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// The edges, one more than there are counts.
    pub edges: Vec<f64>,
    /// How many values are in each bin.
    pub counts: Vec<usize>,
}

/// What the map shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Map {
    /// How the two dimensions were made, a sentence.
    pub method: String,
    /// The shares of the variance the two axes hold.
    pub explained: [f64; 2],
}

/// Bytes as base64.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Bytes(String);

impl Bytes {
    /// Encodes the bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(STANDARD.encode(bytes))
    }
}

/// Numbers as base64 of little-endian single precision: four bytes each, and the same bits in the browser.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Floats(String);

impl Floats {
    /// Encodes the numbers.
    pub fn new(numbers: impl IntoIterator<Item = f64>) -> Self {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(|x| (x as f32).to_le_bytes()).collect();
        Self(STANDARD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_bits() {
        let Floats(text) = Floats::new([1.0, -0.5]);
        assert_eq!(STANDARD.decode(text).unwrap(), [0, 0, 128, 63, 0, 0, 0, 191]);
    }

    #[test]
    fn the_accuracy_is_the_share_on_the_diagonal() {
        let confusion = Confusion { counts: vec![vec![3, 1], vec![0, 4]], ..Confusion::default() };
        assert_eq!(confusion.accuracy(), 7.0 / 8.0);
    }
}
