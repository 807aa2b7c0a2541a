//! What the library calls things: choices, defaults and presets, so that Python has no list of its own.

use matmix::data::OpenOptions;
use matmix::report::Colours;
use matmix::{
    Algorithm, Criterion, Device, Distance, Dof, FitOptions, LowRankOptions, Missing, Noise,
    PatchDenoiserOptions, PatchFisherOptions, Precision, Preset, Purpose, Reconstruction, Samples, Search,
    SelectOptions, Start, StopRule,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

/// A model by the name it was published under.
#[pyclass(frozen, get_all, module = "matmix._matmix", name = "Preset")]
pub(crate) struct PublishedModel {
    /// The name as it is typed.
    name: &'static str,
    /// Whether it is a mixture with a noise model.
    is_mixture: bool,
    /// Whether samples may be vectors.
    takes_vectors: bool,
    /// Whether it sees samples flattened.
    flattens: bool,
}

#[pymethods]
impl PublishedModel {
    fn __repr__(&self) -> String {
        format!("Preset({})", self.name)
    }
}

impl From<Preset> for PublishedModel {
    fn from(preset: Preset) -> Self {
        let matrix = Samples::from_vec(&[2, 2], vec![0u8; 4]);
        let flattens = matrix.and_then(|m| preset.view(&m)).is_ok_and(|seen| seen.shape() == [4]);
        Self {
            name: preset.name(),
            is_mixture: preset.is_mixture(),
            takes_vectors: preset.fits_order(1),
            flattens,
        }
    }
}

/// The name of the model that samples of an order, and a number of components, have by default.
#[pyfunction]
pub(crate) fn default_preset(order: usize, components: usize) -> &'static str {
    Preset::for_order(order, components).name()
}

macro_rules! names {
    ($type:ty) => {
        <$type>::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>()
    };
}

/// `CHOICES`: the names of every option that is one of a few. `DEFAULTS`: all options, as JSON. `PRESETS`: by name.
pub(crate) fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let choices = PyDict::new(m.py());
    choices.set_item("algorithm", names!(Algorithm))?;
    choices.set_item("colours", names!(Colours))?;
    choices.set_item("device", names!(Device))?;
    choices.set_item("criterion", names!(Criterion))?;
    choices.set_item("distance", names!(Distance))?;
    choices.set_item("dof", Dof::NAMED.iter().map(Dof::to_string).collect::<Vec<_>>())?;
    choices.set_item("missing", names!(Missing))?;
    choices.set_item("noise", names!(Noise))?;
    choices.set_item("precision", names!(Precision))?;
    choices.set_item("purpose", names!(Purpose))?;
    choices.set_item("rule", names!(Reconstruction))?;
    choices.set_item("search", names!(Search))?;
    choices.set_item("start", Start::NAMED.iter().map(Start::name).collect::<Vec<_>>())?;
    choices.set_item("stop", names!(StopRule))?;
    m.add("CHOICES", choices)?;
    let defaults = json!({
        "fit": FitOptions::default(),
        "low_rank": LowRankOptions::default(),
        "open": OpenOptions::default(),
        "patch_denoiser": PatchDenoiserOptions::default(),
        "patch_fisher": PatchFisherOptions::default(),
        "select": SelectOptions::default(),
    });
    m.add("DEFAULTS", defaults.to_string())?;
    let presets = PyDict::new(m.py());
    for &preset in Preset::ALL {
        presets.set_item(preset.name(), Bound::new(m.py(), PublishedModel::from(preset))?)?;
    }
    m.add("PRESETS", presets)
}
