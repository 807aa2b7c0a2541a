//! What is done to windows before they are samples.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::options::as_text;

/// What is done to the contrast of windows: `none`, `kept`, or a share such as `0.1`.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::{Contrast, Patches};
///
/// let images = Samples::from_vec(&[2, 4], vec![1.0, 3.0, 5.0, 7.0, 1.0, 3.0, 5.0, 7.0])?;
/// let kept = Patches::new(2).with_contrast(&images, "kept".parse()?, 0)?;
/// // Of 1, 3 above 1, 3 the mean of 2 is taken off.
/// assert_eq!(kept.of(&images)?.to_f64(0..1)?, [-1.0, 1.0, -1.0, 1.0]);
/// assert_eq!(Patches::new(2).with_contrast(&images, Contrast::None, 0)?, Patches::new(2));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Contrast {
    /// Every window minus its mean, divided by √(its variance + c), where c is this share of the mean variance of all windows.
    Like(f64),
    /// Nothing but the means is taken off.
    Kept,
    /// Windows are as they are.
    None,
}

impl Contrast {
    /// The share that is taken if nobody says one.
    pub(crate) const SHARE: f64 = 0.1;
}

impl Default for Contrast {
    fn default() -> Self {
        Contrast::Like(Self::SHARE)
    }
}

impl fmt::Display for Contrast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contrast::Like(share) => write!(f, "{share}"),
            Contrast::Kept => f.write_str("kept"),
            Contrast::None => f.write_str("none"),
        }
    }
}

impl FromStr for Contrast {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "kept" => return Ok(Contrast::Kept),
            "none" => return Ok(Contrast::None),
            _ => {}
        }
        let share = text.trim().parse().ok().filter(|share: &f64| share.is_finite() && *share > 0.0);
        share.map(Contrast::Like).ok_or_else(|| Error::Option {
            option: "contrast",
            value: format!("`{text}`"),
            expected: "a number above 0, `kept` or `none`",
        })
    }
}

as_text!(Contrast);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contrast_is_a_share_or_a_word() {
        let read = |text: &str| text.parse::<Contrast>();
        assert_eq!(read("0.25").unwrap(), Contrast::Like(0.25));
        assert_eq!((read(" kept").unwrap(), read("none").unwrap()), (Contrast::Kept, Contrast::None));
        for text in ["0", "-1", "inf", "NaN", "some", ""] {
            assert!(read(text).unwrap_err().to_string().contains("`kept`"), "{text}");
        }
    }
}
