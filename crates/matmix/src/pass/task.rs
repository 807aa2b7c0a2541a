//! One pass over the samples as a value: everything it needs but the samples.
//!
//! A task can be run over the parts of a set wherever they are, on other machines, say. The sums of the parts,
//! merged along a [`Tree`](super::tree::Tree), are those of the set.

use super::distances::groups;
use super::em::em_pass;
use super::moments;
use super::plan::Precision;
use super::scatter::{Scatters, scatters};
use super::simd::Path;
use super::sums::{Rows, ScatterSums, Sums};
use super::wire::{Content, Reader, Writer};
use crate::data::{Buffer, Samples};
use crate::error::{Error, Result, sides};
use crate::linalg::Matrix;
use crate::model::Mixture;

/// One pass over the samples.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// E-step and the sums that update one mode.
    Em {
        /// The model so far.
        model: Mixture,
        /// The mode to update, counted from 0.
        mode: usize,
        /// The precision of the contraction.
        precision: Precision,
    },
    /// Sums for mean and variance.
    Moments {
        /// What is subtracted from every sample first: one of them, so that the sums do not cancel.
        origin: Vec<f64>,
    },
    /// Σ w Z Zᵀ of some modes, or Σ w y yᵀ of the flattened cores.
    Scatter {
        /// What is subtracted from every sample.
        mean: Vec<f64>,
        /// The loadings, of which a mode's own do not count; `None` keeps a mode whole.
        loadings: Vec<Option<Matrix>>,
        /// The modes, counted from 0; none for the cores.
        modes: Vec<usize>,
    },
    /// For every sample the nearest centre, and the sums of each centre's samples.
    Groups {
        /// The centres.
        centres: Vec<Vec<f64>>,
        /// A point near all of them.
        reference: Vec<f64>,
    },
    /// Some samples as they are stored. An engine need not look at the parts that hold none of them, as long as
    /// it counts their samples.
    Rows {
        /// Which samples; the order does not matter.
        indices: Vec<usize>,
    },
}

impl Task {
    /// `em`, `moments`, `scatter`, `groups` or `rows`.
    pub fn kind(&self) -> &'static str {
        match self {
            Task::Em { .. } => "em",
            Task::Moments { .. } => "moments",
            Task::Scatter { .. } => "scatter",
            Task::Groups { .. } => "groups",
            Task::Rows { .. } => "rows",
        }
    }

    /// Runs the pass over `samples`: a part of a larger set, in which its first sample has the number `first`.
    /// Sample numbers in sums and errors are those of the larger set.
    pub fn run(&self, samples: &Samples<'_>, first: usize) -> Result<Sums> {
        self.check(samples)?;
        self.pass(samples, first)
            .map(|sums| sums.counted_from(first))
            .map_err(|error| error.counted_from(first))
    }

    fn pass(&self, samples: &Samples<'_>, first: usize) -> Result<Sums> {
        let path = Path::best();
        let n_samples = samples.len() as u64;
        Ok(match self {
            Task::Em { model, mode, precision } => {
                Sums::Em(em_pass(model, samples, *mode, *precision, path)?)
            }
            Task::Moments { origin } => Sums::Moments(moments::sums(samples, origin, path)?),
            Task::Scatter { mean, loadings, modes } => {
                let Scatters { scatters, squares } = scatters(samples, mean, loadings, modes, path)?;
                Sums::Scatter(ScatterSums { n_samples, scatters, squares })
            }
            Task::Groups { centres, reference } => Sums::Groups(groups(samples, centres, reference, path)?),
            Task::Rows { indices } => {
                let here = first..first + samples.len();
                let mut indices: Vec<usize> = indices.iter().copied().filter(|n| here.contains(n)).collect();
                indices.sort_unstable();
                indices.dedup();
                let (mut elements, mut one) = (Buffer::new(), Buffer::new());
                for n in &indices {
                    let at = n - first;
                    elements.extend(samples.stored(at..at + 1, &mut one)?);
                }
                let (element, shape) = (samples.element(), samples.shape().to_vec());
                Sums::Rows(Rows { n_samples, element, shape, indices, elements })
            }
        })
    }

    /// Whether the task is one for samples of this shape.
    fn check(&self, samples: &Samples<'_>) -> Result<()> {
        let (shape, size) = (samples.shape(), samples.sample_len());
        let wrong = |problem: String| Err(Error::Task { problem });
        let full = |what: &str, x: &[f64]| match x.len() {
            found if found == size => Ok(()),
            found => {
                wrong(format!("the {what} has {found} numbers; samples of {} have {size}", sides(shape)))
            }
        };
        let in_order = |mode: usize| match mode < shape.len() {
            true => Ok(()),
            false => wrong(format!("mode {mode} (from 0) of samples of order {}", shape.len())),
        };
        match self {
            // The pass compares the shapes.
            Task::Em { mode, model, .. } if model.shape() == shape => in_order(*mode),
            Task::Em { .. } | Task::Rows { .. } => Ok(()),
            Task::Moments { origin } => full("origin", origin),
            Task::Scatter { mean, loadings, modes } => {
                full("mean", mean)?;
                modes.iter().try_for_each(|&mode| in_order(mode))?;
                let fits = |(u, &side): (&Option<Matrix>, &usize)| {
                    u.as_ref().is_none_or(|u| u.rows() == side && (1..=side).contains(&u.cols()))
                };
                if loadings.len() != shape.len() || !loadings.iter().zip(shape).all(fits) {
                    return wrong(format!("the loadings are not for samples of {}", sides(shape)));
                }
                Ok(())
            }
            Task::Groups { centres, reference } => {
                if centres.is_empty() {
                    return wrong("there are no centres".into());
                }
                full("reference", reference)?;
                centres.iter().try_for_each(|centre| full("centre", centre))
            }
        }
    }

    /// One flat buffer, the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let begin = |kind| Writer::new(Content::Task, kind);
        match self {
            Task::Em { model, mode, precision } => {
                let mut to = begin(0);
                to.size(*mode);
                to.byte(match precision {
                    Precision::Auto => 0,
                    Precision::Single => 1,
                    Precision::Double => 2,
                });
                to.mixture(model);
                to.finish()
            }
            Task::Moments { origin } => {
                let mut to = begin(1);
                to.reals(origin);
                to.finish()
            }
            Task::Scatter { mean, loadings, modes } => {
                let mut to = begin(2);
                to.sizes(modes);
                to.reals(mean);
                to.size(loadings.len());
                for u in loadings {
                    to.byte(u8::from(u.is_some()));
                    u.iter().for_each(|u| to.matrix(u));
                }
                to.finish()
            }
            Task::Groups { centres, reference } => {
                let mut to = begin(3);
                to.reals(reference);
                to.size(centres.len());
                centres.iter().for_each(|centre| to.reals(centre));
                to.finish()
            }
            Task::Rows { indices } => {
                let mut to = begin(4);
                to.sizes(indices);
                to.finish()
            }
        }
    }

    /// The task in a buffer of [`to_bytes`](Self::to_bytes); whatever is wrong with it is an error that says so.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (kind, mut from) = Reader::open(Content::Task, bytes)?;
        let task = match kind {
            0 => {
                let mode = from.size()?;
                let precision = match from.byte()? {
                    0 => Precision::Auto,
                    1 => Precision::Single,
                    2 => Precision::Double,
                    other => return Err(from.wrong(format!("precision {other} is unknown"))),
                };
                let model = from.mixture()?;
                if mode >= model.shape().len() {
                    return Err(from
                        .wrong(format!("mode {mode} (from 0) of a model of order {}", model.shape().len())));
                }
                Task::Em { model, mode, precision }
            }
            1 => Task::Moments { origin: from.reals()? },
            2 => {
                let (modes, mean) = (from.sizes()?, from.reals()?);
                let loading = |from: &mut Reader<'_>| match from.byte()? {
                    0 => Ok(None),
                    1 => from.matrix().map(Some),
                    other => Err(from.wrong(format!("loadings are there or not, but {other} was found"))),
                };
                let loadings = (0..from.count(1)?).map(|_| loading(&mut from)).collect::<Result<_>>()?;
                Task::Scatter { mean, loadings, modes }
            }
            3 => {
                let reference = from.reals()?;
                let centres = (0..from.count(8)?).map(|_| from.reals()).collect::<Result<_>>()?;
                Task::Groups { centres, reference }
            }
            4 => Task::Rows { indices: from.sizes()? },
            other => return Err(from.unknown_kind(other)),
        };
        from.finish()?;
        Ok(task)
    }
}
