//! Dense linear algebra on small matrices, in double precision.
//!
//! Written out here because a crate for it and the 36 that come with it took a minute and a half of every build from
//! scratch and a good part of each of our own, for a handful of functions. Everything gives the same bits on any number of
//! threads; what runs over the samples is in `cpu/`, the instruction sets are in `simd/`.
//!
//! Not part of the interface but for [`Matrix`](crate::Matrix): public for the tests, whose oracles are made of it.
//!
//! | file | what |
//! |---|---|
//! | `matrix`, `tensor`, `pairs` | a matrix; mode products of a tensor, and of one whose modes come in pairs |
//! | `product`, `panel`, `tile` | products of matrices, the panels they are made from, the kernel |
//! | `vector` | sums and combinations of vectors |
//! | `stretches` | work on the parts of a slice, side by side |
//! | `cholesky` | Cholesky factors, and what they solve |
//! | `householder`, `qr` | reflectors, orthonormal bases |
//! | `jacobi` | singular values |
//! | `tridiagonal`, `implicit_qr`, `eigen` | all eigenpairs: made tridiagonal, made diagonal |
//! | `krylov` | a few eigenpairs |
//! | `made` | tests: matrices, and plain algorithms to compare with |

use std::sync::LazyLock;

mod cholesky;
mod eigen;
mod householder;
mod implicit_qr;
mod jacobi;
mod krylov;
#[cfg(test)]
mod made;
mod matrix;
mod pairs;
mod panel;
mod product;
mod qr;
mod stretches;
mod tensor;
pub(crate) mod tile;
mod tridiagonal;
mod vector;

pub use cholesky::{SymmetricFactor, cholesky_lower, solve_symmetric_right};
pub use eigen::{Eigen, eigen_symmetric, leading_eigen};
pub use jacobi::svd_thin;
pub(crate) use krylov::rough_eigen_of_rows;
pub use matrix::Matrix;
pub(crate) use pairs::{contracted_cross, contracted_gram};
pub(crate) use product::add_rows_gram;
pub use qr::orthonormal_basis;
pub use tensor::{expand, mode_contraction, mode_product, project, sides_around};

use crate::simd::Instructions;

/// The instruction set everything here runs on.
static BEST: LazyLock<Instructions> = LazyLock::new(Instructions::best);
