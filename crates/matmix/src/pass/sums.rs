//! What a task finds out about a part of the samples: values that add and travel.

use super::moments::MomentSums;
use super::statistics::{ComponentStatistics, Statistics};
use super::wire::{Content, Reader, Writer};
use crate::data::{Buffer, Element, Samples};
use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// The sums of a [`Task`](super::Task) over some of the samples. Those of all parts of a set, merged, are those of the set.
#[derive(Debug, Clone, PartialEq)]
pub enum Sums {
    /// Of an EM pass.
    Em(Statistics),
    /// For mean and variance.
    Moments(MomentSums),
    /// For the eigenvectors of some modes.
    Scatter(ScatterSums),
    /// Of the samples nearest to each of a few centres.
    Groups(GroupSums),
    /// Samples that were asked for.
    Rows(Rows),
}

/// Σ w Z Zᵀ of some modes.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// One scatter per mode, p_d × p_d, or that of the cores.
    pub scatters: Vec<Matrix>,
    /// Σ w ‖X − mean‖².
    pub squares: f64,
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

/// Some samples as they are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// How many samples were there to choose from.
    pub n_samples: u64,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
    /// Which samples, ascending.
    pub(crate) indices: Vec<usize>,
    pub(crate) elements: Buffer,
}

impl GroupSums {
    pub(super) fn merge(&mut self, other: &GroupSums) {
        self.n_samples += other.n_samples;
        for (a, b) in self.groups.iter_mut().zip(&other.groups) {
            a.weight += b.weight;
            a.shift.iter_mut().zip(&b.shift).for_each(|(a, b)| *a += b);
            a.squared_distance += b.squared_distance;
        }
    }
}

impl Rows {
    /// Which samples these are, ascending.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The samples, not yet scaled or weighted.
    pub fn into_samples(self) -> Result<Samples<'static>> {
        match self.element {
            Element::U8 => Samples::from_vec(&self.shape, self.elements.u8),
            Element::F32 => Samples::from_vec(&self.shape, self.elements.f32),
            Element::F64 => Samples::from_vec(&self.shape, self.elements.f64),
        }
    }

    fn merge(&mut self, other: &Rows) -> Result<()> {
        if self.element != other.element {
            let (a, b) = (self.element.name(), other.element.name());
            return Err(mismatch(format!("some samples are stored as {a}, some as {b}")));
        }
        if self.shape != other.shape {
            return Err(Error::ShapeMismatch { expected: self.shape.clone(), found: other.shape.clone() });
        }
        self.n_samples += other.n_samples;
        let size: usize = self.shape.iter().product();
        let in_order = self.indices.last().zip(other.indices.first()).is_none_or(|(a, b)| a < b);
        if in_order {
            self.indices.extend(&other.indices);
            self.elements.extend(other.elements.chunk(other.element));
            return Ok(());
        }
        let mut places: Vec<(usize, &Buffer, usize)> = Vec::new();
        for rows in [&*self, other] {
            places.extend(rows.indices.iter().enumerate().map(|(at, &n)| (n, &rows.elements, at)));
        }
        places.sort_by_key(|&(n, ..)| n);
        if let Some(twice) = places.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(mismatch(format!("sample {} came back twice", twice[0].0)));
        }
        let mut elements = Buffer::new();
        for &(_, buffer, at) in &places {
            elements.extend(buffer.chunk(self.element).slice(at * size..(at + 1) * size));
        }
        let indices = places.iter().map(|&(n, ..)| n).collect();
        (self.indices, self.elements) = (indices, elements);
        Ok(())
    }
}

impl Sums {
    /// How many samples these sums are over.
    pub fn n_samples(&self) -> u64 {
        match self {
            Sums::Em(s) => s.n_samples,
            Sums::Moments(s) => s.n_samples,
            Sums::Scatter(s) => s.n_samples,
            Sums::Groups(s) => s.n_samples,
            Sums::Rows(s) => s.n_samples,
        }
    }

    /// `em`, `moments`, `scatter`, `groups` or `rows`.
    pub fn kind(&self) -> &'static str {
        match self {
            Sums::Em(_) => "em",
            Sums::Moments(_) => "moments",
            Sums::Scatter(_) => "scatter",
            Sums::Groups(_) => "groups",
            Sums::Rows(_) => "rows",
        }
    }

    /// Adds the sums of the same task over other samples. The order matters to the last bits only;
    /// [`Tree`](super::tree::Tree) fixes it. Sums of another task are an error, and nothing is added.
    pub fn merge(&mut self, other: &Sums) -> Result<()> {
        match (self, other) {
            (Sums::Em(a), Sums::Em(b)) => {
                if !a.like(b) {
                    return Err(mismatch("they come from passes over different modes or models"));
                }
                a.merge(b);
            }
            (Sums::Moments(a), Sums::Moments(b)) => {
                same("numbers per sample", a.sum.len(), b.sum.len())?;
                a.merge(b);
            }
            (Sums::Scatter(a), Sums::Scatter(b)) => {
                same("scatters", a.scatters.len(), b.scatters.len())?;
                for (a, b) in a.scatters.iter().zip(&b.scatters) {
                    same("rows", a.rows(), b.rows())?;
                }
                a.n_samples += b.n_samples;
                a.scatters.iter_mut().zip(&b.scatters).for_each(|(a, b)| a.add_scaled(1.0, b));
                a.squares += b.squares;
            }
            (Sums::Groups(a), Sums::Groups(b)) => {
                same("centres", a.groups.len(), b.groups.len())?;
                for (a, b) in a.groups.iter().zip(&b.groups) {
                    same("numbers per sample", a.shift.len(), b.shift.len())?;
                }
                a.merge(b);
            }
            (Sums::Rows(a), Sums::Rows(b)) => a.merge(b)?,
            (a, b) => {
                return Err(mismatch(format!(
                    "those of a {} pass cannot be added to those of a {} pass",
                    b.kind(),
                    a.kind()
                )));
            }
        }
        Ok(())
    }

    /// One flat buffer, the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let begin = |kind| Writer::new(Content::Sums, kind);
        match self {
            Sums::Em(s) => {
                let mut to = begin(0);
                to.size(s.mode);
                to.number(s.n_samples);
                to.number(s.evaluated);
                [s.weight, s.log_likelihood, s.squared_error].into_iter().for_each(|x| to.real(x));
                to.size(s.components.len());
                for c in &s.components {
                    to.real(c.weight);
                    to.number(c.assigned);
                    to.reals(&c.mean_shift);
                    to.real(c.squared_distance);
                    [&c.cross, &c.weighted_gram, &c.gram].into_iter().for_each(|m| to.matrix(m));
                }
                to.size(s.worst.len());
                for &(log_likelihood, sample) in &s.worst {
                    to.real(log_likelihood);
                    to.size(sample);
                }
                to.finish()
            }
            Sums::Moments(s) => {
                let mut to = begin(1);
                to.number(s.n_samples);
                to.real(s.weight);
                to.reals(&s.sum);
                to.real(s.squares);
                to.finish()
            }
            Sums::Scatter(s) => {
                let mut to = begin(2);
                to.number(s.n_samples);
                to.real(s.squares);
                to.size(s.scatters.len());
                s.scatters.iter().for_each(|scatter| to.matrix(scatter));
                to.finish()
            }
            Sums::Groups(s) => {
                let mut to = begin(3);
                to.number(s.n_samples);
                to.size(s.groups.len());
                for group in &s.groups {
                    to.real(group.weight);
                    to.reals(&group.shift);
                    to.real(group.squared_distance);
                }
                to.finish()
            }
            Sums::Rows(s) => {
                let mut to = begin(4);
                to.number(s.n_samples);
                to.sizes(&s.shape);
                to.sizes(&s.indices);
                to.elements(s.elements.chunk(s.element));
                to.finish()
            }
        }
    }

    /// The sums in a buffer of [`to_bytes`](Self::to_bytes); whatever is wrong with it is an error that says so.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (kind, mut from) = Reader::open(Content::Sums, bytes)?;
        let sums = match kind {
            0 => Sums::Em(statistics(&mut from)?),
            1 => Sums::Moments(MomentSums {
                n_samples: from.number()?,
                weight: from.real()?,
                sum: from.reals()?,
                squares: from.real()?,
            }),
            2 => {
                let (n_samples, squares) = (from.number()?, from.real()?);
                let scatters: Vec<Matrix> =
                    (0..from.count(16)?).map(|_| from.matrix()).collect::<Result<_>>()?;
                if scatters.iter().any(|s| s.rows() != s.cols()) {
                    return Err(from.wrong("a scatter is not square"));
                }
                Sums::Scatter(ScatterSums { n_samples, scatters, squares })
            }
            3 => {
                let n_samples = from.number()?;
                let group = |from: &mut Reader<'_>| {
                    Ok(Group { weight: from.real()?, shift: from.reals()?, squared_distance: from.real()? })
                };
                let groups = (0..from.count(24)?).map(|_| group(&mut from)).collect::<Result<_>>()?;
                Sums::Groups(GroupSums { n_samples, groups })
            }
            4 => Sums::Rows(rows(&mut from)?),
            other => return Err(from.unknown_kind(other)),
        };
        from.finish()?;
        Ok(sums)
    }

    /// The same sums of samples whose numbers begin at `first`.
    pub(super) fn counted_from(mut self, first: usize) -> Self {
        if let Sums::Em(sums) = &mut self {
            sums.worst.iter_mut().for_each(|(_, sample)| *sample += first);
        }
        self
    }
}

fn statistics(from: &mut Reader<'_>) -> Result<Statistics> {
    let (mode, n_samples, evaluated) = (from.size()?, from.number()?, from.number()?);
    let (weight, log_likelihood, squared_error) = (from.real()?, from.real()?, from.real()?);
    let mut components: Vec<ComponentStatistics> = Vec::new();
    for _ in 0..from.count(80)? {
        let component = ComponentStatistics {
            weight: from.real()?,
            assigned: from.number()?,
            mean_shift: from.reals()?,
            squared_distance: from.real()?,
            cross: from.matrix()?,
            weighted_gram: from.matrix()?,
            gram: from.matrix()?,
        };
        if !components.first().is_none_or(|c| c.like(&component)) {
            return Err(from.wrong("their components differ in size"));
        }
        components.push(component);
    }
    let worst = (0..from.count(16)?).map(|_| Ok((from.real()?, from.size()?))).collect::<Result<_>>()?;
    Ok(Statistics { mode, n_samples, evaluated, weight, log_likelihood, squared_error, components, worst })
}

fn rows(from: &mut Reader<'_>) -> Result<Rows> {
    let n_samples = from.number()?;
    let (shape, indices) = (from.sizes()?, from.sizes()?);
    let (element, elements) = from.elements()?;
    let size = shape.iter().try_fold(indices.len(), |n, &side| n.checked_mul(side));
    if size != Some(elements.chunk(element).len()) {
        return Err(from.wrong("the number of elements does not fit the samples"));
    }
    if !indices.is_sorted_by(|a, b| a < b) {
        return Err(from.wrong("the samples are not in order"));
    }
    Ok(Rows { n_samples, element, shape, indices, elements })
}

pub(crate) fn mismatch(problem: impl Into<String>) -> Error {
    Error::Sums { problem: problem.into() }
}

fn same(what: &str, a: usize, b: usize) -> Result<()> {
    if a == b { Ok(()) } else { Err(mismatch(format!("some have {a} {what}, some {b}"))) }
}
