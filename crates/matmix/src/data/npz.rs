//! NumPy's `.npz`: a zip archive of `.npy` files, of which one holds the samples and perhaps one the labels.

use std::io::{Cursor, Read};
use std::path::Path;

use zip::ZipArchive;

use super::flat::map_file;
use super::labels::Labels;
use super::npy::{self, Header};
use super::open::Found;
use crate::error::{Error, Result, sides};

const FORMAT: &str = ".npz file";
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
pub(crate) fn open(path: &Path, wanted: Option<&str>, find_labels: bool) -> Result<Found> {
    let map = map_file(path)?;
    read(&map, wanted, find_labels).map_err(|problem| Error::format(path, FORMAT, problem))
}

fn read(bytes: &[u8], wanted: Option<&str>, find_labels: bool) -> Problem<Found> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| format!("it is no zip archive, or one that was cut short: {e}"))?;
    let contents = contents(&mut archive)?;
    let (entries, chosen) = (&contents.entries, choose(&contents, wanted)?);
    let array = npy::parse(&unpack(&mut archive, chosen)?).map_err(|e| within(chosen, &e))?;
    let samples =
        array.elements.into_samples(&array.shape[1..]).map_err(|e| within(chosen, &e.to_string()))?;
    let labels = match entries.iter().find(|e| find_labels && is_label_of(&e.name, &chosen.name, entries)) {
        Some(entry) => {
            let labels = Labels::from_npy(&unpack(&mut archive, entry)?).map_err(|e| within(entry, &e))?;
            labels.check_count(samples.len()).map_err(|e| within(entry, &e.to_string()))?;
            Some(labels)
        }
        None => None,
    };
    Ok(Found { samples, labels, array: Some(chosen.name.clone()) })
}

/// The bytes of the samples that [`open`] would unpack.
pub(crate) fn sample_bytes(path: &Path, wanted: Option<&str>) -> Result<u64> {
    let read = |bytes: &[u8]| -> Problem<u64> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| format!("it is no zip archive, or one that was cut short: {e}"))?;
        let contents = contents(&mut archive)?;
        let header = &choose(&contents, wanted)?.header;
        let count = header.count().and_then(|n| n.checked_mul(npy::element_size(&header.descr).ok()?));
        Ok(count.map_or(u64::MAX, |bytes| bytes as u64))
    };
    read(&map_file(path)?).map_err(|problem| Error::format(path, FORMAT, problem))
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

fn choose<'e>(contents: &'e Contents, wanted: Option<&str>) -> Problem<&'e Entry> {
    let entries = &contents.entries;
    let listed = || {
        let plain =
            entries.iter().map(|e| format!("`{}` ({} {})", e.name, sides(&e.header.shape), e.header.descr));
        let other = contents.skipped.iter().map(|(name, problem)| format!("`{name}` ({problem})"));
        let list: Vec<String> = plain.chain(other).collect();
        if list.is_empty() { "nothing".to_string() } else { list.join(", ") }
    };
    let could_be = |e: &&Entry| e.header.shape.len() >= 2 && npy::element_size(&e.header.descr).is_ok();
    if let Some(wanted) = wanted {
        let entry = entries.iter().find(|e| e.name == wanted);
        let entry = entry.ok_or_else(|| format!("it has no array `{wanted}`; it holds {}", listed()))?;
        return Some(entry).filter(could_be).ok_or_else(|| {
            within(entry, &format!(
                "its shape is {} and its elements are `{}`; samples need real numbers and at least two axes, sample × mode 1 (× mode 2 …)",
                sides(&entry.header.shape), entry.header.descr
            ))
        });
    }
    // Matrices before vectors, a telling name before any other, a large array before a small one.
    let rank = |e: &&Entry| {
        let name = SAMPLE_NAMES.iter().position(|n| *n == e.name).unwrap_or(SAMPLE_NAMES.len());
        let label = is_label(&e.name);
        (!label, e.header.shape.len() >= 3, std::cmp::Reverse(name), e.header.count())
    };
    entries.iter().filter(could_be).max_by_key(rank).ok_or_else(|| {
        format!(
            "none of its arrays looks like samples (real numbers, axes sample × mode 1 × …); it holds {}",
            listed()
        )
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
        let problem = |bytes: &[u8], wanted| read(bytes, wanted, true).err().unwrap();
        let is = |problem: String, expected: &str| assert!(problem.contains(expected), "{problem}");
        is(problem(&keras(), Some("x")), "it has no array `x`; it holds `x_test` (1×2×2 |u1), `x_train`");
        is(
            problem(&keras(), Some("y_test")),
            "in its array `y_test`: its shape is 1 and its elements are `|u1`",
        );
        is(problem(b"nothing of the kind", None), "no zip archive");
        let whole = keras();
        is(problem(&whole[..whole.len() / 2], None), "cut short");
        let member = |name, bytes| npz(CompressionMethod::Deflated, &[(name, bytes)]);
        is(
            problem(&member("x.npy", npy_bytes("|u1", "2, 2", &[1, 2, 3])), None),
            "needs 4 bytes of data, but 3 are",
        );
        is(problem(&member("x.npy", npy_bytes("<c16", "2, 2", &[0; 64])), None), "`x` (2×2 <c16)");
        is(problem(&member("x.npy", npy_bytes("<f8", "1099511627776, 4096", &[0; 64])), None), "cut short");
        is(problem(&member("a.txt", vec![]), None), "it holds nothing");
        is(problem(&member("x.npy", b"no array".to_vec()), None), "it holds `x` (it does not begin with");
        let labels = npz(
            CompressionMethod::Deflated,
            &[("x.npy", npy_bytes("|u1", "2, 2", &[1; 4])), ("y.npy", npy_bytes("|u1", "3,", &[1; 3]))],
        );
        is(problem(&labels, None), "in its array `y`: 3 labels for 2 samples; exactly one per sample");
    }
}
