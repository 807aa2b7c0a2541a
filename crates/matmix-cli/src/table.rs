//! Small tables: on the screen, as Markdown, as CSV.

use std::fmt::Debug;
use std::io::{self, Write};

use crate::data_args::Seen;
use crate::output::Pieces;
use crate::visible::visible_line;

/// A table of text. Columns of numbers are set flush right.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: vec![] }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.head.len(), "a cell per column");
        self.rows.push(cells);
    }

    fn is_number(&self, column: usize) -> bool {
        let number = |cell: &String| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-+−–*".contains(c))
        };
        self.rows.iter().all(|row| number(&row[column]))
    }

    /// All lines, every column at least so wide.
    fn lines(&self, least: usize) -> Vec<Vec<String>> {
        let seen = |row: &Vec<String>| row.iter().map(|cell| visible_line(cell)).collect::<Vec<_>>();
        let all: Vec<Vec<String>> = std::iter::once(&self.head).chain(&self.rows).map(seen).collect();
        let columns = self.head.len();
        let width = |j: usize| all.iter().map(|row| row[j].chars().count()).max().unwrap_or(0).max(least);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let right: Vec<bool> = (0..columns).map(|j| self.is_number(j)).collect();
        let padded = |row: &Vec<String>| {
            (0..columns)
                .map(|j| {
                    let space = " ".repeat(widths[j] - row[j].chars().count());
                    if right[j] { space + &row[j] } else { row[j].clone() + &space }
                })
                .collect()
        };
        all.iter().map(padded).collect()
    }

    /// For Markdown.
    pub(crate) fn markdown(&self) -> String {
        let lines = self.lines(3);
        let mut out = String::new();
        for (i, line) in lines.iter().enumerate() {
            out.push_str(&format!("| {} |\n", line.join(" | ")));
            if i == 0 {
                let rule = |(j, cell): (usize, &String)| {
                    let dashes = "-".repeat(cell.chars().count() - 1);
                    if self.is_number(j) { format!("{dashes}:") } else { format!("{dashes}-") }
                };
                let rules: Vec<String> = line.iter().enumerate().map(rule).collect();
                out.push_str(&format!("| {} |\n", rules.join(" | ")));
            }
        }
        out
    }

    /// For programs.
    pub(crate) fn csv(&self) -> String {
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().map(|cell| field(cell)).collect();
            cells.join(",") + "\n"
        };
        std::iter::once(&self.head).chain(&self.rows).map(line).collect()
    }
}

/// A field of a CSV line. What a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers.
pub(crate) fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if formula { format!("'{text}") } else { text.to_string() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The lines of a CSV file with numbers of samples, or of the rows of samples.
pub(crate) struct Rows<'a> {
    seen: &'a Seen,
    /// The lines of each sample.
    each: usize,
    /// The names of the numbers.
    columns: Vec<String>,
}

impl<'a> Rows<'a> {
    /// A line per sample, or per row of one where the model is one of rows.
    pub(crate) fn new(seen: &'a Seen, columns: Vec<String>) -> Self {
        Self { seen, each: seen.rows_each, columns }
    }

    /// A line per sample, also with a model of rows.
    pub(crate) fn of_samples(seen: &'a Seen, columns: Vec<String>) -> Self {
        Self { seen, each: 1, columns }
    }

    fn head(&self) -> String {
        let row = if self.each > 1 { ",row" } else { "" };
        let name = if self.seen.data.names.is_some() { ",name" } else { "" };
        format!("sample{row}{name},{}\n", self.columns.join(","))
    }

    /// What stands before the numbers of line `n`.
    fn lead(&self, n: usize) -> String {
        let sample = n / self.each;
        let mut text = sample.to_string();
        if self.each > 1 {
            text.push_str(&format!(",{}", n % self.each));
        }
        if let Some(name) = self.seen.name(sample) {
            text.push_str(&format!(",{}", field(name)));
        }
        text
    }

    /// Writes the heading, and the numbers as they come.
    pub(crate) fn write_to<T: Debug>(
        &self,
        out: &mut (dyn Write + Send),
        pieces: &mut Pieces<'_, T>,
    ) -> io::Result<()> {
        out.write_all(self.head().as_bytes())?;
        let (mut n, mut column) = (0, 0);
        pieces(&mut |numbers| {
            for number in numbers {
                if column == 0 {
                    out.write_all(self.lead(n).as_bytes())?;
                }
                column += 1;
                // The shortest text that is read back as the same number.
                write!(out, ",{number:?}")?;
                if column == self.columns.len() {
                    out.write_all(b"\n")?;
                    (n, column) = (n + 1, 0);
                }
            }
            Ok(())
        })
    }
}

/// `prefix_0_0`, `prefix_0_1` and so on: a name for each element of such an array.
pub(crate) fn column_names(prefix: &str, axes: &[usize]) -> Vec<String> {
    let grown = |names: Vec<String>, &axis: &usize| {
        names.iter().flat_map(|name| (0..axis).map(move |i| format!("{name}_{i}"))).collect()
    };
    axes.iter().fold(vec![prefix.to_string()], grown)
}

/// For the screen.
impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, line) in self.lines(0).iter().enumerate() {
            writeln!(f, "{}", line.join("  ").trim_end())?;
            if i == 0 {
                let width = line.iter().map(|c| c.chars().count()).sum::<usize>() + 2 * (line.len() - 1);
                writeln!(f, "{}", "─".repeat(width))?;
            }
        }
        Ok(())
    }
}

/// A number with so many digits after the point, or a dash for what does not exist.
pub(crate) fn number(x: f64, digits: usize) -> String {
    if x.is_finite() { format!("{x:.digits$}") } else { "–".into() }
}

/// A number in the unit of the data: four digits after the point or, where these would not show it, five significant ones; a dash for what
/// does not exist.
pub(crate) fn measured(x: f64) -> String {
    match x.abs() {
        0.0 | 0.01..1e9 => number(x, 4),
        size if size.is_finite() => format!("{x:.4e}"),
        _ => number(x, 4),
    }
}

/// `133,760`.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 sample`, `2 samples`.
pub(crate) fn plural(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_flush_right_and_words_flush_left() {
        let mut table = Table::new(["model", "error"]);
        table.row(["glram", "10.5"]);
        table.row(["x, y", "–"]);
        assert_eq!(table.to_string(), "model  error\n────────────\nglram   10.5\nx, y       –\n");
        assert_eq!(
            table.markdown(),
            "| model | error |\n| ----- | ----: |\n| glram |  10.5 |\n| x, y  |     – |\n"
        );
        assert_eq!(table.csv(), "model,error\nglram,10.5\n\"x, y\",–\n");
        assert_eq!((count(7), count(1234567)), ("7".into(), "1,234,567".into()));
        let told = [5.25, -0.0123456, 3.14159e-12, 0.0, f64::NAN].map(measured);
        assert_eq!(told, ["5.2500", "-0.0123", "3.1416e-12", "0.0000", "–"]);
    }

    #[test]
    fn no_field_is_a_formula_and_no_cell_steers_the_terminal() {
        for (text, written) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            ("+x", "'+x"),
            ("-x", "'-x"),
            ("\t=1", "'\t=1"),
            ("-1.5", "-1.5"),
            ("+7e3", "+7e3"),
            ("seven = 7", "seven = 7"),
        ] {
            assert_eq!(field(text), written);
        }
        let mut table = Table::new(["label", "n"]);
        table.row(["\u{1b}[2J", "1"]);
        table.row(["a\nb", "2"]);
        assert_eq!(table.to_string(), "label      n\n────────────\n\\u{1b}[2J  1\na\\nb       2\n");
    }
}
