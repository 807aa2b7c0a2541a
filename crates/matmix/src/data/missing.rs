//! What NaN means in a set of samples, and which samples have any.

use super::source::Chunk;
use crate::options::choices;

choices! {
    /// What a NaN in the samples is.
    ///
    /// ```
    /// use matmix::{FitOptions, Missing, Samples, fit};
    ///
    /// let mut numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
    /// numbers[7] = f64::NAN;
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let options = FitOptions { rank: vec![1], ..FitOptions::default() };
    /// assert!(fit(&samples, &options).is_err());
    /// let fitted = fit(&samples, &FitOptions { missing: Missing::Nan, ..options })?;
    /// assert_eq!((fitted.missing.cells, fitted.missing.samples), (1, 1));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Missing {
        /// A mistake: it is named in an error.
        #[default]
        Error = "error",
        /// A cell that was not observed. Nothing is put in its place: what is computed is what the observed cells say.
        Nan = "nan",
    }
}

/// The samples of a chunk, each of so many elements, that have a NaN, by their places in it.
pub(crate) fn samples_with_nan(chunk: Chunk<'_>, size: usize) -> Vec<usize> {
    match chunk {
        Chunk::U8(_) => Vec::new(),
        Chunk::F32(x) => places(x, size, f32::is_nan),
        Chunk::F64(x) => places(x, size, f64::is_nan),
    }
}

fn places<T: Copy>(elements: &[T], size: usize, is_nan: impl Fn(T) -> bool) -> Vec<usize> {
    // No early end: so it is a loop of vectors.
    let has_nan = |sample: &[T]| sample.iter().fold(false, |any, &x| any | is_nan(x));
    elements.chunks_exact(size).enumerate().filter(|(_, x)| has_nan(x)).map(|(n, _)| n).collect()
}
