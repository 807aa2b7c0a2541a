//! The samples nearest to each of a few centres: what k-means sums up.

use super::wire::{Reader, Writer};
use super::{Pass, Sums, check_point, same};
use crate::error::{Error, Result};

/// For every sample the nearest centre, and the sums of each centre's samples.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupsPass {
    /// The centres.
    pub centres: Vec<Vec<f64>>,
    /// A point near all of them.
    pub reference: Vec<f64>,
}

/// What k-means needs to know about the samples nearest to each centre.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// One entry per centre.
    pub groups: Vec<Group>,
}

/// The samples nearest to one centre c.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Σ w.
    pub weight: f64,
    /// Σ w (x − c).
    pub shift: Vec<f64>,
    /// Σ w ‖x − c‖².
    pub squared_distance: f64,
}

impl Group {
    /// Their mean, if there are any.
    pub(crate) fn mean(&self, centre: &[f64]) -> Option<Vec<f64>> {
        let mean = || centre.iter().zip(&self.shift).map(|(c, s)| c + s / self.weight).collect();
        (self.weight > 0.0).then(mean)
    }
}

impl GroupSums {
    pub(crate) fn zero(size: usize, centres: usize) -> Self {
        let none = Group { weight: 0.0, shift: vec![0.0; size], squared_distance: 0.0 };
        Self { n_samples: 0, groups: vec![none; centres] }
    }

    pub(crate) fn append(&mut self, other: &GroupSums) {
        self.n_samples += other.n_samples;
        for (a, b) in self.groups.iter_mut().zip(&other.groups) {
            a.weight += b.weight;
            a.shift.iter_mut().zip(&b.shift).for_each(|(a, b)| *a += b);
            a.squared_distance += b.squared_distance;
        }
    }
}

impl Pass for GroupsPass {
    type Sums = GroupSums;

    fn check(&self, shape: &[usize]) -> Result<()> {
        if self.centres.is_empty() {
            return Err(Error::Task { problem: "there are no centres".into() });
        }
        check_point("reference", &self.reference, shape)?;
        self.centres.iter().try_for_each(|centre| check_point("centre", centre, shape))
    }

    fn fits(&self, sums: &GroupSums) -> bool {
        let size = self.reference.len();
        sums.groups.len() == self.centres.len() && sums.groups.iter().all(|g| g.shift.len() == size)
    }

    fn write(&self, to: &mut Writer) {
        to.reals(&self.reference);
        to.size(self.centres.len());
        self.centres.iter().for_each(|centre| to.reals(centre));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let reference = from.reals()?;
        let centres = (0..from.count(8)?).map(|_| from.reals()).collect::<Result<_>>()?;
        Ok(Self { centres, reference })
    }
}

impl Sums for GroupSums {
    fn n_samples(&self) -> u64 {
        self.n_samples
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        same("centres", self.groups.len(), other.groups.len())?;
        for (a, b) in self.groups.iter().zip(&other.groups) {
            same("numbers per sample", a.shift.len(), b.shift.len())?;
        }
        self.append(other);
        Ok(())
    }

    fn write(&self, to: &mut Writer) {
        to.number(self.n_samples);
        to.size(self.groups.len());
        for group in &self.groups {
            to.real(group.weight);
            to.reals(&group.shift);
            to.real(group.squared_distance);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let n_samples = from.number()?;
        let group = |from: &mut Reader<'_>| {
            Ok(Group { weight: from.real()?, shift: from.reals()?, squared_distance: from.real()? })
        };
        let groups = (0..from.count(24)?).map(|_| group(from)).collect::<Result<_>>()?;
        Ok(Self { n_samples, groups })
    }
}
