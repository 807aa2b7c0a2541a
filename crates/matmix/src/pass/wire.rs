//! Tasks and sums as bytes: explicit, little-endian, versioned and checked, so that they can travel between machines.
//!
//! ```text
//! magic (4) · version (2) · kind (1) · 0 · body … · CRC-32 of everything before (4)
//! ```
//!
//! In the body a sequence is its length (8 bytes) and its elements. A reader trusts nothing: it compares every
//! length with what is left before it makes room.

use crate::data::{Buffer, Chunk, Element};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Classes, Component, LowRank, Mixture, Model, Parameter};

const VERSION: u16 = 7;
const HEADER: usize = 8;
const CHECKSUM: usize = 4;

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Task,
    Sums,
    /// Known samples, to be compared with others.
    Gallery,
}

impl Content {
    fn magic(self) -> [u8; 4] {
        match self {
            Content::Task => *b"MMXT",
            Content::Sums => *b"MMXS",
            Content::Gallery => *b"MMXG",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Content::Task => "task",
            Content::Sums => "sums",
            Content::Gallery => "gallery",
        }
    }
}

/// Makes a buffer.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(content: Content, kind: u8) -> Self {
        let mut bytes = content.magic().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([kind, 0]);
        Self { bytes }
    }

    pub(crate) fn byte(&mut self, x: u8) {
        self.bytes.push(x);
    }

    pub(crate) fn number(&mut self, x: u64) {
        self.bytes.extend(x.to_le_bytes());
    }

    pub(crate) fn size(&mut self, x: usize) {
        self.number(x as u64);
    }

    pub(crate) fn real(&mut self, x: f64) {
        self.bytes.extend(x.to_le_bytes());
    }

    pub(crate) fn sizes(&mut self, x: &[usize]) {
        self.size(x.len());
        x.iter().for_each(|&x| self.size(x));
    }

    pub(crate) fn reals(&mut self, x: &[f64]) {
        self.size(x.len());
        self.bytes.reserve(8 * x.len());
        x.iter().for_each(|&x| self.real(x));
    }

    pub(crate) fn matrix(&mut self, x: &Matrix) {
        self.size(x.rows());
        self.size(x.cols());
        x.as_slice().iter().for_each(|&x| self.real(x));
    }

    pub(crate) fn elements(&mut self, x: Chunk<'_>) {
        let element = match x {
            Chunk::U8(_) => 0,
            Chunk::F32(_) => 1,
            Chunk::F64(_) => 2,
        };
        self.byte(element);
        self.size(x.len());
        match x {
            Chunk::U8(x) => self.bytes.extend(x),
            Chunk::F32(x) => x.iter().for_each(|x| self.bytes.extend(x.to_le_bytes())),
            Chunk::F64(x) => x.iter().for_each(|x| self.bytes.extend(x.to_le_bytes())),
        }
    }

    /// A short name.
    pub(crate) fn name(&mut self, name: &str) {
        self.size(name.len());
        self.bytes.extend(name.as_bytes());
    }

    pub(crate) fn mixture(&mut self, model: &Mixture) {
        self.sizes(model.shape());
        self.sizes(model.rank());
        let (parameters, _) = model.components()[0].parameters();
        let optional: Vec<&Parameter> = parameters.iter().filter(|p| p.is_optional()).collect();
        self.size(optional.len());
        optional.iter().for_each(|parameter| self.name(&parameter.name));
        self.reals(model.weights());
        for component in model.components() {
            let values = parameters.iter().filter_map(|parameter| component.value(parameter.kind));
            values.for_each(|values| self.reals(&values));
        }
        let names = model.classes().map_or(&[][..], Classes::names);
        self.size(names.len());
        names.iter().for_each(|name| self.name(name));
        if let Some(classes) = model.classes() {
            self.sizes(classes.components());
        }
    }

    pub(crate) fn model(&mut self, model: &Model) {
        match model {
            Model::Mixture(model) => {
                self.byte(0);
                self.mixture(model);
            }
            Model::LowRank(model) => {
                self.byte(1);
                self.sizes(model.shape());
                self.reals(model.mean());
                model.loadings().iter().for_each(|u| self.matrix(u));
            }
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = checksum(&self.bytes);
        self.bytes.extend(checksum);
        self.bytes
    }
}

/// Takes a buffer apart.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    content: Content,
}

impl<'a> Reader<'a> {
    /// The kind of what is in the buffer, and a reader of its body.
    pub(crate) fn open(content: Content, bytes: &'a [u8]) -> Result<(u8, Self)> {
        let reader = Self { rest: bytes, content };
        if bytes.len() < HEADER + CHECKSUM {
            return Err(reader.wrong(format!("they are {} bytes and end inside the header", bytes.len())));
        }
        if bytes[..4] != content.magic() {
            let other = [Content::Task, Content::Sums, Content::Gallery]
                .into_iter()
                .find(|c| bytes[..4] == c.magic());
            return Err(reader.wrong(match other {
                Some(other) => format!("they hold {}", other.name()),
                None => "they were not written by matmix".into(),
            }));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(reader.wrong(format!(
                "they are of version {version}, this library knows version {VERSION}; use the same matmix on every machine"
            )));
        }
        let (before, end) = bytes.split_at(bytes.len() - CHECKSUM);
        if checksum(before) != end {
            return Err(reader.wrong("their checksum is wrong: they were cut short or changed on the way"));
        }
        Ok((bytes[6], Self { rest: &before[HEADER..], content }))
    }

    pub(crate) fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::Bytes { what: self.content.name(), problem: problem.into() }
    }

    pub(crate) fn unknown_kind(&self, kind: u8) -> Error {
        self.wrong(format!("their kind is {kind}, which this library does not know"))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(self.wrong("they end before their content does"));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn eight(&mut self) -> Result<[u8; 8]> {
        let taken = self.take(8)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.eight()?))
    }

    pub(crate) fn size(&mut self) -> Result<usize> {
        let number = self.number()?;
        usize::try_from(number).map_err(|_| self.wrong(format!("{number} is too large for this machine")))
    }

    pub(crate) fn real(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.eight()?))
    }

    /// The bytes of so many elements of `width` bytes.
    fn run(&mut self, count: usize, width: usize) -> Result<&'a [u8]> {
        let bytes =
            count.checked_mul(width).ok_or_else(|| self.wrong("they end before their content does"))?;
        self.take(bytes)
    }

    fn run_of_reals(&mut self, count: usize) -> Result<Vec<f64>> {
        let bytes = self.run(count, 8)?;
        Ok(bytes.chunks_exact(8).map(|b| f64::from_le_bytes(std::array::from_fn(|i| b[i]))).collect())
    }

    /// The length of a sequence whose elements take at least `least` bytes each.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.size()?;
        if count.checked_mul(least).is_none_or(|bytes| bytes > self.rest.len()) {
            return Err(self.wrong("they end before their content does"));
        }
        Ok(count)
    }

    pub(crate) fn sizes(&mut self) -> Result<Vec<usize>> {
        (0..self.count(8)?).map(|_| self.size()).collect()
    }

    pub(crate) fn reals(&mut self) -> Result<Vec<f64>> {
        let count = self.count(8)?;
        self.run_of_reals(count)
    }

    pub(crate) fn matrix(&mut self) -> Result<Matrix> {
        let (rows, cols) = (self.size()?, self.size()?);
        let count = rows.checked_mul(cols).ok_or_else(|| self.wrong("they end before their content does"))?;
        Ok(Matrix::from_vec(rows, cols, self.run_of_reals(count)?))
    }

    pub(crate) fn elements(&mut self) -> Result<(Element, Buffer)> {
        let kind = self.byte()?;
        let count = self.count(1)?;
        let mut buffer = Buffer::new();
        let element = match kind {
            0 => {
                buffer.u8 = self.run(count, 1)?.to_vec();
                Element::U8
            }
            1 => {
                let bytes = self.run(count, 4)?.chunks_exact(4);
                buffer.f32 = bytes.map(|b| f32::from_le_bytes(std::array::from_fn(|i| b[i]))).collect();
                Element::F32
            }
            2 => {
                buffer.f64 = self.run_of_reals(count)?;
                Element::F64
            }
            other => return Err(self.wrong(format!("element type {other} is unknown"))),
        };
        Ok((element, buffer))
    }

    pub(crate) fn name(&mut self) -> Result<String> {
        let length = self.count(1)?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.wrong("a name in them is no text"))
    }

    pub(crate) fn fixed_sizes<const N: usize>(&mut self) -> Result<[usize; N]> {
        let sizes = self.sizes()?;
        let found = sizes.len();
        sizes.try_into().map_err(|_| self.wrong(format!("{found} sizes stand where {N} should")))
    }

    /// Whether so many bytes can still come; `None` is more than there can be.
    pub(crate) fn has_room(&self, bytes: Option<usize>) -> Result<()> {
        match bytes {
            Some(bytes) if bytes <= self.rest.len() => Ok(()),
            _ => Err(self.wrong("they end before their content does")),
        }
    }

    /// The model with exactly the numbers that were written: the sums of a pass are around its very axes.
    pub(crate) fn mixture(&mut self) -> Result<Mixture> {
        let (shape, rank) = (self.sizes()?, self.sizes()?);
        let optional = (0..self.count(8)?).map(|_| self.name()).collect::<Result<Vec<_>>>()?;
        let has = |parameter: &Parameter| optional.contains(&parameter.name);
        let parameters = Parameter::all(&shape, &rank, has).map_err(|e| self.wrong(e.to_string()))?;
        if let Some(name) = optional.iter().find(|name| !parameters.iter().any(|p| p.name == **name)) {
            return Err(self.wrong(format!("parameter `{name}` is unknown")));
        }
        let weights = self.reals()?;
        let mut components = Vec::new();
        for _ in 0..weights.len() {
            let component = Component::assemble(&shape, &parameters, |_| self.reals());
            components.push(component.map_err(|e| match e {
                Error::Bytes { .. } => e,
                other => self.wrong(other.to_string()),
            })?);
        }
        let model = Mixture::exactly(&shape, weights, components).map_err(|e| self.wrong(e.to_string()))?;
        let names = (0..self.count(8)?).map(|_| self.name()).collect::<Result<Vec<_>>>()?;
        if names.is_empty() {
            return Ok(model);
        }
        let classes = Classes::new(names, self.sizes()?);
        let model = classes.and_then(|classes| model.with_classes(Some(classes)));
        model.map_err(|e| self.wrong(e.to_string()))
    }

    pub(crate) fn model(&mut self) -> Result<Model> {
        match self.byte()? {
            0 => self.mixture().map(Model::Mixture),
            1 => {
                let (shape, mean) = (self.sizes()?, self.reals()?);
                let loadings = shape.iter().map(|_| self.matrix()).collect::<Result<Vec<_>>>()?;
                let model = LowRank::new(&shape, mean, loadings);
                model.map(Model::LowRank).map_err(|e| self.wrong(e.to_string()))
            }
            other => Err(self.wrong(format!("model {other} is unknown"))),
        }
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(self.wrong(format!("{left} bytes are left after their content"))),
        }
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    (xxhash_rust::xxh3::xxh3_64(bytes) as u32).to_le_bytes()
}

/// Makes the checksum right again.
#[cfg(test)]
pub(crate) fn reseal(bytes: &mut [u8]) {
    let body = bytes.len() - CHECKSUM;
    let checksum = checksum(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum);
}
