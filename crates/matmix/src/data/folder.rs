//! A folder of images: PNG, JPEG, PGM/PPM, BMP and TIFF files, the name of a sub-folder being the label.
//!
//! All headers are read first, so that a picture of another size is found before anything is decoded. Small sets
//! are decoded once; a set larger than the budget is decoded again whenever a chunk of it is read.
//!
//! Every image becomes bytes, turned upright where a camera noted how it was held (EXIF). Colour turns grey by the luma of Rec. 709; transparency is dropped. Images of 16 bits
//! per channel (and floating-point TIFF, clipped to 0 … 1) are rounded to 8 bits: whoever needs the finer steps
//! stores a `.npy` file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use rayon::prelude::*;

use super::labels::Labels;
use super::open::{Found, OpenOptions, choose};
use super::samples::{DEFAULT_BUDGET, Samples};
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::{Error, Result};

const FORMAT: &str = "image";
const ENDINGS: [&str; 10] = ["png", "jpg", "jpeg", "pgm", "ppm", "pnm", "pbm", "bmp", "tif", "tiff"];
/// No image of more pixels is read (11,585×11,585): a broken header must not ask for all the memory there is.
pub(super) const PIXELS: usize = 1 << 27;

/// The images of a folder in the order of their paths, those that `options` chooses.
pub(crate) fn open(folder: &Path, given: Option<&Labels>, options: &OpenOptions) -> Result<Found> {
    let mut files = Vec::new();
    collect(folder, &mut Vec::new(), &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(Error::data(
            folder,
            format!("there are no images in this folder; files ending in {} are read", ENDINGS.join(", ")),
        ));
    }
    let own = match given {
        Some(_) => None,
        None => labels(folder, &files)?,
    };
    let labels = given.cloned().or(own);
    if let Some(labels) = &labels {
        labels.check_count(files.len())?;
    }
    // Whatever is not wanted need not be looked at.
    let mut labels = labels;
    if let Some(chosen) = choose(&folder.to_string_lossy(), files.len(), labels.as_ref(), options)? {
        files = chosen.iter().map(|&i| std::mem::take(&mut files[i])).collect();
        labels = labels.map(|l| l.select(&chosen)).transpose()?.map(Labels::without_empty_classes);
    }
    let (rows, columns) = match options.resize {
        Some(size) => {
            sizes(&files)?;
            size
        }
        None => one_size(&sizes(&files)?, &files)?,
    };
    let shape = if options.colour { vec![rows, columns, 3] } else { vec![rows, columns] };
    let images = Images { files, shape, resize: options.resize.is_some() };
    // What a header says is believed once an image of that size has really come out of a file.
    images.decode_one(&images.files[0])?;
    let bytes = images.files.len().checked_mul(images.sample_len());
    let samples = match bytes {
        Some(bytes) if bytes as u64 <= options.memory_budget.unwrap_or(DEFAULT_BUDGET) => {
            let mut all = vec![0; bytes];
            images.decode(&images.files, &mut all)?;
            Samples::from_vec(&images.shape, all)?
        }
        _ => Samples::from_source(Arc::new(images))?,
    };
    Ok(Found { samples, labels, array: None })
}

/// Images that are decoded when they are read.
struct Images {
    files: Vec<PathBuf>,
    shape: Vec<usize>,
    resize: bool,
}

impl Images {
    fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    fn decode(&self, files: &[PathBuf], out: &mut [u8]) -> Result<()> {
        let size = self.sample_len();
        // Each image writes its own place and the first failure in the order of the files is reported: nothing
        // depends on the number of threads.
        let failures: Vec<Error> = files
            .par_iter()
            .zip(out.par_chunks_exact_mut(size))
            .filter_map(|(file, out)| self.decode_one(file).map(|bytes| out.copy_from_slice(&bytes)).err())
            .collect();
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// The bytes of one image, as many as a sample has.
    fn decode_one(&self, file: &Path) -> Result<Vec<u8>> {
        let (decoder, orientation) = decoder(file)?;
        let size = decoder.total_bytes();
        let decoded = Limits::default().reserve(size).and_then(|()| DynamicImage::from_decoder(decoder));
        let mut image = decoded.map_err(|e| unreadable(file, &e))?;
        image.apply_orientation(orientation);
        let (rows, columns) = (self.shape[0], self.shape[1]);
        let colour = self.shape.len() == 3;
        // Grey first: resizing one channel is cheaper than three.
        let image = if colour {
            DynamicImage::ImageRgb8(image.to_rgb8())
        } else {
            DynamicImage::ImageLuma8(image.to_luma8())
        };
        let image = if self.resize && (image.height() as usize, image.width() as usize) != (rows, columns) {
            image.resize_exact(columns as u32, rows as u32, FilterType::Triangle)
        } else {
            image
        };
        let (now_rows, now_columns) = (image.height() as usize, image.width() as usize);
        if (now_rows, now_columns) != (rows, columns) {
            // Somebody has replaced the file since its header was read.
            let problem =
                format!("it is now {now_rows}×{now_columns} pixels, but {rows}×{columns} a moment ago");
            return Err(Error::format(file, FORMAT, problem));
        }
        Ok(image.into_bytes())
    }
}

impl Source for Images {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.files.len()
    }

    fn element(&self) -> Element {
        Element::U8
    }

    fn read<'a>(&'a self, samples: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        buffer.u8.clear();
        buffer.u8.resize(samples.len() * self.sample_len(), 0);
        self.decode(&self.files[samples], &mut buffer.u8)?;
        Ok(Chunk::U8(&buffer.u8))
    }

    fn residence(&self) -> Residence {
        Residence::Elsewhere
    }

    fn load(&self, samples: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        // Whoever reads ahead has threads of its own.
        for file in &self.files[samples] {
            buffer.u8.extend(self.decode_one(file)?);
        }
        Ok(())
    }
}

/// The images in `folder` and below; `above` are the folders that lead here, without links.
fn collect(folder: &Path, above: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) -> Result<()> {
    let io = |e: &std::io::Error| Error::io(folder, "read", e);
    let real = folder.canonicalize().map_err(|e| io(&e))?;
    if above.contains(&real) {
        // A link that leads back up would bring the same images again and again.
        return Ok(());
    }
    above.push(real);
    for entry in std::fs::read_dir(folder).map_err(|e| io(&e))? {
        let path = entry.map_err(|e| io(&e))?.path();
        // Hidden files are thumbnails and the droppings of other systems.
        if path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        if path.is_dir() {
            collect(&path, above, files)?;
        } else if is_image(&path) {
            files.push(path);
        }
    }
    above.pop();
    Ok(())
}

/// Whether a file is called like an image.
pub(crate) fn is_image(path: &Path) -> bool {
    path.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e.eq_ignore_ascii_case(ending)))
}

/// The path of each file's folder below `folder`; none if the images lie in `folder` itself.
fn labels(folder: &Path, files: &[PathBuf]) -> Result<Option<Labels>> {
    let names: Vec<String> = files
        .iter()
        .map(|file| {
            let parent = file.parent().and_then(|p| p.strip_prefix(folder).ok()).unwrap_or(Path::new(""));
            let parts: Vec<_> = parent.iter().map(|part| part.to_string_lossy()).collect();
            parts.join("/")
        })
        .collect();
    let direct = names.iter().position(String::is_empty);
    let below = names.iter().position(|n| !n.is_empty());
    match (direct, below) {
        (_, None) => Ok(None),
        (None, _) => Ok(Some(Labels::new(names))),
        (Some(direct), Some(below)) => Err(Error::data(
            folder,
            format!(
                "there are images in the folder itself ({}) and in sub-folders ({}); move them, so that either none or \
             all of them have a label",
                files[direct].display(),
                files[below].display(),
            ),
        )),
    }
}

/// Reads the header: a decoder, and how the camera was held.
fn decoder(file: &Path) -> Result<(impl ImageDecoder, Orientation)> {
    let reader = ImageReader::open(file).map_err(|e| Error::io(file, "open", &e))?;
    // What is in the file counts, not what it is called.
    let reader = reader.with_guessed_format().map_err(|e| Error::io(file, "read", &e))?;
    let mut decoder = reader.into_decoder().map_err(|e| unreadable(file, &e))?;
    // A picture with a broken note about its orientation is still a picture.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((decoder, orientation))
}

fn unreadable(file: &Path, error: &image::ImageError) -> Error {
    Error::format(file, FORMAT, error.to_string())
}

/// Rows and columns of every file.
fn sizes(files: &[PathBuf]) -> Result<Vec<(usize, usize)>> {
    let sizes: Vec<Result<(usize, usize)>> = files
        .par_iter()
        .map(|file| {
            let (decoder, orientation) = decoder(file)?;
            let (width, height) = decoder.dimensions();
            let (rows, columns) = match orientation {
                Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH => (width as usize, height as usize),
                _ => (height as usize, width as usize),
            };
            match rows.checked_mul(columns) {
                Some(1..=PIXELS) => Ok((rows, columns)),
                _ => Err(Error::format(
                    file,
                    FORMAT,
                    format!("its header says {rows}×{columns} pixels; between 1 and {PIXELS} are possible"),
                )),
            }
        })
        .collect();
    sizes.into_iter().collect()
}

fn one_size(sizes: &[(usize, usize)], files: &[PathBuf]) -> Result<(usize, usize)> {
    let (rows, columns) = sizes[0];
    match sizes.iter().position(|&size| size != sizes[0]) {
        None => Ok((rows, columns)),
        Some(i) => Err(Error::data(
            &files[i],
            format!(
                "it has {}×{} pixels, but {} has {rows}×{columns}; all samples need one shape, which --resize \
             {rows}x{columns} would give them",
                sizes[i].0,
                sizes[i].1,
                files[0].display(),
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, ImageBuffer, Luma, RgbImage};

    use super::*;

    fn grey(path: PathBuf, rows: u32, columns: u32, first: u8) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pixels = (0..rows * columns).map(|i| first + i as u8).collect();
        GrayImage::from_raw(columns, rows, pixels).unwrap().save(path).unwrap();
    }

    fn message(folder: &Path, options: &OpenOptions) -> String {
        match open(folder, None, options) {
            Ok(_) => "no error".to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sub_folders_are_labels_and_other_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        grey(folder.path().join("b/2.png"), 2, 3, 20);
        grey(folder.path().join("b/1.BMP"), 2, 3, 10);
        grey(folder.path().join("a/z.pgm"), 2, 3, 30);
        std::fs::write(folder.path().join("b/notes.txt"), "no image").unwrap();
        std::fs::write(folder.path().join("b/._1.png"), "no image").unwrap();
        let found = open(folder.path(), None, &OpenOptions::default()).unwrap();
        assert_eq!(found.samples.shape(), [2, 3]);
        assert_eq!(found.labels, Some(Labels::new(["a", "b", "b"])));
        let x = found.samples.to_f64(0..3).unwrap();
        assert_eq!((x[0], x[6], x[12], x[17]), (30.0, 10.0, 20.0, 25.0));
    }

    #[test]
    fn beyond_the_budget_the_same_images_are_decoded_when_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..5 {
            grey(folder.path().join(format!("{i}.png")), 4, 3, i * 40);
        }
        let now = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        let options = OpenOptions { memory_budget: Some(59), ..Default::default() };
        let later = open(folder.path(), None, &options).unwrap().samples;
        assert_eq!(now.to_f64(0..5).unwrap(), later.to_f64(0..5).unwrap());
        assert_eq!(now.to_f64(2..4).unwrap(), later.to_f64(2..4).unwrap());
        // The lazy one really reads the files: without one of them it says so.
        std::fs::remove_file(folder.path().join("3.png")).unwrap();
        assert!(now.to_f64(3..4).is_ok());
        let error = later.to_f64(2..4).unwrap_err().to_string();
        assert!(error.contains("3.png: cannot open"), "{error}");
        grey(folder.path().join("3.png"), 4, 4, 0);
        let error = later.to_f64(2..4).unwrap_err().to_string();
        assert!(error.contains("it is now 4×4 pixels, but 4×3 a moment ago"), "{error}");
    }

    #[test]
    fn colour_is_a_third_mode_or_turns_grey() {
        let folder = tempfile::tempdir().unwrap();
        RgbImage::from_raw(2, 1, vec![255, 0, 0, 0, 255, 0])
            .unwrap()
            .save(folder.path().join("a.png"))
            .unwrap();
        let options = OpenOptions { colour: true, ..Default::default() };
        let colour = open(folder.path(), None, &options).unwrap().samples;
        assert_eq!(colour.shape(), [1, 2, 3]);
        assert_eq!(colour.to_f64(0..1).unwrap(), [255.0, 0.0, 0.0, 0.0, 255.0, 0.0]);
        let grey = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        assert_eq!(grey.to_f64(0..1).unwrap(), [54.0, 182.0]);
    }

    #[test]
    fn a_photograph_is_turned_upright() {
        use image::ImageEncoder;
        let folder = tempfile::tempdir().unwrap();
        // A TIFF header and one entry: tag 0x0112, orientation, is the short number 6, a quarter turn clockwise.
        let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let file = std::fs::File::create(folder.path().join("a.png")).unwrap();
        let mut encoder = image::codecs::png::PngEncoder::new(file);
        encoder.set_exif_metadata(exif.to_vec()).unwrap();
        encoder.write_image(&[1, 2, 3, 4, 5, 6], 3, 2, image::ExtendedColorType::L8).unwrap();
        let samples = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        assert_eq!(samples.shape(), [3, 2]);
        assert_eq!(samples.to_f64(0..1).unwrap(), [4.0, 1.0, 5.0, 2.0, 6.0, 3.0]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_back_up_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        grey(folder.path().join("a/1.png"), 2, 2, 0);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/up")).unwrap();
        assert_eq!(open(folder.path(), None, &OpenOptions::default()).unwrap().samples.len(), 1);
    }

    #[test]
    fn sixteen_bits_become_eight() {
        let folder = tempfile::tempdir().unwrap();
        let image = ImageBuffer::<Luma<u16>, _>::from_raw(3, 1, vec![0u16, 0x8000, 0xffff]).unwrap();
        DynamicImage::ImageLuma16(image).save(folder.path().join("a.png")).unwrap();
        let x = open(folder.path(), None, &OpenOptions::default()).unwrap().samples.to_f64(0..1).unwrap();
        assert_eq!(x, [0.0, 128.0, 255.0]);
    }

    #[test]
    fn ragged_sizes_name_two_files_until_they_are_resized() {
        let folder = tempfile::tempdir().unwrap();
        grey(folder.path().join("a.png"), 4, 4, 0);
        grey(folder.path().join("b.png"), 2, 6, 0);
        let error = message(folder.path(), &OpenOptions::default());
        assert!(error.contains("b.png: it has 2×6 pixels, but "), "{error}");
        assert!(error.contains("a.png has 4×4") && error.contains("--resize 4x4"), "{error}");
        let options = OpenOptions { resize: Some((2, 3)), ..Default::default() };
        let samples = open(folder.path(), None, &options).unwrap().samples;
        assert_eq!((samples.len(), samples.shape()), (2, &[2, 3][..]));
        // What is not taken is not looked at.
        let options = OpenOptions { take: Some(0..1), ..Default::default() };
        assert_eq!(open(folder.path(), None, &options).unwrap().samples.shape(), [4, 4]);
    }

    #[test]
    fn bad_folders_say_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions::default();
        assert!(
            message(folder.path(), &options)
                .contains("there are no images in this folder; files ending in png")
        );
        grey(folder.path().join("x/a.png"), 16, 16, 0);
        let whole = std::fs::read(folder.path().join("x/a.png")).unwrap();
        std::fs::write(folder.path().join("x/a.png"), &whole[..whole.len() / 2]).unwrap();
        let cut = message(folder.path(), &options);
        assert!(cut.contains("a.png: not a readable image: "), "{cut}");
        std::fs::write(folder.path().join("x/a.png"), b"not a picture").unwrap();
        let other = message(folder.path(), &options);
        assert!(other.contains("a.png: not a readable image: "), "{other}");
        grey(folder.path().join("x/a.png"), 2, 2, 0);
        grey(folder.path().join("b.png"), 2, 2, 0);
        let mixed = message(folder.path(), &options);
        assert!(mixed.contains("images in the folder itself") && mixed.contains("in sub-folders"), "{mixed}");
    }
}
