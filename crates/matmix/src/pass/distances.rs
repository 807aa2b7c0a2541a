//! The squared distance of every sample to a few points.

use super::ask::Answers;
use super::wire::{Reader, Writer};
use super::{Pass, check_point};
use crate::error::{Error, Result};

/// ‖x − c‖² for every sample x and each of a few points c: [`Answers`] of as many numbers per sample.
///
/// ```
/// use matmix::pass::DistancesPass;
/// use matmix::{Backend, Cpu, Samples};
///
/// let samples = Samples::from_vec(&[2], vec![0.0, 0.0, 3.0, 4.0])?;
/// let pass = DistancesPass { points: vec![vec![0.0, 0.0], vec![3.0, 0.0]], reference: vec![0.0; 2] };
/// let found = Cpu::best().distances(&pass, &samples)?;
/// assert_eq!((found.width, found.values), (2, vec![0.0, 9.0, 25.0, 16.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DistancesPass {
    /// The points.
    pub points: Vec<Vec<f64>>,
    /// A point near all of them.
    pub reference: Vec<f64>,
}

impl Pass for DistancesPass {
    type Sums = Answers;

    fn check(&self, shape: &[usize]) -> Result<()> {
        if self.points.is_empty() {
            return Err(Error::Task { problem: "there are no points".into() });
        }
        check_point("reference", &self.reference, shape)?;
        self.points.iter().try_for_each(|point| check_point("point", point, shape))
    }

    fn fits(&self, sums: &Answers) -> bool {
        sums.width == self.points.len()
    }

    fn write(&self, to: &mut Writer) {
        to.reals(&self.reference);
        to.size(self.points.len());
        self.points.iter().for_each(|point| to.reals(point));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let reference = from.reals()?;
        let points = (0..from.count(8)?).map(|_| from.reals()).collect::<Result<_>>()?;
        Ok(Self { points, reference })
    }
}
