//! The small languages in which data options are written: `28x28`, `1/255`, `0:500`.

use std::ops::Range;

use crate::error::{Error, Result};

/// A shape: `28x28`, `28×28`, `32x32x3` or `784`.
///
/// # Errors
/// If it is no such text, or a side is zero.
pub fn parse_shape(text: &str) -> Result<Vec<usize>> {
    sides_of(text).ok_or_else(|| Error::Option {
        option: "shape",
        value: format!("`{text}`"),
        expected: "sides of at least 1 with an x between them, such as 28x28, 32x32x3 or 784",
    })
}

/// The size images are brought to, rows × columns: `64x64`.
///
/// # Errors
/// If it is no such text.
pub fn parse_resize(text: &str) -> Result<(usize, usize)> {
    match sides_of(text).as_deref() {
        Some(&[rows, columns]) => Ok((rows, columns)),
        _ => Err(Error::Option {
            option: "resize",
            value: format!("`{text}`"),
            expected: "rows x columns of at least 1, such as 64x64",
        }),
    }
}

/// A factor: `1/255` or `0.0039`.
///
/// # Errors
/// If it is no such text, or the factor is zero or not finite.
pub fn parse_scale(text: &str) -> Result<f64> {
    let number = |t: &str| t.trim().parse::<f64>().ok();
    let scale = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(a, b)| a / b),
        None => number(text),
    };
    scale.filter(|s| s.is_finite() && *s != 0.0).ok_or_else(|| Error::Option {
        option: "scale",
        value: format!("`{text}`"),
        expected: "a number other than 0 or a fraction, such as 0.0039 or 1/255",
    })
}

/// A run of samples, counted from 0, the end not included: `0:500`, `:500`, `500:`.
///
/// An open end is `usize::MAX`; whoever takes the samples stops at the last one.
///
/// # Errors
/// If it is no such text, or no sample is in it.
pub fn parse_range(text: &str) -> Result<Range<usize>> {
    let bound = |t: &str, open: usize| if t.trim().is_empty() { Some(open) } else { t.trim().parse().ok() };
    text.split_once(':')
        .and_then(|(start, end)| Some(bound(start, 0)?..bound(end, usize::MAX)?))
        .filter(|range| !range.is_empty())
        .ok_or_else(|| Error::Option {
            option: "take",
            value: format!("`{text}`"),
            expected: "first:end with the end not included, such as 0:500, :500 or 500:",
        })
}

/// An amount of memory in bytes: `2GB`, `512 MiB`, `1.5g` or `1000000`. K, M, G and T (with or without B) are powers of
/// 1000, KiB, MiB, GiB and TiB of 1024.
///
/// # Errors
/// If it is no such text, or no amount of memory.
pub fn parse_memory(text: &str) -> Result<u64> {
    let text_end = text.trim().find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.trim().len());
    let (number, unit) = text.trim().split_at(text_end);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1u64),
        "k" | "kb" => Some(1000),
        "m" | "mb" => Some(1_000_000),
        "g" | "gb" => Some(1_000_000_000),
        "t" | "tb" => Some(1_000_000_000_000),
        "ki" | "kib" => Some(1 << 10),
        "mi" | "mib" => Some(1 << 20),
        "gi" | "gib" => Some(1 << 30),
        "ti" | "tib" => Some(1 << 40),
        _ => None,
    };
    let number = number.trim().parse::<f64>().ok();
    let bytes = number.zip(factor).map(|(number, factor)| number * factor as f64);
    let bytes = bytes.filter(|b| b.is_finite() && (1.0..=u64::MAX as f64 / 2.0).contains(b));
    bytes.map(|b| b as u64).ok_or_else(|| Error::Option {
        option: "memory",
        value: format!("`{text}`"),
        expected: "a number of bytes with or without a unit, such as 2GB, 512MiB or 1000000",
    })
}

fn sides_of(text: &str) -> Option<Vec<usize>> {
    let sides: Option<Vec<usize>> = text
        .split(['x', 'X', '×'])
        .map(|side| side.trim().parse::<usize>().ok().filter(|&side| side > 0))
        .collect();
    // Whoever multiplies the sides later need not fear an overflow.
    sides.filter(|s| s.iter().try_fold(1usize, |n, &side| n.checked_mul(side)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        assert_eq!(parse_shape("28x28"), Ok(vec![28, 28]));
        assert_eq!(parse_shape("28 × 14"), Ok(vec![28, 14]));
        assert_eq!(parse_shape("4"), Ok(vec![4]));
        assert_eq!(parse_resize("64X48"), Ok((64, 48)));
        assert_eq!(parse_scale("1/255"), Ok(1.0 / 255.0));
        assert_eq!(parse_scale("0.0039"), Ok(0.0039));
        assert_eq!(parse_range("0:500"), Ok(0..500));
        assert_eq!(parse_range(":500"), Ok(0..500));
        assert_eq!(parse_range("500:"), Ok(500..usize::MAX));
        assert_eq!(parse_memory("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_memory("512 MiB"), Ok(512 << 20));
        assert_eq!(parse_memory("1.5g"), Ok(1_500_000_000));
        assert_eq!(parse_memory("64k"), Ok(64_000));
        assert_eq!(parse_memory(" 1000000 "), Ok(1_000_000));
        assert_eq!(parse_memory("3 TiB"), Ok(3 << 40));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_an_example() {
        for text in ["", "28x", "0x3", "-4", "28,28", "9999999999x9999999999"] {
            let message = parse_shape(text).unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")) && message.contains("28x28"), "{message}");
        }
        for text in ["1/0", "0", "nan", "inf", "one", "1/"] {
            assert!(parse_scale(text).unwrap_err().to_string().contains("1/255"), "{text}");
        }
        for text in ["500", "5:5", "7:2", "a:b", "-1:3"] {
            assert!(parse_range(text).unwrap_err().to_string().contains("0:500"), "{text}");
        }
        for text in ["", "GB", "2XB", "-1GB", "0", "0.2", "nan", "inf", "1e300", "2 G B", "1e3GB5"] {
            let message = parse_memory(text).unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")) && message.contains("512MiB"), "{message}");
        }
        assert!(parse_resize("64").unwrap_err().to_string().contains("64x64"));
    }
}
