//! Samples, means and loadings as pictures, grids of tiles, and what was chosen as a chart; written as PNG.
//!
//! | file | what |
//! |---|---|
//! | `image`, `colour` | a picture in memory and as a file; from numbers to colours |
//! | `tile`, `grid` | one sample as a picture, and many in rows and columns |
//! | `chart`, `draw`, `letters` | line charts, what they are drawn with, and their words |
//!
//! ```
//! use matmix::data::digits;
//! use matmix::picture::Grid;
//!
//! let digits = digits().samples;
//! let image = Grid { columns: Some(5), ..Grid::default() }.draw_samples(&digits, &[0, 100, 200, 300, 400])?;
//! assert_eq!((image.width, image.height), (5 * 28 + 4 * 2, 28));
//! # Ok::<(), matmix::Error>(())
//! ```

mod chart;
mod colour;
mod draw;
mod grid;
mod image;
mod letters;
mod tile;

pub use colour::ColourMap;
pub use grid::{Grid, ValueRange, png_names, write_folder};
pub use image::Image;
