//! How many labels were found right, which were mistaken, and for what.

use std::collections::BTreeMap;

use crate::table::{Table, plural};

/// The most labels that are listed, and the most confusions.
const LISTED: usize = 40;

/// What was found for samples whose labels are known.
pub(crate) struct Verdict<'a> {
    /// All labels there are, in their order.
    pub(crate) names: &'a [String],
    /// The label of each sample, and what was found.
    pub(crate) pairs: Vec<(&'a str, &'a str)>,
    /// What a sample is called, and what it is that happens to those that are found right.
    pub(crate) words: (&'static str, &'static str),
}

impl Verdict<'_> {
    /// How many labels were found.
    pub(crate) fn hits(&self) -> usize {
        self.pairs.iter().filter(|(label, found)| label == found).count()
    }

    /// Their share.
    pub(crate) fn accuracy(&self) -> f64 {
        self.hits() as f64 / self.pairs.len() as f64
    }

    /// All of it in words and tables.
    pub(crate) fn text(&self) -> String {
        let (sample, right) = self.words;
        let (accuracy, hits) = (self.accuracy(), self.hits());
        let all = plural(self.pairs.len(), sample);
        let mut text = format!("accuracy {accuracy:.4}: {hits} of {all} {right}\n");
        if self.names.len() <= LISTED {
            let mut table = Table::new(["label".to_string(), format!("{sample}s"), right.to_string()]);
            for name in self.names {
                let of = || self.pairs.iter().filter(|(label, _)| label == name);
                let hits = of().filter(|(label, found)| label == found).count();
                table.row([name.clone(), of().count().to_string(), hits.to_string()]);
            }
            text.push_str(&format!("\n{table}"));
        }
        text + &self.confusions()
    }

    /// Who was taken for whom, the most frequent first.
    fn confusions(&self) -> String {
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for &(label, found) in self.pairs.iter().filter(|(label, found)| label != found) {
            *counts.entry((label, found)).or_default() += 1;
        }
        if counts.is_empty() {
            return String::new();
        }
        let mut pairs: Vec<_> = counts.into_iter().collect();
        pairs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut table =
            Table::new(["label".to_string(), "taken for".to_string(), format!("{}s", self.words.0)]);
        for ((label, found), count) in pairs.iter().take(LISTED) {
            table.row([label.to_string(), found.to_string(), count.to_string()]);
        }
        let more = match pairs.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!("and {} more\n", plural(more, "confusion")),
        };
        format!("\n{table}{more}")
    }
}
