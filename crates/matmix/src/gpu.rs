//! What is known about a GPU before one is chosen. The choice (`device.rs`) knows all that computes, and this is known to it.

/// What is known about a GPU.
///
/// ```
/// use matmix::{Device, Error};
///
/// match Device::gpus() {
///     Ok(gpus) => {
///         for (number, gpu) in gpus.iter().enumerate() {
///             let (all, free) = gpu.memory;
///             assert!(gpu.number == number && free <= all, "{}", gpu.name);
///         }
///     }
///     // No driver, no library, or a build without the feature `cuda`.
///     Err(error) => assert!(matches!(error, Error::Device { .. })),
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Its number, from 0.
    pub number: usize,
    /// What its maker calls it.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: (i32, i32),
    /// All its memory and what of it is free, in bytes.
    pub memory: (usize, usize),
}
