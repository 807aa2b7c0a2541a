//! Which cells of which samples are missing.

use super::super::load::Stored;

/// The masks of some samples, and an order in which equal ones follow each other.
#[derive(Default)]
pub(super) struct Masks {
    /// Words of a mask: one bit per cell.
    words: usize,
    bits: Vec<u64>,
    order: Vec<usize>,
}

impl Masks {
    #[inline(always)]
    pub(super) fn read(&mut self, stored: Stored<'_>, which: &[usize]) {
        let words = stored.sample_len.div_ceil(64);
        self.words = words;
        self.bits.clear();
        for &n in which {
            stored.nan_bits(n, &mut self.bits);
        }
        let mask = |at: usize| &self.bits[at * words..(at + 1) * words];
        self.order.clear();
        self.order.extend(0..which.len());
        self.order.sort_by(|&a, &b| mask(a).cmp(mask(b)).then(a.cmp(&b)));
    }

    /// Samples with the same mask, by their places among those that were read; ascending.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[usize]> {
        self.order.chunk_by(|&a, &b| self.of(a) == self.of(b))
    }

    pub(super) fn of(&self, at: usize) -> &[u64] {
        &self.bits[at * self.words..(at + 1) * self.words]
    }

    /// The missing cells of a sample, or its observed ones, in rows of so many.
    pub(super) fn cells(&self, at: usize, is_missing: bool, (size, side): (usize, usize), to: &mut Cells) {
        to.places.clear();
        for (word, &bits) in self.of(at).iter().enumerate() {
            let there = u64::MAX >> (64 - (size - word * 64).min(64));
            push_bits(if is_missing { bits } else { !bits & there }, word * 64, &mut to.places);
        }
        to.rows.clear();
        let mut end = 0;
        for (row, places) in Rows::of(&to.places, side) {
            end += places.len();
            to.rows.push((row, end));
        }
    }
}

/// The places of the bits that are set.
fn push_bits(mut bits: u64, first: usize, to: &mut Vec<usize>) {
    while bits != 0 {
        to.push(first + bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Some cells of a sample, ascending, and the rows along the last mode that they are in.
#[derive(Default)]
pub(super) struct Cells {
    places: Vec<usize>,
    /// Which row, and how many cells there are up to its end.
    rows: Vec<(usize, usize)>,
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// The indices in every mode of samples of this shape, if the cells are all combinations of some.
    pub(super) fn sides(&self, shape: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut seen: Vec<Vec<bool>> = shape.iter().map(|&p| vec![false; p]).collect();
        for &place in &self.places {
            let mut rest = place;
            for (seen, p) in seen.iter_mut().zip(shape).rev() {
                seen[rest % p] = true;
                rest /= p;
            }
        }
        let indices = |seen: &Vec<bool>| (0..seen.len()).filter(|&i| seen[i]).collect::<Vec<_>>();
        let sides: Vec<Vec<usize>> = seen.iter().map(indices).collect();
        (sides.iter().map(Vec::len).product::<usize>() == self.places.len()).then_some(sides)
    }

    /// Row by row.
    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let begins = std::iter::once(0).chain(self.rows.iter().map(|&(_, end)| end));
        begins.zip(&self.rows).map(|(begin, &(row, end))| (row, &self.places[begin..end]))
    }
}

/// Ascending places by the rows they are in.
pub(super) struct Rows<'a> {
    places: &'a [usize],
    side: usize,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    pub(super) fn of(places: &'a [usize], side: usize) -> Self {
        Self { places, side }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = (usize, &'a [usize]);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, &'a [usize])> {
        let row = self.places.first()? / self.side;
        let end = (row + 1) * self.side;
        let mut count = 1;
        while count < self.places.len() && self.places[count] < end {
            count += 1;
        }
        let (places, rest) = self.places.split_at(count);
        self.places = rest;
        Some((row, places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Chunk;

    #[test]
    fn masks_are_those_of_the_numbers_and_equal_ones_follow_each_other() {
        let size = 70;
        let is_missing = |n: usize, i: usize| n != 1 && (i * 7 + n % 2 * 3).is_multiple_of(5);
        let number = |i: usize| if is_missing(i / size, i % size) { f32::NAN } else { i as f32 };
        let x: Vec<f32> = (0..5 * size).map(number).collect();
        let mut masks = Masks::default();
        let which = [0, 2, 3, 4];
        masks.read(Stored::plain(Chunk::F32(&x), size), &which);
        let mut found: Vec<Vec<usize>> =
            masks.groups().map(|group| group.iter().map(|&at| which[at]).collect()).collect();
        found.sort();
        assert_eq!(found, [vec![0, 2, 4], vec![3]]);
        let (mut missing, mut observed) = (Cells::default(), Cells::default());
        for at in [0, 2] {
            masks.cells(at, true, (size, 8), &mut missing);
            masks.cells(at, false, (size, 8), &mut observed);
            let expected: (Vec<usize>, Vec<usize>) = (0..size).partition(|&i| is_missing(which[at], i));
            assert_eq!((missing.places(), observed.places()), (&expected.0[..], &expected.1[..]));
            for cells in [&missing, &observed] {
                assert!(cells.rows().all(|(row, cells)| cells.iter().all(|i| i / 8 == row)));
                let together: Vec<usize> = cells.rows().flat_map(|(_, cells)| cells.to_vec()).collect();
                assert_eq!(together, cells.places());
            }
        }
    }

    #[test]
    fn whole_fibres_are_told_from_other_cells() {
        let cells = |places: &[usize]| Cells { places: places.to_vec(), rows: Vec::new() };
        // Rows 0 and 2, columns 1 and 3 of 3×4.
        assert_eq!(cells(&[1, 3, 9, 11]).sides(&[3, 4]), Some(vec![vec![0, 2], vec![1, 3]]));
        assert_eq!(cells(&[1, 3, 9]).sides(&[3, 4]), None);
        // Any cells of a vector; a volume of one cell.
        assert_eq!(cells(&[1, 3, 9]).sides(&[12]), Some(vec![vec![1, 3, 9]]));
        assert_eq!(cells(&[7]).sides(&[2, 3, 2]), Some(vec![vec![1], vec![0], vec![1]]));
    }
}
