//! What is asked of samples: passes as values, which travel and whose sums add, and questions that are asked in place.
//!
//! A fit, and nearly every question about samples, is a matter of passes. A [`Pass`] is everything one of them needs but the samples; its
//! [`Sums`] are what it found out. An [`Engine`] says where the samples are and has the pass run over them, wherever that
//! is; a [`Backend`] computes. Sums of parts of a set add, in a fixed order, to those of the set.
//!
//! [`Filter`], [`Pool`] and [`Impute`] are no passes: what they find is as large as the samples, or larger, so that they are asked of a
//! backend where samples can be read, borrow their model, and do not travel.
//!
//! | file | what |
//! |---|---|
//! | `engine` | where samples are |
//! | `backend` | what computes |
//! | `task` | any pass, and any sums, as one type |
//! | `em` | the E-step and what the M-step needs |
//! | `moments` | mean, variance, extremes and a digest of the samples |
//! | `scatter` | the scatter of modes: what low-rank loadings come from |
//! | `groups` | the samples nearest to a few centres |
//! | `distances` | the distance of every sample to a few points |
//! | `rows` | some samples themselves; windows that are drawn |
//! | `ask` | what a fitted model says about every sample |
//! | `filter`, `impute`, `pool` | samples without their noise, their missing cells, what their windows add up to: asked in place |
//! | `precision` | single or double |
//! | `wire` | passes and sums as bytes |
//! | `travel` | tests: there and back, and damage on the way |
//! | `door` | tests: whoever is given a backend asks no other |

mod ask;
mod backend;
mod distances;
#[cfg(test)]
mod door;
mod em;
mod engine;
mod filter;
mod groups;
mod impute;
mod moments;
mod pool;
mod precision;
mod rows;
mod scatter;
mod task;
#[cfg(test)]
mod travel;
mod wire;

pub use ask::{Answers, AskPass, Question};
pub use backend::Backend;
pub use distances::DistancesPass;
pub use em::{ComponentSums, EmPass, EmSums, LoadingSums, Update};
pub use engine::Engine;
pub use filter::Filter;
pub use groups::{Group, GroupSums, GroupsPass};
pub use impute::{Impute, Imputed};
pub(crate) use moments::Moments;
pub use moments::{MissingCells, MomentSums, MomentsPass};
pub use pool::Pool;
pub use precision::Precision;
pub(crate) use precision::{SINGLE_RANGE, rounding_shows};
pub(crate) use rows::drawn_once;
pub use rows::{Rows, RowsPass};
pub use scatter::{ScatterPass, ScatterSums};
pub use task::{AnySums, SumTree, Task};

use crate::error::{Error, Result, sides};
pub use crate::walk::Stage;
pub use crate::walk::tree::levels as tree_levels;
pub(crate) use wire::{Content, Reader, Writer};

/// One pass over the samples as a value: everything it needs but the samples.
///
/// ```
/// use matmix::pass::{DistancesPass, MomentsPass, Pass, Sums};
/// use matmix::{Engine, Result, Samples};
///
/// fn seen<P: Pass + Clone>(samples: &dyn Engine, pass: &P) -> Result<u64> {
///     pass.check(samples.shape())?;
///     Ok(samples.sums(pass)?.n_samples())
/// }
///
/// let samples = Samples::from_vec(&[2], vec![0.0; 10])?;
/// assert_eq!(seen(&samples, &MomentsPass { origin: vec![0.0; 2], digest: false })?, 5);
/// assert_eq!(seen(&samples, &DistancesPass { points: vec![vec![1.0; 2]], reference: vec![0.0; 2] })?, 5);
/// // The origin is that of samples of three numbers.
/// assert!(seen(&samples, &MomentsPass { origin: vec![0.0; 3], digest: false }).is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Pass: Sized + Into<Task> {
    /// What it finds out.
    type Sums: Sums;

    /// Whether it is one for samples of this shape.
    ///
    /// # Errors
    /// What does not fit, and what would.
    fn check(&self, shape: &[usize]) -> Result<()>;

    /// Which of the samples it goes over.
    fn stage(&self) -> Stage {
        Stage::ALL
    }

    /// Whether these can be its sums.
    fn fits(&self, sums: &Self::Sums) -> bool;

    #[doc(hidden)]
    fn write(&self, to: &mut Writer);

    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self>;
}

/// What a pass finds out about some of the samples. Those of all parts of a set, merged in order, are those of the set.
///
/// ```
/// use matmix::pass::{Answers, Sums};
/// use matmix::Result;
///
/// fn of_all_parts<S: Sums>(mut first: S, rest: &[S]) -> Result<S> {
///     rest.iter().try_for_each(|next| first.merge(next))?;
///     Ok(first)
/// }
///
/// let part = |values: &[f64]| Answers { width: 1, values: values.to_vec() };
/// let all = of_all_parts(part(&[1.0, 2.0]), &[part(&[3.0]), part(&[4.0, 5.0])])?;
/// assert_eq!((all.n_samples(), all.values), (5, vec![1.0, 2.0, 3.0, 4.0, 5.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Sums: Sized + Into<AnySums> + TryFrom<AnySums, Error = Error> {
    /// How many samples these sums are over.
    fn n_samples(&self) -> u64;

    /// Adds the sums of the same pass over the samples that follow.
    ///
    /// # Errors
    /// If they are of another pass; nothing is added then.
    fn merge(&mut self, other: &Self) -> Result<()>;

    /// Gives the samples they name other numbers.
    fn renumber(&mut self, _number: &dyn Fn(usize) -> usize) {}

    #[doc(hidden)]
    fn write(&self, to: &mut Writer);

    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self>;
}

fn mismatch(problem: impl Into<String>) -> Error {
    Error::Sums { problem: problem.into() }
}

/// Sums can only be added if they have as many of something.
fn same(what: &str, a: usize, b: usize) -> Result<()> {
    if a == b { Ok(()) } else { Err(mismatch(format!("some have {a} {what}, some {b}"))) }
}

/// Adds what was missing of samples that follow: a weight per cell, or nothing if nothing was missing.
fn add_unseen(to: &mut Vec<f64>, following: &[f64]) {
    if to.is_empty() {
        to.extend_from_slice(following);
    } else {
        to.iter_mut().zip(following).for_each(|(to, from)| *to += from);
    }
}

/// A point among samples of this shape has as many numbers as they have.
fn check_point(what: &str, point: &[f64], shape: &[usize]) -> Result<()> {
    let size: usize = shape.iter().product();
    match point.len() {
        found if found == size => Ok(()),
        found => Err(Error::Task {
            problem: format!("the {what} has {found} numbers; samples of {} have {size}", sides(shape)),
        }),
    }
}
