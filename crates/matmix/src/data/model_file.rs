//! The model file: safetensors, the same in Rust, Python and the shell.

use std::path::Path;

use serde_json::Value;

use super::tensors::{Tensors, read_mixture, write_mixture};
use super::{Gallery, Input};
use crate::error::{FileKind, Result};
use crate::linalg::Matrix;
use crate::model::{History, LowRank, Model};

const FORMAT: FileKind = FileKind::Model;

/// A model and what is known about how it came about.
///
/// ```
/// use matmix::{FitOptions, Input, ModelFile, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let fitted = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?;
/// let input = Some(Input::of(samples.shape(), &samples)?);
/// let file = ModelFile { input, history: Some(fitted.history), ..ModelFile::new(fitted.model.into()) };
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("model.safetensors");
/// file.save(&path)?;
/// assert_eq!(ModelFile::load(&path)?.model, file.model);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The model.
    pub model: Model,
    /// What it was called when it was fitted: a preset's name.
    pub name: Option<String>,
    /// What it takes for input, if known.
    pub input: Option<Input>,
    /// The options of the fit, as [`FitOptions::described`](crate::FitOptions::described) says them; `Null` if unknown. Python adds the
    /// parameters of its estimator, under its name.
    pub options: Value,
    /// The history of the fit, if known.
    pub history: Option<History>,
    /// The images that a recogniser over patches knows, if it is the file of one.
    pub gallery: Option<Gallery>,
}

impl ModelFile {
    /// A model about which nothing else is known.
    pub fn new(model: Model) -> Self {
        Self { model, name: None, input: None, options: Value::Null, history: None, gallery: None }
    }

    /// The options of the fit as names and texts, for people; what is Python's own is left out.
    pub fn options_in_words(&self) -> Vec<(String, String)> {
        let options = self.options.as_object().into_iter().flatten();
        let told = options.filter(|(name, value)| name.as_str() != "python" && !value.is_null());
        told.map(|(name, value)| (name.clone(), value.to_string().replace('"', ""))).collect()
    }

    /// Writes the file under a temporary name and renames it.
    ///
    /// # Errors
    /// If the file cannot be written; what was there before stays.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_tensors().write(path.as_ref())
    }

    /// What [`save`](Self::save) writes, for whoever keeps models elsewhere than in files.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.to_tensors().write_to(&mut bytes).expect("memory takes whatever is written to it");
        bytes
    }

    fn to_tensors(&self) -> Tensors {
        let mut tensors = Tensors::new();
        let kind = match &self.model {
            Model::Mixture(model) => {
                write_mixture(&mut tensors, "", model);
                "mixture"
            }
            Model::LowRank(model) => {
                write_low_rank(&mut tensors, model);
                "low_rank"
            }
        };
        let name = self.name.as_ref().map_or(kind.to_string(), |name| format!("{kind}:{name}"));
        tensors.set_metadata("matmix.model", name);
        if let Some(input) = &self.input {
            tensors.set_metadata("matmix.input", serde_json::to_string(input).unwrap_or_default());
        }
        if !self.options.is_null() {
            tensors.set_metadata("matmix.options", self.options.to_string());
        }
        if let Some(history) = &self.history {
            tensors.set_metadata("matmix.history", serde_json::to_string(history).unwrap_or_default());
        }
        if let Some(gallery) = &self.gallery {
            gallery.write(&mut tensors);
        }
        tensors
    }

    /// Reads a file and checks everything in it. Metadata other than `matmix.format` may be missing.
    ///
    /// # Errors
    /// If the file cannot be read, is no model file or a checkpoint, is of a later format, or holds what is no model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_tensors(&Tensors::read(path.as_ref(), FORMAT)?)
    }

    /// Reads the bytes of a model file; `path` is only for messages.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Self> {
        Self::from_tensors(&Tensors::parse(path.as_ref(), FORMAT, bytes)?)
    }

    fn from_tensors(tensors: &Tensors) -> Result<Self> {
        if tensors.metadata("matmix.checkpoint").is_some() {
            return Err(tensors.wrong("it is the checkpoint of a fit; go on with the fit to get its model"));
        }
        let told = tensors.metadata("matmix.model").unwrap_or("");
        let (kind, name) = told.split_once(':').map_or((told, None), |(k, n)| (k, Some(n.to_string())));
        let model = match kind {
            "mixture" => Model::Mixture(read_mixture(tensors, "")?),
            "low_rank" => Model::LowRank(read_low_rank(tensors)?),
            "" if tensors.has("mean") => Model::LowRank(read_low_rank(tensors)?),
            "" => Model::Mixture(read_mixture(tensors, "")?),
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(
                    tensors.wrong(format!("its model is `{other}`; `mixture` and `low_rank` are known"))
                );
            }
        };
        // By way of a value: line and column of text that no user has seen are not worth telling.
        let parsed = |text| serde_json::from_str::<Value>(text).and_then(serde_json::from_value);
        let input: Option<Input> = match tensors.metadata("matmix.input").map(parsed) {
            Some(Ok(input)) => Some(input),
            // To go on without it would be to score other numbers than the model was fitted to.
            Some(Err(error)) => {
                return Err(tensors.wrong(format!("what it takes for input cannot be read: {error}")));
            }
            None => None,
        };
        if let Some(input) = &input
            && !(input.scale.is_normal() && is_of(&model, input))
        {
            return Err(tensors.wrong("what it takes for input is not what its model is for"));
        }
        let json = |key: &str| tensors.metadata(key).and_then(|text| serde_json::from_str(text).ok());
        Ok(Self {
            model,
            name,
            input,
            options: json("matmix.options").unwrap_or(Value::Null),
            history: tensors.metadata("matmix.history").and_then(|text| serde_json::from_str(text).ok()),
            gallery: Gallery::read(tensors)?,
        })
    }
}

/// Whether such samples (or their windows) are samples of the model, or rows of them are, or all their numbers in a row.
fn is_of(model: &Model, input: &Input) -> bool {
    let shape = match &input.patches {
        Some(patches) => match patches.shape(&input.shape) {
            Ok(shape) => shape,
            Err(_) => return false,
        },
        None => input.shape.clone(),
    };
    let size = shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side));
    size.is_some_and(|size| size > 0 && size.is_multiple_of(model.sample_len()))
}

/// `mean`, `loadings.d`, `explained.d` and `total_variance`.
fn write_low_rank(to: &mut Tensors, model: &LowRank) {
    to.add("mean".into(), model.shape().to_vec(), model.mean().to_vec());
    for (d, (u, explained)) in model.loadings().iter().zip(model.explained_variance()).enumerate() {
        to.add(format!("loadings.{}", d + 1), vec![u.rows(), u.cols()], u.as_slice().to_vec());
        to.add(format!("explained.{}", d + 1), vec![explained.len()], explained.clone());
    }
    to.add("total_variance".into(), vec![1], vec![model.total_variance()]);
}

fn read_low_rank(from: &Tensors) -> Result<LowRank> {
    let order = from.shape("mean").map_or(0, <[usize]>::len);
    let (shape, mean) = from.get("mean", &vec![None; order])?;
    let mut loadings = Vec::with_capacity(order);
    let mut explained = Vec::with_capacity(order);
    for (d, &side) in shape.iter().enumerate() {
        let (axes, u) = from.get(&format!("loadings.{}", d + 1), &[Some(side), None])?;
        loadings.push(Matrix::from_vec(axes[0], axes[1], u.to_vec()));
        let name = format!("explained.{}", d + 1);
        explained.push(if from.has(&name) {
            from.get(&name, &[Some(axes[1])])?.1.to_vec()
        } else {
            vec![0.0; axes[1]]
        });
    }
    let total = if from.has("total_variance") { from.get("total_variance", &[Some(1)])?.1[0] } else { 0.0 };
    let model = LowRank::new(shape, mean.to_vec(), loadings).map_err(|e| from.wrong(e.to_string()))?;
    Ok(model.with_variance(explained, total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Component, Mixture};

    #[test]
    fn the_bytes_are_those_of_the_file_and_lead_back_to_the_model() {
        let u = Matrix::from_fn(3, 2, |i, j| (i as f64 + 0.3) * (j as f64 - 0.7) + 0.1);
        let component = Component::new(&[3], vec![0.1, -0.2, 0.3], vec![u], 0.7).unwrap();
        let model = Model::Mixture(Mixture::new(&[3], vec![1.0], vec![component]).unwrap());
        let file = ModelFile { name: Some("ppca".into()), ..ModelFile::new(model) };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        file.save(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), file.to_bytes());
        assert_eq!(ModelFile::from_bytes("bytes", &file.to_bytes()).unwrap(), file);
    }
}
