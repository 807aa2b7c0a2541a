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

    /// The samples in their order, each with whether its mask is that of the one before.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, bool)> {
        let before = std::iter::once(None).chain(self.order.iter().map(Some));
        self.order
            .iter()
            .zip(before)
            .map(|(&at, before)| (at, before.is_some_and(|&before| self.of(before) == self.of(at))))
    }

    fn of(&self, at: usize) -> &[u64] {
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
        let found: Vec<(usize, bool)> = masks.in_order().map(|(at, same)| (which[at], same)).collect();
        assert!(
            found == [(0, false), (2, true), (4, true), (3, false)]
                || found == [(3, false), (0, false), (2, true), (4, true)]
        );
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
}
