//! One picture in every format and variant, written by other programs (`images/make.py`), and what is refused.

use std::path::Path;

use crate::pictures;
use matmix::data::{DataSet, Element, Note, OpenOptions, open};

const ROWS: usize = 12;
const COLUMNS: usize = 18;

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/images"))
}

/// The picture's shade at row i, column j.
fn shade(i: usize, j: usize) -> f64 {
    (12 * i + 5 * j) as f64
}

fn colours(i: usize, j: usize) -> [f64; 3] {
    [shade(i, j), 255.0 - shade(i, j), (10 * i + 3 * j) as f64]
}

/// Opens one of the files, alone in a folder.
fn alone(name: &str, options: &OpenOptions) -> matmix::Result<DataSet> {
    alone_as(name, &std::fs::read(here().join(name)).unwrap(), options)
}

fn alone_as(name: &str, bytes: &[u8], options: &OpenOptions) -> matmix::Result<DataSet> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), bytes).unwrap();
    open(folder.path().to_str().unwrap(), options)
}

#[track_caller]
fn is(
    name: &str,
    colour: bool,
    element: Element,
    tolerance: f64,
    expected: impl Fn(usize, usize) -> Vec<f64>,
) {
    let set = alone(name, &OpenOptions { colour, ..OpenOptions::default() }).unwrap();
    let shape = if colour { vec![ROWS, COLUMNS, 3] } else { vec![ROWS, COLUMNS] };
    assert_eq!((set.samples.shape(), set.samples.element()), (&shape[..], element), "{name}");
    let found = set.samples.to_f64(0..1).unwrap();
    let places = (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| (i, j)));
    let expected: Vec<f64> = places.flat_map(|(i, j)| expected(i, j)).collect();
    for (at, (x, y)) in found.iter().zip(&expected).enumerate() {
        assert!((x - y).abs() <= tolerance, "{name}: {x} instead of {y} at {at}");
    }
}

#[test]
fn exact_formats_give_the_formula() {
    for name in [
        "grey.png",
        "palette.png",
        "grey.bmp",
        "grey.pgm",
        "text.pgm",
        "grey.tif",
        "white.tif",
        "tiles.tif",
        "rows.tif",
    ] {
        is(name, false, Element::U8, 0.0, |i, j| vec![shade(i, j)]);
        is(name, true, Element::U8, 0.0, |i, j| vec![shade(i, j); 3]);
    }
    for name in [
        "colour.png",
        "alpha.png",
        "colour.bmp",
        "alpha.bmp",
        "colour.ppm",
        "colour.tif",
        "planes.tif",
        "alpha.tif",
    ] {
        is(name, true, Element::U8, 0.0, |i, j| colours(i, j).to_vec());
        is(name, false, Element::U8, 0.5, |i, j| {
            let [r, g, b] = colours(i, j);
            vec![0.2126 * r + 0.7152 * g + 0.0722 * b]
        });
    }
    for name in ["bits.png", "bits.bmp", "bits.pbm", "fax.tif"] {
        is(name, false, Element::U8, 0.0, |i, j| vec![if shade(i, j) > 100.0 { 255.0 } else { 0.0 }]);
    }
    for name in ["wide.png", "wide.pgm", "wide.tif"] {
        is(name, false, Element::F32, 0.0, |i, j| vec![300.0 * shade(i, j)]);
    }
    is("signed.tif", false, Element::F32, 0.0, |i, j| vec![100.0 * shade(i, j) - 10_000.0]);
    for (name, tolerance) in
        [("single.tif", 1e-5), ("predicted.tif", 1e-5), ("double.tif", 1e-5), ("half.tif", 0.02)]
    {
        is(name, false, Element::F32, tolerance, |i, j| vec![shade(i, j) / 7.0 - 3.0]);
    }
}

#[test]
fn jpeg_is_read_as_well_as_it_can_be() {
    is("grey.jpg", false, Element::U8, 4.0, |i, j| vec![shade(i, j)]);
    for name in ["colour.jpg", "progressive.jpg", "restarts.jpg"] {
        is(name, true, Element::U8, 12.0, |i, j| colours(i, j).to_vec());
    }
    // What the four inks leave of the colours.
    is("inks.jpg", true, Element::U8, 12.0, |i, j| colours(i, j).to_vec());
}

#[test]
fn the_pages_of_a_stack_are_samples_in_a_folder_and_alone() {
    let page = |set: &DataSet, n: usize| set.samples.to_f64(n..n + 1).unwrap();
    let names: Vec<String> = [1, 3, 4, 5, 6].iter().map(|page| format!("stack.tif#{page}")).collect();
    let path = here().join("stack.tif");
    let whole = alone("stack.tif", &OpenOptions::default()).unwrap();
    let stack = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!((whole.format, stack.format), ("images", "TIFF"));
    for set in [&whole, &stack] {
        assert_eq!((set.samples.len(), set.names.as_ref().unwrap()), (5, &names));
        assert_eq!(set.notes, [Note::Pages { pages: 1, first: "stack.tif".into() }]);
        for n in 0..5 {
            let expected: Vec<f64> =
                (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| shade(i, j) + n as f64)).collect();
            assert_eq!(page(set, n), expected);
        }
    }
    // Read again and again, and only in part.
    let budget = Some((ROWS * COLUMNS * 4) as u64);
    let options = OpenOptions { memory_budget: budget, take: Some(1..5), ..OpenOptions::default() };
    let part = open(path.to_str().unwrap(), &options).unwrap();
    assert_eq!(part.names.as_deref(), Some(&names[1..]));
    for n in [3, 0, 2, 1] {
        assert_eq!(page(&part, n), page(&stack, n + 1));
    }
    let options = OpenOptions { resize: Some((6, 9)), ..OpenOptions::default() };
    assert_eq!(open(path.to_str().unwrap(), &options).unwrap().samples.shape(), [6, 9]);
    let one = open(here().join("grey.tif").to_str().unwrap(), &OpenOptions::default()).unwrap_err();
    assert!(one.to_string().contains("it is one image; give the folder"), "{one}");
    let ragged = pictures::tiff(&[(2, 3, &[0; 6]), (3, 2, &[0; 6])]);
    let error = alone_as("a.tif", &ragged, &OpenOptions::default()).unwrap_err().to_string();
    assert!(
        error.contains("a.tif#2: it has 3×2 pixels, but ") && error.contains("a.tif#1 has 2×3"),
        "{error}"
    );
}

#[test]
fn what_was_decided_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["alpha.png", "colour.jpg", "grey.png", "wide.tif", "double.tif"] {
        std::fs::copy(here().join(name), folder.path().join(name)).unwrap();
    }
    // A camera on its side: the note says that row 0 is the right side.
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let turned = pictures::png(COLUMNS, ROWS, 0, 8, &[(b"eXIf", exif)], &[0; ROWS * COLUMNS]);
    std::fs::write(folder.path().join("turned.png"), turned).unwrap();
    let set = open(folder.path().to_str().unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!((set.samples.len(), set.samples.element()), (6, Element::F32));
    let said: Vec<String> = set.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "2 images, alpha.png for one, are in colour and are read as shades of grey",
            "the image alpha.png has transparent places, which are read like any other",
            "the image turned.png was turned upright, as its camera noted",
            "4 of the images have 8 bits (alpha.png) and 2 have more (double.tif); the values of each are taken as they are",
            "the image double.tif is rounded to single precision",
        ]
    );
    // What was not taken is not spoken of.
    let options = OpenOptions { take: Some(3..4), ..OpenOptions::default() };
    let set = open(folder.path().to_str().unwrap(), &options).unwrap();
    assert_eq!((set.notes, set.names), (vec![], Some(vec!["grey.png".to_string()])));
}

#[test]
fn names_and_labels_stay_in_step_with_the_selection() {
    let folder = tempfile::tempdir().unwrap();
    for (n, name) in ["a/1.png", "a/2.png", "b/3.png", "b/4.png", "c/5.png"].into_iter().enumerate() {
        pictures::save(folder.path().join(name), 1, 1, &[n as u8]);
    }
    let options =
        OpenOptions { take: Some(1..5), exclude: vec!["b".into()], limit: Some(9), ..OpenOptions::default() };
    let set = open(folder.path().to_str().unwrap(), &options).unwrap();
    assert_eq!(set.names.unwrap(), ["a/2.png", "c/5.png"]);
    assert_eq!(set.labels.unwrap().names, ["a", "c"]);
    assert_eq!(set.samples.to_f64(0..2).unwrap(), [1.0, 4.0]);
    assert_eq!(set.notes, [Note::Labels { from: "the names of the sub-folders".into() }]);
}

fn problem(name: &str, bytes: &[u8]) -> String {
    let error = alone_as(name, bytes, &OpenOptions::default()).unwrap_err().to_string();
    let (before, problem) = error.split_once(": not a readable image: ").unwrap_or_else(|| panic!("{error}"));
    assert!(before.ends_with(name), "{error}");
    problem.to_string()
}

#[test]
fn half_a_jpeg_is_an_error() {
    for name in ["grey.jpg", "colour.jpg", "progressive.jpg", "restarts.jpg"] {
        let whole = std::fs::read(here().join(name)).unwrap();
        for end in [whole.len() / 4, whole.len() / 2, whole.len() - 20, whole.len() - 1] {
            let problem = problem("a.jpg", &whole[..end]);
            assert!(problem.contains("cut short"), "{name} to {end}: {problem}");
        }
        // Whatever follows the end is none of our business.
        let more = [&whole[..], b"and more"].concat();
        assert!(alone_as("a.jpg", &more, &OpenOptions::default()).is_ok(), "{name}");
        // Nor are bytes between two segments.
        let more = [&whole[..20], b"lost in here", &whole[20..]].concat();
        assert!(alone_as("a.jpg", &more, &OpenOptions::default()).is_ok(), "{name}");
    }
}

/// The sides of a frame, wherever its header stands.
fn with_sides(jpeg: &[u8], rows: u16, columns: u16) -> Vec<u8> {
    let mut jpeg = jpeg.to_vec();
    let at = jpeg.windows(2).position(|w| w == [0xff, 0xc0] || w == [0xff, 0xc2]).unwrap();
    jpeg[at + 5..at + 7].copy_from_slice(&rows.to_be_bytes());
    jpeg[at + 7..at + 9].copy_from_slice(&columns.to_be_bytes());
    jpeg
}

#[test]
fn a_header_that_promises_too_much_is_refused_at_once() {
    let begun = std::time::Instant::now();
    let jpeg = |name: &str| std::fs::read(here().join(name)).unwrap();
    let said = problem("a.jpg", &with_sides(&jpeg("inks.jpg"), 65_535, 17));
    assert!(said.contains("65535×17 pixels, but") && said.contains("cannot stand for so many"), "{said}");
    assert!(
        problem("a.jpg", &with_sides(&jpeg("colour.jpg"), 65_535, 65_535)).contains("65535×65535 pixels")
    );
    // A thousand scans over a picture of middling size.
    let progressive = jpeg("progressive.jpg");
    let scan = progressive.windows(2).rposition(|w| w == [0xff, 0xda]).unwrap();
    let (before, last) = progressive[..progressive.len() - 2].split_at(scan);
    let many = [before, &last.repeat(1000), &[0xff, 0xd9]].concat();
    let said = problem("a.jpg", &with_sides(&many, 900, 900));
    assert!(said.contains("it goes over its 900×900 pixels 1009 times"), "{said}");
    // A profile of colours that unpacks to a thousand times its size is never unpacked.
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 1 << 26), &mut zlib).unwrap();
    let profile = [&b"icc\0\0"[..], &zlib.finish().unwrap()].concat();
    let packed = pictures::png(1, 1, 0, 8, &[(b"iCCP", &profile)], &[7]);
    let begun_again = std::time::Instant::now();
    let set = alone_as("a.png", &packed, &OpenOptions::default()).unwrap();
    assert_eq!(set.samples.to_f64(0..1).unwrap(), [7.0]);
    assert!(begun_again.elapsed().as_secs_f64() < 0.5);
    assert!(begun.elapsed().as_secs_f64() < 30.0);
}

#[test]
fn a_decoder_that_panics_names_the_file() {
    // The second channel is finer than the first, for which the decoder of JPEG is not prepared.
    let mut jpeg = std::fs::read(here().join("progressive.jpg")).unwrap();
    let at = jpeg.windows(2).position(|w| w == [0xff, 0xc2]).unwrap();
    assert_eq!(&jpeg[at + 9..at + 19], [3, 1, 0x21, 0, 2, 0x11, 1, 3, 0x11, 1]);
    jpeg[at + 11] = 0x11;
    jpeg[at + 14] = 0x22;
    let said = problem("a.jpg", &jpeg);
    assert!(!said.is_empty());
    // A palette that ends within a colour.
    let palette = pictures::png(1, 1, 3, 8, &[(b"PLTE", &[0; 4])], &[0]);
    assert_eq!(problem("a.png", &palette), "its palette has 4 bytes; three per colour are needed");
}

#[test]
fn formats_inside_tiff_that_are_not_read_are_named() {
    let tiff = pictures::tiff(&[(2, 3, &[0; 6])]);
    let tag = |number: u16, value: u16| {
        let mut tiff = tiff.clone();
        let at = tiff.windows(4).position(|w| w == [number.to_le_bytes(), [4, 0]].concat()).unwrap();
        tiff[at + 8..at + 10].copy_from_slice(&value.to_le_bytes());
        tiff
    };
    assert!(problem("a.tif", &tag(259, 7)).contains("it is packed as JPEG"));
    assert!(problem("a.tif", &tag(262, 3)).contains("places in a palette"));
    assert!(problem("a.tif", &tag(258, 12)).contains("its numbers have 12 bits"));
    let whole = std::fs::read(here().join("stack.tif")).unwrap();
    assert!(alone_as("a.tif", &whole[..whole.len() / 2], &OpenOptions::default()).is_err());
}
