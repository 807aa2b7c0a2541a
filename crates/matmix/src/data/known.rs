//! Labels of which some are not known.

use super::labels::Labels;

/// Names that always mean that a label is not known.
const UNKNOWN: [&str; 3] = ["", "NaN", "nan"];

/// The class of every sample for which it is known.
///
/// ```
/// use matmix::data::{KnownLabels, Labels};
///
/// let known = KnownLabels::without(Labels::new(["cat", "", "dog", "-1", "cat"]), Some("-1"));
/// assert_eq!(known.names, ["cat", "dog"]);
/// assert_eq!(known.index, [Some(0), None, Some(1), None, Some(0)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLabels {
    /// The class names, sorted as those of [`Labels`].
    pub names: Vec<String>,
    /// For each sample the place of its class in `names`, if it is known: what [`Samples::with_classes`](crate::Samples::with_classes)
    /// takes.
    pub index: Vec<Option<u32>>,
}

impl From<Labels> for KnownLabels {
    /// A label that is empty or NaN is not known.
    fn from(labels: Labels) -> Self {
        Self::without(labels, None)
    }
}

impl KnownLabels {
    /// A label that is empty, NaN or `unlabeled` is not known. Semi-supervised methods often write −1 for that; otherwise −1 may well be
    /// a class beside 1.
    pub fn without(labels: Labels, unlabeled: Option<&str>) -> Self {
        let is_known = |name: &&String| !UNKNOWN.contains(&name.as_str()) && unlabeled != Some(name.as_str());
        // Sorted once more: without those that mean nothing, all may be numbers.
        let known = Labels::new(labels.names.iter().filter(is_known));
        let mut next = known.index.iter().map(|&place| place as u32);
        let places: Vec<Option<u32>> =
            labels.names.iter().map(|name| if is_known(&name) { next.next() } else { None }).collect();
        Self { names: known.names, index: labels.index.into_iter().map(|i| places[i]).collect() }
    }

    /// How many labels are known.
    pub fn n_known(&self) -> usize {
        self.index.iter().flatten().count()
    }

    /// The name of sample `n`'s class, if it is known.
    pub fn name(&self, n: usize) -> Option<&str> {
        self.index[n].map(|class| self.names[class as usize].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_files_can_leave_labels_out() {
        let numbers = || Labels::from_numbers([3.0, f64::NAN, -1.0, 3.0, 10.0]);
        assert_eq!(KnownLabels::from(numbers()).names, ["-1", "3", "10"]);
        let known = KnownLabels::without(numbers(), Some("-1"));
        assert_eq!((known.names.as_slice(), known.n_known()), (&["3".to_string(), "10".to_string()][..], 3));
        assert_eq!(known.index, [Some(0), None, None, Some(0), Some(1)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.txt");
        std::fs::write(&path, "b\n\n-1\na\n\n").unwrap();
        let known = KnownLabels::without(Labels::read_with_gaps(&path).unwrap(), Some("-1"));
        assert_eq!(known.index, [Some(1), None, None, Some(0), None]);
        assert_eq!((known.name(0), known.name(1)), (Some("b"), None));
        assert!(Labels::read(&path).unwrap_err().to_string().contains("line 2 is empty"));
    }
}
