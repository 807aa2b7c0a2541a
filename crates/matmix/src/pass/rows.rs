//! Some samples themselves, asked for by number.

use super::wire::{Reader, Writer};
use super::{Engine, Pass, Sums, mismatch};
use crate::data::{Buffer, Element, Patches, Samples};
use crate::error::{Error, Result};

/// Windows of images drawn at random, cut out once and for all where they are few: every pass of a fit would read all images again for
/// them.
pub(crate) fn drawn_once<'a>(
    patches: &Patches,
    images: &Samples<'a>,
    count: usize,
    seed: u64,
) -> Result<Samples<'a>> {
    let drawn = patches.drawn(images, count, seed)?;
    if drawn.len() > count.min(1 << 20) {
        return Ok(drawn);
    }
    (&drawn as &dyn Engine).fetch((0..drawn.len()).collect())
}

/// Some samples as they are stored. An engine need not look at the parts that hold none of them, as long as it counts their
/// samples.
///
/// ```
/// use matmix::pass::RowsPass;
/// use matmix::{Engine, Samples};
///
/// let samples = Samples::from_vec(&[2], vec![0u8, 1, 2, 3, 4, 5])?;
/// let rows = (&samples as &dyn Engine).sums(&RowsPass { indices: vec![2, 0] })?;
/// assert_eq!((rows.n_samples, rows.indices()), (3, &[0, 2][..]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowsPass {
    /// Which samples; the order does not matter.
    pub indices: Vec<usize>,
}

/// Some samples as they are stored.
///
/// ```
/// use matmix::pass::{Rows, RowsPass, Sums, Task};
/// use matmix::{Cpu, Samples};
///
/// // Samples 1 and 3 of a set in two parts of two.
/// let task = Task::from(RowsPass { indices: vec![1, 3] });
/// let part = |numbers: [f32; 2], first| {
///     Rows::try_from(task.run(&Cpu::best(), &Samples::from_slice(&[1], &numbers)?, first)?)
/// };
/// let mut rows = part([0.0, 10.0], 0)?;
/// rows.merge(&part([20.0, 30.0], 2)?)?;
/// assert_eq!(rows.into_samples()?.to_f64(0..2)?, [10.0, 30.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// How many samples were there to choose from.
    pub n_samples: u64,
    element: Element,
    shape: Vec<usize>,
    /// Which samples, ascending.
    indices: Vec<usize>,
    elements: Buffer,
}

impl RowsPass {
    /// Those of its samples that are among these, the first of which has the number `first`.
    pub(crate) fn run(&self, samples: &Samples<'_>, first: usize) -> Result<Rows> {
        let here = first..first + samples.len();
        let mut indices: Vec<usize> = self.indices.iter().copied().filter(|n| here.contains(n)).collect();
        indices.sort_unstable();
        indices.dedup();
        let (mut elements, mut some) = (Buffer::new(), Buffer::new());
        if !indices.is_empty() {
            let places: Vec<usize> = indices.iter().map(|n| n - first).collect();
            let chosen = samples.clone().select_part(&places)?;
            elements.extend(chosen.stored(0..places.len(), &mut some)?);
        }
        let (element, shape) = (samples.element(), samples.shape().to_vec());
        Ok(Rows { n_samples: samples.len() as u64, element, shape, indices, elements })
    }
}

impl Rows {
    /// Which samples these are, ascending.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The samples, not yet scaled or weighted.
    ///
    /// # Errors
    /// If there are none.
    pub fn into_samples(self) -> Result<Samples<'static>> {
        match self.element {
            Element::U8 => Samples::from_vec(&self.shape, self.elements.u8),
            Element::F32 => Samples::from_vec(&self.shape, self.elements.f32),
            Element::F64 => Samples::from_vec(&self.shape, self.elements.f64),
        }
    }
}

impl Pass for RowsPass {
    type Sums = Rows;

    fn check(&self, _shape: &[usize]) -> Result<()> {
        Ok(())
    }

    fn fits(&self, sums: &Rows) -> bool {
        let mut wanted = self.indices.clone();
        wanted.sort_unstable();
        wanted.dedup();
        sums.indices == wanted
    }

    fn write(&self, to: &mut Writer) {
        to.sizes(&self.indices);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { indices: from.sizes()? })
    }
}

impl Sums for Rows {
    fn n_samples(&self) -> u64 {
        self.n_samples
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if self.element != other.element {
            let (a, b) = (self.element, other.element);
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

    fn write(&self, to: &mut Writer) {
        to.number(self.n_samples);
        to.sizes(&self.shape);
        to.sizes(&self.indices);
        to.elements(self.elements.chunk(self.element));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
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
}
