//! See the model: one self-contained HTML file that opens in any browser, from disk, offline.
//!
//! `content` is the data contract, `render` turns content into a page, and `template.html.j2`, `report.css` and the
//! three parts of the script are the page itself, embedded when the library is built.

pub mod content;
mod render;

pub use render::page;
