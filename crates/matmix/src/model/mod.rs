//! What is fitted: the two model types and everything that follows from their parameters alone.
//!
//! A model knows no file, thread pool or clock, and never loops over iterations.
//!
//! | file | what |
//! |---|---|
//! | `any` | either of the two types |
//! | `mixture` | weights and components |
//! | `classes` | which class each component belongs to, where labels were known |
//! | `component` | mean, loadings and noise of one component, and the list of its parameters |
//! | `density` | densities and posteriors |
//! | `gamma` | what Student-t densities need of Γ |
//! | `support` | components that data support |
//! | `typicality` | scores that rank samples with different numbers of observed cells |
//! | `partial` | densities and posteriors of samples with missing cells |
//! | `low_rank` | orthonormal loadings without noise |
//! | `canonical` | the one representative of all loadings that mean the same |
//! | `sampling` | drawing new samples |
//! | `prune` | columns that have fallen to the noise |
//! | `history` | what happened during a fit |
//! | `choice` | what components and ranks were chosen from |

mod any;
mod canonical;
mod choice;
mod classes;
mod component;
mod density;
mod gamma;
mod history;
mod low_rank;
mod mixture;
mod partial;
mod prune;
mod sampling;
mod support;
mod typicality;

pub use any::Model;
pub(crate) use canonical::fix_sign;
pub use choice::{Candidate, Choice, Criterion, Purpose};
pub use classes::Classes;
pub use component::{Component, Noise, Stacked};
pub(crate) use component::{DEGREES, Kind, Parameter};
pub(crate) use density::{Density, Exponent, not_negative, power_of_four};
pub(crate) use gamma::log_less_digamma;
pub use history::{Early, Event, History, SearchMove, SearchStep, Searched, StopReason};
pub use low_rank::LowRank;
pub use mixture::{Criteria, Mixture};
pub(crate) use partial::{Chance, Holes, Pattern};
pub use sampling::Drawn;
pub use support::Supported;
pub(crate) use typicality::Typicality;

use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// One rank per mode from what a user gives: one number for all modes or one per mode, each within its side.
///
/// # Errors
/// If there are fewer or more ranks than modes, one is zero or larger than its side, or the shape is empty.
pub fn ranks_for(shape: &[usize], rank: &[usize]) -> Result<Vec<usize>> {
    let size = shape.iter().try_fold(1usize, |size, &side| size.checked_mul(side));
    if shape.is_empty() || size.is_none_or(|size| size == 0) {
        return Err(Error::EmptyShape { shape: shape.to_vec() });
    }
    let rank = match rank {
        [one] => vec![*one; shape.len()],
        each if each.len() == shape.len() => each.to_vec(),
        other => return Err(Error::RankCount { ranks: other.len(), order: shape.len() }),
    };
    for (d, (&rank, &side)) in rank.iter().zip(shape).enumerate() {
        if rank == 0 || rank > side {
            return Err(Error::Rank { mode: d, rank, side });
        }
    }
    Ok(rank)
}

/// The ranks of loading matrices, one per mode, that fit samples of this shape and are finite.
pub(crate) fn check_loadings(shape: &[usize], loadings: &[Matrix]) -> Result<Vec<usize>> {
    let rank: Vec<usize> = loadings.iter().map(Matrix::cols).collect();
    if rank.len() != shape.len() {
        return Err(Error::RankCount { ranks: rank.len(), order: shape.len() });
    }
    let rank = ranks_for(shape, &rank)?;
    let wrong = |problem: String| Err(Error::Model { problem });
    for (d, (u, &side)) in loadings.iter().zip(shape).enumerate() {
        if u.rows() != side {
            return wrong(format!("the loadings of mode {d} have {} rows instead of {side}", u.rows()));
        }
        if !u.is_finite() {
            return wrong(format!("the loadings of mode {d} hold NaN or infinity"));
        }
    }
    Ok(rank)
}
