//! Eigenvectors of a scatter straight from the samples: where there are fewer of them than elements, or where a rough
//! answer will do.

use std::borrow::Cow;

use crate::data::Samples;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, add_rows_gram, leading_eigen};
use crate::pass::Engine;

/// Up to so many bytes samples are fetched from elsewhere, all of them.
pub(super) const FETCH_LIMIT: usize = 64 << 20;

/// All samples, where they can be read or are few enough to be fetched.
pub(super) fn all_rows<'a>(samples: &'a dyn Engine) -> Result<Option<Cow<'a, Samples<'a>>>> {
    if let Some(samples) = samples.local().filter(|samples| !samples.is_read_ahead()) {
        return Ok(Some(Cow::Borrowed(samples)));
    }
    if samples.n_effective() * samples.sample_len() * size_of::<f64>() > FETCH_LIMIT {
        return Ok(None);
    }
    let counts = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    Ok(Some(Cow::Owned(samples.fetch(counts)?)))
}

/// The samples that count, less the mean and times the root of their weight, as the rows of X: XᵀX is their scatter.
pub(super) fn centred_rows(samples: &Samples<'_>, mean: &[f64]) -> Result<Matrix> {
    let size = samples.sample_len();
    let counting: Vec<usize> = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    let mut x = Matrix::zeros(counting.len(), size);
    for (row, &n) in x.as_mut_slice().chunks_exact_mut(size).zip(&counting) {
        let root = samples.weight(n).sqrt();
        for ((to, from), m) in row.iter_mut().zip(samples.to_f64(n..n + 1)?).zip(mean) {
            *to = root * (from - m);
        }
        if row.iter().any(|x| !x.is_finite()) {
            samples.check_finite(n..n + 1)?;
            // What is left is missing: it has the mean.
            row.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        }
    }
    Ok(x)
}

/// What [`eigen_of_few_rows`] found.
pub(super) struct RowEigen {
    /// Orthonormal, one per column.
    pub(super) vectors: Matrix,
    pub(super) values: Vec<f64>,
    /// The sum of all eigenvalues.
    pub(super) squares: f64,
}

/// The leading eigenpairs of XᵀX (P × P) from those of XXᵀ (N × N): for fewer rows than columns.
pub(super) fn eigen_of_few_rows(x: &Matrix, rank: usize) -> Result<RowEigen> {
    let (count, size) = (x.rows(), x.cols());
    let mut products = Matrix::zeros(count, count);
    add_rows_gram(x.as_slice(), count, products.as_mut_slice());
    products.mirror_lower();
    let eigen = leading_eigen(&products, count.min(rank)).ok_or(Error::Overflow { sample: 0 })?;
    let largest = eigen.values.first().copied().unwrap_or(0.0);
    let mut vectors = Matrix::zeros(size, rank);
    let mut values = vec![0.0; rank];
    let mut found = 0;
    let turned = x.transpose_times(&eigen.vectors);
    for (j, &value) in eigen.values.iter().enumerate() {
        if value > largest * 1e-12 && value > 0.0 {
            for i in 0..size {
                vectors[(i, found)] = turned[(i, j)];
            }
            values[found] = value;
            found += 1;
        }
    }
    complete(&mut vectors, found);
    Ok(RowEigen { vectors, values, squares: products.trace() })
}

/// Makes the columns orthonormal: those `found` as they follow each other, the others, directions without variance,
/// from unit vectors.
fn complete(vectors: &mut Matrix, found: usize) {
    let (size, rank) = (vectors.rows(), vectors.cols());
    let mut next = 0;
    for j in 0..rank {
        loop {
            if j >= found {
                for i in 0..size {
                    vectors[(i, j)] = f64::from(u8::from(i == next));
                }
                next += 1;
            }
            if orthonormalize(vectors, j) || next > size {
                break;
            }
        }
    }
}

/// Gram–Schmidt, twice, of column j against those before it; false if nothing is left of it.
fn orthonormalize(v: &mut Matrix, j: usize) -> bool {
    let norm = |v: &Matrix| (0..v.rows()).map(|i| v[(i, j)] * v[(i, j)]).sum::<f64>().sqrt();
    let before = norm(v);
    for _ in 0..2 {
        for l in 0..j {
            let along: f64 = (0..v.rows()).map(|i| v[(i, l)] * v[(i, j)]).sum();
            for i in 0..v.rows() {
                let step = along * v[(i, l)];
                v[(i, j)] -= step;
            }
        }
    }
    let after = norm(v);
    if after <= 1e-8 * before || after == 0.0 {
        return false;
    }
    for i in 0..v.rows() {
        v[(i, j)] /= after;
    }
    true
}
