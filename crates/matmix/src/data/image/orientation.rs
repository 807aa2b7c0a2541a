//! How the camera was held, as EXIF notes it.

use super::pixels::Pixels;

/// How a stored picture has to be turned and mirrored to stand upright: EXIF's numbers 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

impl Default for Orientation {
    fn default() -> Self {
        Self(1)
    }
}

impl Orientation {
    /// A number that means nothing is passed over: a picture with a broken note about its orientation is still one.
    pub(super) fn new(number: u64) -> Self {
        match number {
            2..=8 => Self(number as u8),
            _ => Self::default(),
        }
    }

    /// From an EXIF block: a TIFF header, and a directory with the tag 0x0112.
    pub(super) fn from_exif(block: &[u8]) -> Self {
        Self::new(orientation_tag(block).unwrap_or(1))
    }

    /// Whether the picture stands upright as it is stored.
    pub(crate) fn is_upright(self) -> bool {
        self.0 == 1
    }

    /// Rows and columns of the upright picture.
    pub(super) fn size(self, rows: usize, columns: usize) -> (usize, usize) {
        if self.0 >= 5 { (columns, rows) } else { (rows, columns) }
    }

    /// Where pixel (i, j) of the upright picture is stored.
    fn place(self, i: usize, j: usize, rows: usize, columns: usize) -> (usize, usize) {
        match self.0 {
            2 => (i, columns - 1 - j),
            3 => (rows - 1 - i, columns - 1 - j),
            4 => (rows - 1 - i, j),
            5 => (j, i),
            6 => (rows - 1 - j, i),
            7 => (rows - 1 - j, columns - 1 - i),
            8 => (j, columns - 1 - i),
            _ => (i, j),
        }
    }

    /// The upright picture.
    pub(super) fn apply(self, stored: Pixels) -> Pixels {
        if self.is_upright() {
            return stored;
        }
        let (rows, columns) = (stored.rows, stored.columns);
        let (upright_rows, upright_columns) = self.size(rows, columns);
        let places = (0..upright_rows).flat_map(|i| (0..upright_columns).map(move |j| (i, j)));
        let places = places.map(|(i, j)| {
            let (row, column) = self.place(i, j, rows, columns);
            row * columns + column
        });
        stored.rearranged(upright_rows, upright_columns, places)
    }
}

fn orientation_tag(block: &[u8]) -> Option<u64> {
    let big = match block.get(..4)? {
        b"II*\0" => false,
        b"MM\0*" => true,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes: [u8; 2] = block.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes: [u8; 4] = block.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let directory = u32_at(4)? as usize;
    for entry in 0..usize::from(u16_at(directory)?) {
        let at = directory + 2 + 12 * entry;
        // The tag, and one short number.
        if (u16_at(at)?, u16_at(at + 2)?, u32_at(at + 4)?) == (0x0112, 3, 1) {
            return u16_at(at + 8).map(u64::from);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::pixels::{Channels, Values};
    use super::*;

    /// What each number means, in the words of the standard: where the first row and the first column are.
    #[test]
    fn every_orientation_puts_the_stored_rows_where_the_standard_says() {
        let stored = || Pixels {
            rows: 2,
            columns: 3,
            channels: Channels::Grey,
            values: Values::U8(vec![1, 2, 3, 4, 5, 6]),
        };
        for (number, size, expected) in [
            (1, (2, 3), [1, 2, 3, 4, 5, 6]), // row 0 is the top, column 0 the left side
            (2, (2, 3), [3, 2, 1, 6, 5, 4]), // the top, the right side
            (3, (2, 3), [6, 5, 4, 3, 2, 1]), // the bottom, the right side
            (4, (2, 3), [4, 5, 6, 1, 2, 3]), // the bottom, the left side
            (5, (3, 2), [1, 4, 2, 5, 3, 6]), // the left side, the top
            (6, (3, 2), [4, 1, 5, 2, 6, 3]), // the right side, the top
            (7, (3, 2), [6, 3, 5, 2, 4, 1]), // the right side, the bottom
            (8, (3, 2), [3, 6, 2, 5, 1, 4]), // the left side, the bottom
        ] {
            let upright = Orientation::new(number).apply(stored());
            assert_eq!((upright.rows, upright.columns), size, "{number}");
            assert_eq!(upright.values, Values::U8(expected.to_vec()), "{number}");
        }
        assert!(Orientation::new(0).is_upright() && Orientation::new(9).is_upright());
    }

    #[test]
    fn the_note_is_found_in_either_byte_order_and_not_in_nonsense() {
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        assert_eq!(Orientation::from_exif(little), Orientation(6));
        assert_eq!(Orientation::from_exif(big), Orientation(6));
        for end in 0..little.len() - 6 {
            assert!(Orientation::from_exif(&little[..end]).is_upright(), "{end}");
        }
        assert!(Orientation::from_exif(b"II*\0\xff\xff\xff\xff").is_upright());
    }
}
