//! Masks beside data: which cells were observed.
//!
//! A mask is a picture or an array in the shape of a sample, for all of them alike, or a folder of pictures, a stack or an array with
//! one for each. Whatever is not 0 was observed. The pictures of a folder are found by the names of the samples where those are files,
//! whatever their endings, and by their order otherwise.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use super::limit::Limit;
use super::marked::{Unobserved, is_observed};
use super::open::{OpenOptions, open};
use super::samples::Samples;
use super::{file, folder, npy, tree};
use crate::error::{Action, Error, Result, sides};

/// What a mask has to fit.
pub(super) struct Data<'d> {
    /// The shape of a sample, and the one it was stored in.
    pub(super) shapes: [&'d [usize]; 2],
    /// How many samples there are in all.
    pub(super) len: usize,
    /// Which of them were chosen.
    pub(super) chosen: Option<&'d [usize]>,
    /// What those are called.
    pub(super) names: Option<&'d [String]>,
}

/// The samples with NaN where `options` say that nothing was observed, and the mask if there is one for all of them.
pub(super) fn marked(
    samples: Samples<'static>,
    of: &Data<'_>,
    options: &OpenOptions,
) -> Result<(Samples<'static>, Option<Vec<bool>>)> {
    let mut samples = match options.missing {
        Some(Unobserved::Value(fill)) => samples.with_fill_value(fill)?,
        Some(Unobserved::Nan | Unobserved::Alpha(_)) => samples.with_missing(Unobserved::Nan.missing()),
        Some(Unobserved::Never) | None => samples,
    };
    let Some(spec) = &options.mask else { return Ok((samples, None)) };
    let masks = find(spec, of, options)?;
    let shared = match masks.len() {
        1 if of.len > 1 => Some(masks.to_f64(0..1)?),
        _ => None,
    };
    let repeat = samples.sample_len() / masks.sample_len().max(1);
    samples = samples.with_mask(masks)?;
    let cells = |mask: Vec<f64>| {
        mask.iter().flat_map(|&x| std::iter::repeat_n(is_observed(x), repeat)).collect::<Vec<bool>>()
    };
    Ok((samples, shared.map(cells)))
}

/// One mask, or one for every chosen sample.
fn find(spec: &str, of: &Data<'_>, options: &OpenOptions) -> Result<Samples<'static>> {
    let path = Path::new(spec);
    let is_pictures = path.is_dir() || (path.is_file() && tree::is_image(path));
    let (masks, names) = if is_pictures {
        let found = folder::open_masks(path, options)?;
        (found.samples, found.names)
    } else {
        (array(spec, of, options)?, None)
    };
    let [shape, stored] = of.shapes;
    let masks = match masks.shape() {
        found if found == shape || (shape.len() > 1 && found == &shape[..shape.len() - 1]) => masks,
        found if found == stored => masks.reshaped(shape)?,
        _ => return Err(misfit(spec, of, masks.len(), masks.shape())),
    };
    if masks.len() == 1 {
        return Ok(masks);
    }
    if masks.len() != of.len {
        return Err(misfit(spec, of, masks.len(), masks.shape()));
    }
    match (of.names, names) {
        (Some(wanted), Some(found)) => masks.select(&by_name(spec, wanted, &found)?),
        _ => of.chosen.map_or(Ok(masks.clone()), |chosen| masks.select(chosen)),
    }
}

/// An array of one mask, or of one for each sample: the axes tell.
fn array(spec: &str, of: &Data<'_>, options: &OpenOptions) -> Result<Samples<'static>> {
    let is_one = |axes: &[usize]| {
        let [shape, stored] = of.shapes;
        axes == shape || axes == stored || axes == &shape[..shape.len() - 1]
    };
    // One for vectors has a single axis, which is none of samples.
    if let Some(mask) = vector(Path::new(spec), options)? {
        return Ok(mask);
    }
    let budget = OpenOptions { memory_budget: options.memory_budget, ..OpenOptions::default() };
    let masks = open(spec, &budget)?.samples;
    let axes = [&[masks.len()], masks.shape()].concat();
    if !is_one(&axes) {
        return Ok(masks);
    }
    let cells = masks.to_f64(0..masks.len())?;
    Samples::from_vec(&axes, cells.into_iter().map(|x| u8::from(is_observed(x))).collect::<Vec<_>>())
}

/// A `.npy` file of one axis.
fn vector(path: &Path, options: &OpenOptions) -> Result<Option<Samples<'static>>> {
    if !path.is_file() || path.extension().is_none_or(|ending| ending != "npy") {
        return Ok(None);
    }
    let mut start = Vec::new();
    let (mut stream, _) = file::open(path)?;
    let read = stream.by_ref().take(1 << 16).read_to_end(&mut start);
    read.map_err(|e| Error::io(path, Action::Read, &e))?;
    match npy::Header::parse(&start) {
        Ok(header) if header.shape.len() == 1 => {
            let limit = Limit::unpacked(options.memory_budget);
            let array = npy::read(&path.to_string_lossy(), start.as_slice().chain(stream), limit)?;
            array.elements.into_samples(&array.shape).map(Some)
        }
        // What is wrong with it is told by whoever reads it as samples.
        _ => Ok(None),
    }
}

/// The place of the mask of each sample.
fn by_name(spec: &str, wanted: &[String], found: &[String]) -> Result<Vec<usize>> {
    let wrong = |problem: String| Error::Data { name: spec.to_owned(), problem };
    let mut places = HashMap::new();
    for (place, name) in found.iter().enumerate() {
        if let Some(other) = places.insert(stem(name), place) {
            return Err(wrong(format!("{} and {name} are masks of one sample", found[other])));
        }
    }
    let place = |name: &String| {
        let place = places.get(&stem(name)).copied();
        place.ok_or_else(|| {
            wrong(format!("there is no mask for {name}; an image called {}.png, say, is needed", stem(name)))
        })
    };
    wanted.iter().map(place).collect()
}

/// A name without its ending; a page of a file keeps its number.
fn stem(name: &str) -> String {
    let (file, page) = match name.rsplit_once('#') {
        Some((file, page)) if page.bytes().all(|b| b.is_ascii_digit()) => (file, format!("#{page}")),
        _ => (name, String::new()),
    };
    format!("{}{page}", Path::new(file).with_extension("").display())
}

fn misfit(spec: &str, of: &Data<'_>, masks: usize, shape: &[usize]) -> Error {
    let (own, found) = (sides(of.shapes[0]), sides(shape));
    let masks = if masks == 1 { format!("a mask of {found}") } else { format!("{masks} masks of {found}") };
    let problem = format!(
        "it holds {masks}, but the data {} samples of {own}; one mask of {own} for all of them or one for each is needed, \
         other than 0 where a cell was observed",
        of.len
    );
    Error::Data { name: spec.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_do_not_matter_and_pages_do() {
        assert_eq!(stem("a/b.c.png"), "a/b.c");
        assert_eq!(stem("stack.tif#12"), "stack#12");
        assert_eq!(stem("a#b.png"), "a#b");
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = by_name("masks", &names(&["x/2.jpg", "x/1.jpg"]), &names(&["x/1.png", "x/2.png"]));
        assert_eq!(found.unwrap(), [1, 0]);
        let none = by_name("masks", &names(&["3.jpg"]), &names(&["1.png"])).unwrap_err().to_string();
        assert_eq!(none, "masks: there is no mask for 3.jpg; an image called 3.png, say, is needed");
        let twice = by_name("masks", &names(&["1.jpg"]), &names(&["1.png", "1.pgm"])).unwrap_err();
        assert!(twice.to_string().contains("1.png and 1.pgm are masks of one sample"));
    }
}
