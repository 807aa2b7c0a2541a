//! Letters of five by seven pixels, for the few words in a chart.

use super::image::Image;

/// Pixels from one letter to the next.
pub(super) const ADVANCE: usize = 6;
/// Pixels from the top of a letter to its foot.
pub(super) const HEIGHT: usize = 7;

/// Each letter as seven rows, the highest of five bits to the left.
const LETTERS: &[(char, [u8; 7])] = &[
    ('0', [14, 17, 19, 21, 25, 17, 14]),
    ('1', [4, 12, 4, 4, 4, 4, 14]),
    ('2', [14, 17, 1, 6, 8, 16, 31]),
    ('3', [31, 2, 4, 2, 1, 17, 14]),
    ('4', [2, 6, 10, 18, 31, 2, 2]),
    ('5', [31, 16, 30, 1, 1, 17, 14]),
    ('6', [6, 8, 16, 30, 17, 17, 14]),
    ('7', [31, 1, 2, 4, 8, 8, 8]),
    ('8', [14, 17, 17, 14, 17, 17, 14]),
    ('9', [14, 17, 17, 15, 1, 2, 12]),
    ('.', [0, 0, 0, 0, 0, 12, 12]),
    (',', [0, 0, 0, 0, 12, 4, 8]),
    ('-', [0, 0, 0, 31, 0, 0, 0]),
    ('%', [24, 25, 2, 4, 8, 19, 3]),
    ('=', [0, 0, 31, 0, 31, 0, 0]),
    (':', [0, 12, 12, 0, 12, 12, 0]),
    ('×', [0, 0, 17, 10, 4, 10, 17]),
    ('A', [14, 17, 17, 31, 17, 17, 17]),
    ('B', [30, 17, 17, 30, 17, 17, 30]),
    ('C', [14, 17, 16, 16, 16, 17, 14]),
    ('I', [14, 4, 4, 4, 4, 4, 14]),
    ('K', [17, 18, 20, 24, 20, 18, 17]),
    ('L', [16, 16, 16, 16, 16, 16, 31]),
    ('a', [0, 0, 14, 1, 15, 17, 15]),
    ('b', [16, 16, 30, 17, 17, 17, 30]),
    ('c', [0, 0, 14, 16, 16, 17, 14]),
    ('d', [1, 1, 15, 17, 17, 17, 15]),
    ('e', [0, 0, 14, 17, 31, 16, 14]),
    ('f', [6, 9, 8, 28, 8, 8, 8]),
    ('g', [0, 15, 17, 17, 15, 1, 14]),
    ('h', [16, 16, 22, 25, 17, 17, 17]),
    ('i', [4, 0, 12, 4, 4, 4, 14]),
    ('j', [2, 0, 6, 2, 2, 18, 12]),
    ('k', [16, 16, 18, 20, 24, 20, 18]),
    ('l', [12, 4, 4, 4, 4, 4, 14]),
    ('m', [0, 0, 26, 21, 21, 17, 17]),
    ('n', [0, 0, 22, 25, 17, 17, 17]),
    ('o', [0, 0, 14, 17, 17, 17, 14]),
    ('p', [0, 0, 30, 17, 30, 16, 16]),
    ('q', [0, 0, 13, 19, 15, 1, 1]),
    ('r', [0, 0, 22, 25, 16, 16, 16]),
    ('s', [0, 0, 14, 16, 14, 1, 30]),
    ('t', [8, 8, 28, 8, 8, 9, 6]),
    ('u', [0, 0, 17, 17, 17, 19, 13]),
    ('v', [0, 0, 17, 17, 17, 10, 4]),
    ('w', [0, 0, 17, 17, 21, 21, 10]),
    ('x', [0, 0, 17, 10, 4, 10, 17]),
    ('y', [0, 0, 17, 17, 15, 1, 14]),
    ('z', [0, 0, 31, 2, 4, 8, 31]),
];

/// How wide words are when every pixel is so many large.
pub(super) fn width(words: &str, large: usize) -> usize {
    words.chars().count() * ADVANCE * large
}

/// Writes words with their upper left corner at a place; letters that are not known, and what lies outside, stay empty.
pub(super) fn write(image: &mut Image, words: &str, x: i64, y: i64, large: usize, colour: [u8; 3]) {
    for (place, letter) in words.chars().enumerate() {
        let Some((_, rows)) = LETTERS.iter().find(|(known, _)| *known == letter) else { continue };
        for (row, bits) in rows.iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                let (left, top) = ((place * ADVANCE + column) * large, row * large);
                for (across, down) in (0..large * large).map(|i| (i % large, i / large)) {
                    image.dot(x + (left + across) as i64, y + (top + down) as i64, colour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_all_different_and_within_five_columns() {
        for (i, (letter, rows)) in LETTERS.iter().enumerate() {
            assert!(rows.iter().all(|row| *row < 32), "{letter}");
            let same = LETTERS[..i].iter().filter(|(_, other)| other == rows).map(|(other, _)| *other);
            // The sign between the sides of a core is the letter x.
            assert!(same.into_iter().all(|other| [other, *letter] == ['×', 'x']), "{letter}");
        }
    }

    #[test]
    fn words_are_written_where_they_should_be() {
        let mut image = Image::new(14, 9, [255; 3]).unwrap();
        write(&mut image, "1-", 1, 1, 1, [0; 3]);
        let row =
            |y: usize| (0..14).map(|x| if image.pixel(x, y)[0] == 0 { '#' } else { '.' }).collect::<String>();
        assert_eq!([row(1), row(4), row(7)], ["...#..........", "...#...#####..", "..###........."]);
        // Beyond the edge there is nothing to write on.
        write(&mut image, "88", 10, -3, 2, [0; 3]);
        assert_eq!(width("1-", 2), 24);
    }
}
