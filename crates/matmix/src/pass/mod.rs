//! One pass over the samples: the only place where time goes.
//!
//! A pass takes the current model, walks over the samples in chunks of a fixed size and returns a value that
//! can be added to another such value. Chunks run in parallel, are sequential inside, and are added in
//! the order of their numbers: the same bits on any number of threads.
//!
//! | file | what |
//! |---|---|
//! | [`chunks`] | splitting a set into chunks, running them in parallel, adding in order |
//! | [`ahead`] | loading the chunks of samples that are not in memory |
//! | [`meter`] | how far a pass has come |
//! | [`simd`] | the instruction sets and the numbers the kernels run in |
//! | [`contract`] | the kernel: one mode of a block of samples against a loading matrix |
//! | [`pack`], [`transpose`] | how samples become lanes |
//! | [`block`] | a block of samples: contraction and densities |
//! | [`plan`] | a model made ready for the blocks |
//! | [`coarse`] | which components need not be looked at |
//! | [`differences`], [`gram`] | sums of differences, and of the products of all pairs of elements |
//! | [`statistics`], [`products`] | the sums of an EM pass, and the small products they are made of |
//! | [`task`] | a pass as a value: everything it needs but the samples |
//! | [`sums`] | what it finds out: values that add |
//! | [`wire`] | both as bytes |
//! | [`tree`] | the order in which the sums of parts are added |
//! | [`em`], [`moments`], [`scatter`], [`distances`], [`inference`], [`cores`] | the passes themselves |

mod ahead;
pub(crate) mod aligned;
pub(crate) mod block;
pub(crate) mod chunks;
mod coarse;
pub(crate) mod contract;
pub(crate) mod cores;
pub(crate) mod densities;
mod differences;
pub(crate) mod distances;
pub(crate) mod em;
mod gram;
pub(crate) mod inference;
pub(crate) mod meter;
pub(crate) mod moments;
#[cfg(test)]
mod oracle;
pub(crate) mod pack;
pub(crate) mod plan;
mod products;
pub(crate) mod scatter;
pub(crate) mod simd;
mod stack;
pub(crate) mod statistics;
pub(crate) mod sums;
pub(crate) mod task;
pub(crate) mod transpose;
#[cfg(test)]
mod travel;
pub mod tree;
mod wire;

use crate::data::Samples;
use crate::error::{Error, Result};
use crate::model::Mixture;

pub use meter::{Meter, Reading};
pub use moments::MomentSums;
pub use plan::Precision;
pub use simd::Path as SimdPath;
pub use statistics::{ComponentStatistics, Statistics};
pub use sums::{Group, GroupSums, Rows, ScatterSums, Sums};
pub use task::Task;

/// One pass of `model` over the samples with the sums that update `mode` (counted from 0).
///
/// The sums of parts of a set merge to the sums of the whole: what a cluster of machines would do with them.
pub fn statistics(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
) -> Result<Statistics> {
    check_mode(model, mode)?;
    em::em_pass(model, samples, mode, precision, SimdPath::best())
}

/// The same with every density evaluated, also those of components that are hopeless for a sample: to compare with.
pub fn statistics_of_all(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
) -> Result<Statistics> {
    check_mode(model, mode)?;
    em::em_pass_by(model, samples, mode, precision, SimdPath::best(), em::Way::AllDensities)
}

fn check_mode(model: &Mixture, mode: usize) -> Result<()> {
    if mode >= model.shape().len() {
        return Err(Error::Option {
            option: "mode",
            value: mode.to_string(),
            expected: "less than the order of the samples",
        });
    }
    Ok(())
}
