//! Transparent places of images and masks beside data: cells that were not observed.

use std::path::Path;

use matmix::data::{Element, FillValue, Note, OpenOptions, Unobserved, npy, open, open_picture};
use matmix::error::ForImages;
use matmix::{Error, Input, Missing, Samples};

use crate::pictures;

fn opened(path: &Path, options: OpenOptions) -> Samples<'static> {
    open(path.to_str().unwrap(), &options).unwrap().samples
}

fn refused(path: &Path, options: OpenOptions) -> String {
    open(path.to_str().unwrap(), &options).unwrap_err().to_string()
}

fn holes(samples: &Samples<'_>) -> Vec<usize> {
    let values = samples.to_f64(0..samples.len()).unwrap();
    values.iter().enumerate().filter(|(_, x)| x.is_nan()).map(|(i, _)| i).collect()
}

fn text(path: &Path) -> Option<String> {
    Some(path.to_str().unwrap().to_owned())
}

/// Two pictures of 2×2: grey with alpha, and colour with alpha.
fn transparent(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let grey = pictures::png(2, 2, 4, 8, &[], &[10, 255, 20, 0, 30, 100, 40, 255]);
    std::fs::write(folder.join("a.png"), grey).unwrap();
    let rgba = [255, 255, 255, 255, 9, 9, 9, 255, 0, 0, 0, 0, 7, 7, 7, 1];
    std::fs::write(folder.join("b.png"), pictures::png(2, 2, 6, 8, &[], &rgba)).unwrap();
}

#[test]
fn transparent_places_are_missing_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    transparent(folder.path());
    let with = |missing, more: OpenOptions| OpenOptions { missing: Some(missing), ..more };
    let plain = opened(folder.path(), OpenOptions::default());
    assert_eq!((plain.element(), plain.missing()), (Element::U8, Missing::Error));
    let alpha = opened(folder.path(), with(Unobserved::Alpha(0.0), OpenOptions::default()));
    assert_eq!((alpha.element(), alpha.missing(), holes(&alpha)), (Element::F32, Missing::Nan, vec![1, 6]));
    let values = alpha.to_f64(0..2).unwrap();
    assert_eq!((values[0], values[2], values[4], values[7]), (10.0, 30.0, 255.0, 7.0));
    let half = opened(folder.path(), with(Unobserved::Alpha(0.5), OpenOptions::default()));
    assert_eq!(holes(&half), [1, 2, 6, 7]);
    let colour = OpenOptions { colour: true, ..OpenOptions::default() };
    let colour = opened(folder.path(), with(Unobserved::Alpha(0.0), colour));
    assert_eq!(holes(&colour), [3, 4, 5, 18, 19, 20]);
    // What is decoded when it is read is the same.
    let later = OpenOptions { memory_budget: Some(20), ..OpenOptions::default() };
    let later = opened(folder.path(), with(Unobserved::Alpha(0.0), later));
    assert_eq!(holes(&later), [1, 6]);
    assert_eq!(later.to_f64(0..1).unwrap()[3], 40.0);
    // Nothing of what is transparent is in the pixels that are made of it.
    let small = OpenOptions { resize: Some((1, 1)), ..OpenOptions::default() };
    let small = opened(folder.path(), with(Unobserved::Alpha(0.5), small)).to_f64(0..2).unwrap();
    assert_eq!(small, [25.0, 132.0]);
    let one = with(Unobserved::Alpha(0.0), OpenOptions::default());
    let one = open_picture(&folder.path().join("a.png"), &one).unwrap().unwrap();
    assert_eq!((holes(&one.samples), one.notes), (vec![1], vec![]));
}

#[test]
fn alpha_is_told_to_be_absent_and_is_for_images() {
    let folder = tempfile::tempdir().unwrap();
    pictures::save(folder.path().join("images/a.png"), 1, 2, &[1, 2]);
    let alpha = OpenOptions { missing: Some(Unobserved::Alpha(0.0)), ..OpenOptions::default() };
    let data = open(folder.path().join("images").to_str().unwrap(), &alpha).unwrap();
    assert_eq!((data.samples.element(), &data.notes[..]), (Element::U8, &[Note::Opaque][..]));
    npy::write_array(folder.path().join("x.npy"), &[2, 2], &[0.0f64; 4]).unwrap();
    let problem = open(folder.path().join("x.npy").to_str().unwrap(), &alpha).unwrap_err();
    assert!(matches!(problem, Error::OnlyImages { option: ForImages::Alpha, .. }), "{problem}");
}

#[test]
fn one_mask_is_for_all_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (i, name) in ["a", "b", "c"].iter().enumerate() {
        pictures::save(at(&format!("images/{name}.png")), 2, 2, &[i as u8; 4]);
    }
    pictures::save(at("mask.pgm"), 2, 2, &[1, 0, 255, 7]);
    npy::write_array(at("mask.npy"), &[2, 2], &[1.0f32, 0.0, -2.0, 0.5]).unwrap();
    std::fs::write(at("mask.csv"), "1,0\n1,1\n").unwrap();
    for name in ["mask.pgm", "mask.npy", "mask.csv"] {
        let options = OpenOptions { mask: text(&at(name)), take: Some(1..3), ..OpenOptions::default() };
        let data = open(at("images").to_str().unwrap(), &options).unwrap();
        assert_eq!((holes(&data.samples), data.samples.missing()), (vec![1, 5], Missing::Nan), "{name}");
        assert_eq!(data.mask, Some(vec![true, false, true, true]));
        let colour = OpenOptions { mask: text(&at(name)), colour: true, ..OpenOptions::default() };
        assert_eq!(holes(&opened(&at("images"), colour))[..4], [3, 4, 5, 15]);
    }
    // Vectors, and vectors that are looked at as matrices.
    npy::write_array(at("x.npy"), &[3, 4], &(0..12u8).collect::<Vec<_>>()).unwrap();
    npy::write_array(at("flat.npy"), &[4], &[1u8, 0, 1, 1]).unwrap();
    for shape in [None, Some(vec![2, 2])] {
        let mask = text(&at("flat.npy"));
        let fill = Some(Unobserved::Value(FillValue::Is(2.0)));
        let options = OpenOptions { mask, missing: fill, scale: Some(0.5), shape, ..OpenOptions::default() };
        let samples = opened(&at("x.npy"), options);
        assert_eq!(holes(&samples), [1, 2, 5, 9]);
        assert_eq!(samples.to_f64(2..3).unwrap()[3], 5.5);
    }
    // Brought to the size of the images; half of a pixel is enough.
    pictures::save(at("large.png"), 2, 4, &[9, 9, 0, 0, 9, 9, 0, 0]);
    pictures::save(at("big/a.png"), 2, 4, &[50; 8]);
    let (mask, resize) = (text(&at("large.png")), Some((1, 2)));
    let small = opened(&at("big"), OpenOptions { mask, resize, ..OpenOptions::default() });
    assert_eq!(holes(&small), [1]);
}

#[test]
fn a_mask_for_each_sample_is_found_by_name_or_by_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (i, name) in ["x/1", "x/2", "y/1"].iter().enumerate() {
        pictures::save(at(&format!("images/{name}.bmp")), 1, 2, &[i as u8; 2]);
        pictures::save(at(&format!("masks/{name}.png")), 1, 2, &[u8::from(i == 1), 1]);
    }
    let masked = |mask: &str| OpenOptions { mask: text(&at(mask)), ..OpenOptions::default() };
    assert_eq!(holes(&opened(&at("images"), masked("masks"))), [0, 4]);
    // A choice of samples is made of the whole set.
    let some = OpenOptions { take: Some(1..3), ..masked("masks") };
    assert_eq!(holes(&opened(&at("images"), some)), [2]);
    let excluded = OpenOptions { exclude: vec!["x".into()], ..masked("masks") };
    assert_eq!(holes(&opened(&at("images"), excluded)), [0]);
    // By place for arrays, whose samples have no names; and masks that are read piece by piece.
    npy::write_array(at("x.npy"), &[3, 1, 2], &[5.0f64; 6]).unwrap();
    assert_eq!(holes(&opened(&at("x.npy"), masked("masks"))), [0, 4]);
    npy::write_array(at("masks.npy"), &[3, 1, 2], &[0u8, 1, 1, 1, 1, 0]).unwrap();
    let late = OpenOptions { memory_budget: Some(30), take: Some(0..3), ..masked("masks.npy") };
    assert_eq!(holes(&opened(&at("x.npy"), late)), [0, 5]);
    assert_eq!(holes(&opened(&at("images"), masked("masks.npy"))), [0, 5]);

    let wrong = refused(&at("x.npy"), OpenOptions { limit: Some(2), ..masked("images/x") });
    assert!(
        wrong.contains("it holds 2 masks of 1×2, but the data 3 samples of 1×2; one mask of 1×2 for all"),
        "{wrong}"
    );
    npy::write_array(at("other.npy"), &[3, 2, 2], &[1u8; 12]).unwrap();
    let wrong = refused(&at("x.npy"), masked("other.npy"));
    assert!(wrong.contains("it holds 3 masks of 2×2"), "{wrong}");
    std::fs::rename(at("masks/x/2.png"), at("masks/x/3.png")).unwrap();
    let wrong = refused(&at("images"), masked("masks"));
    assert!(
        wrong.contains("there is no mask for x/2.bmp; an image called x/2.png, say, is needed"),
        "{wrong}"
    );
    assert!(refused(&at("images"), masked("nowhere")).contains("nowhere"));
    std::fs::create_dir(at("empty")).unwrap();
    assert!(refused(&at("images"), masked("empty")).contains("no images in this folder to be masks"));
}

#[test]
fn a_model_takes_new_data_the_way_it_was_fitted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    transparent(&at("images"));
    pictures::save(at("mask.png"), 2, 2, &[0, 1, 1, 1]);
    let missing = Some(Unobserved::Alpha(0.5));
    let options = OpenOptions { missing, mask: text(&at("mask.png")), ..OpenOptions::default() };
    let data = open(at("images").to_str().unwrap(), &options).unwrap();
    let input = Input::of(data.samples.shape(), &data.samples).unwrap();
    let input = input.with_images(&options).with_mask(data.mask.as_deref());
    let again = input.open(at("images").to_str().unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!(holes(&again.samples), holes(&data.samples));
    assert_eq!(holes(&data.samples), [0, 1, 2, 4, 6, 7]);
    // What was opened says which cells are behind a mask, whoever brought it: a model of it hides the same ones.
    assert_eq!(again.mask, Some(vec![false, true, true, true]));
    pictures::save(at("other.png"), 2, 2, &[1, 1, 1, 0]);
    let both = OpenOptions { mask: text(&at("other.png")), ..OpenOptions::default() };
    let both = input.open(at("images").to_str().unwrap(), &both).unwrap();
    assert_eq!(both.mask, Some(vec![false, true, true, false]));
    assert_eq!(holes(&both.samples), [0, 1, 2, 3, 4, 6, 7]);
    // One picture is read the same way, in its own size.
    let resized = OpenOptions { resize: Some((5, 5)), ..options };
    let one = input.clone().with_images(&resized);
    let one = one.open_picture(&at("images/a.png"), &OpenOptions::default()).unwrap().unwrap().samples;
    assert_eq!((holes(&one), one.shape()), (vec![1, 2], &[2, 2][..]));
    // `Never` lifts the mask, too.
    let opaque = OpenOptions { missing: Some(Unobserved::Never), ..OpenOptions::default() };
    assert!(holes(&input.open(at("images").to_str().unwrap(), &opaque).unwrap().samples).is_empty());
    // Arrays have no alpha: NaN is what is missing of them.
    npy::write_array(at("x.npy"), &[1, 2, 2], &[1.0, 2.0, f64::NAN, 4.0]).unwrap();
    let array = input.open(at("x.npy").to_str().unwrap(), &OpenOptions::default()).unwrap().samples;
    assert_eq!((holes(&array), array.missing()), (vec![0, 2], Missing::Nan));
}
