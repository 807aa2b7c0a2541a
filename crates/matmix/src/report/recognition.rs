//! A recognition experiment for the report: who was taken for whom.

use super::content::{Confusion, Mistake};
use crate::data::{Labels, Samples};
use crate::error::Result;
use crate::model::Model;
use crate::recognize::{Distance, Recognizer};

/// Every other sample of each label is recognised among the rest by its nearest neighbour.
///
/// ```
/// use matmix::data::Labels;
/// use matmix::report::recognise;
/// use matmix::{Distance, FitOptions, Samples, fit};
///
/// // Bright and dark pictures in turn, a little different each.
/// let values: Vec<f64> = (0..480).map(|i| f64::from(i / 12 % 2 * 9) + f64::from(i * 37 % 11) / 9.0).collect();
/// let samples = Samples::from_vec(&[4, 3], values)?;
/// let model = fit(&samples, &FitOptions { components: 1, rank: vec![1, 1], ..FitOptions::default() })?.model;
/// let labels = Labels::new((0..40).map(|n| ["dark", "bright"][n % 2]));
/// let found = recognise(&model.into(), &samples, &labels, Distance::Paper)?;
/// assert_eq!((found.accuracy(), found.mistakes.len()), (1.0, 0));
/// # Ok::<(), matmix::Error>(())
/// ```
///
/// # Errors
/// Labels that do not fit the samples, and whatever reading samples can cause.
pub fn recognise(
    model: &Model,
    samples: &Samples<'_>,
    labels: &Labels,
    distance: Distance,
) -> Result<Confusion> {
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
    let known = samples.clone().select(&gallery)?;
    let recognizer = Recognizer::new(model, &known, &classes(&gallery), distance)?;
    let nearest = recognizer.neighbours(&samples.clone().select(&probes)?, 1)?;
    let mut counts = vec![vec![0; labels.names.len()]; labels.names.len()];
    let mut mistakes = Vec::new();
    for (&probe, nearest) in probes.iter().zip(&nearest) {
        let (actual, found) = (labels.index[probe], nearest[0].class);
        counts[actual][found] += 1;
        if actual != found {
            mistakes.push(Mistake { sample: probe, nearest: gallery[nearest[0].index] });
        }
    }
    let method = format!(
        "Nearest neighbour by the distance “{}”: every other sample of each label is known, the others are probes.",
        distance.name()
    );
    Ok(Confusion::new(method, labels.names.clone(), counts, mistakes))
}
