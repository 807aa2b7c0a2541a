//! Patterns for the names of files, with one meaning everywhere: in the program, in Rust and in Python.
//!
//! `*` stands for any letters of a name, `?` for one, `[a-c]` for one of these and `[!a-c]` for any other, and a part that
//! is `**` for any number of folders. What is hidden (a name that begins with a dot) is found only by a pattern that
//! begins with a dot. Names that are not text are found like any other.

use std::path::{Component, Path, PathBuf};

use crate::error::{Action, Error, Result};

/// The files and folders whose paths a pattern stands for, sorted by the bytes of their paths; none if there are none.
///
/// ```
/// let sources = matmix::data::matching("src/**/mod.rs")?;
/// assert!(sources.iter().any(|path| path.ends_with("data/mod.rs")));
/// # Ok::<(), matmix::Error>(())
/// ```
///
/// # Errors
/// If a folder cannot be read.
pub fn matching(pattern: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.as_ref().components() {
        let part = component.as_os_str().as_encoded_bytes();
        found = match component {
            Component::Normal(_) if part == b"**" => {
                let mut all = Vec::new();
                found.into_iter().try_for_each(|folder| folders_below(folder, &mut all))?;
                all
            }
            Component::Normal(_) if has_signs(part) => {
                let mut next = Vec::new();
                for folder in found {
                    let names = entries(&folder)?.into_iter().filter(|(name, _)| {
                        let name = name.as_encoded_bytes();
                        name.starts_with(b".") == part.starts_with(b".") && looks_like(name, part)
                    });
                    next.extend(names.map(|(name, _)| folder.join(name)));
                }
                next
            }
            _ => {
                found.iter_mut().for_each(|path| path.push(component));
                found
            }
        };
    }
    found.retain(|path| path.exists());
    found.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    // Two stars can stand for the same folders in two ways.
    found.dedup();
    Ok(found)
}

/// Whether a name is to be understood as a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    has_signs(name.as_bytes())
}

fn has_signs(part: &[u8]) -> bool {
    part.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

/// The names in a folder, and whether they are real folders; nothing if it is none.
fn entries(folder: &Path) -> Result<Vec<(std::ffi::OsString, bool)>> {
    let real = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !real.is_dir() {
        return Ok(Vec::new());
    }
    let io = |e: &std::io::Error| Error::io(real, Action::Read, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(real).map_err(|e| io(&e))? {
        let entry = entry.map_err(|e| io(&e))?;
        names.push((entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir())));
    }
    Ok(names)
}

/// The folder itself and all that are below it; links are not followed, for they may lead back up.
fn folders_below(folder: PathBuf, all: &mut Vec<PathBuf>) -> Result<()> {
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        let below = entries(&folder)?.into_iter();
        let below = below.filter(|(name, real)| *real && !name.as_encoded_bytes().starts_with(b"."));
        waiting.extend(below.map(|(name, _)| folder.join(name)));
        all.push(folder);
    }
    Ok(())
}

/// Whether a name is what one part of a pattern stands for.
fn looks_like(name: &[u8], pattern: &[u8]) -> bool {
    // The last star and what it stood for then: one step back is always enough.
    let (mut n, mut p, mut star) = (0, 0, None);
    while n < name.len() {
        let letter = letter(&name[n..]);
        let taken = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some((letter.len(), 1)),
            Some(b'[') => match set(&pattern[p..], letter) {
                Some((true, length)) => Some((letter.len(), length)),
                Some((false, _)) => None,
                // A bracket that is never closed is a letter like any other.
                None => (letter == b"[").then_some((1, 1)),
            },
            Some(&c) => (c == name[n]).then_some((1, 1)),
            None => None,
        };
        match (taken, star) {
            (Some((of_name, of_pattern)), _) => {
                n += of_name;
                p += of_pattern;
            }
            (None, Some((at, from))) => {
                let next = from + self::letter(&name[from..]).len();
                star = Some((at, next));
                (p, n) = (at + 1, next);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// The first letter of a name: a character, or one byte where the name is not text.
fn letter(name: &[u8]) -> &[u8] {
    let longest = &name[..name.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(first) => &name[..first.len_utf8()],
        None => &name[..1],
    }
}

/// Whether a letter is in the set `[…]` that a pattern begins with, and how long the set is; none if it has no end.
fn set(pattern: &[u8], wanted: &[u8]) -> Option<(bool, usize)> {
    let other = matches!(pattern.get(1), Some(b'!' | b'^'));
    let begin = if other { 2 } else { 1 };
    // A closing bracket that comes first is one of the letters.
    let end = begin + 1 + pattern.get(begin + 1..)?.iter().position(|&c| c == b']')?;
    let mut inside = &pattern[begin..end];
    let mut found = false;
    while !inside.is_empty() {
        let low = letter(inside);
        inside = &inside[low.len()..];
        let mut high = low;
        if inside.len() > 1 && inside[0] == b'-' {
            high = letter(&inside[1..]);
            inside = &inside[1 + high.len()..];
        }
        // The bytes of characters are in the order of the characters.
        found |= (low..=high).contains(&wanted);
    }
    Some((found != other, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_signs_stand_for() {
        for (name, pattern, expected) in [
            ("part-1.npy", "*.npy", true),
            ("part-1.npy", "part-?.npy", true),
            ("part-10.npy", "part-?.npy", false),
            ("part-10.npy", "part-*.npy", true),
            ("abcabd", "*abd", true),
            ("abcabc", "*abd", false),
            ("", "*", true),
            ("x", "", false),
            ("a.npz", "*.npy", false),
            ("part-7", "part-[0-9]", true),
            ("part-x", "part-[0-9]", false),
            ("part-x", "part-[!0-9]", true),
            ("part-x", "part-[^0-9x]", false),
            ("a]b", "a[]x]b", true),
            ("a-b", "a[x-]b", true),
            ("a[b", "a[b", true),
            ("aüb", "a?b", true),
            ("aüb", "a[ä-ü]b", true),
            ("aüb", "a??b", false),
            ("ü", "*", true),
            ("xüy", "*[!ü]", true),
        ] {
            assert_eq!(looks_like(name.as_bytes(), pattern.as_bytes()), expected, "{name} {pattern}");
        }
        // A byte that is no text is one letter.
        assert!(
            looks_like(b"a\xffb", b"a?b") && looks_like(b"\xff\xfe", b"??") && looks_like(b"\xffb", b"*b")
        );
    }

    fn names(folder: &Path, pattern: &str) -> Vec<String> {
        let found = matching(folder.join(pattern)).unwrap();
        found.iter().map(|path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_come_in_the_order_of_their_bytes_and_hidden_ones_only_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["a/10.npy", "a/9.npy", "a-b/1.npy", "a/x/y/2.npy", ".c/3.npy", "a/.4.npy", "Z.npy", "é.npy"]
        {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(names(folder.path(), "*/*.npy"), ["a-b/1.npy", "a/10.npy", "a/9.npy"]);
        let all = ["Z.npy", "a-b/1.npy", "a/10.npy", "a/9.npy", "a/x/y/2.npy", "é.npy"];
        assert_eq!(names(folder.path(), "**/*.npy"), all);
        assert_eq!(names(folder.path(), "**/**/*.npy"), all);
        assert_eq!(names(folder.path(), "a/**/2.npy"), ["a/x/y/2.npy"]);
        assert_eq!(names(folder.path(), "*/.*.npy"), ["a/.4.npy"]);
        assert_eq!(names(folder.path(), ".?/*"), [".c/3.npy"]);
        assert!(names(folder.path(), "b*").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_text_are_found() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"part-\xff.npy");
        std::fs::write(folder.path().join(name), "").unwrap();
        assert_eq!(matching(folder.path().join("part-*.npy")).unwrap(), [folder.path().join(name)]);
        // A link that leads back up is not followed for ever.
        std::os::unix::fs::symlink(folder.path(), folder.path().join("up")).unwrap();
        assert_eq!(matching(folder.path().join("**/*.npy")).unwrap(), [folder.path().join(name)]);
    }
}
