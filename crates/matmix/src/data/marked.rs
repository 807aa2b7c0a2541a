//! Samples that have a value where a cell is missing: 255, say, or whatever is below 0.

use std::ops::Range;
use std::sync::Arc;

use super::missing::Missing;
use super::samples::Samples;
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::Result;

/// Which values, as they are stored, stand for a cell that was not observed.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::FillValue;
///
/// let samples = Samples::from_vec(&[3], vec![1.0, -9999.0, 0.0])?.with_fill_value(FillValue::Below(0.0))?;
/// let missing: Vec<bool> = samples.to_f64(0..1)?.iter().map(|x| x.is_nan()).collect();
/// assert_eq!(missing, [false, true, false]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FillValue {
    /// This one.
    Is(f64),
    /// Everything below.
    Below(f64),
}

impl FillValue {
    fn is_missing(self, x: f64) -> bool {
        match self {
            FillValue::Is(value) => x == value,
            FillValue::Below(value) => x < value,
        }
    }
}

impl<'a> Samples<'a> {
    /// The same samples with NaN, which means a missing cell, in the place of these values. Bytes become single precision.
    ///
    /// ```
    /// use matmix::Samples;
    /// use matmix::data::FillValue;
    ///
    /// let samples = Samples::from_vec(&[2], vec![1u8, 255, 3, 4])?.scaled(0.5)?.with_fill_value(FillValue::Is(255.0))?;
    /// let values = samples.to_f64(0..2)?;
    /// assert!(values[1].is_nan());
    /// assert_eq!((values[0], &values[2..]), (0.5, &[1.5, 2.0][..]));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub fn with_fill_value(self, fill: FillValue) -> Result<Self> {
        let Self { scale, weights, classes, budget, meter, .. } = self.clone();
        let source = Arc::new(Marked { samples: Samples { scale: 1.0, ..self }, fill });
        let marked = Samples::from_source(source)?;
        Ok(Samples { scale, weights, classes, budget, meter, missing: Missing::Nan, ..marked })
    }
}

struct Marked<'a> {
    samples: Samples<'a>,
    fill: FillValue,
}

impl Source for Marked<'_> {
    fn shape(&self) -> &[usize] {
        self.samples.shape()
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn element(&self) -> Element {
        match self.samples.element() {
            Element::F64 => Element::F64,
            _ => Element::F32,
        }
    }

    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        let mut own = Buffer::new();
        let chunk = self.samples.stored(range, &mut own)?;
        buffer.clear();
        let value = |x: f64| if self.fill.is_missing(x) { f64::NAN } else { x };
        match chunk {
            Chunk::U8(x) => buffer.f32.extend(x.iter().map(|&x| value(f64::from(x)) as f32)),
            Chunk::F32(x) => buffer.f32.extend(x.iter().map(|&x| value(f64::from(x)) as f32)),
            Chunk::F64(x) => buffer.f64.extend(x.iter().map(|&x| value(x))),
        }
        Ok(buffer.chunk(self.element()))
    }

    fn residence(&self) -> Residence {
        self.samples.residence()
    }

    fn check(&self) -> Result<()> {
        self.samples.check_unchanged()
    }

    fn parts(&self) -> Vec<usize> {
        self.samples.parts().iter().map(ExactSizeIterator::len).collect()
    }
}
