//! Recognition: which known sample a new one is nearest to, in the space of the cores or by what its patches say.
//!
//! | file | what |
//! |---|---|
//! | `gallery` | known samples by what a model says about them, their features, and their distances |
//! | `fisher` | a linear discriminant |
//! | `search` | the nearest of many features |
//! | `patch_recognizer`, `patch_fisher`, `ridge` | recognition by patches: Fisher vectors, ridge regression on the classes |
//! | `tests` | the search against the plain formula |

mod fisher;
mod gallery;
mod patch_fisher;
mod patch_recognizer;
mod ridge;
mod search;
#[cfg(test)]
mod tests;

use crate::error::{Counted, Error, Result};
use crate::model::Model;
use crate::options::choices;
use crate::pass::Engine;
pub use gallery::CoreGallery;
use gallery::{Features, plain_distance};
pub use patch_fisher::{PatchFisher, PatchFisherOptions};
pub use patch_recognizer::PatchRecognizer;
pub use ridge::RidgeScores;

/// The most classes a gallery can have.
const MAX_CLASSES: usize = 1 << 14;

choices! {
    /// How two samples are compared.
    ///
    /// ```
    /// use matmix::{Distance, LowRank, Matrix, Recognizer, Samples};
    ///
    /// // What tells the classes apart is the second number; the first varies far more.
    /// let known = [0.0, 0.0, 10.0, 0.1, 20.0, 0.0, 4.0, 1.0, 10.0, 1.1, 16.0, 1.0];
    /// let (known, probe) = (Samples::from_slice(&[2], &known)?, Samples::from_vec(&[2], vec![0.0, 1.0])?);
    /// let model = LowRank::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 2)])?.into();
    /// let nearest = |distance| Recognizer::new(&model, &known, &[0, 0, 0, 1, 1, 1], distance)?.predict(&probe);
    /// assert_eq!((nearest(Distance::Paper)?, nearest(Distance::Fisher)?), (vec![0], vec![1]));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Distance {
        /// `Fisher` where it can be learned: at least two classes, two or more samples of each, and a gallery of at most 4,096
        /// samples, whose discriminant takes time with their cube. `Data` otherwise, and where all cores are the same.
        #[default]
        Auto = "auto",
        /// Cores in units of the data: Σ_k ‖L_k (B_a^(k) − B_b^(k)) R_kᵀ‖_F over all components, the same of any order. For a
        /// `LowRank`, whose cores are in these units, ‖B_a − B_b‖_F.
        Data = "data",
        /// The paper's Σ_k ‖B_a^(k) − B_b^(k)‖_F over all components, in units of the prior: a direction of little variance counts as
        /// much as one of much. For a `LowRank`, ‖B_a − B_b‖_F.
        Paper = "paper",
        /// The paper's footnote: each term weighted by γ_ak γ_bk.
        Weighted = "weighted",
        /// Beyond the paper: a linear discriminant with Ledoit–Wolf shrinkage learned on the gallery's cores of all
        /// components, then the cosine.
        Fisher = "fisher",
    }
}

/// A set of known samples with their classes, ready to be searched.
///
/// ```
/// use matmix::{Distance, FitOptions, Recognizer, Samples, fit};
///
/// // Two groups of fifteen.
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101 + i / 180 * 500)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let model = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?.model;
/// let known = samples.clone().select(&[0, 1, 2, 15, 16, 17])?;
/// let recognizer = Recognizer::new(&model.into(), &known, &[0, 0, 0, 1, 1, 1], Distance::Paper)?;
/// assert_eq!(recognizer.predict(&samples.select(&[5, 25])?)?, [0, 1]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recognizer {
    model: Model,
    gallery: CoreGallery,
}

/// A neighbour: which sample of the gallery, and how far.
///
/// ```
/// use matmix::{Distance, LowRank, Matrix, Neighbour, Recognizer, Samples};
///
/// // A model that keeps both numbers: the distance of cores is that of samples.
/// let model = LowRank::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 2)])?.into();
/// let known = Samples::from_vec(&[2], vec![3.0, 4.0, 0.0, 1.0])?;
/// let recognizer = Recognizer::new(&model, &known, &[7, 8], Distance::Paper)?;
/// let found = recognizer.neighbours(&Samples::from_vec(&[2], vec![0.0, 0.0])?, 2)?;
/// let [near, far] = [(1, 8, 1.0), (0, 7, 5.0)];
/// let neighbour = |(index, class, distance)| Neighbour { index, class, distance };
/// assert_eq!(found, [[neighbour(near), neighbour(far)]]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The sample's place in the gallery.
    pub index: usize,
    /// Its class.
    pub class: usize,
    /// The distance.
    pub distance: f64,
}

/// What came out of recognising labelled probes.
///
/// ```
/// use matmix::{Distance, LowRank, Matrix, Recognizer, Samples};
///
/// let model = LowRank::new(&[1], vec![0.0], vec![Matrix::identity(1, 1)])?.into();
/// let recognizer = Recognizer::new(&model, &Samples::from_vec(&[1], vec![0.0, 10.0])?, &[0, 1], Distance::Paper)?;
/// // The last probe is of class 0, but nearer to that of class 1.
/// let probes = Samples::from_vec(&[1], vec![1.0, 9.0, 8.0, 7.0])?;
/// let recognition = recognizer.evaluate(&probes, &[0, 1, 1, 0])?;
/// assert_eq!((&recognition.predicted[..], recognition.accuracy), (&[0, 1, 1, 1][..], 0.75));
/// assert_eq!(recognition.confusion, [[1, 1], [0, 2]]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recognition {
    /// The class found for each probe.
    pub predicted: Vec<usize>,
    /// The share of probes whose class was found.
    pub accuracy: f64,
    /// `confusion[actual][predicted]`: how many probes.
    pub confusion: Vec<Vec<usize>>,
}

impl Recognizer {
    /// Learns a gallery: one class (a number from 0) per sample.
    ///
    /// # Errors
    /// If there is not one class per sample, there are too many classes, the samples do not fit the model, or a discriminant was asked for and cannot be learned.
    pub fn new(model: &Model, gallery: &dyn Engine, classes: &[usize], distance: Distance) -> Result<Self> {
        if classes.len() != gallery.len() {
            return Err(Error::Count {
                what: Counted::Labels,
                expected: gallery.len(),
                found: classes.len(),
            });
        }
        check_classes(classes)?;
        let gallery = CoreGallery::of(model, Features::of(model, gallery)?, classes, distance)?;
        Ok(Self { model: model.clone(), gallery })
    }

    /// What samples are compared by: never `Auto`, but what that came to.
    pub fn distance(&self) -> Distance {
        self.gallery.distance()
    }

    /// The `count` nearest samples of the gallery for every probe, nearest first.
    ///
    /// # Errors
    /// If `count` is zero or larger than the gallery, or the probes do not fit the model.
    pub fn neighbours(&self, probes: &dyn Engine, count: usize) -> Result<Vec<Vec<Neighbour>>> {
        check_count(count, self.gallery.len())?;
        Ok(self.gallery.nearest(Features::of(&self.model, probes)?, count))
    }

    /// The class of the nearest sample of the gallery for every probe.
    ///
    /// # Errors
    /// If the probes do not fit the model.
    pub fn predict(&self, probes: &dyn Engine) -> Result<Vec<usize>> {
        Ok(self.neighbours(probes, 1)?.iter().map(|n| n[0].class).collect())
    }

    /// Recognises probes whose classes are known.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and if there is not one class per probe, or there are too many.
    pub fn evaluate(&self, probes: &dyn Engine, classes: &[usize]) -> Result<Recognition> {
        if classes.len() != probes.len() {
            return Err(Error::Count { what: Counted::Labels, expected: probes.len(), found: classes.len() });
        }
        check_classes(classes)?;
        Ok(recognition(self.predict(probes)?, classes, self.gallery.classes()))
    }
}

/// What was found beside what is known.
fn recognition(predicted: Vec<usize>, classes: &[usize], gallery: &[usize]) -> Recognition {
    let n_classes = classes.iter().chain(gallery).max().map_or(0, |m| m + 1);
    let mut confusion = vec![vec![0; n_classes]; n_classes];
    for (&actual, &found) in classes.iter().zip(&predicted) {
        confusion[actual][found] += 1;
    }
    let right = classes.iter().zip(&predicted).filter(|(a, b)| a == b).count();
    Recognition { accuracy: right as f64 / classes.len() as f64, predicted, confusion }
}

/// Whether a gallery of this size has so many neighbours.
fn check_count(count: usize, gallery: usize) -> Result<()> {
    if count == 0 || count > gallery {
        return Err(Error::Option {
            option: "neighbours",
            value: count.to_string(),
            expected: "between 1 and the size of the gallery",
        });
    }
    Ok(())
}

/// Classes number rows and columns of the confusion matrix: a wild one would be an allocation no data explains.
fn check_classes(classes: &[usize]) -> Result<()> {
    match classes.iter().find(|&&c| c >= MAX_CLASSES) {
        Some(class) => Err(Error::Option {
            option: "classes",
            value: class.to_string(),
            expected: "numbers from 0 to 16383, one for each class",
        }),
        None => Ok(()),
    }
}
