//! NumPy's `.npz`: a zip archive of `.npy` files, of which one holds the samples and perhaps one the labels.

use std::io::{Cursor, Read};
use std::path::Path;

use zip::ZipArchive;

use super::flat::map_file;
use super::labels::{LETTERS, Labels};
use super::limit::Limit;
use super::notes::Note;
use super::npy::{self, Header};
use super::open::Found;
use crate::error::{Error, FileKind, Result, sides};

const FORMAT: FileKind = FileKind::Npz;
/// What people call the array of samples, best first; otherwise the largest is taken.
const SAMPLE_NAMES: [&str; 7] = ["samples", "images", "x", "X", "fea", "data", "x_train"];
/// What people call the array of labels.
const LABEL_NAMES: [&str; 6] = ["labels", "y", "gnd", "label", "target", "targets"];

type Problem<T> = std::result::Result<T, String>;

/// One array of the archive.
struct Entry {
    index: usize,
    name: String,
    header: Header,
}

/// The arrays of an archive, and those that are no plain arrays (objects, records) with the reason.
#[derive(Default)]
struct Contents {
    entries: Vec<Entry>,
    skipped: Vec<(String, String)>,
}

/// The samples of an archive (`wanted`, or the array that looks like samples) and, if asked for, its labels.
pub(crate) fn open(path: &Path, wanted: Option<&str>, find_labels: bool, limit: Limit) -> Result<Found> {
    read(path, &map_file(path)?, wanted, find_labels, limit)
}

fn read(path: &Path, bytes: &[u8], wanted: Option<&str>, find_labels: bool, limit: Limit) -> Result<Found> {
    let wrong = |problem: String| Error::format(path, FORMAT, problem);
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| wrong(format!("it is no zip archive, or one that was cut short: {e}")))?;
    let contents = contents(&mut archive).map_err(wrong)?;
    let (entries, chosen) = (&contents.entries, choose(path, &contents, wanted)?);
    let stored = npy::element_size(&chosen.header.descr).ok();
    let stored = stored.and_then(|size| chosen.header.count()?.checked_mul(size)).unwrap_or(usize::MAX);
    limit.check(&path.to_string_lossy(), npy::worked_bytes(&chosen.header.descr, stored as u64))?;
    let unpacked = unpack(&mut archive, chosen).map_err(wrong)?;
    let array = npy::parse(&unpacked).map_err(|e| wrong(within(chosen, &e)))?;
    drop(unpacked);
    let samples =
        array.elements.into_samples(&array.shape[1..]).map_err(|e| wrong(within(chosen, &e.to_string())))?;
    let mut notes = Vec::new();
    let others = entries.iter().filter(|e| could_be(e) && !is_label(&e.name) && e.name != chosen.name);
    let others: Vec<String> = others.map(|e| e.name.clone()).collect();
    if wanted.is_none() && !others.is_empty() {
        notes.push(Note::Array { chosen: chosen.name.clone(), others });
    }
    let labels = match entries.iter().find(|e| find_labels && is_label_of(&e.name, &chosen.name, entries)) {
        // Before they are unpacked: their number is not to be trusted.
        Some(entry) if entry.header.count() != Some(samples.len()) => {
            let (from, labels) =
                (format!("its array `{}`", entry.name), entry.header.count().unwrap_or(usize::MAX));
            notes.push(Note::OtherLabels { from, labels, samples: samples.len() });
            None
        }
        Some(entry) => {
            let within = |e: String| wrong(within(entry, &e));
            notes.push(Note::Labels { from: format!("its array `{}`", entry.name) });
            Some(Labels::from_npy(&unpack(&mut archive, entry).map_err(wrong)?).map_err(within)?)
        }
        None => None,
    };
    Ok(Found { labels, array: Some(chosen.name.clone()), notes, ..Found::plain(samples) })
}

fn within(entry: &Entry, problem: &str) -> String {
    format!("in its array `{}`: {problem}", entry.name)
}

/// The headers of all arrays; members that are no `.npy` files are passed over.
fn contents(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Problem<Contents> {
    let mut contents = Contents::default();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|e| format!("its member {index}: {e}"))?;
        let Some(name) = member.name().ok().and_then(|n| n.strip_suffix(".npy").map(str::to_string)) else {
            continue;
        };
        // The header of an array takes some hundred bytes; the elements are not unpacked for it.
        let mut start = Vec::new();
        let read = member.by_ref().take(4096).read_to_end(&mut start);
        read.map_err(|e| format!("its array `{name}` cannot be unpacked: {e}"))?;
        match Header::parse(&start) {
            Ok(header) => contents.entries.push(Entry { index, name, header }),
            Err(problem) => contents.skipped.push((name, problem)),
        }
    }
    Ok(contents)
}

/// The bytes of a member. What the archive claims about its size is not believed: the vector grows with what
/// really comes out of the stream, and no further than the array's own header explains.
fn unpack(archive: &mut ZipArchive<Cursor<&[u8]>>, entry: &Entry) -> Problem<Vec<u8>> {
    let size = text_size(&entry.header.descr).map_or_else(|| npy::element_size(&entry.header.descr), Ok);
    let size = size.map_err(|e| within(entry, &e))?;
    if size > 4 * LETTERS {
        return Err(within(
            entry,
            &format!("its elements are texts of {size} bytes; labels are names of up to {LETTERS}"),
        ));
    }
    let needed = entry.header.count().and_then(|n| n.checked_mul(size));
    let needed = needed.and_then(|n| n.checked_add(entry.header.offset));
    let needed = needed.ok_or_else(|| within(entry, "its shape is too large"))?;
    let member = archive.by_index(entry.index).map_err(|e| within(entry, &e.to_string()))?;
    let mut bytes = Vec::new();
    let read = member.take(needed as u64).read_to_end(&mut bytes);
    read.map_err(|e| within(entry, &format!("it cannot be unpacked: {e}")))?;
    Ok(bytes)
}

fn text_size(descr: &str) -> Option<usize> {
    let unit = match descr.get(1..2)? {
        "U" => 4,
        "S" => 1,
        _ => return None,
    };
    descr.get(2..)?.parse::<usize>().ok()?.checked_mul(unit)
}

/// Whether an array looks like samples.
fn could_be(e: &Entry) -> bool {
    e.header.shape.len() >= 2 && npy::element_size(&e.header.descr).is_ok()
}

fn choose<'e>(path: &Path, contents: &'e Contents, wanted: Option<&str>) -> Result<&'e Entry> {
    let mut entries = contents.entries.iter().filter(|e| could_be(e));
    let chosen = match wanted {
        Some(wanted) => entries.find(|e| e.name == wanted),
        None => {
            // Matrices before vectors, a telling name before any other, a large array before a small one.
            let rank = |e: &&Entry| {
                let name = SAMPLE_NAMES.iter().position(|n| *n == e.name).unwrap_or(SAMPLE_NAMES.len());
                let label = is_label(&e.name);
                (!label, e.header.shape.len() >= 3, std::cmp::Reverse(name), e.header.count())
            };
            entries.max_by_key(rank)
        }
    };
    chosen.ok_or_else(|| {
        let described = |e: &Entry| format!("`{}` ({} {})", e.name, sides(&e.header.shape), e.header.descr);
        let other = contents.skipped.iter().map(|(name, problem)| format!("`{name}` ({problem})"));
        let held = contents.entries.iter().map(described).chain(other).collect();
        Error::NoArray { path: path.to_owned(), wanted: wanted.map(str::to_string), held }
    })
}

/// Whether this is a name that people give to labels.
pub(crate) fn is_label(name: &str) -> bool {
    LABEL_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name)) || name.starts_with("y_")
}

/// Whether `name` is the best array of labels for `samples`: the one named alike (`x_test`, `y_test`;
/// `train_images`, `train_labels`), otherwise the one with the most usual name.
fn is_label_of(name: &str, samples: &str, entries: &[Entry]) -> bool {
    let alike = [("x_", "y_"), ("X_", "y_"), ("images", "labels"), ("data", "labels")]
        .into_iter()
        .filter(|(from, _)| samples.contains(from))
        .map(|(from, to)| samples.replacen(from, to, 1));
    let usual = LABEL_NAMES.iter().map(|n| n.to_string());
    // An array of 60000×10 that is called `y` holds something else.
    let could_be = |e: &Entry| e.header.shape.iter().filter(|&&axis| axis != 1).count() <= 1;
    let there = |n: &String| entries.iter().any(|e| e.name == *n && could_be(e));
    alike.chain(usual).find(there).is_some_and(|best| best == name)
}

#[cfg(test)]
mod tests {
    use zip::CompressionMethod;

    use super::*;
    use crate::data::made::{npy_bytes, npz};

    fn read(bytes: &[u8], wanted: Option<&str>, find_labels: bool) -> Result<Found> {
        super::read(Path::new("x.npz"), bytes, wanted, find_labels, Limit::new(bytes.len() as u64, None))
    }

    fn keras() -> Vec<u8> {
        npz(
            CompressionMethod::Deflated,
            &[
                ("x_test.npy", npy_bytes("|u1", "1, 2, 2", &[9; 4])),
                ("x_train.npy", npy_bytes("|u1", "2, 2, 2", &[1, 2, 3, 4, 5, 6, 7, 8])),
                ("y_test.npy", npy_bytes("|u1", "1,", &[3])),
                ("y_train.npy", npy_bytes("|u1", "2,", &[5, 0])),
                ("notes.txt", b"made by hand".to_vec()),
            ],
        )
    }

    #[test]
    fn the_array_that_looks_like_samples_is_found_with_its_labels() {
        let found = read(&keras(), None, true).unwrap();
        assert_eq!(found.array.as_deref(), Some("x_train"));
        let notes = [
            Note::Array { chosen: "x_train".into(), others: vec!["x_test".into()] },
            Note::Labels { from: "its array `y_train`".into() },
        ];
        assert_eq!(found.notes, notes);
        assert_eq!(found.labels, Some(Labels::new(["5", "0"])));
        let test = read(&keras(), Some("x_test"), true).unwrap();
        assert_eq!((test.samples.len(), test.labels.unwrap().names), (1, vec!["3".to_string()]));
        let vectors = npz(
            CompressionMethod::Stored,
            &[
                ("labels.npy", npy_bytes("<U1", "2,", &[b'a', 0, 0, 0, b'b', 0, 0, 0])),
                ("arr_0.npy", npy_bytes("|u1", "2, 3", &[1; 6])),
                // Records, which are no reason not to read the others.
                ("log.npy", b"\x93NUMPY\x01\0\x20\0{'descr': [('a', '<i4')], }     \n".to_vec()),
            ],
        );
        let found = read(&vectors, None, true).unwrap();
        assert_eq!((found.array.as_deref(), found.samples.shape()), (Some("arr_0"), &[3][..]));
        assert_eq!(found.labels, Some(Labels::new(["a", "b"])));
    }

    #[test]
    fn bad_archives_say_what_is_wrong() {
        let problem = |bytes: &[u8], wanted| read(bytes, wanted, true).err().unwrap().to_string();
        let is = |problem: String, expected: &str| assert!(problem.contains(expected), "{problem}");
        is(
            problem(&keras(), Some("x")),
            "it has no array `x` of real numbers that could be samples; it holds `x_test` (1×2×2 |u1), `x_train`",
        );
        is(problem(&keras(), Some("y_test")), "`y_test` (1 |u1)");
        is(problem(b"nothing of the kind", None), "no zip archive");
        let whole = keras();
        is(problem(&whole[..whole.len() / 2], None), "cut short");
        let member = |name, bytes| npz(CompressionMethod::Deflated, &[(name, bytes)]);
        is(
            problem(&member("x.npy", npy_bytes("|u1", "2, 2", &[1, 2, 3])), None),
            "needs 4 bytes of data, but 3 are",
        );
        is(problem(&member("x.npy", npy_bytes("<c16", "2, 2", &[0; 64])), None), "`x` (2×2 <c16)");
        is(
            problem(&member("x.npy", npy_bytes("<f8", "1099511627776, 4096", &[0; 64])), None),
            "it would unpack to 36.1 PB",
        );
        is(problem(&member("a.txt", vec![]), None), "it holds nothing");
        is(problem(&member("x.npy", b"no array".to_vec()), None), "it holds `x` (it does not begin with");
        let labels = npz(
            CompressionMethod::Deflated,
            &[("x.npy", npy_bytes("|u1", "2, 2", &[1; 4])), ("y.npy", npy_bytes("|u1", "3,", &[1; 3]))],
        );
        let found = read(&labels, None, true).unwrap();
        let note = Note::OtherLabels { from: "its array `y`".into(), labels: 3, samples: 2 };
        assert_eq!((found.labels, found.notes), (None, vec![note]));
    }
}
