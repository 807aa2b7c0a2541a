//! A folder of images: PNG, JPEG, PNM, BMP and TIFF files, the name of a sub-folder being the label; or one TIFF file
//! with a stack of pages.
//!
//! All headers are read first, so that a picture of another size is found before anything is decoded. Small sets
//! are decoded once; a set larger than the budget is decoded again whenever a chunk of it is read.
//!
//! Images of 8 bits become bytes; if any has more, all become single precision, each with the values it has. They are
//! turned upright where a camera noted how it was held (EXIF). Colour turns grey by the luma of Rec. 709 unless it is
//! wanted; transparency is dropped, unless transparent places are cells that were not observed. All of this is noted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::image::{Contents, Depth, Header};
use super::images::{FORMAT, ImageFile, Images, Place, Purpose};
use super::labels::Labels;
use super::limit::Limit;
use super::mask;
use super::notes::Note;
use super::open::{DataSet, Found, OpenOptions, check_given, choose};
use super::samples::{DEFAULT_BUDGET, Samples};
use super::source::{Element, Source};
use super::tree::{ENDINGS, Tree, below, is_image, is_stack};
use crate::error::{Error, Result};

/// The images of a folder in the order of their paths, those that `options` chooses.
pub(crate) fn open(folder: &Path, given: Option<&Labels>, options: &OpenOptions) -> Result<Found> {
    let tree = Tree::below(folder)?;
    if tree.files.is_empty() {
        return Err(Error::data(
            folder,
            format!("there are no images in this folder; files ending in {} are read", ENDINGS.join(", ")),
        ));
    }
    let own = if given.is_some() { None } else { tree.labels(folder)? };
    let mut notes = tree.notes(folder);
    if own.is_some() {
        notes.push(Note::Labels { from: "the names of the sub-folders".into() });
    }
    let listed = Listed::of(folder, &tree.files, &mut notes)?;
    let of_files: Vec<usize> = listed.entries.iter().map(|entry| entry.file).collect();
    let own = own.map(|labels| labels.select(&of_files)).transpose()?;
    let purpose = Purpose::of(options);
    gather(&folder.to_string_lossy(), folder, listed, given.cloned().or(own), options, purpose, notes)
}

/// The pictures of a folder, or those of one file, as masks: 255 where they are not black. They are brought to the size that `options`
/// have for images.
pub(crate) fn open_masks(path: &Path, options: &OpenOptions) -> Result<Found> {
    let of_masks = OpenOptions {
        resize: options.resize,
        memory_budget: options.memory_budget,
        ..OpenOptions::default()
    };
    let (folder, paths) = if path.is_dir() {
        (path, Tree::below(path)?.files)
    } else {
        (path.parent().unwrap_or(Path::new("")), vec![path.to_owned()])
    };
    if paths.is_empty() {
        return Err(Error::data(path, "there are no images in this folder to be masks"));
    }
    let mut notes = Vec::new();
    let listed = Listed::of(folder, &paths, &mut notes)?;
    gather(&path.to_string_lossy(), folder, listed, None, &of_masks, Purpose::Mask, notes)
}

/// The pages of one TIFF file, those that `options` chooses.
pub(crate) fn open_stack(path: &Path, given: Option<&Labels>, options: &OpenOptions) -> Result<Found> {
    let mut notes = Vec::new();
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = [path.to_owned()];
    let listed = Listed::of(folder, &paths, &mut notes)?;
    if listed.entries.len() == 1 {
        return Err(Error::data(path, "it is one image; give the folder that holds the images"));
    }
    let purpose = Purpose::of(options);
    gather(&path.to_string_lossy(), folder, listed, given.cloned(), options, purpose, notes)
}

/// One picture as a set of one sample; none if `path` is not called like a picture.
///
/// # Errors
/// As of a folder.
pub fn open_picture(path: &Path, options: &OpenOptions) -> Result<Option<DataSet>> {
    if !path.is_file() || !is_image(path) {
        return Ok(None);
    }
    let (mut notes, paths) = (Vec::new(), [path.to_owned()]);
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.display().to_string());
    let listed = Listed::of(folder, &paths, &mut notes)?;
    let Found { samples, labels, names, white, notes, .. } =
        gather(&name, folder, listed, None, options, Purpose::of(options), notes)?;
    let shape = samples.shape().to_vec();
    let of = mask::Data { shapes: [&shape; 2], len: 1, chosen: None, names: names.as_deref() };
    let (mut samples, mask) = mask::marked(samples, &of, options)?;
    if let Some(scale) = options.scale {
        samples = samples.scaled(scale)?;
    }
    Ok(Some(DataSet { samples, labels, name, format: "image", names, notes, mask, white }))
}

/// One picture that may become a sample.
struct Entry {
    /// Which of the files.
    file: usize,
    /// What is known of it already.
    header: Option<Header>,
    name: String,
}

/// Everything there is, before anything is chosen.
struct Listed<'f> {
    paths: &'f [PathBuf],
    /// The files whose headers had to be read to count their pages.
    opened: Vec<Option<ImageFile>>,
    entries: Vec<Entry>,
}

impl<'f> Listed<'f> {
    fn of(folder: &Path, paths: &'f [PathBuf], notes: &mut Vec<Note>) -> Result<Self> {
        let stacks: Vec<Result<Option<(ImageFile, Contents)>>> =
            paths.par_iter().map(|path| is_stack(path).then(|| ImageFile::open(path)).transpose()).collect();
        let mut listed = Self { paths, opened: Vec::new(), entries: Vec::new() };
        let mut left_out: Option<(usize, String)> = None;
        for (file, (path, stack)) in paths.iter().zip(stacks).enumerate() {
            let name = below(folder, path);
            let Some((image, contents)) = stack? else {
                listed.opened.push(None);
                listed.entries.push(Entry { file, header: None, name });
                continue;
            };
            listed.opened.push(Some(image));
            if contents.left_out > 0 {
                left_out.get_or_insert((0, name.clone())).0 += contents.left_out;
            }
            let several = contents.pages.len() > 1;
            for header in contents.pages {
                let name = if several { format!("{name}#{}", header.page.number + 1) } else { name.clone() };
                listed.entries.push(Entry { file, header: Some(header), name });
            }
        }
        notes.extend(left_out.map(|(pages, first)| Note::Pages { pages, first }));
        Ok(listed)
    }
}

/// From what there is to what was asked for: samples, labels, names.
fn gather(
    set: &str,
    folder: &Path,
    listed: Listed<'_>,
    mut labels: Option<Labels>,
    options: &OpenOptions,
    purpose: Purpose,
    mut notes: Vec<Note>,
) -> Result<Found> {
    let Listed { paths, mut opened, mut entries } = listed;
    if let Some(labels) = &labels {
        check_given(labels, entries.len(), options)?;
    }
    // Whatever is not wanted need not be looked at.
    let (len, chosen) = (entries.len(), choose(set, entries.len(), labels.as_ref(), options)?);
    if let Some(chosen) = &chosen {
        let mut all: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
        entries = chosen.iter().filter_map(|&i| all[i].take()).collect();
        labels = labels.map(|l| l.select(chosen)).transpose()?.map(Labels::without_empty_classes);
    }
    let unread: Vec<Result<Option<(ImageFile, Header)>>> = entries
        .par_iter()
        .map(|entry| match entry.header {
            Some(_) => Ok(None),
            None => read_header(&paths[entry.file]).map(Some),
        })
        .collect();
    let limit = Limit::unpacked(options.memory_budget);
    let mut files: Vec<ImageFile> = Vec::new();
    let (mut places, mut headers) = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
    // The file that was opened before the last one, and its place among those that are needed.
    let mut last = None;
    for (entry, read) in entries.iter().zip(unread) {
        if last != Some(entry.file) {
            files.extend(opened[entry.file].take());
            last = Some(entry.file);
        }
        let header = match read? {
            Some((file, header)) => {
                files.push(file);
                header
            }
            None => entry.header.ok_or(Error::EmptySet)?,
        };
        // A picture is decoded as a whole, however small its part in the sample.
        limit.check(&paths[entry.file].to_string_lossy(), header.bytes())?;
        places.push(Place { file: files.len() - 1, page: header.page });
        headers.push(header);
    }
    let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    let size = match options.resize {
        Some(size) => size,
        None => one_size(&headers, |i| folder.join(&names[i]))?,
    };
    notes.extend(noticed(&headers, &names, options.colour, purpose));
    let wanted = (options.colour, options.resize.is_some());
    let images = Images::new(files, places, &headers, size, wanted, purpose);
    images.check_first()?;
    let samples = match images.bytes() {
        Some(bytes) if bytes <= options.memory_budget.unwrap_or(DEFAULT_BUDGET) => {
            let all = images.all()?;
            match images.element() {
                Element::U8 => Samples::from_vec(images.shape(), all.u8)?,
                _ => Samples::from_vec(images.shape(), all.f32)?,
            }
        }
        _ => Samples::from_source(Arc::new(images))?,
    };
    let chosen = Some((len, chosen.unwrap_or_else(|| (0..len).collect())));
    let white = match headers.iter().map(|header| header.depth).max() {
        Some(Depth::U8) => Some(255.0),
        Some(Depth::U16) => Some(65_535.0),
        _ => None,
    };
    Ok(Found { samples, labels, array: None, names: Some(names), white, notes, chosen })
}

fn read_header(path: &Path) -> Result<(ImageFile, Header)> {
    let (file, contents) = ImageFile::open(path)?;
    match contents.pages[..] {
        [header] => Ok((file, header)),
        _ => Err(Error::format(path, FORMAT, "it is a TIFF file of several pages; call it .tif")),
    }
}

fn one_size(headers: &[Header], path: impl Fn(usize) -> PathBuf) -> Result<(usize, usize)> {
    let first = headers[0].size();
    match headers.iter().position(|header| header.size() != first) {
        None => Ok(first),
        Some(i) => {
            let size = headers[i].size();
            Err(Error::ImageSizes { path: path(i), size, other: path(0), other_size: first })
        }
    }
}

/// What has to be said about the images.
fn noticed(headers: &[Header], names: &[String], colour: bool, purpose: Purpose) -> Vec<Note> {
    let those = |which: &dyn Fn(&Header) -> bool| {
        let mut found = headers.iter().zip(names).filter(|(header, _)| which(header));
        let first = found.next().map(|(_, name)| name.clone());
        first.map(|first| (1 + found.count(), first))
    };
    let mut notes = Vec::new();
    if !colour {
        notes.extend(those(&|h| h.channels.has_colour()).map(|(images, first)| Note::Grey { images, first }));
    }
    let transparent = those(&|h| h.channels.has_alpha());
    match purpose {
        Purpose::Opaque(_) if transparent.is_none() => notes.push(Note::Opaque),
        Purpose::Opaque(_) => {}
        _ => notes.extend(transparent.map(|(images, first)| Note::Transparency { images, first })),
    }
    let turned = those(&|h| !h.orientation.is_upright());
    notes.extend(turned.map(|(images, first)| Note::Upright { images, first }));
    let (eight, more) = (those(&|h| h.depth == Depth::U8), those(&|h| h.depth != Depth::U8));
    if let (Some((eight, first_eight)), Some((more, first_more))) = (eight, more) {
        notes.push(Note::Depths { eight, first_eight, more, first_more });
    }
    let rounded = those(&|h| !h.exact);
    notes.extend(rounded.map(|(images, first)| Note::Rounded { images, first }));
    notes
}

#[cfg(test)]
mod tests {
    use super::super::pictures;
    use super::*;

    fn grey(path: PathBuf, rows: usize, columns: usize, first: u8) {
        let pixels: Vec<u8> = (0..rows * columns).map(|i| first + i as u8).collect();
        pictures::save(path, rows, columns, &pixels);
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
        assert!(error.contains("3.png: ") && error.contains(" since it was opened"), "{error}");
    }

    #[test]
    fn colour_is_a_third_mode_or_turns_grey() {
        let folder = tempfile::tempdir().unwrap();
        let png = pictures::png(1, 2, 2, 8, &[], &[255, 0, 0, 0, 255, 0]);
        std::fs::write(folder.path().join("a.png"), png).unwrap();
        let options = OpenOptions { colour: true, ..Default::default() };
        let colour = open(folder.path(), None, &options).unwrap().samples;
        assert_eq!(colour.shape(), [1, 2, 3]);
        assert_eq!(colour.to_f64(0..1).unwrap(), [255.0, 0.0, 0.0, 0.0, 255.0, 0.0]);
        let grey = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        assert_eq!(grey.to_f64(0..1).unwrap(), [54.0, 182.0]);
    }

    #[test]
    fn a_photograph_is_turned_upright() {
        let folder = tempfile::tempdir().unwrap();
        // A TIFF header and one entry: tag 0x0112, orientation, is the short number 6, a quarter turn clockwise.
        let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let png = pictures::png(2, 3, 0, 8, &[(b"eXIf", exif)], &[1, 2, 3, 4, 5, 6]);
        std::fs::write(folder.path().join("a.png"), png).unwrap();
        let samples = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        assert_eq!(samples.shape(), [3, 2]);
        assert_eq!(samples.to_f64(0..1).unwrap(), [4.0, 1.0, 5.0, 2.0, 6.0, 3.0]);
    }

    #[test]
    fn sixteen_bits_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let png = pictures::png(1, 3, 0, 16, &[], &[0, 0, 0x80, 0, 0xff, 0xff]);
        std::fs::write(folder.path().join("a.png"), png).unwrap();
        let samples = open(folder.path(), None, &OpenOptions::default()).unwrap().samples;
        assert_eq!(samples.element(), Element::F32);
        assert_eq!(samples.to_f64(0..1).unwrap(), [0.0, 32768.0, 65535.0]);
    }

    #[test]
    fn ragged_sizes_name_two_files_until_they_are_resized() {
        let folder = tempfile::tempdir().unwrap();
        grey(folder.path().join("a.png"), 4, 4, 0);
        grey(folder.path().join("b.png"), 2, 6, 0);
        let error = message(folder.path(), &OpenOptions::default());
        assert!(error.contains("b.png: it has 2×6 pixels, but "), "{error}");
        assert!(error.contains("a.png has 4×4; all samples need one shape"), "{error}");
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
