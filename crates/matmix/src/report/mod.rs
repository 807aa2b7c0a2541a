//! See the model: one self-contained HTML file that opens in any browser, from disk, offline.
//!
//! | file | what |
//! |---|---|
//! | `options` | what a user can choose |
//! | `content` | the data contract: everything a page shows |
//! | `gather` | model and samples → content; with `survey`, `findings`, `layout`, `missing`, `plane`, `spectra`, `agreement` and `chosen` |
//! | `recognition` | the recognition experiment: confusion, mistakes |
//! | `held_out` | what a model makes of samples it was not fitted to |
//! | `words` | numbers as people read them |
//! | `render` | content → page |
//! | `template.html.j2`, `report.css`, `pictures.js`, `charts.js`, `report.js` | the page, embedded when built |
//!
//! ```
//! use matmix::report::{ReportOptions, write_report};
//! use matmix::{FitOptions, Samples, fit};
//!
//! let values: Vec<f64> = (0..20 * 12).map(|i| f64::from(i * i % 17) / 17.0).collect();
//! let samples = Samples::from_vec(&[4, 3], values)?;
//! let fitted = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?;
//! let options = ReportOptions { data: "numbers".into(), history: Some(fitted.history), ..Default::default() };
//! let folder = tempfile::tempdir().unwrap();
//! write_report(&fitted.model, &samples, &options, &folder.path().join("report.html"))?;
//! # Ok::<(), matmix::Error>(())
//! ```

mod agreement;
mod chosen;
#[doc(hidden)]
pub mod content;
mod findings;
mod gather;
mod held_out;
mod layout;
mod missing;
mod options;
mod plane;
mod recognition;
mod render;
mod spectra;
mod survey;
mod words;

use std::path::Path;

pub use content::Axis;
#[doc(hidden)]
pub use gather::gather;
pub use held_out::HeldOut;
pub use options::{Colours, ReportOptions};
pub use recognition::{Cell, Confusion, Mistake, recognise};
#[doc(hidden)]
pub use render::page;

use crate::data::{Samples, atomic};
use crate::error::Result;
use crate::model::Mixture;

/// Writes the report of `model` on `samples` to `path`: one HTML file, whole or not at all.
///
/// # Errors
/// As [`html`], and if the file cannot be written; what was there before stays.
pub fn write_report(
    model: &Mixture,
    samples: &Samples<'_>,
    options: &ReportOptions,
    path: impl AsRef<Path>,
) -> Result<()> {
    let page = html(model, samples, options)?;
    atomic::write_file(path.as_ref(), |file| file.write_all(page.as_bytes()))
}

/// The same page as text, for whoever keeps it elsewhere than in a file.
///
/// # Errors
/// Samples of another shape than the model's, or that are not finite, and options that do not fit them.
pub fn html(model: &Mixture, samples: &Samples<'_>, options: &ReportOptions) -> Result<String> {
    page(&gather(model, samples, options)?)
}
