//! The numbers of files in the types they are worked on: bytes, single and double precision.
//!
//! What a file stores is named as NumPy does it (`<f4`, `>i2`, `|u1`), whatever the format of the file.

use super::samples::Samples;
use super::source::{Buffer, Element};
use crate::error::Result;

/// The elements of an array, in the type they are worked on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Elements {
    /// From `u1` and `b1`.
    U8(Vec<u8>),
    /// From `f4` (and `f2`).
    F32(Vec<f32>),
    /// From `f8` and every integer wider than a byte.
    F64(Vec<f64>),
}

impl Elements {
    /// What was decoded into a buffer.
    pub(crate) fn from_buffer(element: Element, buffer: Buffer) -> Self {
        match element {
            Element::U8 => Elements::U8(buffer.u8),
            Element::F32 => Elements::F32(buffer.f32),
            Element::F64 => Elements::F64(buffer.f64),
        }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        match self {
            Elements::U8(x) => x.len(),
            Elements::F32(x) => x.len(),
            Elements::F64(x) => x.len(),
        }
    }

    /// Samples of `shape`, one after the other.
    pub(crate) fn into_samples(self, shape: &[usize]) -> Result<Samples<'static>> {
        match self {
            Elements::U8(x) => Samples::from_vec(shape, x),
            Elements::F32(x) => Samples::from_vec(shape, x),
            Elements::F64(x) => Samples::from_vec(shape, x),
        }
    }

    /// Element `i` as a double.
    pub(crate) fn get(&self, i: usize) -> f64 {
        match self {
            Elements::U8(x) => f64::from(x[i]),
            Elements::F32(x) => f64::from(x[i]),
            Elements::F64(x) => x[i],
        }
    }
}

/// Bytes per number as it is stored.
pub(crate) fn element_size(descr: &str) -> std::result::Result<usize, String> {
    let unknown =
        || format!("its elements are `{descr}`; real numbers are needed (u1, f2, f4, f8, integers)");
    let (kind, size) = descr.get(1..2).zip(descr.get(2..)).ok_or_else(unknown)?;
    match (kind, size) {
        ("u" | "i" | "b", "1") => Ok(1),
        ("u" | "i" | "f", "2") => Ok(2),
        ("u" | "i" | "f", "4") => Ok(4),
        ("u" | "i" | "f", "8") => Ok(8),
        _ => Err(unknown()),
    }
}

/// The type that elements are worked on in.
pub(crate) fn worked_in(descr: &str) -> Element {
    match descr.get(1..).unwrap_or_default() {
        "u1" | "b1" => Element::U8,
        "i1" | "u2" | "i2" | "f2" | "f4" => Element::F32,
        _ => Element::F64,
    }
}

/// The bytes of elements as they are worked on, from those they are stored in.
pub(crate) fn worked_bytes(descr: &str, stored: u64) -> u64 {
    let size = element_size(descr).unwrap_or(1) as u64;
    (stored / size).saturating_mul(worked_in(descr).size() as u64)
}

pub(crate) fn decode(descr: &str, body: &[u8]) -> std::result::Result<Elements, String> {
    let mut buffer = Buffer::new();
    decode_into(descr, body, &mut buffer)?;
    Ok(Elements::from_buffer(worked_in(descr), buffer))
}

/// Adds the elements in `body` to a buffer, in the type they are worked on.
pub(crate) fn decode_into(descr: &str, body: &[u8], to: &mut Buffer) -> std::result::Result<(), String> {
    let big = descr.starts_with('>');
    macro_rules! numbers {
        ($type:ty, $to:expr, $as:ty) => {
            $to.extend(body.chunks_exact(size_of::<$type>()).map(|b| {
                let mut bytes = [0; size_of::<$type>()];
                bytes.copy_from_slice(b);
                (if big { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) }) as $as
            }))
        };
    }
    match descr.get(1..).unwrap_or_default() {
        "u1" | "b1" => to.u8.extend_from_slice(body),
        "i1" => numbers!(i8, to.f32, f32),
        "u2" => numbers!(u16, to.f32, f32),
        "i2" => numbers!(i16, to.f32, f32),
        "f2" => to.f32.extend(body.chunks_exact(2).map(|b| {
            let bytes = [b[0], b[1]];
            half_precision(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        })),
        "f4" => numbers!(f32, to.f32, f32),
        "u4" => numbers!(u32, to.f64, f64),
        "i4" => numbers!(i32, to.f64, f64),
        "u8" => {
            let number = if big { u64::from_be_bytes } else { u64::from_le_bytes };
            exact(body, |bytes| i128::from(number(bytes)), &mut to.f64)?;
        }
        "i8" => {
            let number = if big { i64::from_be_bytes } else { i64::from_le_bytes };
            exact(body, |bytes| i128::from(number(bytes)), &mut to.f64)?;
        }
        "f8" => numbers!(f64, to.f64, f64),
        _ => return Err(format!("its elements are `{descr}`; real numbers are needed")),
    }
    Ok(())
}

/// Adds integers of eight bytes as doubles, which hold those up to 2^53, and some beyond, as they are.
fn exact(
    body: &[u8],
    number: impl Fn([u8; 8]) -> i128,
    to: &mut Vec<f64>,
) -> std::result::Result<(), String> {
    to.reserve(body.len() / 8);
    for eight in body.chunks_exact(8) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(eight);
        let integer = number(bytes);
        let double = integer as f64;
        if double as i128 != integer {
            return Err(format!(
                "it holds {integer}, which double precision rounds to {double}; subtract an offset, or save float64 where rounding \
                 does no harm"
            ));
        }
        to.push(double);
    }
    Ok(())
}

/// The same array with the LAST axis varying fastest; also what a MATLAB array needs.
pub(crate) fn from_fortran_order<T: Copy>(shape: &[usize], x: &[T]) -> Vec<T> {
    let mut strides = vec![1; shape.len()];
    for d in 1..shape.len() {
        strides[d] = strides[d - 1] * shape[d - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    let mut out = Vec::with_capacity(x.len());
    for _ in 0..x.len() {
        out.push(x[at]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    out
}

/// A number of half precision: a sign, five bits of exponent, ten of fraction.
fn half_precision(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read_exactly() {
        // From the tables of IEEE 754: one, the least number, the least normal one, the largest, −2, infinity.
        for (bits, value) in [
            (0x3c00, 1.0),
            (0x0001, 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x7bff, 65504.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half_precision(bits), value, "{bits:x}");
        }
        assert!(half_precision(0x7e00).is_nan() && half_precision(0x8000).is_sign_negative());
    }

    #[test]
    fn integers_that_double_precision_rounds_are_refused() {
        let limit = 1i64 << 53;
        for kept in [limit, -limit, 1 << 62, limit + 2, i64::MIN] {
            assert_eq!(decode("<i8", &kept.to_le_bytes()), Ok(Elements::F64(vec![kept as f64])));
        }
        for (descr, bytes) in [
            ("<i8", (limit + 1).to_le_bytes()),
            (">i8", (limit + 1).to_be_bytes()),
            ("<u8", (limit + 1).to_le_bytes()),
            (">u8", u64::MAX.to_be_bytes()),
        ] {
            let problem = decode(descr, &bytes).unwrap_err();
            assert!(
                problem.starts_with("it holds ") && problem.contains("which double precision rounds"),
                "{problem}"
            );
        }
    }

    #[test]
    fn half_precision_is_read_in_either_byte_order() {
        // 1, -2, 65504 (the largest), 2^-24 (the smallest), infinity: sign, five bits of exponent, ten of fraction.
        let bits = [0x3c00u16, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x3555];
        let expected = vec![1.0, -2.0, 65504.0, 2f32.powi(-24), f32::INFINITY, 0.333_251_95];
        let little: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()).collect();
        let big: Vec<u8> = bits.iter().flat_map(|x| x.to_be_bytes()).collect();
        assert_eq!(decode("<f2", &little), Ok(Elements::F32(expected.clone())));
        assert_eq!(decode(">f2", &big), Ok(Elements::F32(expected)));
    }
}
