//! Images as samples: decoded once, or again whenever a part of them is read.

use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::file::{self, Identity};
use super::image::{self, Contents, Depth, Header, Page, Pixels, Room, Values};
use super::marked::Unobserved;
use super::open::OpenOptions;
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::{Error, FileKind, Result};

pub(super) const FORMAT: FileKind = FileKind::Image;
/// Pages of a stack that are decoded by one thread, one after the other.
const RUN: usize = 64;
/// What is decoded in parallel before it is put in its place, in bytes.
const BATCH: usize = 64 << 20;

/// An image file whose header was read.
#[derive(Debug, Clone)]
pub(super) struct ImageFile {
    pub(super) path: PathBuf,
    identity: Identity,
}

impl ImageFile {
    /// Reads the headers of a file.
    pub(super) fn open(path: &Path) -> Result<(Self, Contents)> {
        let (file, identity) = file::open(path)?;
        let room = Room { file: identity.bytes };
        let contents = image::headers(BufReader::new(file), room);
        let contents = contents.map_err(|problem| Error::format(path, FORMAT, problem))?;
        Ok((Self { path: path.to_owned(), identity }, contents))
    }
}

/// One picture: the number of its file and of its page there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) page: Page,
}

/// What a picture is read for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Purpose {
    /// Its values.
    Values,
    /// Its values, with NaN where its alpha is 0 or below this share of what is opaque.
    Opaque(f64),
    /// What is not black: 255 there, 0 elsewhere.
    Mask,
}

impl Purpose {
    pub(super) fn of(options: &OpenOptions) -> Self {
        match options.missing {
            Some(Unobserved::Alpha(share)) => Self::Opaque(share),
            _ => Self::Values,
        }
    }
}

/// Images that are decoded when they are read.
pub(super) struct Images {
    files: Vec<ImageFile>,
    places: Vec<Place>,
    shape: Vec<usize>,
    element: Element,
    resize: bool,
    purpose: Purpose,
}

impl Images {
    /// The images at `places`, which all have this many rows and columns, or are brought to them.
    pub(super) fn new(
        files: Vec<ImageFile>,
        places: Vec<Place>,
        headers: &[Header],
        (rows, columns): (usize, usize),
        (colour, resize): (bool, bool),
        purpose: Purpose,
    ) -> Self {
        let shape = if colour { vec![rows, columns, 3] } else { vec![rows, columns] };
        let bytes = match purpose {
            Purpose::Mask => true,
            Purpose::Opaque(_) => {
                headers.iter().all(|header| header.depth == Depth::U8 && !header.channels.has_alpha())
            }
            Purpose::Values => headers.iter().all(|header| header.depth == Depth::U8),
        };
        let element = if bytes { Element::U8 } else { Element::F32 };
        Self { files, places, shape, element, resize, purpose }
    }

    fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The bytes of all of them, if they can be counted.
    pub(super) fn bytes(&self) -> Option<u64> {
        let sample = self.sample_len().checked_mul(self.element.size())?;
        self.places.len().checked_mul(sample).map(|bytes| bytes as u64)
    }

    /// Decodes the first one: what a header says is believed once a picture has really come out of a file.
    pub(super) fn check_first(&self) -> Result<()> {
        self.append(&self.places[..1], &mut Buffer::new())
    }

    /// Decodes them all.
    pub(super) fn all(&self) -> Result<Buffer> {
        let mut buffer = Buffer::new();
        self.decode(0..self.places.len(), &mut buffer)?;
        Ok(buffer)
    }

    /// Adds images to the buffer, on all threads. The first failure in the order of the images is reported: nothing
    /// depends on the number of threads.
    fn decode(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        let size = self.sample_len();
        match self.element {
            Element::U8 => buffer.u8.reserve_exact(range.len() * size),
            _ => buffer.f32.reserve_exact(range.len() * size),
        }
        let batch = (BATCH / (size * self.element.size())).clamp(4 * rayon::current_num_threads(), 1024);
        for places in self.places[range].chunks(batch) {
            let runs: Vec<&[Place]> =
                places.chunk_by(|a, b| a.file == b.file).flat_map(|pages| pages.chunks(RUN)).collect();
            let decoded: Vec<Result<Buffer>> = runs
                .par_iter()
                .map(|run| {
                    let mut one = Buffer::new();
                    self.append(run, &mut one).map(|()| one)
                })
                .collect();
            for one in decoded {
                buffer.extend(one?.chunk(self.element));
            }
        }
        Ok(())
    }

    /// Adds images to the buffer, on this thread.
    fn append(&self, places: &[Place], buffer: &mut Buffer) -> Result<()> {
        for pages in places.chunk_by(|a, b| a.file == b.file) {
            let of = &self.files[pages[0].file];
            let file = file::open_again(&of.path, &of.identity)?;
            let room = Room { file: of.identity.bytes };
            let numbers: Vec<Page> = pages.iter().map(|place| place.page).collect();
            image::decode(BufReader::new(file), room, &numbers, |pixels| self.put(pixels, buffer))
                .map_err(|problem| Error::format(&of.path, FORMAT, problem))?;
        }
        Ok(())
    }

    /// Adds a decoded picture to the buffer, in the shape and the type of the samples.
    fn put(&self, pixels: Pixels, buffer: &mut Buffer) -> std::result::Result<(), String> {
        let (rows, columns) = (self.shape[0], self.shape[1]);
        let size = if self.resize { (rows, columns) } else { (pixels.rows, pixels.columns) };
        let shown = |pixels: Pixels| match self.shape.len() {
            3 => pixels.colour(),
            _ => pixels.grey(),
        };
        let pixels = match self.purpose {
            // Grey first: resizing one channel is cheaper than three.
            Purpose::Values => shown(pixels).resized(size.0, size.1),
            Purpose::Mask => pixels.not_black().resized(size.0, size.1).not_dark(),
            Purpose::Opaque(share) => match pixels.opaque(share) {
                Some(observed) => shown(pixels).observed(&observed, size.0, size.1),
                None => shown(pixels).resized(size.0, size.1),
            },
        };
        if (pixels.rows, pixels.columns) != (rows, columns) {
            let (now_rows, now_columns) = (pixels.rows, pixels.columns);
            return Err(format!(
                "{now_rows}×{now_columns} pixels came out where its header said {rows}×{columns}"
            ));
        }
        match (self.element, pixels.values) {
            (Element::U8, Values::U8(x)) => buffer.u8.extend(x),
            (Element::U8, _) => return Err("it holds more than its header said".into()),
            (_, Values::U8(x)) => buffer.f32.extend(x.into_iter().map(f32::from)),
            (_, Values::U16(x)) => buffer.f32.extend(x.into_iter().map(f32::from)),
            (_, Values::F32(x)) => buffer.f32.extend(x),
        }
        Ok(())
    }
}

impl Source for Images {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn element(&self) -> Element {
        self.element
    }

    fn read<'a>(&'a self, samples: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        buffer.clear();
        self.decode(samples, buffer)?;
        Ok(buffer.chunk(self.element))
    }

    fn residence(&self) -> Residence {
        Residence::Elsewhere
    }

    fn load(&self, samples: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        // Whoever reads ahead has threads of its own.
        self.append(&self.places[samples], buffer)
    }
}
