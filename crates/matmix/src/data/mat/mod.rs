//! MATLAB `.mat` files: face sets passed around as `fea` and `gnd`, stacks of images, matrices of vectors.
//!
//! MATLAB stores the first axis fastest, and people flatten images in that order too. Whatever the layout,
//! samples come out upright: element (i, j) of a sample is row i, column j of the image.

mod reader;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::reader::{Contents, Variable};
use super::flat::map_file;
use super::labels::Labels;
use super::npy::{Elements, from_fortran_order};
use super::npz::is_label;
use super::open::Found;
use super::samples::Samples;
use crate::error::{Error, Result, sides};

const FORMAT: &str = "MATLAB .mat file";

type Problem<T> = std::result::Result<T, String>;

/// The samples of a file (the variable `wanted`, or the one that looks like samples) and its labels, unless
/// other ones are `given`.
///
/// - `fea` or another matrix: N×P, one sample per row (or per column, where the labels or the shape say so), each
///   the columns of an image one after the other; square unless `shape` says otherwise.
/// - an array of three or more axes: samples along the last one, or along the first if the labels or the shape
///   say so.
pub(crate) fn open(
    path: &Path,
    wanted: Option<&str>,
    shape: Option<&[usize]>,
    given: Option<&Labels>,
) -> Result<Found> {
    let map = map_file(path)?;
    read(&map, wanted, shape, given).map_err(|problem| Error::format(path, FORMAT, problem))
}

fn read(
    bytes: &[u8],
    wanted: Option<&str>,
    shape: Option<&[usize]>,
    given: Option<&Labels>,
) -> Problem<Found> {
    let mut contents = reader::parse(bytes)?;
    let chosen = choose(&contents, wanted)?;
    let variable = contents.variables.swap_remove(chosen);
    let labels = match given {
        Some(_) => None,
        None => labels(&contents)?,
    };
    let count = given.or(labels.as_ref().map(|(_, l)| l)).map(Labels::len);
    let name = variable.name.clone();
    let samples = arrange(variable, shape, count).map_err(|e| format!("in its variable `{name}`: {e}"))?;
    if let Some((name, labels)) = &labels {
        labels.check_count(samples.len()).map_err(|e| format!("in its variable `{name}`: {e}"))?;
    }
    Ok(Found { samples, labels: labels.map(|(_, l)| l), array: Some(name) })
}

fn choose(contents: &Contents, wanted: Option<&str>) -> Problem<usize> {
    let list = || {
        let numeric = contents.variables.iter().map(|v| format!("`{}` ({})", v.name, sides(&v.dims)));
        let other =
            contents.skipped.iter().map(|name| format!("`{name}` (not a full array of real numbers)"));
        let list: Vec<String> = numeric.chain(other).collect();
        if list.is_empty() { "nothing".to_string() } else { list.join(", ") }
    };
    let find = |name: &str| contents.variables.iter().position(|v| v.name == name);
    if let Some(wanted) = wanted {
        return find(wanted)
            .ok_or_else(|| format!("it has no numeric variable `{wanted}`; it holds {}", list()));
    }
    let could_be = |v: &Variable| !is_label(&v.name) && v.dims.iter().filter(|&&d| d > 1).count() >= 2;
    // A stack before a matrix, a large one before a small one.
    let rank = |v: &Variable| (v.name == "fea", v.dims.len() >= 3, v.elements.len());
    (0..contents.variables.len())
        .filter(|&i| could_be(&contents.variables[i]))
        .max_by_key(|&i| rank(&contents.variables[i]))
        .ok_or_else(|| {
            format!(
                "none of its variables looks like samples (`fea` with one sample per row, or an array of 3 axes); \
                 it holds {}",
                list()
            )
        })
}

/// The variable that is called like labels, `gnd` before all others, if it has one long axis.
fn labels(contents: &Contents) -> Problem<Option<(String, Labels)>> {
    let found = contents
        .variables
        .iter()
        .filter(|v| is_label(&v.name) && v.dims.iter().filter(|&&d| d != 1).count() <= 1)
        .max_by_key(|v| v.name == "gnd");
    found.map(|v| Ok((v.name.clone(), Labels::from_elements(&v.dims, &v.elements)?))).transpose()
}

/// Brings a variable into the order of samples.
fn arrange(variable: Variable, shape: Option<&[usize]>, labels: Option<usize>) -> Problem<Samples<'static>> {
    let Variable { dims, elements, .. } = variable;
    let (first, last) = (dims[0], dims[dims.len() - 1]);
    if elements.is_empty() {
        return Err(format!("it is {}; at least one sample is needed", sides(&dims)));
    }
    let size = |count: usize| elements.len() / count;
    // A matrix usually has its samples along the first axis, a stack along the last: the shape of a sample
    // decides, then the number of labels, then custom.
    let usual_first = dims.len() == 2;
    let along_first = match (shape.map(|s| s.iter().product::<usize>()), labels) {
        (Some(p), _) if size(first) == p && size(last) != p => true,
        (Some(p), _) if size(last) == p && size(first) != p => false,
        (Some(p), _) if size(first) != p => {
            return Err(format!(
                "it is {}, so that a sample has {} numbers; the shape {} has {p}",
                sides(&dims),
                size(if usual_first { first } else { last }),
                sides(shape.unwrap_or_default()),
            ));
        }
        (_, Some(n)) if first == n && last != n => true,
        (_, Some(n)) if last == n && first != n => false,
        _ => usual_first,
    };
    let modes = match shape {
        Some(shape) => shape.to_vec(),
        None if dims.len() == 2 => square(size(if along_first { first } else { last }))?,
        None if along_first => dims[1..].to_vec(),
        None => dims[..dims.len() - 1].to_vec(),
    };
    let samples = match elements {
        Elements::U8(x) => Samples::from_vec(&modes, reorder(along_first, first, &modes, &x)),
        Elements::F32(x) => Samples::from_vec(&modes, reorder(along_first, first, &modes, &x)),
        Elements::F64(x) => Samples::from_vec(&modes, reorder(along_first, first, &modes, &x)),
    };
    samples.map_err(|e| e.to_string())
}

fn square(size: usize) -> Problem<Vec<usize>> {
    let side = size.isqrt();
    if side * side != size || side < 2 {
        return Err(format!(
            "its samples have {size} numbers, which is no square; say their shape with --shape rows x columns \
             (or --shape {size} for vectors)"
        ));
    }
    Ok(vec![side, side])
}

fn reorder<T: Copy>(along_first: bool, first: usize, modes: &[usize], x: &[T]) -> Vec<T> {
    if along_first {
        let mut axes = vec![first];
        axes.extend(modes);
        return from_fortran_order(&axes, x);
    }
    let size: usize = modes.iter().product();
    x.chunks_exact(size).flat_map(|sample| from_fortran_order(modes, sample)).collect()
}
