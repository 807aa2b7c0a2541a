//! The embedded digits: something real to try everything on.

use super::idx;
use super::labels::Labels;
use super::open::DataSet;

const IMAGES: &[u8] = include_bytes!("../../data/digits-images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../data/digits-labels-idx1-ubyte.gz");

/// The first 100 images of each digit of MNIST's training set, 28×28 bytes each, with their labels, sorted by
/// digit: what `demo:mnist` opens.
///
/// MNIST is by LeCun, Cortes and Burges, CC BY-SA 3.0.
///
/// ```
/// let digits = matmix::data::digits();
/// assert_eq!((digits.samples.len(), digits.samples.shape()), (1000, &[28, 28][..]));
/// ```
pub fn digits() -> DataSet {
    // Files that were compiled in cannot be wrong in one place and right in another: the test has seen them.
    let samples = idx::from_gzip(IMAGES).expect("the embedded images are whole");
    let labels = idx::parse(LABELS).expect("the embedded labels are whole");
    let labels = Labels::from_elements(&labels.shape, &labels.elements).expect("labels have one axis");
    DataSet {
        samples,
        labels: Some(labels),
        name: "demo:mnist".into(),
        format: "IDX",
        names: None,
        notes: Vec::new(),
        mask: None,
        white: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_100_of_each_digit() {
        let digits = digits();
        let labels = digits.labels.unwrap();
        assert_eq!(labels.names, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        for class in 0..10 {
            assert_eq!(labels.index.iter().filter(|&&i| i == class).count(), 100);
        }
        // The first zero of the training set has its first ink in row 4, and its corners are empty.
        let first = digits.samples.to_f64(0..1).unwrap();
        assert_eq!(first.iter().position(|&x| x > 0.0).unwrap() / 28, 4);
        assert_eq!((first[0], first[783]), (0.0, 0.0));
    }
}
