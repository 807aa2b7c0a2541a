//! Tables of numbers as text: one sample per line, its numbers side by side.
//!
//! Between the numbers stands a semicolon, a tab, a comma or white space, whichever of them the first line has (in this
//! order). A first line with words and without a number is the heading; where its first cell is empty, as pandas and R write it, the
//! first column is an index and not data. `NA` is NaN, as R writes it. Lines that begin with `#` are comments.

use std::io::BufRead;
use std::path::Path;

use super::file;
use super::limit::Limit;
use super::notes::Note;
use super::open::Found;
use super::samples::Samples;
use crate::error::{Action, Error, Result};

/// The longest cell, in bytes: no number is longer.
const CELL: usize = 400;
/// Columns of the first line, at most.
const MOST_COLUMNS: usize = 1 << 20;
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The samples of a file: vectors, one per line.
pub(crate) fn open(path: &Path, budget: Option<u64>) -> Result<Found> {
    let (file, identity) = file::open(path)?;
    // The shortest number is a digit and a comma, and becomes eight bytes.
    read(&path.to_string_lossy(), std::io::BufReader::new(file), Limit::new(identity.bytes, budget))
}

/// The samples of a stream.
pub(crate) fn read(name: &str, mut lines: impl BufRead, limit: Limit) -> Result<Found> {
    let mut table = Table::new(name);
    loop {
        let buffer = lines.fill_buf().map_err(|e| Error::io(Path::new(name), Action::Read, &e))?;
        if buffer.is_empty() {
            break;
        }
        let count = buffer.len();
        table.take(buffer)?;
        lines.consume(count);
        limit.check(name, (table.numbers.len() * size_of::<f64>()) as u64)?;
    }
    table.finish()
}

/// A table of which some bytes have been read.
struct Table<'n> {
    name: &'n str,
    /// How much of the mark at the beginning was seen.
    mark: usize,
    numbers: Vec<f64>,
    /// Numbers per line, once the first line is over.
    columns: Option<usize>,
    separator: Option<u8>,
    /// The first line that is no comment, until it is known what separates its cells.
    first: Vec<u8>,
    cell: Vec<u8>,
    /// Where we are, counted from 1.
    line: usize,
    column: usize,
    /// Whether this line has anything in it, and whether it is a comment.
    begun: bool,
    comment: bool,
    /// The first empty line that may be one before others.
    empty: Option<usize>,
    heading: Option<String>,
    /// Whether the first column is an index.
    index: bool,
}

impl<'n> Table<'n> {
    fn new(name: &'n str) -> Self {
        Self {
            name,
            mark: 0,
            numbers: Vec::new(),
            columns: None,
            separator: None,
            first: Vec::new(),
            cell: Vec::new(),
            line: 1,
            column: 1,
            begun: false,
            comment: false,
            empty: None,
            heading: None,
            index: false,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        for &byte in bytes {
            // What some programs put before a text to say that it is one.
            if MARK.get(self.mark) == Some(&byte) {
                self.mark += 1;
                continue;
            }
            self.mark = MARK.len();
            match (byte, self.separator) {
                (b'\n', _) => self.end_line()?,
                _ if self.comment => {}
                (b'#', _) if !self.begun => self.comment = true,
                // The first line is kept until its end shows what separates its cells.
                (_, None) => {
                    self.begun |= !byte.is_ascii_whitespace();
                    if self.first.len() >= CELL * MOST_COLUMNS {
                        return Err(self.wrong("this line has no end"));
                    }
                    self.first.push(byte);
                }
                (_, Some(separator)) => self.put(byte, separator)?,
            }
        }
        Ok(())
    }

    fn put(&mut self, byte: u8, separator: u8) -> Result<()> {
        let white = byte.is_ascii_whitespace();
        if byte == separator || separator == b' ' && white {
            // Several spaces are one.
            if separator != b' ' || !self.cell.is_empty() {
                self.begun = true;
                self.end_cell()?;
            }
            return Ok(());
        }
        self.begun |= !white;
        if self.cell.len() >= CELL {
            return Err(self.wrong(&format!("a cell of more than {CELL} letters; a number is needed")));
        }
        self.cell.push(byte);
        Ok(())
    }

    fn end_cell(&mut self) -> Result<()> {
        if self.columns.is_some_and(|columns| self.column > columns) {
            let columns = self.columns.unwrap_or(0);
            return Err(
                self.wrong(&format!("this line goes on, but the lines before have {columns} numbers"))
            );
        }
        match number(&self.cell) {
            _ if self.index && self.column == 1 => {}
            Some(number) => self.numbers.push(number),
            None => {
                let text = String::from_utf8_lossy(self.cell.trim_ascii());
                let short: String = text.chars().take(40).collect();
                return Err(self.wrong(&match short.is_empty() {
                    true => "this cell is empty; a number is needed".to_string(),
                    false if has_comma(&self.cell) => {
                        format!("`{short}` is no number here; a point stands before the decimals")
                    }
                    false => format!("`{short}` is no number"),
                }));
            }
        }
        self.cell.clear();
        self.column += 1;
        Ok(())
    }

    fn end_line(&mut self) -> Result<()> {
        if self.separator.is_none() && self.begun {
            self.first_line()?;
        } else if !self.begun {
            if !self.comment {
                self.empty = self.empty.or(Some(self.line));
            }
            self.first.clear();
            self.cell.clear();
        } else {
            self.end_row()?;
        }
        (self.begun, self.comment, self.column) = (false, false, 1);
        self.line += 1;
        Ok(())
    }

    /// The first line with something in it: a heading, or numbers.
    fn first_line(&mut self) -> Result<()> {
        let line = std::mem::take(&mut self.first);
        let separator = [b';', b'\t', b','].into_iter().find(|separator| line.contains(separator));
        let separator = separator.unwrap_or(b' ');
        let cells = line.split(|&b| b == separator || separator == b' ' && b.is_ascii_whitespace());
        let text = String::from_utf8_lossy(&line);
        let is_number = |cell: &[u8]| !is_na(cell) && (number(cell).is_some() || has_comma(cell));
        let is_word = |cell: &[u8]| !is_empty(cell) && number(cell).is_none();
        if self.heading.is_none() && cells.clone().any(is_word) && !cells.clone().any(is_number) {
            if text.contains(['\0', '\u{fffd}']) {
                return Err(self.wrong("this is no text"));
            }
            self.index = separator != b' ' && cells.clone().next().is_some_and(is_empty);
            self.heading = Some(text.trim().chars().take(40).collect());
            return Ok(());
        }
        self.separator = Some(separator);
        line.iter().try_for_each(|&byte| self.put(byte, separator))?;
        self.end_row()
    }

    fn end_row(&mut self) -> Result<()> {
        if let Some(line) = self.empty.take().filter(|_| self.columns.is_some()) {
            let (name, problem) =
                (self.name.to_string(), "this line is empty; a sample is needed".to_string());
            return Err(Error::Cell { name, line, column: 1, problem });
        }
        // A line may end in white space, and in a separator where that is white space.
        if !self.cell.trim_ascii().is_empty() || self.separator != Some(b' ') {
            self.end_cell()?;
        }
        self.cell.clear();
        let found = self.column - 1;
        match self.columns {
            None => self.columns = Some(found),
            Some(columns) if columns != found => {
                let problem =
                    format!("this line ends after {found} numbers, but the lines before have {columns}");
                return Err(self.wrong(&problem));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Found> {
        self.end_line()?;
        let columns =
            self.columns.map(|columns| columns - usize::from(self.index)).filter(|columns| *columns > 0);
        let columns = columns.ok_or_else(|| Error::Data {
            name: self.name.to_string(),
            problem: "there are no numbers in it; one sample per line is needed".into(),
        })?;
        let index = self.index.then_some(Note::Index);
        let notes = self.heading.map(|line| Note::Heading { line }).into_iter().chain(index).collect();
        Ok(Found { notes, ..Found::plain(Samples::from_vec(&[columns], self.numbers)?) })
    }

    fn wrong(&self, problem: &str) -> Error {
        let (name, problem) = (self.name.to_string(), problem.to_string());
        Error::Cell { name, line: self.line, column: self.column, problem }
    }
}

/// Whether a cell is a number with a comma before its decimals.
fn has_comma(cell: &[u8]) -> bool {
    let pointed: Vec<u8> = cell.iter().map(|&b| if b == b',' { b'.' } else { b }).collect();
    cell.contains(&b',') && number(&pointed).is_some()
}

/// The number in a cell; NaN for `NA`.
fn number(cell: &[u8]) -> Option<f64> {
    if is_na(cell) { Some(f64::NAN) } else { text(cell)?.parse().ok() }
}

fn is_na(cell: &[u8]) -> bool {
    text(cell) == Some("NA")
}

fn is_empty(cell: &[u8]) -> bool {
    text(cell) == Some("")
}

/// The text of a cell without spaces and quotation marks around it.
fn text(cell: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(cell).ok()?.trim();
    Some(text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &[u8]) -> Result<Found> {
        // A byte at a time finds whatever depends on where a buffer ends.
        let limit = Limit::new(text.len() as u64, None);
        let slowly = read("x.csv", std::io::BufReader::with_capacity(1, text), limit);
        let at_once = read("x.csv", text, limit);
        match (&slowly, &at_once) {
            (Ok(a), Ok(b)) => assert_eq!((all(a), &a.notes), (all(b), &b.notes)),
            (Err(a), Err(b)) => assert_eq!(a, b),
            _ => panic!("{}", String::from_utf8_lossy(text)),
        }
        at_once
    }

    fn all(found: &Found) -> Vec<f64> {
        found.samples.to_f64(0..found.samples.len()).unwrap()
    }

    #[test]
    fn every_way_to_write_a_table_gives_the_same_numbers() {
        for text in [
            "1,2.5,-3e2\n4,5,6\n",
            "1,2.5,-3e2\r\n4,5,6",
            "1;2.5;-3e2\n4;5;6\n\n\n",
            "1\t2.5\t-3e2\n4\t5\t6\n",
            "  1   2.5 -3e2  \n4 5 6\n",
            "\"1\", 2.5 ,-3e2\n4,5,6\n# the end\n",
            "\u{feff}# made by hand\n1,2.5,-3e2\n4,5,6\n",
        ] {
            let found = table(text.as_bytes()).unwrap();
            assert_eq!((found.samples.len(), found.samples.shape()), (2, &[3][..]), "{text}");
            assert_eq!(
                (all(&found), found.notes.len()),
                (vec![1.0, 2.5, -300.0, 4.0, 5.0, 6.0], 0),
                "{text}"
            );
        }
        let headed = table(b"a,b,c d\n1,2,3\n").unwrap();
        assert_eq!(
            (all(&headed), headed.notes),
            (vec![1.0, 2.0, 3.0], vec![Note::Heading { line: "a,b,c d".into() }])
        );
        let one = table(b"7\n8\n9").unwrap();
        assert_eq!((one.samples.len(), one.samples.shape()), (3, &[1][..]));
        let limit = Limit::unpacked(None);
        assert!(all(&read("x", &b"1,nan\n2,3\n"[..], limit).unwrap())[1].is_nan());
    }

    #[test]
    fn samples_without_any_value_are_no_heading() {
        for (text, missing) in [
            (&b"NA,NA\n3,4\n5,6\n"[..], [true, true, false, false, false, false]),
            (b"\"NA\" NA\n3 4\n5 6\n", [true, true, false, false, false, false]),
            (b"nan;NaN\n3;NA\n5;6\n", [true, true, false, true, false, false]),
            (b"x,NA\nNA,NA\n3,4\n5,6\n", [true, true, false, false, false, false]),
        ] {
            let limit = Limit::unpacked(None);
            let found = read("x", text, limit).unwrap();
            let nan: Vec<bool> = all(&found).iter().map(|x| x.is_nan()).collect();
            assert_eq!(
                (found.samples.len(), &nan[..]),
                (3, &missing[..]),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    /// As `DataFrame.to_csv` and `write.csv` write them, which also has names of rows.
    #[test]
    fn a_column_without_a_name_is_an_index() {
        for text in [
            ",x,y\n0,1,2\n1,3,4\n",
            "\"\",\"x\",\"y\"\n\"1\",1,2\n\"2\",3,4\n",
            ";x;y\na;1;2\nb;3;4\n",
            "\tx\ty\n\t1\t2\n\t3\t4\n",
        ] {
            let found = table(text.as_bytes()).unwrap();
            assert_eq!(
                (found.samples.shape(), all(&found)),
                (&[2][..], vec![1.0, 2.0, 3.0, 4.0]),
                "{text:?}"
            );
            assert!(found.notes.contains(&Note::Index) && found.notes.len() == 2, "{:?}", found.notes);
        }
        assert!(table(b",\n0,1\n").err().unwrap().to_string().contains("this cell is empty"));
        assert!(table(b",x\n0\n1\n").err().unwrap().to_string().contains("there are no numbers"));
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        for (text, line, column, problem) in [
            (&b"1,2\n3,x\n"[..], 2, 2, "`x` is no number"),
            (b"1,2\n3,\n", 2, 2, "this cell is empty; a number is needed"),
            (b"1,2\n3\n", 2, 2, "this line ends after 1 numbers, but the lines before have 2"),
            (b"1,2\n3,4,5\n", 2, 3, "this line goes on, but the lines before have 2 numbers"),
            (b"a,b\nc,d\n", 2, 1, "`c` is no number"),
            (b"1,two\n", 1, 2, "`two` is no number"),
            (b"1,2\n\n3,4\n", 2, 1, "this line is empty; a sample is needed"),
            (b"1,5;2,5\n", 1, 1, "`1,5` is no number here; a point stands before the decimals"),
            (b"\x00\x01\x02\n", 1, 1, "this is no text"),
        ] {
            let (name, problem) = ("x.csv".to_string(), problem.to_string());
            assert_eq!(table(text).err(), Some(Error::Cell { name, line, column, problem }));
        }
        let long = [b"1,", &[b'1'; 500][..]].concat();
        assert!(
            table(&long).err().unwrap().to_string().contains("line 1, column 2: a cell of more than 400")
        );
        assert!(table(b"a,b\n").err().unwrap().to_string().contains("x.csv: there are no numbers in it"));
        assert!(table(b"").is_err());
        let small = Limit::new(0, Some(15));
        assert!(matches!(read("x", &b"1,2\n"[..], small).err(), Some(Error::Unpacked { needed: 16, .. })));
    }
}
