//! MATLAB `.mat` files: face sets passed around as `fea` and `gnd`, stacks of images, matrices of vectors.
//!
//! MATLAB stores the first axis fastest, and people flatten images in that order too. Whatever the layout,
//! samples come out upright: element (i, j) of a sample is row i, column j of the image.
//!
//! | file | what |
//! |---|---|
//! | `reader` | the bytes of a file: its numeric arrays |
//! | `tests` | tests |

mod reader;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::reader::{Contents, Variable};
use super::flat::map_file;
use super::labels::Labels;
use super::limit::Limit;
use super::notes::Note;
use super::npy::{Elements, from_fortran_order};
use super::npz::is_label;
use super::open::Found;
use super::samples::Samples;
use crate::error::{Error, FileKind, Result, sides};

const FORMAT: FileKind = FileKind::Mat;

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
    limit: Limit,
) -> Result<Found> {
    read(path, &map_file(path)?, wanted, shape, given, limit)
}

fn read(
    path: &Path,
    bytes: &[u8],
    wanted: Option<&str>,
    shape: Option<&[usize]>,
    given: Option<&Labels>,
    limit: Limit,
) -> Result<Found> {
    if reader::is_hdf5(bytes) {
        let (found, instead) = (
            "a MATLAB file of version 7.3 (HDF5)",
            "in MATLAB save it with -v7: save('x.mat', 'fea', 'gnd', '-v7')",
        );
        return Err(Error::NotRead { path: path.to_owned(), found, instead });
    }
    let wrong = |problem: String| Error::format(path, FORMAT, problem);
    let contents = reader::parse(bytes).map_err(wrong)?;
    let variable = choose(path, &contents, wanted)?;
    let labels = if given.is_some() { None } else { labels(&contents, variable) };
    let count = given.map(Labels::len).or(labels.map(Variable::count));
    limit.check(&path.to_string_lossy(), variable.bytes())?;
    let mut notes = Vec::new();
    let others = contents.variables.iter().filter(|v| could_be(v) && v.name != variable.name);
    let others: Vec<String> = others.map(|v| v.name.clone()).collect();
    if wanted.is_none() && !others.is_empty() {
        notes.push(Note::Array { chosen: variable.name.clone(), others });
    }
    let layout = Layout::of(path, variable, shape, count, &mut notes)?;
    let samples = layout.arrange(variable.elements().map_err(wrong)?)?;
    let labels = match labels {
        Some(variable) if variable.count() != samples.len() => {
            let (from, labels) = (format!("its variable `{}`", variable.name), variable.count());
            notes.push(Note::OtherLabels { from, labels, samples: samples.len() });
            None
        }
        Some(variable) => {
            let within = |e: String| wrong(format!("in its variable `{}`: {e}", variable.name));
            notes.push(Note::Labels { from: format!("its variable `{}`", variable.name) });
            Some(
                Labels::from_elements(&variable.dims, &variable.elements().map_err(wrong)?)
                    .map_err(within)?,
            )
        }
        None => None,
    };
    let array = Some(variable.name.clone());
    Ok(Found { labels, array, notes, ..Found::plain(samples) })
}

/// Whether a variable looks like samples.
fn could_be(v: &Variable<'_>) -> bool {
    !is_label(&v.name) && v.dims.iter().filter(|&&d| d > 1).count() >= 2
}

fn choose<'v, 'b>(path: &Path, contents: &'v Contents<'b>, wanted: Option<&str>) -> Result<&'v Variable<'b>> {
    let chosen = match wanted {
        Some(wanted) => contents.variables.iter().find(|v| v.name == wanted),
        None => {
            // A stack before a matrix, a large one before a small one.
            let rank = |v: &&Variable<'_>| (v.name == "fea", v.dims.len() >= 3, v.count());
            contents.variables.iter().filter(|v| could_be(v)).max_by_key(rank)
        }
    };
    chosen.ok_or_else(|| {
        let numeric = contents.variables.iter().map(|v| format!("`{}` ({})", v.name, sides(&v.dims)));
        let other =
            contents.skipped.iter().map(|name| format!("`{name}` (not a full array of real numbers)"));
        let (path, wanted) = (path.to_owned(), wanted.map(str::to_string));
        Error::NoArray { path, wanted, held: numeric.chain(other).collect() }
    })
}

/// The variable that is called like labels, `gnd` before all others, if it has one long axis.
fn labels<'v, 'b>(contents: &'v Contents<'b>, samples: &Variable<'b>) -> Option<&'v Variable<'b>> {
    let one_axis = |v: &Variable<'_>| v.dims.iter().filter(|&&d| d != 1).count() <= 1;
    let could_be = |v: &&Variable<'_>| is_label(&v.name) && one_axis(v) && v.name != samples.name;
    contents.variables.iter().filter(could_be).max_by_key(|v| v.name == "gnd")
}

/// How the elements of a variable are samples.
struct Layout {
    along_first: bool,
    first: usize,
    modes: Vec<usize>,
}

impl Layout {
    fn of(
        path: &Path,
        variable: &Variable<'_>,
        shape: Option<&[usize]>,
        labels: Option<usize>,
        notes: &mut Vec<Note>,
    ) -> Result<Self> {
        let dims = &variable.dims;
        let (first, last) = (dims[0], dims[dims.len() - 1]);
        let within = |e: String| Error::data(path, format!("in its variable `{}`: {e}", variable.name));
        if variable.count() == 0 {
            return Err(within(format!("it is {}; at least one sample is needed", sides(dims))));
        }
        let size = |count: usize| variable.count() / count;
        // A matrix usually has its samples along the first axis, a stack along the last: the shape of a sample
        // decides, then the number of labels, then custom.
        let usual_first = dims.len() == 2;
        let along_first = match (shape.map(|s| s.iter().product::<usize>()), labels) {
            (Some(p), _) if size(first) == p && size(last) != p => true,
            (Some(p), _) if size(last) == p && size(first) != p => false,
            (Some(p), _) if size(first) != p => {
                return Err(within(format!(
                    "it is {}, so that a sample has {} numbers; the shape {} has {p}",
                    sides(dims),
                    size(if usual_first { first } else { last }),
                    sides(shape.unwrap_or_default()),
                )));
            }
            (_, Some(n)) if first == n && last != n => true,
            (_, Some(n)) if last == n && first != n => false,
            _ => usual_first,
        };
        if along_first != usual_first {
            notes
                .push(Note::Axis { axis: if along_first { 0 } else { dims.len() - 1 }, shape: dims.clone() });
        }
        let modes = match shape {
            Some(shape) => shape.to_vec(),
            None if dims.len() == 2 => {
                let numbers = size(if along_first { first } else { last });
                let (path, array) = (path.to_owned(), variable.name.clone());
                let shape = square(numbers).ok_or(Error::ShapeNeeded { path, array, numbers })?;
                notes.push(Note::Square { shape: shape.clone() });
                shape
            }
            None if along_first => dims[1..].to_vec(),
            None => dims[..dims.len() - 1].to_vec(),
        };
        Ok(Self { along_first, first, modes })
    }

    /// Brings the elements into the order of samples.
    fn arrange(&self, elements: Elements) -> Result<Samples<'static>> {
        let Self { along_first, first, modes } = self;
        match elements {
            Elements::U8(x) => Samples::from_vec(modes, reorder(*along_first, *first, modes, &x)),
            Elements::F32(x) => Samples::from_vec(modes, reorder(*along_first, *first, modes, &x)),
            Elements::F64(x) => Samples::from_vec(modes, reorder(*along_first, *first, modes, &x)),
        }
    }
}

fn square(size: usize) -> Option<Vec<usize>> {
    let side = size.isqrt();
    (side * side == size && side >= 2).then(|| vec![side, side])
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
