//! Numbers as people read them.

/// `12 345`, with thin spaces.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits at least, and no exponent where none is needed.
pub(super) fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor() as i32;
    match magnitude {
        -4..=2 => format!("{number:.*}", (2 - magnitude) as usize),
        3..=8 => grouped_float(number, 0),
        _ => format!("{number:.2e}"),
    }
}

/// A log-likelihood: one digit after the point, grouped before it.
pub(super) fn with_digits(number: f64) -> String {
    if number.abs() < 1e9 { grouped_float(number, 1) } else { format!("{number:.4e}") }
}

fn grouped_float(number: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, number.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(w, r)| (w, r));
    let whole = whole.parse::<usize>().map_or_else(|_| whole.to_owned(), grouped);
    let sign = if number < 0.0 { "−" } else { "" };
    if rest.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") }
}

pub(super) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_like_numbers() {
        assert_eq!(grouped(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!(short(0.012345), "0.0123");
        assert_eq!(short(49.02), "49.0");
        assert_eq!(with_digits(-264547.12), "−264\u{202f}547.1");
        assert_eq!(duration(0.25), "250 ms");
        assert_eq!(duration(125.0), "2 min 5 s");
    }
}
