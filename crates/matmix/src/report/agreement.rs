//! How well components and labels agree.

use serde::Serialize;

use super::recognition::{Cell, strongest};
use crate::data::Labels;

/// Components against labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// The labels, one per column. Not trusted.
    pub labels: Vec<String>,
    /// How many samples of each component (row) have each label (column).
    pub counts: Vec<Vec<usize>>,
    /// The largest counts.
    pub strongest: Vec<Cell>,
    /// Adjusted Rand index.
    pub adjusted_rand_index: f64,
    /// Normalised mutual information (arithmetic mean).
    pub normalised_mutual_information: f64,
}

/// The contingency table of components and labels with its two usual summaries.
///
/// `component[n] < components` for every sample.
pub(crate) fn agreement(component: &[usize], components: usize, labels: &Labels) -> Agreement {
    let mut counts = vec![vec![0; labels.names.len()]; components];
    for (&k, &l) in component.iter().zip(&labels.index) {
        counts[k][l] += 1;
    }
    Agreement {
        adjusted_rand_index: adjusted_rand_index(&counts),
        normalised_mutual_information: normalised_mutual_information(&counts),
        labels: labels.names.clone(),
        strongest: strongest(&counts, |_, _| true),
        counts,
    }
}

/// Hubert and Arabie's index: 1 for the same partition, 0 on average for unrelated ones.
fn adjusted_rand_index(counts: &[Vec<usize>]) -> f64 {
    let pairs = |n: f64| n * (n - 1.0) / 2.0;
    let (rows, columns, n) = margins(counts);
    let same: f64 = counts.iter().flatten().map(|&c| pairs(c as f64)).sum();
    let in_rows: f64 = rows.iter().map(|&c| pairs(c)).sum();
    let in_columns: f64 = columns.iter().map(|&c| pairs(c)).sum();
    let expected = if n > 1.0 { in_rows * in_columns / pairs(n) } else { 0.0 };
    let most = (in_rows + in_columns) / 2.0;
    // Both partitions are trivial in the same way: they agree.
    if most == expected { 1.0 } else { (same - expected) / (most - expected) }
}

/// Mutual information over the mean of the two entropies, between 0 and 1.
fn normalised_mutual_information(counts: &[Vec<usize>]) -> f64 {
    let (rows, columns, n) = margins(counts);
    let entropy =
        |margin: &[f64]| -> f64 { margin.iter().filter(|&&c| c > 0.0).map(|&c| -c / n * (c / n).ln()).sum() };
    let mut information = 0.0;
    for (row, &r) in counts.iter().zip(&rows) {
        for (&count, &c) in row.iter().zip(&columns) {
            if count > 0 {
                let joint = count as f64 / n;
                information += joint * (joint * n * n / (r * c)).ln();
            }
        }
    }
    let mean = (entropy(&rows) + entropy(&columns)) / 2.0;
    if mean == 0.0 { 1.0 } else { (information / mean).clamp(0.0, 1.0) }
}

fn margins(counts: &[Vec<usize>]) -> (Vec<f64>, Vec<f64>, f64) {
    let rows: Vec<f64> = counts.iter().map(|row| row.iter().sum::<usize>() as f64).collect();
    let width = counts.first().map_or(0, Vec::len);
    let columns = (0..width).map(|j| counts.iter().map(|row| row[j]).sum::<usize>() as f64).collect();
    let n = rows.iter().sum();
    (rows, columns, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(component: [usize; N], components: usize, label: [usize; N]) -> Agreement {
        agreement(&component, components, &Labels::new(label.map(|l| l.to_string())))
    }

    #[test]
    fn renaming_the_groups_changes_nothing() {
        let a = of([1, 1, 0, 0, 2], 3, [0, 0, 2, 2, 1]);
        assert_eq!((a.adjusted_rand_index, a.normalised_mutual_information), (1.0, 1.0));
    }

    /// Figures of scikit-learn 1.9: `adjusted_rand_score` and `normalized_mutual_info_score` of these two lists.
    #[test]
    fn the_indices_are_those_of_scikit_learn() {
        let a = of([0, 0, 0, 1, 1, 1, 2, 2], 3, [0, 0, 1, 1, 1, 1, 0, 2]);
        assert_eq!(a.counts, [[2, 1, 0], [0, 3, 0], [1, 0, 1]]);
        assert!(
            (a.adjusted_rand_index - 0.304_347_826_086_956_54).abs() < 1e-12,
            "{}",
            a.adjusted_rand_index
        );
        assert!(
            (a.normalised_mutual_information - 0.546_882_891_169_995_8).abs() < 1e-12,
            "{}",
            a.normalised_mutual_information
        );
    }

    #[test]
    fn one_group_each_agrees_and_one_group_against_many_does_not() {
        let a = of([0, 0, 0], 1, [0, 0, 0]);
        assert_eq!((a.adjusted_rand_index, a.normalised_mutual_information), (1.0, 1.0));
        let b = of([0, 0, 0], 1, [0, 1, 2]);
        assert_eq!((b.adjusted_rand_index, b.normalised_mutual_information), (0.0, 0.0));
    }
}
