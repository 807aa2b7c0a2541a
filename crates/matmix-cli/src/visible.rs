//! Text as a person may see it: names and labels come from files, and must not steer the terminal.

use std::borrow::Cow;

/// The text with everything that a terminal would obey written out (`\u{1b}`), line breaks aside.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c != '\n' && is_obeyed(c);
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let written = |c: char| if obeyed(c) { c.escape_default().collect() } else { String::from(c) };
    Cow::Owned(text.chars().map(written).collect())
}

/// The same for what must stay on one line.
pub(crate) fn visible_line(text: &str) -> String {
    visible(&text.replace('\n', "\\n")).into_owned()
}

/// JSON whose strings hold nothing that a terminal would obey; programs read the same values.
pub(crate) fn visible_json(text: String) -> String {
    // JSON has written out the ASCII ones but the last: numbers by the million need not be looked at one by one.
    if text.is_ascii() && !text.contains('\u{7f}') {
        return text;
    }
    let written = |c: char| match c {
        '\n' => String::from(c),
        c if is_obeyed(c) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => String::from(c),
    };
    text.chars().map(written).collect()
}

/// Control characters, and those that reverse the order of what follows.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal_and_all_else_stays() {
        assert_eq!(visible("\u{1b}[2J\u{7f}\u{9b}31m\r\t\u{7}"), "\\u{1b}[2J\\u{7f}\\u{9b}31m\\r\\t\\u{7}");
        assert_eq!(visible("abc\u{202e}gpj.exe"), "abc\\u{202e}gpj.exe");
        let plain = "Zürich 28×28 ── 数\nnext line";
        assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain));
        assert_eq!(visible_line("a\nhint: b"), "a\\nhint: b");
        let said = serde_json::json!({ "name": "\u{1b}[2J\u{9b}x\u{202e}\n" });
        let text = visible_json(serde_json::to_string_pretty(&said).unwrap());
        assert!(!text.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), said);
        assert_eq!(visible_json("[1, \"\u{7f}\"]".into()), "[1, \"\\u007f\"]");
        assert_eq!(visible_json("[1,\n 2]".into()), "[1,\n 2]");
    }
}
