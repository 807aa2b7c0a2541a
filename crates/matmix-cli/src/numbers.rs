//! Numbers as options: what was given is told by clap, what would be right is told here.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// A whole number from 0 on.
pub(crate) fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error| match is_too_large(&error) {
        true => TOO_LARGE.into(),
        false => "it must be a whole number from 0 on, such as 10".into(),
    })
}

/// What is said about a number that no whole number of this machine is.
pub(crate) const TOO_LARGE: &str = "it must be less than 2^64";

/// Whether that is what was wrong.
pub(crate) fn is_too_large(error: &ParseIntError) -> bool {
    *error.kind() == IntErrorKind::PosOverflow
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match whole(text) {
        Ok(threads) if (1..=1024).contains(&threads) => Ok(threads),
        _ => Err("it must be a whole number from 1 to 1024".into()),
    }
}

/// A number with or without a fraction.
pub(crate) fn real(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "it must be a number, such as 0.2 or 1e-6".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_one_is() {
        assert_eq!(whole::<usize>("12"), Ok(12));
        assert_eq!(whole::<u64>("18446744073709551615"), Ok(u64::MAX));
        for text in ["two", "", "1.5", "-1", "1e3", "0x10"] {
            assert!(whole::<usize>(text).unwrap_err().contains("such as 10"), "{text}");
        }
        assert_eq!(whole::<u64>("18446744073709551616"), Err("it must be less than 2^64".into()));
        assert_eq!((threads("1024"), real("-1e-6")), (Ok(1024), Ok(-1e-6)));
        for text in ["0", "1025", "all"] {
            assert!(threads(text).is_err(), "{text}");
        }
        for text in ["nan", "inf", "small", ""] {
            assert!(real(text).is_err(), "{text}");
        }
    }
}
