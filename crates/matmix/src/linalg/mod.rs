//! Dense linear algebra on small matrices, in double precision.
//!
//! The only place that names the linear-algebra crate. Everything here gives the same bits on any number of threads; what
//! runs over the samples is in [`pass`](crate::pass).

mod decompose;
mod gram;
mod krylov;
mod matrix;
mod tensor;

pub use decompose::{
    Eigen, eigen_symmetric, leading_eigen, orthonormal_basis, solve_symmetric_right, svd_thin,
};
pub use decompose::{SymmetricFactor, cholesky_lower};
pub(crate) use gram::{Product, add_rows_gram};
pub(crate) use krylov::rough_eigen_of_rows;
pub use matrix::Matrix;
pub use tensor::{expand, mode_contraction, mode_product, project, sides_around};
