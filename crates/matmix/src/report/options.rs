//! What a user can choose about a report.

use serde::{Deserialize, Serialize};

use super::content::Axis;
use super::held_out::HeldOut;
use super::recognition::Confusion;
use crate::data::{Labels, ModelFile, Samples};
use crate::error::{Counted, Error, Result};
use crate::model::History;
use crate::options::choices;

choices! {
    /// How numbers become colours.
    ///
    /// ```
    /// use matmix::report::{Colours, ReportOptions};
    ///
    /// // Byte images are grey by themselves; temperatures look better in colour.
    /// let options = ReportOptions { colours: "sequential".parse()?, ..ReportOptions::default() };
    /// assert_ne!(options.colours, Colours::Auto);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Colours {
        /// Chosen from the data: bytes and numbers in 0..1 are images, negative values make it signed.
        #[default]
        Auto = "auto",
        /// Black to white, for photographs and scans.
        Grey = "grey",
        /// A perceptual map from dark to light, for quantities.
        Sequential = "sequential",
        /// A perceptual map with a neutral middle at zero, for signed quantities.
        Diverging = "diverging",
    }
}

/// The options of a report. `..ReportOptions::default()` fills in the rest.
///
/// ```
/// use matmix::report::{ReportOptions, html};
/// use matmix::{FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let fitted = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?;
/// let (title, history) = ("Thirty matrices".into(), Some(fitted.history));
/// let page = html(&fitted.model, &samples, &ReportOptions { title, history, ..ReportOptions::default() })?;
/// assert!(page.contains("<title>Thirty matrices"));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReportOptions {
    /// The heading; empty means the name of the data.
    pub title: String,
    /// The name of the data: a file name, say.
    pub data: String,
    /// The published name of the model; empty means the one that follows from order and K.
    pub model: String,
    /// One label per sample, or none.
    pub labels: Option<Labels>,
    /// One axis per mode, or none: names, units and scales of what is not a photograph.
    pub axes: Vec<Axis>,
    /// What the values are.
    pub value: Axis,
    /// How numbers become colours.
    pub colours: Colours,
    /// Which modes, counted from 0, run down and across the pictures; for order 3 and more.
    pub picture_modes: Option<(usize, usize)>,
    /// What happened during the fit, where it is known.
    pub history: Option<History>,
    /// The seed of the fit, where it is known.
    pub seed: Option<u64>,
    /// Further facts for the summary: the metadata of the model file, say.
    pub metadata: Vec<(String, String)>,
    /// The confusion of a recognition experiment, to be shown with the labels: see [`recognise`](super::recognise).
    pub recognition: Option<Confusion>,
    /// What samples are called, one name per sample, or none.
    pub names: Vec<String>,
    /// How well the model does on samples it was not fitted to.
    pub held_out: Option<HeldOut>,
    /// The largest number of samples on the map.
    pub points: usize,
    /// The largest number of bytes of sample pictures.
    pub picture_bytes: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            title: String::new(),
            data: String::new(),
            model: String::new(),
            labels: None,
            axes: vec![],
            value: Axis::default(),
            colours: Colours::default(),
            picture_modes: None,
            history: None,
            seed: None,
            metadata: vec![],
            recognition: None,
            names: vec![],
            held_out: None,
            points: 3000,
            picture_bytes: 2_400_000,
        }
    }
}

impl ReportOptions {
    /// What a model file knows about its model: name, history, seed and the other options of the fit.
    pub fn from_file(file: &ModelFile) -> Self {
        let mut metadata = file.options_in_words();
        // What the summary has anyway.
        metadata.retain(|(name, _)| !["components", "rank", "seed"].contains(&name.as_str()));
        Self {
            model: file.name.clone().unwrap_or_default(),
            history: file.history.clone(),
            seed: file.options["seed"].as_u64(),
            metadata,
            ..Self::default()
        }
    }

    /// Checks the options against the samples.
    ///
    /// # Errors
    /// If they do not fit; what does not is named.
    pub fn validate(&self, samples: &Samples<'_>) -> Result<()> {
        let order = samples.order();
        if let Some(labels) = &self.labels
            && labels.index.len() != samples.len()
        {
            return Err(Error::Count {
                what: Counted::Labels,
                expected: samples.len(),
                found: labels.index.len(),
            });
        }
        if let Some(labels) = &self.labels
            && let Some(index) = labels.index.iter().find(|&&i| i >= labels.names.len())
        {
            return Err(Error::Option {
                option: "labels",
                value: format!("class {index} of {}", labels.names.len()),
                expected: "indices of the class names",
            });
        }
        if !self.names.is_empty() && self.names.len() != samples.len() {
            return Err(Error::Count {
                what: Counted::Names,
                expected: samples.len(),
                found: self.names.len(),
            });
        }
        if !self.axes.is_empty() && self.axes.len() != order {
            return Err(Error::Option {
                option: "axes",
                value: format!("a list of {}", self.axes.len()),
                expected: "one axis per mode, or none",
            });
        }
        if let Some((down, across)) = self.picture_modes
            && (down == across || down >= order || across >= order)
        {
            return Err(Error::Option {
                option: "picture_modes",
                value: format!("{down}, {across}"),
                expected: "two different modes of the samples, counted from 0",
            });
        }
        if self.points == 0 {
            return Err(Error::Option { option: "points", value: "0".into(), expected: "at least 1" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::model::Model;
    use crate::model::{Component, Mixture};

    #[test]
    fn what_does_not_fit_the_samples_is_refused() {
        let samples = Samples::from_vec(&[2, 3], vec![0.0f64; 24]).unwrap();
        let refused = |options: ReportOptions| options.validate(&samples).unwrap_err().to_string();
        let three = Some(Labels::new(["a"; 3]));
        assert_eq!(
            refused(ReportOptions { labels: three, ..Default::default() }),
            "3 labels for 4 samples; exactly one per sample is needed"
        );
        let axes = vec![Axis::default()];
        assert!(refused(ReportOptions { axes, ..Default::default() }).contains("one axis per mode"));
        let stray = Some(Labels { names: vec!["a".into()], index: vec![0, 0, 1, 0] });
        assert!(refused(ReportOptions { labels: stray, ..Default::default() }).contains("class 1 of 1"));
        let picture_modes = Some((0, 2));
        assert!(
            refused(ReportOptions { picture_modes, ..Default::default() }).contains("two different modes")
        );
        assert!(ReportOptions::default().validate(&samples).is_ok());
    }

    #[test]
    fn a_model_file_tells_what_it_knows() {
        let component =
            Component::new(&[2], vec![0.0; 2], vec![Matrix::from_vec(2, 1, vec![1.0, 0.5])], 1.0).unwrap();
        let model = Mixture::new(&[2], vec![1.0], vec![component]).unwrap();
        let mut file = ModelFile::new(Model::Mixture(model));
        file.name = Some("ppca".into());
        file.options = serde_json::json!({ "seed": 7, "start": "k-means", "rank": [1], "tol": 0.5, "x": null, "python": { "tol": 0.5 } });
        let options = ReportOptions::from_file(&file);
        assert_eq!((options.model.as_str(), options.seed), ("ppca", Some(7)));
        let facts = [("start", "k-means"), ("tol", "0.5")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(options.metadata, facts);
    }
}
