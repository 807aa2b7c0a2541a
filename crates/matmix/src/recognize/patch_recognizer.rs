//! Recognition by the patches of images: Fisher vectors, ridge regression on the classes, the nearest known image by the cosine.

use super::patch_fisher::PatchFisher;
use super::ridge::RidgeScores;
use super::search::Index;
use super::{
    Distance, Features, Neighbour, Recognition, check_classes, check_count, plain_distance, recognition,
};
use crate::cpu::Cpu;
use crate::data::{Gallery, ModelFile, Samples};
use crate::error::{Counted, Error, Result};
use crate::linalg::Matrix;

/// A set of known images with their classes, compared by their patches.
///
/// ```
/// use matmix::{FitOptions, PatchFisher, PatchFisherOptions, PatchRecognizer, Samples};
///
/// // Stripes across and stripes down.
/// let pixel = |n: usize, i: usize| if n % 2 == 0 { i / 12 % 3 } else { i % 3 };
/// let pixels: Vec<f32> = (0..8 * 144).map(|i| (pixel(i / 144, i % 144) * 50 + i % 7) as f32).collect();
/// let images = Samples::from_vec(&[12, 12], pixels)?;
/// let fit = FitOptions { components: 2, max_iter: 5, ..FitOptions::default() };
/// let fisher = PatchFisher::fit(&images, &PatchFisherOptions { fit, grid: 2, ..Default::default() })?;
/// let known = images.clone().select(&[0, 1, 2, 3])?;
/// let recognizer = PatchRecognizer::new(fisher, &known, &[0, 1, 0, 1], 0.1)?;
/// assert_eq!(recognizer.predict(&images.select(&[4, 5])?)?, [0, 1]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PatchRecognizer {
    fisher: PatchFisher,
    scores: RidgeScores,
    gallery: Features,
    index: Index,
    classes: Vec<usize>,
}

impl PatchRecognizer {
    /// Learns a gallery: one class (a number from 0) per image. The ridge is relative; 0.1 is a good one.
    ///
    /// # Errors
    /// A gallery of one class, images that are all the same, and what [`PatchFisher::features`] refuses.
    pub fn new(fisher: PatchFisher, gallery: &Samples<'_>, classes: &[usize], ridge: f64) -> Result<Self> {
        if classes.len() != gallery.len() {
            return Err(Error::Count {
                what: Counted::Labels,
                expected: gallery.len(),
                found: classes.len(),
            });
        }
        check_classes(classes)?;
        let features = fisher.features(gallery)?;
        let scores = RidgeScores::learn(&features, classes, ridge)?;
        let known = scores.project(&features)?;
        Ok(Self::knowing(fisher, scores, known, classes.to_vec()))
    }

    /// From what was predicted for the images of the gallery.
    fn knowing(fisher: PatchFisher, scores: RidgeScores, known: Vec<f64>, classes: Vec<usize>) -> Self {
        let gallery = unit(known, scores.n_classes());
        let index = Index::new(&gallery, Distance::Fisher);
        Self { fisher, scores, gallery, index, classes }
    }

    /// The file of the recogniser: the mixture over patches and the gallery, for images like these, whose classes have these names.
    ///
    /// # Errors
    /// Another number of names than of classes, and images that cannot be read.
    pub fn to_file(&self, images: &Samples<'_>, names: &[String]) -> Result<ModelFile> {
        let (mean, directions) = self.scores.mean_and_directions();
        if names.len() != directions.cols() {
            let (expected, found) = (directions.cols(), names.len());
            return Err(Error::Count { what: Counted::Names, expected, found });
        }
        let gallery = Gallery {
            grid: self.fisher.grid(),
            names: names.to_vec(),
            classes: self.classes.clone(),
            mean: mean.to_vec(),
            directions: directions.clone(),
            scores: Matrix::from_vec(self.gallery.n, names.len(), self.gallery.cores.clone()),
        };
        Ok(ModelFile { gallery: Some(gallery), ..self.fisher.to_file(images)? })
    }

    /// From its file.
    ///
    /// # Errors
    /// If it is the file of another model, or the gallery is not one of its patches.
    pub fn from_file(file: &ModelFile) -> Result<Self> {
        let wrong = |problem: &str| Error::Model { problem: problem.into() };
        let Some(gallery) = &file.gallery else {
            return Err(wrong("a recogniser with its gallery is needed here"));
        };
        let fisher = PatchFisher::from_file(file, gallery.grid)?;
        if let Some(input) = &file.input
            && fisher.width(&input.shape)? != gallery.mean.len()
        {
            return Err(wrong("its gallery has features of another length than its patches"));
        }
        let scores = RidgeScores::from_mean_and_directions(gallery.mean.clone(), gallery.directions.clone());
        let known = gallery.scores.as_slice().to_vec();
        Ok(Self::knowing(fisher, scores, known, gallery.classes.clone()))
    }

    /// What turns images into vectors.
    pub fn fisher(&self) -> &PatchFisher {
        &self.fisher
    }

    /// What is predicted for images, one unit vector with a number per class each.
    ///
    /// # Errors
    /// As [`PatchFisher::features`].
    pub fn scores(&self, images: &Samples<'_>) -> Result<Vec<f64>> {
        let (mut all, mut failed) = (Vec::new(), Ok(()));
        self.fisher.features_each(images, |some| match self.scores.project(&some) {
            Ok(scores) => all.extend(scores),
            Err(error) => failed = Err(error),
        })?;
        failed.map(|()| all)
    }

    /// The `count` nearest images of the gallery for every probe, nearest first; the distance is 1 − cosine.
    ///
    /// # Errors
    /// As [`PatchFisher::features`], and a count that is not between 1 and the size of the gallery.
    pub fn neighbours(&self, probes: &Samples<'_>, count: usize) -> Result<Vec<Vec<Neighbour>>> {
        check_count(count, self.gallery.n)?;
        let features = unit(self.scores(probes)?, self.scores.n_classes());
        let exact = |n, m| plain_distance(&features, n, &self.gallery, m, Distance::Fisher);
        let found = self.index.nearest(&features, Distance::Fisher, count, Cpu::best(), exact);
        let neighbour = |(distance, index)| Neighbour { index, class: self.classes[index], distance };
        Ok(found.into_iter().map(|nearest| nearest.into_iter().map(neighbour).collect()).collect())
    }

    /// The class of the nearest image of the gallery for every probe.
    ///
    /// # Errors
    /// As [`neighbours`](Self::neighbours).
    pub fn predict(&self, probes: &Samples<'_>) -> Result<Vec<usize>> {
        Ok(self.neighbours(probes, 1)?.into_iter().map(|n| n[0].class).collect())
    }

    /// Recognises probes whose classes are known.
    ///
    /// # Errors
    /// As [`neighbours`](Self::neighbours), and another number of classes than of probes.
    pub fn evaluate(&self, probes: &Samples<'_>, classes: &[usize]) -> Result<Recognition> {
        if classes.len() != probes.len() {
            return Err(Error::Count { what: Counted::Labels, expected: probes.len(), found: classes.len() });
        }
        check_classes(classes)?;
        Ok(recognition(self.predict(probes)?, classes, &self.classes))
    }
}

/// Unit vectors of this length as what is searched.
fn unit(cores: Vec<f64>, core_len: usize) -> Features {
    let n = cores.len() / core_len;
    Features { n, components: 1, core_len, cores, gamma: vec![1.0; n] }
}
