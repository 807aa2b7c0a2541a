//! What a recogniser over the patches of images has learned, as a model file keeps it.

use serde::{Deserialize, Serialize};

use super::tensors::Tensors;
use crate::error::Result;
use crate::linalg::Matrix;

const ABOUT: &str = "matmix.gallery";

/// Known images as their recogniser sees them: no pixel of them, but what was predicted for each.
///
/// ```
/// use matmix::{FitOptions, ModelFile, PatchFisher, PatchFisherOptions, PatchRecognizer, Samples};
///
/// let pixel = |n: usize, i: usize| if n % 2 == 0 { i / 12 % 3 } else { i % 3 };
/// let pixels: Vec<f32> = (0..8 * 144).map(|i| (pixel(i / 144, i % 144) * 50 + i % 7) as f32).collect();
/// let images = Samples::from_vec(&[12, 12], pixels)?;
/// let fit = FitOptions { components: 2, max_iter: 5, ..FitOptions::default() };
/// let fisher = PatchFisher::fit(&images, &PatchFisherOptions { fit, grid: 2, ..Default::default() })?;
/// let recognizer = PatchRecognizer::new(fisher, &images, &[0, 1, 0, 1, 0, 1, 0, 1], 0.1)?;
/// let names = ["across", "down"].map(String::from);
/// let bytes = recognizer.to_file(&images, &names)?.to_bytes();
/// let gallery = ModelFile::from_bytes("known", &bytes)?.gallery.expect("it was kept");
/// assert_eq!((gallery.names, gallery.classes.len()), (names.to_vec(), 8));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gallery {
    /// The cells along each mode over which patches are summed up, at most.
    pub grid: usize,
    /// What the classes are called.
    pub names: Vec<String>,
    /// The class of each image.
    pub classes: Vec<usize>,
    /// The mean of the features.
    pub mean: Vec<f64>,
    /// features × classes: what predicts.
    pub directions: Matrix,
    /// images × classes: what was predicted for each image, a unit vector.
    pub scores: Matrix,
}

/// What of it is no tensor.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    grid: usize,
    names: Vec<String>,
}

impl Gallery {
    pub(super) fn write(&self, to: &mut Tensors) {
        let about = About { grid: self.grid, names: self.names.clone() };
        to.set_metadata(ABOUT, serde_json::to_string(&about).unwrap_or_default());
        let classes = self.classes.iter().map(|&class| class as f64).collect();
        to.add("gallery.classes".into(), vec![self.classes.len()], classes);
        to.add("gallery.mean".into(), vec![self.mean.len()], self.mean.clone());
        for (name, matrix) in [("directions", &self.directions), ("scores", &self.scores)] {
            let axes = vec![matrix.rows(), matrix.cols()];
            to.add(format!("gallery.{name}"), axes, matrix.as_slice().to_vec());
        }
    }

    /// The gallery of a file, if it has one, checked.
    pub(super) fn read(from: &Tensors) -> Result<Option<Self>> {
        let Some(about) = from.metadata(ABOUT) else { return Ok(None) };
        let About { grid, names } = serde_json::from_str(about)
            .map_err(|error| from.wrong(format!("what it says about its gallery cannot be read: {error}")))?;
        let (_, classes) = from.get("gallery.classes", &[None])?;
        let (_, mean) = from.get("gallery.mean", &[None])?;
        let matrix = |name: &str, rows: usize| -> Result<Matrix> {
            let (axes, values) = from.get(&format!("gallery.{name}"), &[Some(rows), Some(names.len())])?;
            Ok(Matrix::from_vec(axes[0], axes[1], values.to_vec()))
        };
        let (directions, scores) = (matrix("directions", mean.len())?, matrix("scores", classes.len())?);
        let is_a_class = |class: &f64| class.fract() == 0.0 && (0.0..names.len() as f64).contains(class);
        if classes.is_empty() || names.len() < 2 || !classes.iter().all(is_a_class) {
            return Err(from.wrong("its gallery has images of no class, or fewer than two classes"));
        }
        if !(directions.is_finite() && scores.is_finite() && mean.iter().all(|x| x.is_finite())) {
            return Err(from.wrong("its gallery holds numbers that are not finite"));
        }
        let classes = classes.iter().map(|&class| class as usize).collect();
        Ok(Some(Self { grid, names, classes, mean: mean.to_vec(), directions, scores }))
    }
}
