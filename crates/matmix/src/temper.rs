//! How far the observed cells of a sample are trusted when its missing ones are filled in.
//!
//! ```text
//! p_τ(B | x_O) ∝ p(x_O | B)^τ p(B)          (8h)
//! ```
//!
//! τ = 1 is the exact posterior, right where cells are missing here and there. The residuals of a model of low rank are not white: over a
//! large region they lead the core astray together, and a posterior that takes each observed cell for independent evidence continues them
//! too boldly. τ < 1 trusts them less.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::options::as_text;

/// The share of the missing cells that have to lie deep inside for a region to be large.
const DEEP: f64 = 0.1;

/// So many cells, at least, are around one that lies deep inside.
const AROUND: usize = 25;

/// How far observed cells are trusted when missing ones are filled in. As text it is `auto`, `none` or a number.
///
/// ```
/// use matmix::Temper;
///
/// assert_eq!("0.3".parse::<Temper>()?, Temper::Fixed(0.3));
/// assert_eq!(Temper::default().to_string(), "auto");
/// assert!("0".parse::<Temper>().is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Temper {
    /// Fully, but for samples of which a large region is missing: [`Temper::OF_BLOCKS`] there.
    #[default]
    Auto,
    /// Fully: the exact posterior.
    None,
    /// This much everywhere, above 0 and at most 1.
    Fixed(f64),
}

impl Temper {
    /// The τ of samples with a large missing region, unless another is asked for (docs/missing.md has what it does).
    pub const OF_BLOCKS: f64 = 0.1;

    /// Checks that it is a power that tempers.
    pub(crate) fn validate(self) -> Result<Self> {
        match self {
            Temper::Fixed(power) if !(power > 0.0 && power <= 1.0) => Err(wrong(&power.to_string())),
            _ => Ok(self),
        }
    }

    /// The τ of samples of this shape that lack these cells.
    pub(crate) fn of(self, shape: &[usize], missing: &[usize]) -> f64 {
        match self {
            Temper::None => 1.0,
            Temper::Fixed(power) => power,
            Temper::Auto if has_block(shape, missing) => Temper::OF_BLOCKS,
            Temper::Auto => 1.0,
        }
    }
}

impl fmt::Display for Temper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Temper::Auto => f.write_str("auto"),
            Temper::None => f.write_str("none"),
            Temper::Fixed(power) => write!(f, "{power}"),
        }
    }
}

impl FromStr for Temper {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "auto" => Ok(Temper::Auto),
            "none" => Ok(Temper::None),
            number => number.parse().map(Temper::Fixed).map_err(|_| wrong(text))?.validate(),
        }
    }
}

as_text!(Temper);

fn wrong(value: &str) -> Error {
    Error::Option {
        option: "temper",
        value: format!("`{value}`"),
        expected: "auto, none or a number above 0 and at most 1, such as 0.1",
    }
}

/// Whether a large region is missing: at least a tenth of the missing cells lie deep inside, with nothing observed around them.
///
/// Regions are not told by being connected: cells that are missing here and there are, too, once more than half are.
fn has_block(shape: &[usize], missing: &[usize]) -> bool {
    // A few cells are no region, however small the sample.
    if missing.len() < AROUND {
        return false;
    }
    let reach = (1..).find(|reach| (2 * reach + 1usize).pow(shape.len() as u32) >= AROUND).unwrap_or(1);
    let mut deep = vec![false; shape.iter().product()];
    missing.iter().for_each(|&i| deep[i] = true);
    // A box is a box in one mode after the other.
    let mut inner: usize = deep.len();
    for &side in shape {
        inner /= side;
        deep = eroded(&deep, side, inner, reach);
    }
    let count = deep.iter().filter(|&&deep| deep).count();
    count as f64 >= DEEP * missing.len() as f64
}

/// Keeps cells of which all neighbours within `reach` along one mode are there; beyond an edge all are.
fn eroded(cells: &[bool], side: usize, inner: usize, reach: usize) -> Vec<bool> {
    let mut kept = vec![false; cells.len()];
    for first in (0..cells.len()).step_by(side * inner) {
        for fibre in first..first + inner {
            // How many in a row end here, counted as if all were there before the first.
            let mut run = reach;
            for i in 0..side + reach {
                let is_there = i >= side || cells[fibre + i * inner];
                run = if is_there { run + 1 } else { 0 };
                if i >= reach {
                    kept[fibre + (i - reach) * inner] = run > 2 * reach;
                }
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cell of the box around each, looked at one by one.
    fn plainly(shape: &[usize; 2], missing: &[usize], reach: i64) -> usize {
        let is_missing = |row: i64, column: i64| {
            let outside = row < 0 || column < 0 || row >= shape[0] as i64 || column >= shape[1] as i64;
            outside || missing.contains(&(row as usize * shape[1] + column as usize))
        };
        let deep = |&&i: &&usize| {
            let (row, column) = ((i / shape[1]) as i64, (i % shape[1]) as i64);
            (-reach..=reach).all(|a| (-reach..=reach).all(|b| is_missing(row + a, column + b)))
        };
        missing.iter().filter(deep).count()
    }

    fn scattered(size: usize, share: f64) -> Vec<usize> {
        let uniform = |i: usize| ((i * i) as f64 * 0.618_033_988_7 + i as f64 * 0.414_213_562).fract();
        (0..size).filter(|&i| uniform(i + 7) < share).collect()
    }

    fn block(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Vec<usize> {
        rows.flat_map(|row| columns.clone().map(move |column| row * 28 + column)).collect()
    }

    #[test]
    fn what_lies_deep_inside_is_what_has_nothing_observed_around_it() {
        for (shape, share) in [([9, 13], 0.9), ([28, 28], 0.93), ([3, 3], 0.9)] {
            let missing = scattered(shape[0] * shape[1], share);
            let mut deep = vec![false; shape[0] * shape[1]];
            missing.iter().for_each(|&i| deep[i] = true);
            let deep = eroded(&eroded(&deep, shape[0], shape[1], 2), shape[1], 1, 2);
            let count = deep.iter().filter(|&&deep| deep).count();
            assert_eq!(count, plainly(&shape, &missing, 2), "{shape:?}");
            assert!(count > 0 || shape[0] == 3);
        }
    }

    #[test]
    fn blocks_are_told_from_cells_here_and_there() {
        let of = |missing: &[usize]| Temper::Auto.of(&[28, 28], missing);
        for share in [0.05, 0.3, 0.6, 0.8] {
            assert_eq!(of(&scattered(784, share)), 1.0, "{share}");
        }
        assert_eq!((of(&[]), of(&block(3..4, 0..28)), of(&block(0..28, 5..7))), (1.0, 1.0, 1.0));
        for block in [block(9..19, 9..19), block(14..28, 0..28), block(0..7, 0..7), block(0..28, 0..28)] {
            assert_eq!(of(&block), Temper::OF_BLOCKS);
        }
        // Most of a sample of a few cells is no region.
        assert_eq!(
            (Temper::Auto.of(&[3, 1, 1], &[0, 1]), Temper::Auto.of(&[4, 3], &[0, 1, 2, 3, 4, 5, 6, 7, 8])),
            (1.0, 1.0)
        );
        // A gap of a curve, and a box of a volume.
        assert_eq!(Temper::Auto.of(&[400], &(100..140).collect::<Vec<_>>()), Temper::OF_BLOCKS);
        assert_eq!(Temper::Auto.of(&[400], &(100..110).collect::<Vec<_>>()), 1.0);
        let within = |i: usize| {
            (3..8).contains(&(i / 100)) && (3..8).contains(&(i / 10 % 10)) && (3..8).contains(&(i % 10))
        };
        assert_eq!(
            Temper::Auto.of(&[10, 10, 10], &(0..1000).filter(|&i| within(i)).collect::<Vec<_>>()),
            Temper::OF_BLOCKS
        );
    }

    #[test]
    fn what_does_not_temper_is_refused() {
        for text in ["0", "-1", "1.5", "nan", "some", ""] {
            assert!(text.parse::<Temper>().is_err(), "{text}");
        }
        for text in ["auto", "none", "0.25", "1"] {
            assert_eq!(text.parse::<Temper>().unwrap().to_string(), text);
        }
        assert!(Temper::Fixed(2.0).validate().is_err());
    }
}
