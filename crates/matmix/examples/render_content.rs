//! Renders report content that was written as JSON: `render_content CONTENT.json REPORT.html`.
//!
//! For work on the page itself: change the template, the style sheet or the script, run this, reload.

use std::error::Error;

use matmix::report::{content::Content, page};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: render_content CONTENT.json REPORT.html".into());
    };
    let content: Content = serde_json::from_str(&std::fs::read_to_string(from)?)?;
    std::fs::write(to, page(&content)?)?;
    Ok(())
}
