//! What is fitted: the two model types and everything that follows from their parameters alone.
//!
//! A model knows no file, thread pool or clock, and never loops over iterations.

mod canonical;
mod component;
mod density;
mod low_rank;
mod mixture;
mod sampling;

pub(crate) use canonical::fix_sign;
pub use component::Component;
pub use density::Density;
pub(crate) use density::not_negative;
pub use low_rank::LowRank;
pub use mixture::{Criteria, Mixture};
pub use sampling::Drawn;

use crate::error::{Error, Result};

/// One rank per mode from what a user gives: one number for all modes or one per mode, each within its side.
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
            return Err(Error::Rank { mode: d + 1, rank, side });
        }
    }
    Ok(rank)
}
