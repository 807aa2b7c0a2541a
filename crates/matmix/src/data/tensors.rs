//! Named tensors of doubles in a safetensors file, read without trusting the file.
//!
//! The model file and the checkpoint are both made of these.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors};

use super::atomic::write_file;
use super::flat::map_file;
use crate::error::{Error, FileKind, Result, sides};
use crate::linalg::Matrix;
use crate::model::{Classes, Component, Kind, Mixture, Parameter, Stacked};

/// The version of the files this library writes; readers refuse what they do not know.
pub(crate) const VERSION: &str = "1";

/// Named tensors of doubles and text: what model files and checkpoints are made of.
///
/// ```
/// use matmix::data::Tensors;
///
/// // What `Steps::write` and `Steps::read` of a model do.
/// let mut tensors = Tensors::default();
/// tensors.add("centres".into(), vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// let (axes, centres) = tensors.get("centres", &[None, Some(3)])?;
/// assert_eq!((axes, centres[4]), (&[2, 3][..], 4.0));
/// assert!(tensors.get("centres", &[Some(3), Some(3)]).is_err() && !tensors.has("weights"));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tensors {
    path: PathBuf,
    format: FileKind,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
    metadata: HashMap<String, String>,
}

impl Default for Tensors {
    fn default() -> Self {
        let (tensors, metadata) = Default::default();
        Self { path: PathBuf::new(), format: FileKind::Model, tensors, metadata }
    }
}

impl Tensors {
    pub(crate) fn new() -> Self {
        let mut new = Self::default();
        new.set_metadata("matmix.format", VERSION.into());
        new
    }

    /// Reads a file; everything in it is checked against its length before it is copied.
    pub(crate) fn read(path: &Path, format: FileKind) -> Result<Self> {
        let map = map_file(path)?;
        Self::parse(path, format, &map)
    }

    pub(crate) fn parse(path: &Path, format: FileKind, bytes: &[u8]) -> Result<Self> {
        let wrong = |problem: String| Error::format(path, format, problem);
        let file = SafeTensors::deserialize(bytes)
            .map_err(|e| wrong(format!("it is no safetensors file, or a damaged one ({e})")))?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| wrong(e.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("matmix.format").map(String::as_str) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(wrong(format!(
                    "its format is version {other}; this program knows version {VERSION}"
                )));
            }
            None => return Err(wrong("it has no `matmix.format`; it was not written by matmix".into())),
        }
        let mut tensors = BTreeMap::new();
        for (name, view) in file.tensors() {
            if view.dtype() != Dtype::F64 {
                return Err(wrong(format!("tensor `{name}` is {:?}; F64 is needed", view.dtype())));
            }
            let data = view
                .data()
                .chunks_exact(8)
                .map(|b| f64::from_le_bytes(std::array::from_fn(|i| b[i])))
                .collect();
            tensors.insert(name, (view.shape().to_vec(), data));
        }
        Ok(Self { path: path.to_owned(), format, tensors, metadata })
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        write_file(path, |out| self.write_to(out))
    }

    /// Writes what the file holds. By hand, because the crate writes the metadata in the order of a hash map: equal
    /// models should be equal files.
    pub(crate) fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut header = serde_json::Map::new();
        let metadata: BTreeMap<&String, &String> = self.metadata.iter().collect();
        header.insert("__metadata__".into(), serde_json::json!(metadata));
        let mut offset = 0;
        for (name, (shape, data)) in &self.tensors {
            let end = offset + 8 * data.len();
            let entry = serde_json::json!({ "dtype": "F64", "shape": shape, "data_offsets": [offset, end] });
            header.insert(name.clone(), entry);
            offset = end;
        }
        let mut text = serde_json::Value::Object(header).to_string();
        while !text.len().is_multiple_of(8) {
            text.push(' ');
        }
        out.write_all(&(text.len() as u64).to_le_bytes())?;
        out.write_all(text.as_bytes())?;
        for (_, data) in self.tensors.values() {
            for x in data {
                out.write_all(&x.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    pub(crate) fn set_metadata(&mut self, key: &str, value: String) {
        self.metadata.insert(key.into(), value);
    }

    /// Adds one, in row-major order.
    pub fn add(&mut self, name: String, shape: Vec<usize>, data: Vec<f64>) {
        self.tensors.insert(name, (shape, data));
    }

    /// Equal matrices, stacked.
    pub(crate) fn add_matrices(&mut self, name: &str, matrices: &[Matrix]) {
        let (rows, cols) = matrices.first().map_or((0, 0), |m| (m.rows(), m.cols()));
        let data = matrices.iter().flat_map(|m| m.as_slice()).copied().collect();
        self.add(name.into(), vec![matrices.len(), rows, cols], data);
    }

    pub(crate) fn matrices(&self, name: &str, count: usize) -> Result<Vec<Matrix>> {
        let (shape, data) = self.get(name, &[Some(count), None, None])?;
        let (rows, cols) = (shape[1], shape[2]);
        Ok(data
            .chunks_exact((rows * cols).max(1))
            .map(|m| Matrix::from_vec(rows, cols, m.to_vec()))
            .collect())
    }

    /// The axes and the numbers of a tensor whose axes are as expected; `None` accepts any length but zero.
    ///
    /// # Errors
    /// If there is no such tensor, or if it holds NaN or infinity.
    pub fn get(&self, name: &str, axes: &[Option<usize>]) -> Result<(&[usize], &[f64])> {
        let Some((shape, data)) = self.tensors.get(name) else {
            let found: Vec<&str> = self.names().collect();
            return Err(self.wrong(format!("it has no tensor `{name}`; it has {}", found.join(", "))));
        };
        let fits = shape.len() == axes.len()
            && shape.iter().zip(axes).all(|(&side, axis)| side > 0 && axis.is_none_or(|a| a == side));
        if !fits {
            let axes: Vec<String> = axes.iter().map(|a| a.map_or("?".into(), |a| a.to_string())).collect();
            let found = sides(shape);
            return Err(self.wrong(format!("tensor `{name}` is {found}; it should be {}", axes.join("×"))));
        }
        if let Some(i) = data.iter().position(|x| !x.is_finite()) {
            return Err(self.wrong(format!("tensor `{name}` holds {} at element {i}", data[i])));
        }
        Ok((shape, data))
    }

    /// The shape of a tensor, if it is there.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|(shape, _)| shape.as_slice())
    }

    pub(crate) fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::format(&self.path, self.format, problem)
    }
}

/// `weights` [K] and every parameter of the components with all of them side by side, `means` [K, p_1, …] and so on, each with a
/// prefix.
pub(crate) fn write_mixture(to: &mut Tensors, prefix: &str, model: &Mixture) {
    let k = model.n_components();
    to.add(format!("{prefix}weights"), vec![k], model.weights().to_vec());
    for Stacked { name, shape, values } in model.parameters() {
        to.add(format!("{prefix}{name}"), shape, values);
    }
    if let Some(classes) = model.classes() {
        to.set_metadata(&classes_key(prefix), serde_json::to_string(classes).unwrap_or_default());
    }
}

/// What the classes of a mixture are kept under.
fn classes_key(prefix: &str) -> String {
    format!("matmix.{prefix}classes")
}

/// The mixture whose tensors have this prefix, checked in every respect.
pub(crate) fn read_mixture(from: &Tensors, prefix: &str) -> Result<Mixture> {
    let (_, weights) = from.get(&format!("{prefix}weights"), &[None])?;
    let k = weights.len();
    let name = |kind: Kind| format!("{prefix}{}", kind.name());
    let means = name(Kind::Mean);
    let order = from.shape(&means).map_or(0, |s| s.len().saturating_sub(1));
    if order == 0 {
        return Err(from.wrong(format!("tensor `{means}` is missing or has no axis for the samples")));
    }
    let mut axes = vec![None; order + 1];
    axes[0] = Some(k);
    let (shape, _) = from.get(&means, &axes)?;
    let shape = &shape[1..];
    let mut rank = Vec::with_capacity(order);
    for (d, &side) in shape.iter().enumerate() {
        let (axes, _) = from.get(&name(Kind::Loading(d)), &[Some(k), Some(side), None])?;
        rank.push(axes[2]);
    }
    let has = |parameter: &Parameter| from.has(&name(parameter.kind));
    let parameters = Parameter::all(shape, &rank, has).map_err(|e| from.wrong(e.to_string()))?;
    let mut components = Vec::with_capacity(k);
    for j in 0..k {
        let component = Component::assemble(shape, &parameters, |parameter| {
            let axes: Vec<Option<usize>> =
                std::iter::once(k).chain(parameter.shape.iter().copied()).map(Some).collect();
            let (_, values) = from.get(&name(parameter.kind), &axes)?;
            Ok(values[j * parameter.len()..(j + 1) * parameter.len()].to_vec())
        });
        let component = component.map_err(|e| match e {
            Error::Format { .. } => e,
            other => from.wrong(format!("component {j}: {other}")),
        })?;
        components.push(component.nearly_canonical());
    }
    let classes: Option<Classes> = match from.metadata(&classes_key(prefix)).map(serde_json::from_str) {
        Some(Ok(classes)) => Some(classes),
        Some(Err(error)) => return Err(from.wrong(format!("its classes cannot be read: {error}"))),
        None => None,
    };
    let model = Mixture::nearly(shape, weights.to_vec(), components);
    model.and_then(|model| model.with_classes(classes)).map_err(|e| from.wrong(e.to_string()))
}
