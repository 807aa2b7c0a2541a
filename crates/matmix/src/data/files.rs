//! Many files as one set, each of them one part of it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::npy;
use super::patterns::{is_pattern, matching};
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::{Error, Result, sides};

/// The samples of several files, one after the other.
pub(crate) struct Files {
    files: Vec<Box<dyn Source>>,
    /// The first sample of each file, and the end.
    starts: Vec<usize>,
    residence: Residence,
}

impl Files {
    /// Opens `.npy` files; all must hold samples of the same shape and element type.
    pub(crate) fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut files: Vec<Box<dyn Source>> = Vec::with_capacity(paths.len());
        let mut starts = vec![0];
        for path in paths {
            let file = npy::source(path.as_ref())?;
            if let Some(first) = files.first() {
                let other = paths[0].as_ref().display();
                if file.shape() != first.shape() {
                    let (a, b) = (sides(file.shape()), sides(first.shape()));
                    let problem =
                        format!("its samples are {a}, but those of {other} are {b}; one set has one shape");
                    return Err(Error::data(path.as_ref(), problem));
                }
                if file.element() != first.element() {
                    let (a, b) = (file.element().name(), first.element().name());
                    let problem = format!(
                        "its elements are read as {a}, but those of {other} as {b}; one set has one type"
                    );
                    return Err(Error::data(path.as_ref(), problem));
                }
            }
            starts.push(starts.last().copied().unwrap_or(0) + file.len());
            files.push(file);
        }
        // One file that must be read makes a set that must be read.
        let residence = files.iter().map(|f| f.residence()).max().ok_or(Error::EmptySet)?;
        Ok(Self { files, starts, residence })
    }

    /// The file of a sample.
    fn file(&self, sample: usize) -> usize {
        self.starts.partition_point(|&start| start <= sample).saturating_sub(1).min(self.files.len() - 1)
    }

    /// Which samples of which files make up a range.
    fn pieces(&self, samples: Range<usize>) -> impl Iterator<Item = (&dyn Source, Range<usize>)> {
        let (first, last) = (self.file(samples.start), self.file(samples.end.max(1) - 1));
        (first..=last).map(move |at| {
            let (start, end) = (self.starts[at], self.starts[at + 1]);
            let piece = samples.start.max(start) - start..samples.end.min(end).max(start) - start;
            (&*self.files[at], piece)
        })
    }
}

impl Source for Files {
    fn shape(&self) -> &[usize] {
        self.files[0].shape()
    }

    fn len(&self) -> usize {
        self.starts[self.files.len()]
    }

    fn element(&self) -> Element {
        self.files[0].element()
    }

    fn residence(&self) -> Residence {
        self.residence
    }

    fn parts(&self) -> Vec<usize> {
        self.files.iter().map(|f| f.len()).collect()
    }

    fn read<'a>(&'a self, samples: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        let at = self.file(samples.start);
        let start = self.starts[at];
        if samples.end <= self.starts[at + 1] {
            return self.files[at].read(samples.start - start..samples.end - start, buffer);
        }
        buffer.clear();
        let mut one = Buffer::new();
        for (file, piece) in self.pieces(samples) {
            buffer.extend(file.read(piece, &mut one)?);
        }
        Ok(buffer.chunk(self.element()))
    }

    fn check(&self) -> Result<()> {
        self.files.iter().try_for_each(|file| file.check())
    }

    fn load(&self, samples: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        self.pieces(samples).try_for_each(|(file, piece)| file.load(piece, buffer))
    }
}

/// The files that a list (`a.npy,b.npy`) or a pattern (`parts/*.npy`) names; `None` if it is neither. The files of a
/// pattern come in the order of their names. A file that is really called so comes first.
pub(crate) fn named(spec: &str) -> Result<Option<Vec<PathBuf>>> {
    if Path::new(spec).exists() || !(spec.contains(',') || is_pattern(spec)) {
        return Ok(None);
    }
    let mut all = Vec::new();
    for one in spec.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        if !is_pattern(one) || Path::new(one).exists() {
            all.push(PathBuf::from(one));
            continue;
        }
        let found = matching(one)?;
        if found.is_empty() {
            return Err(Error::Data {
                name: one.to_string(),
                problem: "no file is called like that; * stands for any letters, ? for one, [a-c] for one of these, \
                          ** for any folders"
                    .into(),
            });
        }
        all.extend(found);
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_across_files_are_put_together() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = [3usize, 0, 4, 1]
            .iter()
            .enumerate()
            .scan(0, |first, (i, &n)| {
                let path = folder.path().join(format!("{i}.npy"));
                let x: Vec<f32> = (*first * 2..(*first + n) * 2).map(|x| x as f32).collect();
                npy::write_array(&path, &[n, 2], &x).unwrap();
                *first += n;
                Some(path)
            })
            .collect();
        let files = Files::open(&paths).unwrap();
        assert_eq!((files.len(), files.parts()), (8, vec![3, 0, 4, 1]));
        for start in 0..8 {
            for end in start + 1..=8 {
                let expected: Vec<f32> = (start * 2..end * 2).map(|x| x as f32).collect();
                let (mut one, mut two) = (Buffer::new(), Buffer::new());
                assert_eq!(files.read(start..end, &mut one).unwrap(), Chunk::F32(&expected));
                files.load(start..end, &mut two).unwrap();
                assert_eq!(two.f32, expected);
            }
        }
    }
}
