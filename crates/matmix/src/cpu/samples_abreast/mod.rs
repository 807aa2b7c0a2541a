//! Blocks of samples side by side: one sample per lane of a vector.
//!
//! The arrangement for few components and for large samples. Contracting a mode is the same loop for every order and every
//! mode, but samples have to be transposed first, so that a vector holds the same element of each.
//!
//! | file | what |
//! |---|---|
//! | [`block`] | a block of samples: contraction and densities |
//! | [`pack`] | samples put side by side, one per lane, a panel at a time |
//! | [`products`] | the sums of a pass that updates one mode |

mod block;
mod pack;
mod products;

pub(super) use block::SampleBlock;
pub(super) use pack::PACKING;
pub(super) use pack::{PackedWhole, Panel, lanes};
pub(super) use products::SampleProducts;
