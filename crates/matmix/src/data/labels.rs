//! What each sample is called: class names and one class index per sample.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::file;
use super::idx;
use super::npy::{self, Elements, Header};
use crate::error::{Action, Counted, Error, FileKind, Result, sides};

const FORMAT: FileKind = FileKind::Labels;
/// The longest label, in bytes.
pub(super) const LETTERS: usize = 1000;
/// Labels that come out of a packed file, at most: for any file, and for each of its bytes.
const LABELS: u64 = 1 << 24;
const PACKED: u64 = 16;

/// The class of every sample.
///
/// The names are sorted by number when all of them are integers, otherwise by letter, so that the index of a
/// class does not depend on the order of the samples.
///
/// ```
/// use matmix::data::Labels;
///
/// let labels = Labels::new(["10", "9", "10"]);
/// assert_eq!(labels.names, ["9", "10"]);
/// assert_eq!(labels.index, [1, 0, 1]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Labels {
    /// The class names, sorted.
    pub names: Vec<String>,
    /// For each sample the place of its class in `names`.
    pub index: Vec<usize>,
}

impl Labels {
    /// Labels from the name of every sample's class.
    pub fn new<S: Into<String>>(labels: impl IntoIterator<Item = S>) -> Self {
        let mut classes = Classes::default();
        labels.into_iter().for_each(|label| classes.add(label.into()));
        classes.finish(|name| name)
    }

    /// Labels from numbers; 3.0 is called `3`.
    pub fn from_numbers(labels: impl IntoIterator<Item = f64>) -> Self {
        let mut classes = Classes::default();
        labels.into_iter().for_each(|x| classes.add(x.to_bits()));
        classes.finish(|bits| f64::from_bits(bits).to_string())
    }

    /// Labels from a file: `.npy` (numbers or text), IDX (plain or gzip), or text with one label per line.
    ///
    /// # Errors
    /// If the file cannot be read, is none of these, or has an empty line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_as(path.as_ref(), false)
    }

    /// The same from a file whose lines may be empty: labels that are not [known](super::KnownLabels), and called nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for empty lines.
    pub fn read_with_gaps(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_as(path.as_ref(), true)
    }

    fn read_as(path: &Path, gaps: bool) -> Result<Self> {
        let wrong = |problem: String| Error::format(path, FORMAT, problem);
        let (file, identity) = file::open(path)?;
        let mut file = BufReader::new(file);
        let start = file.fill_buf().map_err(|e| Error::io(path, Action::Read, &e))?.to_vec();
        let named = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        let npy = named("npy") || start.starts_with(b"\x93NUMPY");
        let idx = named("gz") || idx::looks_like_gzip(&start) || idx::looks_like(&start);
        if !npy && !idx {
            return Self::from_text(&mut file, gaps).map_err(wrong);
        }
        let mut bytes = Vec::new();
        let read = file.take(identity.bytes).read_to_end(&mut bytes);
        read.map_err(|e| Error::io(path, Action::Read, &e))?;
        if npy {
            return Self::from_npy(&bytes).map_err(wrong);
        }
        // A packed file of labels is small, and what comes out of it too.
        let most = identity.bytes.saturating_mul(PACKED).max(LABELS);
        let array = idx::parse_within(&bytes, most).map_err(wrong)?;
        Self::from_elements(&array.shape, &array.elements).map_err(wrong)
    }

    /// Labels from a `.npy` file in memory; the error says what is wrong with it.
    pub(crate) fn from_npy(bytes: &[u8]) -> std::result::Result<Self, String> {
        let header = Header::parse(bytes)?;
        if let Some(texts) = texts(&header, bytes)? {
            one_axis(&header.shape)?;
            return Ok(texts);
        }
        let array = npy::parse(bytes)?;
        Self::from_elements(&array.shape, &array.elements)
    }

    /// Labels from an array of numbers with one axis (or one long axis).
    pub(crate) fn from_elements(shape: &[usize], x: &Elements) -> std::result::Result<Self, String> {
        one_axis(shape)?;
        Ok(Self::from_numbers((0..x.len()).map(|i| x.get(i))))
    }

    /// Labels from lines of text, as long as they can be labels at all.
    fn from_text(lines: &mut impl BufRead, gaps: bool) -> std::result::Result<Self, String> {
        let none = "one label per line is needed";
        let mut classes = Classes::default();
        let (mut line, mut number) = (Vec::new(), 0);
        // Empty lines are the end of the file, or a mistake: the first one is remembered.
        let mut empty = None;
        loop {
            line.clear();
            // The mark of the encoding, the longest label, the end of the line, and one byte that is too many.
            let read = lines.by_ref().take(LETTERS as u64 + 6).read_until(b'\n', &mut line);
            if read.map_err(|e| e.to_string())? == 0 {
                break;
            }
            number += 1;
            let bytes = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
            let bytes = bytes.trim_ascii_end();
            if bytes.len() > LETTERS {
                return Err(format!(
                    "line {number} has more than {LETTERS} bytes; {none}, and labels are names"
                ));
            }
            let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
            let text =
                text.ok_or("it is neither text (UTF-8) with one label per line, nor .npy, nor IDX")?.trim();
            if text.is_empty() && !gaps {
                empty = empty.or(Some(number));
                continue;
            }
            if let Some(empty) = empty {
                return Err(format!("line {empty} is empty; {none}"));
            }
            classes.add(text.to_string());
        }
        if classes.index.is_empty() {
            return Err(format!("it is empty; {none}"));
        }
        Ok(classes.finish(|name| name))
    }

    /// The number of samples that are labelled.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no sample is labelled.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The name of sample `n`'s class.
    pub fn name(&self, n: usize) -> &str {
        &self.names[self.index[n]]
    }

    /// Whether there is one label for each of `samples`.
    ///
    /// # Errors
    /// If there are fewer or more.
    pub fn check_count(&self, samples: usize) -> Result<()> {
        if self.len() != samples {
            return Err(Error::Count { what: Counted::Labels, expected: samples, found: self.len() });
        }
        Ok(())
    }

    /// The labels of the samples at these places, in this order. The classes stay as they are, even those that
    /// lose all their samples, so that the indices of two selections can be compared.
    ///
    /// # Errors
    /// If a place is not among the labels.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        let len = self.len();
        if let Some(&index) = indices.iter().find(|&&i| i >= len) {
            return Err(Error::Index { index, len });
        }
        let index = indices.iter().map(|&i| self.index[i]).collect();
        Ok(Self { names: self.names.clone(), index })
    }

    /// The same labels without the classes that no sample belongs to.
    pub fn without_empty_classes(self) -> Self {
        let mut used = vec![false; self.names.len()];
        self.index.iter().for_each(|&i| used[i] = true);
        let mut place = vec![0; used.len()];
        let mut names = Vec::new();
        for (i, name) in self.names.into_iter().enumerate().filter(|(i, _)| used[*i]) {
            place[i] = names.len();
            names.push(name);
        }
        Self { names, index: self.index.into_iter().map(|i| place[i]).collect() }
    }
}

fn one_axis(shape: &[usize]) -> std::result::Result<(), String> {
    let long = shape.iter().filter(|&&axis| axis != 1).count();
    if shape.is_empty() || long > 1 {
        return Err(format!("its shape is {}; labels need one axis", sides(shape)));
    }
    Ok(())
}

/// The texts of a NumPy array of `<U5` or `|S5`; none if its elements are something else.
fn texts(header: &Header, bytes: &[u8]) -> std::result::Result<Option<Labels>, String> {
    let (kind, width) = match (header.descr.get(1..2), header.descr.get(2..)) {
        (Some(kind @ ("U" | "S")), Some(width)) => (kind, width),
        _ => return Ok(None),
    };
    let unit = if kind == "U" { 4 } else { 1 };
    let letters = width.parse::<usize>().ok().filter(|&letters| letters > 0);
    let letters =
        letters.ok_or_else(|| format!("its elements are `{}`, texts without letters", header.descr))?;
    if letters > LETTERS {
        return Err(format!(
            "its elements are texts of {letters} letters; labels are names of up to {LETTERS}"
        ));
    }
    let size = letters * unit;
    let needed = header.count().and_then(|n| n.checked_mul(size)).ok_or("its shape is too large")?;
    let body = bytes.get(header.offset..).and_then(|b| b.get(..needed)).ok_or_else(|| {
        format!("it needs {needed} bytes of data, but {} are there", bytes.len() - header.offset)
    })?;
    let big = header.descr.starts_with('>');
    let letter = |b: &[u8]| match *b {
        [a, b, c, d] if big => char::from_u32(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d] => char::from_u32(u32::from_le_bytes([a, b, c, d])),
        _ => b.first().map(|&b| char::from(b)),
    };
    let text = |b: &[u8]| {
        let text: Option<String> = b.chunks_exact(unit).map(letter).collect();
        text.map(|t| t.trim_end_matches('\0').to_string()).ok_or("it holds a letter that does not exist")
    };
    let mut classes = Classes::default();
    for element in body.chunks_exact(size) {
        classes.add(text(element)?);
    }
    Ok(Some(classes.finish(|name| name)))
}

/// Labels that are being counted: what is the same is kept once.
struct Classes<K> {
    place: HashMap<K, usize>,
    index: Vec<usize>,
}

impl<K> Default for Classes<K> {
    fn default() -> Self {
        Self { place: HashMap::new(), index: Vec::new() }
    }
}

impl<K: Eq + Hash> Classes<K> {
    fn add(&mut self, key: K) {
        let next = self.place.len();
        self.index.push(*self.place.entry(key).or_insert(next));
    }

    /// The labels, their names sorted by number or by letter.
    fn finish(self, name: impl Fn(K) -> String) -> Labels {
        let mut found: Vec<(String, usize)> =
            self.place.into_iter().map(|(key, at)| (name(key), at)).collect();
        let numbers = found.iter().all(|(name, _)| name.parse::<i64>().is_ok());
        // "1" and "01" are different names: the text decides where the number does not.
        let number = |name: &String| if numbers { name.parse::<i64>().unwrap_or(0) } else { 0 };
        found.sort_by(|(a, _), (b, _)| (number(a), a).cmp(&(number(b), b)));
        let mut names: Vec<String> = Vec::with_capacity(found.len());
        let mut place = vec![0; found.len()];
        for (name, at) in found {
            // Two keys can have one name: there is more than one NaN.
            if names.last() != Some(&name) {
                names.push(name);
            }
            place[at] = names.len() - 1;
        }
        let index = self.index.into_iter().map(|at| place[at]).collect();
        Labels { names, index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::made::{gzip, idx, npy_bytes};

    #[test]
    fn names_are_sorted_by_number_or_by_letter() {
        assert_eq!(Labels::new(["10", "9", "-1"]).names, ["-1", "9", "10"]);
        assert_eq!(Labels::new(["10", "9", "b"]).names, ["10", "9", "b"]);
        assert_eq!(Labels::from_numbers([3.0, 0.5, 3.0]).names, ["0.5", "3"]);
    }

    #[test]
    fn selecting_keeps_the_classes_until_told_otherwise() {
        let labels = Labels::new(["a", "b", "c"]).select(&[2, 2]).unwrap();
        assert_eq!((labels.names.len(), labels.name(1)), (3, "c"));
        assert_eq!(labels.without_empty_classes(), Labels::new(["c", "c"]));
        assert_eq!(Labels::new(["a"]).select(&[1]), Err(Error::Index { index: 1, len: 1 }));
    }

    #[test]
    fn a_wrong_count_is_an_error() {
        assert_eq!(
            Labels::new(["a", "b"]).check_count(3),
            Err(Error::Count { what: Counted::Labels, expected: 3, found: 2 })
        );
    }

    #[test]
    fn text_npy_and_idx_give_the_same_labels() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            Labels::read(&path)
        };
        let expected = Labels::new(["7", "11", "7"]);
        assert_eq!(file("y.txt", b"\xef\xbb\xbf7\r\n11\r\n7\r\n\r\n"), Ok(expected.clone()));
        assert_eq!(file("y-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 3, 7, 11, 7]), Ok(expected.clone()));
        let path = folder.path().join("y.npy");
        npy::write_array(&path, &[3, 1], &[7f32, 11.0, 7.0]).unwrap();
        assert_eq!(Labels::read(&path), Ok(expected.clone()));
        // np.array(["7", "11", "7"]) and the same as bytes.
        let texts = [['7', '\0'], ['1', '1'], ['7', '\0']];
        let wide: Vec<u8> = texts.iter().flatten().flat_map(|&c| u32::from(c).to_le_bytes()).collect();
        assert_eq!(file("u.npy", &npy_bytes("<U2", "3,", &wide)), Ok(expected.clone()));
        assert_eq!(file("s.npy", &npy_bytes("|S2", "3,", b"7\x0011\x37\x00")), Ok(expected));
        let cut = file("c.npy", &npy_bytes("<U2", "3,", &wide[..9])).unwrap_err().to_string();
        assert!(
            cut.ends_with("c.npy: not a readable label file: it needs 24 bytes of data, but 9 are there"),
            "{cut}"
        );
    }

    #[test]
    fn bad_label_files_say_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let message = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            Labels::read(&path).unwrap_err().to_string()
        };
        let is = |message: String, expected: &str| assert!(message.contains(expected), "{message}");
        is(
            message("a.txt", b"1\n\n2\n"),
            "a.txt: not a readable label file: line 2 is empty; one label per line",
        );
        is(message("b.txt", b"\n"), "it is empty");
        is(message("c.txt", b"\xff\xfe1\n"), "neither text (UTF-8)");
        is(message("d.npy", b"1\n2\n"), "does not begin with \\x93NUMPY");
        is(
            message("e", &[0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]),
            "its shape is 2×2; labels need one axis",
        );
        is(message("f.txt", &[b'a'; 1001]), "line 1 has more than 1000 bytes; one label per line is needed");
        is(message("g.txt", b"1\n\x00\x01\n"), "neither text (UTF-8)");
        is(message("h.npy", &npy_bytes("|S2000", "1,", &[b'a'; 2000])), "texts of 2000 letters");
        // Zeros by the million, from a few bytes.
        let bomb = gzip(&idx(8, &[1 << 25], &vec![0; 1 << 25]));
        is(message("i.gz", &bomb), "its axes 33554432 need 33554432 bytes");
        is(Labels::read(folder.path().join("no.txt")).unwrap_err().to_string(), "no.txt: cannot open");
    }
}
