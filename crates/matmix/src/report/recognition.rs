//! A recognition experiment for the report: who was taken for whom.

use serde::{Deserialize, Serialize};

use crate::data::{Labels, Samples};
use crate::error::Result;
use crate::model::Model;
use crate::recognize::{Distance, Recognizer};

/// Every other sample of each label is recognised among the rest by its nearest neighbour.
///
/// ```
/// use matmix::data::Labels;
/// use matmix::report::recognise;
/// use matmix::{Distance, FitOptions, Samples, fit};
///
/// // Bright and dark pictures in turn, a little different each.
/// let values: Vec<f64> = (0..480).map(|i| f64::from(i / 12 % 2 * 9) + f64::from(i * 37 % 11) / 9.0).collect();
/// let samples = Samples::from_vec(&[4, 3], values)?;
/// let model = fit(&samples, &FitOptions { components: 1, rank: vec![1, 1], ..FitOptions::default() })?.model;
/// let labels = Labels::new((0..40).map(|n| ["dark", "bright"][n % 2]));
/// let found = recognise(&model.into(), &samples, &labels, Distance::Paper)?;
/// assert_eq!((found.accuracy(), found.mistakes.len()), (1.0, 0));
/// # Ok::<(), matmix::Error>(())
/// ```
///
/// # Errors
/// Labels that do not fit the samples, and whatever reading samples can cause.
pub fn recognise(
    model: &Model,
    samples: &Samples<'_>,
    labels: &Labels,
    distance: Distance,
) -> Result<Confusion> {
    let mut met = vec![0usize; labels.names.len()];
    let (mut gallery, mut probes) = (Vec::new(), Vec::new());
    for (n, &class) in labels.index.iter().enumerate() {
        if met[class].is_multiple_of(2) {
            gallery.push(n)
        } else {
            probes.push(n)
        }
        met[class] += 1;
    }
    let classes = |chosen: &[usize]| chosen.iter().map(|&n| labels.index[n]).collect::<Vec<_>>();
    let known = samples.clone().select(&gallery)?;
    let recognizer = Recognizer::new(model, &known, &classes(&gallery), distance)?;
    let nearest = recognizer.neighbours(&samples.clone().select(&probes)?, 1)?;
    let mut counts = vec![vec![0; labels.names.len()]; labels.names.len()];
    let mut mistakes = Vec::new();
    for (&probe, nearest) in probes.iter().zip(&nearest) {
        let (actual, found) = (labels.index[probe], nearest[0].class);
        counts[actual][found] += 1;
        if actual != found {
            mistakes.push(Mistake { sample: probe, nearest: gallery[nearest[0].index] });
        }
    }
    let method = format!(
        "Nearest neighbour by the distance “{}”: every other sample of each label is known, the others are probes.",
        recognizer.distance()
    );
    Ok(Confusion::new(method, labels.names.clone(), counts, mistakes))
}

/// The confusion of a recognition experiment.
///
/// ```
/// use matmix::report::Confusion;
///
/// // One of three on the right was taken for left.
/// let labels = ["left", "right"].map(String::from).to_vec();
/// let confusion = Confusion::new("the nearest of two", labels, vec![vec![1, 0], vec![1, 2]], vec![]);
/// assert_eq!(confusion.accuracy(), 0.75);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Confusion {
    /// How the experiment was made, a sentence.
    pub method: String,
    /// The labels. Not trusted.
    pub labels: Vec<String>,
    /// How often the true label (row) was recognised as another (column).
    pub counts: Vec<Vec<usize>>,
    /// The most frequent confusions.
    pub strongest: Vec<Cell>,
    /// Who was taken for whom.
    pub mistakes: Vec<Mistake>,
}

/// A cell of a table of counts that is worth naming.
///
/// ```
/// use matmix::report::{Cell, Confusion};
///
/// let labels = ["cat", "dog"].map(String::from).to_vec();
/// let found = Confusion::new("by ear", labels, vec![vec![8, 2], vec![0, 9]], vec![]);
/// assert_eq!(found.strongest, [Cell { row: 0, column: 1, count: 2 }]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub column: usize,
    /// How many samples.
    pub count: usize,
}

/// A sample that was recognised wrongly. In a finished page these are positions of stored samples.
///
/// ```
/// use matmix::report::{Confusion, Mistake};
///
/// let labels = ["cat", "dog"].map(String::from).to_vec();
/// let mistakes = vec![Mistake { sample: 7, nearest: 3 }];
/// let found = Confusion::new("by ear", labels, vec![vec![8, 1], vec![0, 9]], mistakes);
/// assert_eq!((found.mistakes[0].nearest, found.accuracy()), (3, 17.0 / 18.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Who was to be recognised.
    pub sample: usize,
    /// Whom it was taken for: its nearest neighbour.
    pub nearest: usize,
}

impl Confusion {
    /// The outcome of a recognition with the names of its classes.
    pub fn new(
        method: impl Into<String>,
        labels: Vec<String>,
        counts: Vec<Vec<usize>>,
        mistakes: Vec<Mistake>,
    ) -> Self {
        let strongest = strongest(&counts, |row, column| row != column);
        Self { method: method.into(), labels, counts, strongest, mistakes }
    }

    /// The share on the diagonal.
    pub fn accuracy(&self) -> f64 {
        let right: usize = self.counts.iter().enumerate().filter_map(|(i, row)| row.get(i)).sum();
        let all: usize = self.counts.iter().flatten().sum();
        right as f64 / all.max(1) as f64
    }
}

/// The largest counts of the cells that are asked for, a screenful at most; of equal ones the first.
pub(crate) fn strongest(counts: &[Vec<usize>], of: impl Fn(usize, usize) -> bool) -> Vec<Cell> {
    const NAMED: usize = 15;
    let row_cells = |(row, counts): (usize, &Vec<usize>)| {
        let cell = |(column, &count): (usize, &usize)| Cell { row, column, count };
        counts.iter().enumerate().map(cell).collect::<Vec<_>>()
    };
    let mut cells: Vec<Cell> = counts.iter().enumerate().flat_map(row_cells).collect();
    cells.retain(|cell| cell.count > 0 && of(cell.row, cell.column));
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.count));
    cells.truncate(NAMED);
    cells
}
