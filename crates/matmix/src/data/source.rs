//! The seam between a pass and whatever holds the samples.

use std::ops::Range;

use crate::error::Result;
use crate::options::choices;

choices! {
    /// The element types that are worked on as they are stored.
    ///
    /// ```
    /// use matmix::Samples;
    /// use matmix::data::Element;
    ///
    /// let bytes = Samples::from_vec(&[2, 2], vec![0u8; 12])?;
    /// assert_eq!((bytes.element(), bytes.stored_bytes()), (Element::U8, 12));
    /// assert_eq!("f32".parse::<Element>()?.size(), 4);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Element {
        /// Bytes, as grey images are stored; contracted in single precision.
        #[default]
        U8 = "u8",
        /// Single precision.
        F32 = "f32",
        /// Double precision.
        F64 = "f64",
    }
}

impl Element {
    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Element::U8 => 1,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }
}

/// A run of samples as a source holds them: sample after sample, each in row-major order.
///
/// ```
/// use matmix::data::{Chunk, Element};
///
/// let chunk = Chunk::U8(&[1, 2, 3, 4]);
/// assert_eq!((chunk.len(), chunk.element(), chunk.get(1)), (4, Element::U8, 2.0));
/// assert_eq!(chunk.slice(2..4), Chunk::U8(&[3, 4]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Chunk<'a> {
    /// Bytes.
    U8(&'a [u8]),
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

impl<'a> Chunk<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Chunk::U8(x) => x.len(),
            Chunk::F32(x) => x.len(),
            Chunk::F64(x) => x.len(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements of `range`.
    pub fn slice(self, range: Range<usize>) -> Chunk<'a> {
        match self {
            Chunk::U8(x) => Chunk::U8(&x[range]),
            Chunk::F32(x) => Chunk::F32(&x[range]),
            Chunk::F64(x) => Chunk::F64(&x[range]),
        }
    }

    /// The element type.
    pub fn element(&self) -> Element {
        match self {
            Chunk::U8(_) => Element::U8,
            Chunk::F32(_) => Element::F32,
            Chunk::F64(_) => Element::F64,
        }
    }

    /// The elements as bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Chunk::U8(x) => x,
            Chunk::F32(x) => bytemuck::cast_slice(x),
            Chunk::F64(x) => bytemuck::cast_slice(x),
        }
    }

    /// Element `index` as a double.
    pub fn get(&self, index: usize) -> f64 {
        match self {
            Chunk::U8(x) => f64::from(x[index]),
            Chunk::F32(x) => f64::from(x[index]),
            Chunk::F64(x) => x[index],
        }
    }
}

/// Room for a source that has to copy or decode what it returns; one per thread, reused from chunk to chunk.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::{Buffer, Chunk};
///
/// let samples = Samples::from_vec(&[2], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut buffer = Buffer::new();
/// assert_eq!(samples.stored(1..3, &mut buffer)?, Chunk::F32(&[3.0, 4.0, 5.0, 6.0]));
/// // Some of them, out of order, have to be copied: that is what the buffer is for.
/// let chosen = samples.select(&[2, 0])?;
/// assert_eq!(chosen.stored(0..2, &mut buffer)?, Chunk::F32(&[5.0, 6.0, 1.0, 2.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Buffer {
    /// Room for bytes.
    pub u8: Vec<u8>,
    /// Room for single precision.
    pub f32: Vec<f32>,
    /// Room for double precision.
    pub f64: Vec<f64>,
}

impl Buffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn clear(&mut self) {
        self.u8.clear();
        self.f32.clear();
        self.f64.clear();
    }

    pub(crate) fn extend(&mut self, chunk: Chunk<'_>) {
        match chunk {
            Chunk::U8(x) => self.u8.extend_from_slice(x),
            Chunk::F32(x) => self.f32.extend_from_slice(x),
            Chunk::F64(x) => self.f64.extend_from_slice(x),
        }
    }

    pub(crate) fn chunk(&self, element: Element) -> Chunk<'_> {
        match element {
            Element::U8 => Chunk::U8(&self.u8),
            Element::F32 => Chunk::F32(&self.f32),
            Element::F64 => Chunk::F64(&self.f64),
        }
    }
}

choices! {
    /// Where the samples of a source are, nearest first.
    ///
    /// ```
    /// use matmix::Samples;
    /// use matmix::data::{Residence, npy};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("x.npy");
    /// npy::write_array(&path, &[3, 2], &[0.0f32; 6])?;
    /// assert_eq!(Samples::from_npy(&path)?.residence(), Residence::Mapped);
    /// assert_eq!(Samples::from_vec(&[2], vec![0.0f32; 6])?.residence(), Residence::Memory);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    #[derive(PartialOrd, Ord)]
    pub enum Residence {
        /// In memory.
        #[default]
        Memory = "memory",
        /// In a file that is mapped: borrowed where memory allows, and loaded where it does not.
        Mapped = "mapped",
        /// Elsewhere: every run of samples has to be read or decoded first.
        Elsewhere = "elsewhere",
    }
}

/// Something that holds samples of one shape and hands out runs of them.
///
/// A source that already holds the elements in memory (or maps them) returns a borrow of itself and leaves
/// the buffer alone; one that has to decode fills the buffer and returns a borrow of that.
///
/// ```
/// use std::ops::Range;
/// use std::sync::Arc;
/// use matmix::data::{Buffer, Chunk, Element, Source};
/// use matmix::{Result, Samples};
///
/// /// A million pairs (n, n²) that are nowhere until they are asked for.
/// struct Squares;
///
/// impl Source for Squares {
///     fn shape(&self) -> &[usize] {
///         &[2]
///     }
///     fn len(&self) -> usize {
///         1_000_000
///     }
///     fn element(&self) -> Element {
///         Element::F64
///     }
///     fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
///         buffer.f64 = range.flat_map(|n| [n as f64, (n * n) as f64]).collect();
///         Ok(Chunk::F64(&buffer.f64))
///     }
/// }
///
/// let samples = Samples::from_source(Arc::new(Squares))?;
/// assert_eq!(samples.to_f64(9..11)?, [9.0, 81.0, 10.0, 100.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Source: Send + Sync {
    /// The shape of one sample: one side per mode.
    fn shape(&self) -> &[usize];

    /// The number of samples.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type of the chunks.
    fn element(&self) -> Element;

    /// Samples `range.start` to `range.end`, which the caller keeps within `0..len()`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>>;

    /// Where the samples are. Those that are not in memory are loaded ahead of the pass that needs them.
    fn residence(&self) -> Residence {
        Residence::Memory
    }

    /// Adds samples `range` to what is in the buffer, without mapped memory and without other threads.
    ///
    /// # Errors
    /// If they cannot be read.
    fn load(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        let mut own = Buffer::new();
        buffer.extend(self.read(range, &mut own)?);
        Ok(())
    }

    /// Whether what holds the samples is still what it was when it was opened; asked before every pass.
    ///
    /// # Errors
    /// If it is not.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Adds the samples at these places, in this order, to what is in the buffer.
    ///
    /// # Errors
    /// If they cannot be read.
    fn pick(&self, places: &[usize], buffer: &mut Buffer) -> Result<()> {
        let mut own = Buffer::new();
        for run in neighbours(places) {
            buffer.extend(self.read(run, &mut own)?);
        }
        Ok(())
    }

    /// Where in the memory of a GPU the samples lie, if they do.
    #[doc(hidden)]
    fn device_memory(&self) -> Option<DeviceMemory> {
        None
    }

    /// How many samples each of its parts (files, say) has, in order: a chunk never spans two of them, and their sums
    /// are added along a fixed tree.
    fn parts(&self) -> Vec<usize> {
        vec![self.len()]
    }
}

/// Samples in the memory of a GPU, one after the other. Made by this crate alone, which sees to it that it is true.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The number of the GPU, from 0.
    pub(crate) device: usize,
    /// Where the first of them begins.
    pub(crate) address: u64,
}

impl DeviceMemory {
    /// The number of the GPU, from 0.
    pub fn device(&self) -> usize {
        self.device
    }
}

/// Places as runs of neighbours.
pub(super) fn neighbours(places: &[usize]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for &place in places {
        match runs.last_mut() {
            Some(run) if run.end == place => run.end += 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// Samples in memory, owned or borrowed.
pub(crate) struct InMemory<'a, T: Clone> {
    shape: Vec<usize>,
    elements: std::borrow::Cow<'a, [T]>,
}

impl<'a, T: Clone> InMemory<'a, T> {
    /// The caller has checked that the length is a multiple of the sample size.
    pub(crate) fn new(shape: Vec<usize>, elements: std::borrow::Cow<'a, [T]>) -> Self {
        Self { shape, elements }
    }
}

/// An element type that can stand in a [`Chunk`].
///
/// ```
/// use matmix::data::Scalar;
///
/// fn sum<T: Scalar>(elements: &[T]) -> f64 {
///     let chunk = T::chunk(elements);
///     (0..chunk.len()).map(|i| chunk.get(i)).sum()
/// }
///
/// assert_eq!((sum(&[1u8, 2, 3]), sum(&[0.5f32, 0.25])), (6.0, 0.75));
/// ```
pub trait Scalar: bytemuck::Pod + Send + Sync {
    /// Which of the three it is.
    const ELEMENT: Element;

    /// The elements as a chunk.
    fn chunk(elements: &[Self]) -> Chunk<'_>;
}

impl Scalar for u8 {
    const ELEMENT: Element = Element::U8;
    fn chunk(elements: &[Self]) -> Chunk<'_> {
        Chunk::U8(elements)
    }
}

impl Scalar for f32 {
    const ELEMENT: Element = Element::F32;
    fn chunk(elements: &[Self]) -> Chunk<'_> {
        Chunk::F32(elements)
    }
}

impl Scalar for f64 {
    const ELEMENT: Element = Element::F64;
    fn chunk(elements: &[Self]) -> Chunk<'_> {
        Chunk::F64(elements)
    }
}

impl<T: Scalar> Source for InMemory<'_, T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        // A sample that holds nothing is refused, but not before it was counted.
        self.elements.len().checked_div(self.shape.iter().product()).unwrap_or(0)
    }

    fn element(&self) -> Element {
        T::ELEMENT
    }

    fn read<'a>(&'a self, range: Range<usize>, _: &'a mut Buffer) -> Result<Chunk<'a>> {
        let size: usize = self.shape.iter().product();
        Ok(T::chunk(&self.elements[range.start * size..range.end * size]))
    }
}
