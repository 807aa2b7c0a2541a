//! Windows of images: as samples, as Fisher vectors, to recognise and to denoise with.

use std::path::PathBuf;

use matmix::data::{Contrast, Element, Gallery, Patches};
use matmix::{
    Mixture, Model, ModelFile, PatchDenoiser, PatchDenoiserOptions, PatchFisher, PatchFisherOptions,
    PatchRecognizer,
};
use numpy::{PyArray1, PyArrayDyn, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Elements, array, indices, places, sides};
use crate::data::file;
use crate::errors::{detached, to_python};
use crate::input::ModelInput;
use crate::mixture::MixtureModel;

/// What a model of windows is pickled as: the mixture as a model file, the windows as JSON, and the cells of a grid.
type Pickled<'py> = (Bound<'py, PyBytes>, String, usize);

/// Which windows of images are samples, and what is done to them.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct PatchWindows {
    patches: Patches,
    /// So many of them, drawn with this seed, if not all.
    drawn: Option<(usize, u64)>,
}

#[pymethods]
impl PatchWindows {
    /// Windows of images, all or so many of them, and what is done to their contrast.
    #[new]
    #[pyo3(signature = (x, shape, *, size, stride, contrast, count, seed))]
    fn new(
        py: Python<'_>,
        x: Elements<'_>,
        shape: Vec<usize>,
        size: Vec<usize>,
        stride: Vec<usize>,
        contrast: &str,
        count: Option<usize>,
        seed: u64,
    ) -> PyResult<Self> {
        let images = x.samples(&shape, None, None, 1.0)?;
        let patches = Patches { size, stride, ..Patches::new(1) };
        let contrast: Contrast = contrast.parse().map_err(to_python)?;
        let patches = detached(py, || patches.with_contrast(&images, contrast, seed))?;
        Ok(Self { patches, drawn: count.map(|count| (count, seed)) })
    }

    /// The shape of all windows of the images together, and what their elements are.
    fn shape_of(&self, x: Elements<'_>, shape: Vec<usize>) -> PyResult<(Vec<usize>, &'static str)> {
        let windows = self.windows(&x, &shape)?;
        Ok((sides(&[windows.len()], windows.shape()), crate::arrays::dtype(windows.element())))
    }

    /// Windows `first` to `end`, shape (end − first, h_1, …).
    fn cut<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        first: usize,
        end: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let windows = self.windows(&x, &shape)?;
        let values = detached(py, || windows.to_f64(first..end.min(windows.len())))?;
        let sides = sides(&[values.len() / windows.sample_len()], windows.shape());
        Ok(match windows.element() {
            Element::U8 => array(py, values.iter().map(|x| *x as u8).collect(), &sides)?.into_any(),
            Element::F32 => array(py, values.iter().map(|x| *x as f32).collect(), &sides)?.into_any(),
            _ => array(py, values, &sides)?.into_any(),
        })
    }
}

impl PatchWindows {
    fn windows<'a>(&self, x: &'a Elements<'_>, shape: &[usize]) -> PyResult<matmix::Samples<'a>> {
        let images = x.samples(shape, None, None, 1.0)?;
        match self.drawn {
            Some((count, seed)) => self.patches.drawn(&images, count, seed),
            None => self.patches.of(&images),
        }
        .map_err(to_python)
    }
}

/// The file of a mixture over windows of images.
fn file_of(model: &Mixture, patches: &Patches, input: &Bound<'_, ModelInput>, options: &str) -> ModelFile {
    let file = file(Model::Mixture(model.clone()), None, Some(input), options, "");
    ModelFile { input: file.input.map(|input| input.with_patches(patches.clone())), ..file }
}

/// What a model file says beside the model: what it takes for input, and its options as JSON or empty.
fn told(file: &ModelFile) -> (Option<ModelInput>, String) {
    let options = if file.options.is_null() { String::new() } else { file.options.to_string() };
    (file.input.clone().map(|input| ModelInput { input }), options)
}

fn pickled<'py>(
    py: Python<'py>,
    model: &Mixture,
    patches: &Patches,
    grid: usize,
    gallery: Option<Gallery>,
) -> Pickled<'py> {
    let bytes = ModelFile { gallery, ..ModelFile::new(Model::Mixture(model.clone())) }.to_bytes();
    (PyBytes::new(py, &bytes), serde_json::to_string(patches).unwrap_or_default(), grid)
}

fn unpickled(bytes: &[u8], patches: &str) -> PyResult<(Mixture, Patches, Option<Gallery>)> {
    let wrong = |text: String| PyValueError::new_err(format!("what was pickled cannot be read: {text}"));
    let patches = serde_json::from_str(patches).map_err(|error| wrong(error.to_string()))?;
    let file = ModelFile::from_bytes("pickled model", bytes).map_err(to_python)?;
    match file.model {
        Model::Mixture(model) => Ok((model, patches, file.gallery)),
        _ => Err(wrong("it holds no mixture".into())),
    }
}

/// A mixture over the patches of images, and a grid.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct PatchFisherModel {
    fisher: PatchFisher,
    /// What else was in the file of a recogniser: it is written back.
    gallery: Option<Gallery>,
}

/// Fits a mixture to patches of images.
#[pyfunction]
#[pyo3(signature = (x, shape, *, scale, options))]
pub(crate) fn fit_patch_fisher(
    py: Python<'_>,
    x: Elements<'_>,
    shape: Vec<usize>,
    scale: f64,
    options: &str,
) -> PyResult<PatchFisherModel> {
    let images = x.samples(&shape, None, None, scale)?;
    let options: PatchFisherOptions = crate::errors::options(options)?;
    Ok(PatchFisherModel { fisher: detached(py, || PatchFisher::fit(&images, &options))?, gallery: None })
}

#[pymethods]
impl PatchFisherModel {
    /// The mixture over the patches.
    #[getter]
    fn mixture(&self) -> MixtureModel {
        MixtureModel { model: self.fisher.model().clone() }
    }

    /// The sides of the patches, and how far one is from the next.
    #[getter]
    fn patches(&self) -> (Vec<usize>, Vec<usize>) {
        (self.fisher.patches().size.clone(), self.fisher.patches().stride.clone())
    }

    /// The cells along each mode, at most.
    #[getter]
    fn grid(&self) -> usize {
        self.fisher.grid()
    }

    /// The numbers of the vector of an image.
    fn width(&self, shape: Vec<usize>) -> PyResult<usize> {
        self.fisher.width(&shape).map_err(to_python)
    }

    /// Fisher vectors, shape (N, width).
    fn features<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let images = x.samples(&shape, None, None, scale)?;
        let features = detached(py, || self.fisher.features(&images))?;
        array(py, features, &[images.len(), self.width(shape)?])
    }

    /// Writes the model file.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        input: &Bound<'_, ModelInput>,
        options: &str,
    ) -> PyResult<()> {
        let file = file_of(self.fisher.model(), self.fisher.patches(), input, options);
        let file = ModelFile { gallery: self.gallery.clone(), ..file };
        detached(py, || file.save(&path))
    }

    /// Reads a model file of patches: the model, what it takes for input, its options as JSON.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, grid: usize) -> PyResult<(Self, Option<ModelInput>, String)> {
        let file = detached(py, || ModelFile::load(&path))?;
        let fisher = PatchFisher::from_file(&file, grid).map_err(to_python)?;
        let (input, options) = told(&file);
        Ok((Self { fisher, gallery: file.gallery }, input, options))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let gallery = self.gallery.clone();
        let parts = pickled(py, self.fisher.model(), self.fisher.patches(), self.fisher.grid(), gallery);
        Ok((py.get_type::<Self>().getattr("from_parts")?, parts))
    }

    /// The way back from what is pickled.
    #[staticmethod]
    fn from_parts(bytes: &[u8], patches: &str, grid: usize) -> PyResult<Self> {
        let (model, patches, gallery) = unpickled(bytes, patches)?;
        Ok(Self { fisher: PatchFisher::new(model, patches, grid).map_err(to_python)?, gallery })
    }
}

/// A gallery of known images, compared by their patches.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct PatchGallery {
    recognizer: PatchRecognizer,
    /// What it is kept as.
    file: ModelFile,
}

/// A recogniser, and what its file says about it.
type KnownImages = (PatchGallery, PatchFisherModel, Vec<String>, Option<ModelInput>, String);

/// Distances, and places in the gallery.
type Found<'py> = (Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArrayDyn<i64>>);

#[pymethods]
impl PatchGallery {
    #[new]
    fn new(
        py: Python<'_>,
        fisher: &Bound<'_, PatchFisherModel>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
        classes: PyReadonlyArray1<'_, i64>,
        names: Vec<String>,
        ridge: f64,
    ) -> PyResult<Self> {
        let (images, classes) = (x.samples(&shape, None, None, scale)?, places(&classes, "class")?);
        let fisher = fisher.get().fisher.clone();
        let recognizer = detached(py, || PatchRecognizer::new(fisher, &images, &classes, ridge))?;
        let file = recognizer.to_file(&images, &names).map_err(to_python)?;
        Ok(Self { recognizer, file })
    }

    /// Writes the model file, the gallery included.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        input: &Bound<'_, ModelInput>,
        options: &str,
    ) -> PyResult<()> {
        let fisher = self.recognizer.fisher();
        let file = file_of(fisher.model(), fisher.patches(), input, options);
        let file = ModelFile { gallery: self.file.gallery.clone(), ..file };
        detached(py, || file.save(&path))
    }

    /// Reads the model file of a recogniser: it, what turns images into vectors, the names of its classes, what it takes for
    /// input, its options as JSON.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<KnownImages> {
        let file = detached(py, || ModelFile::load(&path))?;
        let recognizer = PatchRecognizer::from_file(&file).map_err(to_python)?;
        let fisher = PatchFisherModel { fisher: recognizer.fisher().clone(), gallery: file.gallery.clone() };
        let names = file.gallery.as_ref().map(|gallery| gallery.names.clone()).unwrap_or_default();
        let (input, options) = told(&file);
        Ok((Self { recognizer, file }, fisher, names, input, options))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(py, &self.file.to_bytes());
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (bytes,)))
    }

    /// The way back from what is pickled.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let file = ModelFile::from_bytes("pickled recogniser", bytes).map_err(to_python)?;
        Ok(Self { recognizer: PatchRecognizer::from_file(&file).map_err(to_python)?, file })
    }

    /// Distances and places in the gallery of the nearest images, shape (N, count) each, nearest first.
    fn neighbours<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
        count: usize,
    ) -> PyResult<Found<'py>> {
        let images = x.samples(&shape, None, None, scale)?;
        let found = detached(py, || self.recognizer.neighbours(&images, count))?;
        let all = || found.iter().flatten();
        let (distances, places) =
            (all().map(|n| n.distance).collect(), all().map(|n| n.index as i64).collect());
        let shape = [found.len(), count];
        Ok((array(py, distances, &shape)?, array(py, places, &shape)?))
    }

    /// The classes of the nearest images, shape (N,).
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let images = x.samples(&shape, None, None, scale)?;
        Ok(indices(py, detached(py, || self.recognizer.predict(&images))?))
    }

    /// What is predicted, one unit vector per image, shape (N, classes).
    fn scores<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let images = x.samples(&shape, None, None, scale)?;
        let scores = detached(py, || self.recognizer.scores(&images))?;
        let shape = [images.len(), scores.len() / images.len()];
        array(py, scores, &shape)
    }
}

/// A mixture over patches without noise.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct PatchDenoiserModel {
    denoiser: PatchDenoiser,
}

/// Fits a mixture to patches of images without noise, or with noise of this standard deviation.
#[pyfunction]
#[pyo3(signature = (x, shape, *, scale, noise, options))]
pub(crate) fn fit_patch_denoiser(
    py: Python<'_>,
    x: Elements<'_>,
    shape: Vec<usize>,
    scale: f64,
    noise: Option<f64>,
    options: &str,
) -> PyResult<PatchDenoiserModel> {
    let images = x.samples(&shape, None, None, scale)?;
    let options: PatchDenoiserOptions = crate::errors::options(options)?;
    let denoiser = detached(py, || match noise {
        Some(noise) => PatchDenoiser::fit_noisy(&images, noise, &options),
        None => PatchDenoiser::fit(&images, &options),
    })?;
    Ok(PatchDenoiserModel { denoiser })
}

/// The standard deviation of the noise of images.
#[pyfunction]
pub(crate) fn estimate_noise(
    py: Python<'_>,
    x: Elements<'_>,
    shape: Vec<usize>,
    scale: f64,
) -> PyResult<f64> {
    let images = x.samples(&shape, None, None, scale)?;
    detached(py, || matmix::estimate_noise(&images))
}

#[pymethods]
impl PatchDenoiserModel {
    /// The mixture over patches without noise.
    #[getter]
    fn mixture(&self) -> MixtureModel {
        MixtureModel { model: self.denoiser.model().clone() }
    }

    /// Images without noise, shape (N, p_1, …).
    fn denoise<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        scale: f64,
        noise: f64,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let images = x.samples(&shape, None, None, scale)?;
        let clean = detached(py, || self.denoiser.denoise(&images, noise))?;
        array(py, clean, &sides(&[images.len()], &shape))
    }

    /// Writes the model file.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        input: &Bound<'_, ModelInput>,
        options: &str,
    ) -> PyResult<()> {
        let file = file_of(self.denoiser.model(), self.denoiser.patches(), input, options);
        detached(py, || file.save(&path))
    }

    /// Reads a model file of patches: the model, what it takes for input, its options as JSON.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<(Self, Option<ModelInput>, String)> {
        let file = detached(py, || ModelFile::load(&path))?;
        let denoiser = PatchDenoiser::from_file(&file).map_err(to_python)?;
        let (input, options) = told(&file);
        Ok((Self { denoiser }, input, options))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let parts = pickled(py, self.denoiser.model(), self.denoiser.patches(), 0, None);
        Ok((py.get_type::<Self>().getattr("from_parts")?, parts))
    }

    /// The way back from what is pickled.
    #[staticmethod]
    fn from_parts(bytes: &[u8], patches: &str, grid: usize) -> PyResult<Self> {
        let _ = grid;
        let (model, patches, _) = unpickled(bytes, patches)?;
        Ok(Self { denoiser: PatchDenoiser::new(model, patches).map_err(to_python)? })
    }
}
