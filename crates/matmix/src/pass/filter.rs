//! Samples without their noise, where it is known what of them is noise.

use crate::model::Mixture;

/// Asks for the posterior means of noisy samples,
///
/// ```text
/// E[X without noise | X] = Σ_k γ_k [ ω_k X + (1 − ω_k)(M_k + Q_k ×_1 U_k^(1) … ×_D U_k^(D)) ],   ω_k = τ_k² / (τ_k² + σ²)
/// ```
///
/// where σ² of the variance τ_k² + σ² that component k leaves unexplained is noise, and τ_k² is what the cores have no room for.
///
/// ```
/// use matmix::pass::Filter;
/// use matmix::{Backend, Component, Cpu, Matrix, Mixture, Samples};
///
/// // σ² = 1 in all, of which nothing (ω = 1) or everything (ω = 0) is what samples are without their noise.
/// let component = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 1.0)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let samples = Samples::from_vec(&[2], vec![4.0, 2.0])?;
/// let by = |kept: f64| {
///     let mut all = Vec::new();
///     Cpu::best().filter(&Filter { model: &model, kept: &[kept] }, &samples, &mut |some| all.extend(some))?;
///     Ok::<_, matmix::Error>(all)
/// };
/// assert_eq!((by(1.0)?, by(0.0)?), (vec![4.0, 2.0], vec![2.0, 0.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// The mixture over noisy samples.
    pub model: &'a Mixture,
    /// ω of every component.
    pub kept: &'a [f64],
}
