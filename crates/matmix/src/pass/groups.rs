//! The samples nearest to each of a few centres: what k-means sums up.

use super::moments::{MissingCells, Moments};
use super::wire::{Reader, Writer};
use super::{Pass, Sums, add_unseen, check_point, same};
use crate::error::{Error, Result};

/// For every sample the nearest centre, and the sums of each centre's samples.
///
/// ```
/// use matmix::pass::GroupsPass;
/// use matmix::{Backend, Cpu, Samples};
///
/// let samples = Samples::from_vec(&[1], vec![0.0, 1.0, 10.0, 12.0])?;
/// let pass = GroupsPass { centres: vec![vec![0.0], vec![10.0]], reference: vec![5.0] };
/// let sums = Cpu::best().groups(&pass, &samples)?;
/// // One step of k-means.
/// let moved = |(centre, k): (&Vec<f64>, usize)| centre[0] + sums.groups[k].shift[0] / sums.groups[k].weight;
/// let centres: Vec<f64> = pass.centres.iter().zip(0..).map(moved).collect();
/// assert_eq!(centres, [0.5, 11.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GroupsPass {
    /// The centres.
    pub centres: Vec<Vec<f64>>,
    /// A point near all of them.
    pub reference: Vec<f64>,
}

/// What k-means needs to know about the samples nearest to each centre.
///
/// ```
/// use matmix::pass::{GroupsPass, Sums};
/// use matmix::{Backend, Cpu, Samples};
///
/// let pass = GroupsPass { centres: vec![vec![0.0], vec![10.0]], reference: vec![5.0] };
/// let run = |numbers: &[f64]| Cpu::best().groups(&pass, &Samples::from_slice(&[1], numbers)?);
/// let mut sums = run(&[0.0, 1.0])?;
/// sums.merge(&run(&[10.0, 12.0, 2.0])?)?;
/// let weights: Vec<f64> = sums.groups.iter().map(|group| group.weight).collect();
/// assert_eq!((sums.n_samples, weights), (5, vec![3.0, 2.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// One entry per centre.
    pub groups: Vec<Group>,
}

/// The samples nearest to one centre c.
///
/// ```
/// use matmix::pass::GroupsPass;
/// use matmix::{Backend, Cpu, Samples};
///
/// let samples = Samples::from_vec(&[2], vec![1.0, 0.0, 3.0, 4.0])?;
/// let pass = GroupsPass { centres: vec![vec![0.0; 2]], reference: vec![0.0; 2] };
/// let group = &Cpu::best().groups(&pass, &samples)?.groups[0];
/// assert_eq!((group.weight, &group.shift[..]), (2.0, &[4.0, 4.0][..]));
/// assert_eq!(group.squared_distance, 1.0 + 25.0);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Σ w.
    pub weight: f64,
    /// Σ w (x − c), over observed cells.
    pub shift: Vec<f64>,
    /// Σ w ‖x − c‖²; of the observed cells, times P over their number, where some are missing.
    pub squared_distance: f64,
    /// Σ w of the samples of which a cell is missing, per cell; empty if none is.
    pub unseen: Vec<f64>,
}

impl Group {
    /// Their moments, if there are any. Where cells are missing, the mean is one with as much of `reference` as one sample
    /// (`unit`) weighs.
    pub(crate) fn moments(&self, centre: &[f64], reference: &[f64], unit: f64) -> Option<Moments> {
        if self.weight <= 0.0 {
            return None;
        }
        let (weight, unseen) = (self.weight, self.unseen.clone());
        let mut moments = Moments {
            mean: vec![],
            variance: 0.0,
            weight,
            unseen,
            missing: MissingCells::default(),
            range: [f64::NAN; 2],
            digest: 0,
        };
        let over = |i: usize| if self.unseen.is_empty() { weight } else { moments.seen(i) };
        let shift = |(i, s): (usize, &f64)| if over(i) > 0.0 { s / over(i) } else { 0.0 };
        let shifts: Vec<f64> = self.shift.iter().enumerate().map(shift).collect();
        let shift_norm: f64 = shifts.iter().map(|s| s.powi(2)).sum();
        moments.variance = (self.squared_distance / weight - shift_norm).max(0.0);
        moments.mean = centre.iter().zip(&shifts).map(|(c, s)| c + s).collect();
        moments.mean = moments.mean_towards(reference, unit);
        Some(moments)
    }
}

impl GroupSums {
    pub(crate) fn zero(size: usize, centres: usize) -> Self {
        let none = Group { weight: 0.0, shift: vec![0.0; size], squared_distance: 0.0, unseen: vec![] };
        Self { n_samples: 0, groups: vec![none; centres] }
    }

    pub(crate) fn append(&mut self, other: &GroupSums) {
        self.n_samples += other.n_samples;
        for (a, b) in self.groups.iter_mut().zip(&other.groups) {
            a.weight += b.weight;
            a.shift.iter_mut().zip(&b.shift).for_each(|(a, b)| *a += b);
            a.squared_distance += b.squared_distance;
            add_unseen(&mut a.unseen, &b.unseen);
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
            to.reals(&group.unseen);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let n_samples = from.number()?;
        let group = |from: &mut Reader<'_>| {
            let (weight, shift, squared_distance) = (from.real()?, from.reals()?, from.real()?);
            let unseen = from.reals()?;
            match unseen.len() {
                0 => {}
                found if found == shift.len() => {}
                _ => return Err(from.wrong("what is missing does not fit the samples")),
            }
            Ok(Group { weight, shift, squared_distance, unseen })
        };
        let groups = (0..from.count(32)?).map(|_| group(from)).collect::<Result<_>>()?;
        Ok(Self { n_samples, groups })
    }
}
