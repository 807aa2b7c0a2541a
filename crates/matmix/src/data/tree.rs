//! The image files in a folder and below.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::labels::Labels;
use super::notes::Note;
use crate::error::{Action, Error, Result};

/// How the files are called that are taken for images.
pub(super) const ENDINGS: [&str; 10] =
    ["png", "jpg", "jpeg", "pgm", "ppm", "pnm", "pbm", "bmp", "tif", "tiff"];

/// Whether a file is called like an image.
pub(super) fn is_image(path: &Path) -> bool {
    ends_in(path, &ENDINGS)
}

/// Whether a file is called like one that may hold several pages.
pub(super) fn is_stack(path: &Path) -> bool {
    ends_in(path, &["tif", "tiff"])
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|e| endings.iter().any(|ending| e.eq_ignore_ascii_case(ending)))
}

/// What was found below a folder.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The images, in the order of their paths.
    pub(super) files: Vec<PathBuf>,
    /// Links to folders that were not followed, because what they lead to is read anyway.
    links: Vec<PathBuf>,
}

impl Tree {
    /// Goes through every folder once, however many links lead to it: real folders first, then links in the order of
    /// their paths.
    pub(super) fn below(folder: &Path) -> Result<Self> {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        let mut links = Vec::new();
        found.collect(folder, &mut seen, &mut links)?;
        while !links.is_empty() {
            links.sort();
            for link in std::mem::take(&mut links) {
                if seen.contains(&real(&link)?) {
                    found.links.push(link);
                } else {
                    found.collect(&link, &mut seen, &mut links)?;
                }
            }
        }
        found.files.sort();
        found.links.sort();
        Ok(found)
    }

    /// The images in `top` and in the real folders below it; links to folders are left for later.
    fn collect(&mut self, top: &Path, seen: &mut HashSet<PathBuf>, links: &mut Vec<PathBuf>) -> Result<()> {
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            if !seen.insert(real(&folder)?) {
                continue;
            }
            let io = |e: &std::io::Error| Error::io(&folder, Action::Read, e);
            for entry in std::fs::read_dir(&folder).map_err(|e| io(&e))? {
                let entry = entry.map_err(|e| io(&e))?;
                let path = entry.path();
                // Hidden files are thumbnails and the droppings of other systems.
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let kind = entry.file_type().map_err(|e| io(&e))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_symlink() && path.is_dir() {
                    links.push(path);
                } else if is_image(&path) {
                    self.files.push(path);
                }
            }
        }
        Ok(())
    }

    /// What has to be said about it.
    pub(super) fn notes(&self, folder: &Path) -> Vec<Note> {
        let first = self
            .links
            .first()
            .map(|link| Note::Links { links: self.links.len(), first: below(folder, link) });
        first.into_iter().collect()
    }

    /// For each file the path of its folder below `folder`; none if the images lie in `folder` itself.
    pub(super) fn labels(&self, folder: &Path) -> Result<Option<Labels>> {
        let parent = |file: &PathBuf| file.parent().map_or_else(String::new, |parent| below(folder, parent));
        let names: Vec<String> = self.files.iter().map(parent).collect();
        let direct = names.iter().position(String::is_empty);
        let under = names.iter().position(|n| !n.is_empty());
        match (direct, under) {
            (_, None) => Ok(None),
            (None, _) => Ok(Some(Labels::new(names))),
            (Some(direct), Some(under)) => Err(Error::data(
                folder,
                format!(
                    "there are images in the folder itself ({}) and in sub-folders ({}); move them, so that either none or \
                     all of them have a label",
                    self.files[direct].display(),
                    self.files[under].display(),
                ),
            )),
        }
    }
}

/// The path below `folder`, with `/` between its parts on every system.
pub(super) fn below(folder: &Path, path: &Path) -> String {
    let parts: Vec<_> =
        path.strip_prefix(folder).unwrap_or(path).iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| Error::io(path, Action::Read, &e))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn image(path: PathBuf) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn links_lead_to_other_folders_and_not_back_up() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        image(folder.path().join("a/1.png"));
        image(other.path().join("2.png"));
        symlink(folder.path(), folder.path().join("a/up")).unwrap();
        symlink(other.path(), folder.path().join("b")).unwrap();
        symlink(other.path(), folder.path().join("c")).unwrap();
        let tree = Tree::below(folder.path()).unwrap();
        assert_eq!(tree.files, ["a/1.png", "b/2.png"].map(|name| folder.path().join(name)));
        let notes = tree.notes(folder.path());
        assert_eq!(notes, [Note::Links { links: 2, first: "a/up".into() }]);
        assert_eq!(tree.labels(folder.path()).unwrap(), Some(Labels::new(["a", "b"])));
    }

    /// Two links at each of 22 levels make four million ways to one picture.
    #[test]
    fn links_beside_links_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        image(folder.path().join("d22/1.png"));
        for level in (0..22).rev() {
            let (here, below) = (folder.path().join(format!("d{level}")), format!("../d{}", level + 1));
            std::fs::create_dir(&here).unwrap();
            symlink(&below, here.join("x")).unwrap();
            symlink(&below, here.join("y")).unwrap();
        }
        let tree = Tree::below(&folder.path().join("d0")).unwrap();
        assert_eq!((tree.files.len(), tree.links.len()), (1, 22));
    }
}
