//! What a user can choose about a report.

use super::content::{Axis, Colours, Confusion};
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::fit::History;

/// The options of a report. `..ReportOptions::default()` fills in the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportOptions {
    /// The heading; empty means the name of the data.
    pub title: String,
    /// The name of the data: a file name, say.
    pub data: String,
    /// The published name of the model; empty means the one that follows from order and K.
    pub model: String,
    /// One label per sample, or none.
    pub labels: Option<Vec<String>>,
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
    /// The confusion of a recognition experiment, to be shown with the labels.
    pub recognition: Option<Confusion>,
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
            points: 3000,
            picture_bytes: 2_400_000,
        }
    }
}

impl ReportOptions {
    /// Checks the options against the samples.
    pub fn validate(&self, samples: &Samples<'_>) -> Result<()> {
        let order = samples.order();
        if let Some(labels) = &self.labels
            && labels.len() != samples.len()
        {
            return Err(Error::Count { what: "labels", expected: samples.len(), found: labels.len() });
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

    #[test]
    fn what_does_not_fit_the_samples_is_refused() {
        let samples = Samples::from_vec(&[2, 3], vec![0.0f64; 24]).unwrap();
        let refused = |options: ReportOptions| options.validate(&samples).unwrap_err().to_string();
        let three = Some(vec!["a".to_owned(); 3]);
        assert_eq!(
            refused(ReportOptions { labels: three, ..Default::default() }),
            "3 labels for 4 samples; exactly one per sample is needed"
        );
        let axes = vec![Axis::default()];
        assert!(refused(ReportOptions { axes, ..Default::default() }).contains("one axis per mode"));
        let picture_modes = Some((0, 2));
        assert!(
            refused(ReportOptions { picture_modes, ..Default::default() }).contains("two different modes")
        );
        assert!(ReportOptions::default().validate(&samples).is_ok());
    }
}
