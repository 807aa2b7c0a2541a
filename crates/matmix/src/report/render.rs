//! Content → one self-contained HTML page.
//!
//! The page may not load anything: its Content-Security-Policy names the hashes of its one script and its one
//! style sheet and forbids everything else but pictures made by the page itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};

use super::content::Content;
use crate::error::{Error, Result};

const TEMPLATE: &str = include_str!("template.html.j2");
const STYLE: &str = include_str!("report.css");
/// The script's three parts share one scope and leave nothing but `window.matmixReport` behind.
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("pictures.js"),
    include_str!("charts.js"),
    include_str!("report.js"),
    "})();\n"
);

/// The page as text.
///
/// # Errors
/// If the content cannot be put into the page.
pub fn page(content: &Content) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let problem = |what: &str| Error::Model { problem: format!("its report cannot be written: {what}") };
    let data = serde_json::to_string(content).map_err(|e| problem(&e.to_string()))?;
    environment
        .render_str(
            TEMPLATE,
            context! {
                content => Serde(content),
                facts => Serde(content.summary.facts()),
                recognised => content.recognition.as_ref()
                    .map(|r| format!("Recognition: {:.1} % right", 100.0 * r.accuracy())),
                component_names => (0..content.components.len()).map(|k| k.to_string()).collect::<Vec<_>>(),
                data => inert(&data),
                style => STYLE,
                script => SCRIPT,
                policy => policy(),
            },
        )
        .map_err(|e| problem(&format!("{e:#}")))
}

fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(hmac_sha256::Hash::hash(text.as_bytes()));
    format!(
        "default-src 'none'; img-src data: blob:; style-src 'sha256-{}'; script-src 'sha256-{}'; \
         connect-src 'none'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// JSON that cannot end its `<script>` element, start a comment or break a line, whatever its strings hold.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_the_page_is_inert_and_means_the_same() {
        let nasty = "</script><!-- & \u{2028} \"'";
        let json = inert(&serde_json::to_string(nasty).unwrap());
        assert!(!json.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), nasty);
    }

    #[test]
    fn the_sources_cannot_end_their_elements() {
        for source in [STYLE, SCRIPT] {
            assert!(!source.contains("</") && !source.contains("<!--") && !source.contains('\r'));
        }
    }

    #[test]
    fn the_policy_allows_no_address_and_no_inline_code() {
        let policy = policy();
        assert!(policy.starts_with("default-src 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
    }
}
