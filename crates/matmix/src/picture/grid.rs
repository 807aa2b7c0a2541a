//! Tiles in rows and columns.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::colour::{self, ColourMap};
use super::image::{self, Image};
use super::tile;
use crate::data::Samples;
use crate::data::atomic::write_file;
use crate::error::{Action, Error, Result};
use crate::options::as_text;

/// Which values are the ends of the colour map. As text it is `picture`, `tile` or the two ends, such as `0:255`.
///
/// ```
/// use matmix::picture::{Grid, ValueRange};
///
/// // Two pictures of two values, without a gap: 0 1 | 0 4.
/// let shades = |range| {
///     let grid = Grid { range, gap: 0, columns: Some(2), ..Grid::default() };
///     let image = grid.draw(&[1, 2], &[[0.0, 1.0], [0.0, 4.0]])?;
///     matmix::Result::Ok((0..4).map(|x| image.pixel(x, 0)[0]).collect::<Vec<u8>>())
/// };
/// assert_eq!(shades(ValueRange::Picture)?, [0, 64, 0, 255]);
/// assert_eq!(shades(ValueRange::Tile)?, [0, 255, 0, 255]);
/// assert_eq!(shades("0:2".parse()?)?, [0, 128, 0, 255]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum ValueRange {
    /// The smallest and the largest value of the whole picture: tiles can be compared.
    #[default]
    Picture,
    /// The smallest and the largest value of each tile: each tile shows all it has.
    Tile,
    /// These two.
    Given(f64, f64),
}

impl std::fmt::Display for ValueRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueRange::Picture => f.write_str("picture"),
            ValueRange::Tile => f.write_str("tile"),
            ValueRange::Given(low, high) => write!(f, "{low}:{high}"),
        }
    }
}

impl std::str::FromStr for ValueRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.trim().parse().ok().filter(|x: &f64| x.is_finite());
        let found = match (text.trim(), text.split_once(':')) {
            ("picture", _) => Some(ValueRange::Picture),
            ("tile", _) => Some(ValueRange::Tile),
            (_, Some((low, high))) => {
                number(low).zip(number(high)).map(|(low, high)| ValueRange::Given(low, high))
            }
            _ => None,
        };
        found.ok_or_else(|| Error::Option {
            option: "range",
            value: format!("`{text}`"),
            expected: "picture, tile or two numbers such as 0:255",
        })
    }
}

as_text!(ValueRange);

/// How tiles are drawn and put together.
///
/// ```
/// use matmix::picture::{ColourMap, Grid};
///
/// // Three loadings of 4×3, two beside each other, every number a square of ten pixels.
/// let loadings: Vec<Vec<f64>> = (0..3).map(|n| (0..12).map(|i| f64::from(i - 4 * n)).collect()).collect();
/// let grid = Grid { columns: Some(2), enlarge: 10, map: ColourMap::Diverging, ..Grid::default() };
/// let image = grid.draw(&[4, 3], &loadings)?;
/// assert_eq!((image.width, image.height), (30 + 2 + 30, 40 + 2 + 40));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// Tiles per row; as square as possible if not given.
    pub columns: Option<usize>,
    /// Pixels between two tiles.
    pub gap: usize,
    /// Every value becomes a square of so many pixels.
    pub enlarge: usize,
    /// Which values are the ends of the colour map.
    pub range: ValueRange,
    /// How values are shown.
    pub map: ColourMap,
    /// The colour of gaps and of places without a tile.
    pub background: [u8; 3],
    /// Whether a PNG of one sample, a grey or a colour image, has 16 bits per channel and not 8.
    pub sixteen_bits: bool,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            columns: None,
            gap: 2,
            enlarge: 1,
            range: ValueRange::Picture,
            map: ColourMap::Grey,
            background: [255; 3],
            sixteen_bits: false,
        }
    }
}

impl Grid {
    /// Draws tiles of one shape, filling row after row.
    ///
    /// # Errors
    /// As [`draw_rows`](Self::draw_rows), and if there are to be no columns.
    pub fn draw<T: AsRef<[f64]>>(&self, shape: &[usize], tiles: &[T]) -> Result<Image> {
        let columns = match self.columns {
            Some(0) => {
                return Err(Error::Option { option: "columns", value: "0".into(), expected: "at least 1" });
            }
            Some(columns) => columns,
            None => (tiles.len() as f64).sqrt().ceil().max(1.0) as usize,
        };
        let rows: Vec<Vec<&[f64]>> =
            tiles.chunks(columns).map(|row| row.iter().map(AsRef::as_ref).collect()).collect();
        self.draw_rows(shape, &rows)
    }

    /// Draws rows of tiles; rows need not have the same length.
    ///
    /// # Errors
    /// If a tile has another size than the shape, the shape is empty, there are no tiles, or the picture would be too large.
    pub fn draw_rows<T: AsRef<[f64]>>(&self, shape: &[usize], rows: &[Vec<T>]) -> Result<Image> {
        let size = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side)).filter(|&n| n > 0);
        let size = size.ok_or_else(|| Error::EmptyShape { shape: shape.to_vec() })?;
        let tiles = || rows.iter().flatten().map(AsRef::as_ref);
        if let Some(wrong) = tiles().find(|tile: &&[f64]| tile.len() != size) {
            return Err(Error::DataLength { shape: shape.to_vec(), found: wrong.len() });
        }
        if tiles().next().is_none() {
            return Err(Error::EmptySet);
        }
        let whole = match self.range {
            ValueRange::Given(low, high) => (low, high),
            _ => ends(tiles().flatten()),
        };
        let mut pictures = Vec::with_capacity(rows.len());
        for row in rows.iter().filter(|row| !row.is_empty()) {
            let mut drawn = Vec::with_capacity(row.len());
            for values in row.iter().map(AsRef::as_ref) {
                let (low, high) = if self.range == ValueRange::Tile { ends(values) } else { whole };
                drawn.push(tile::draw(shape, values, self.map, low, high)?.enlarged(self.enlarge)?);
            }
            pictures.push(Image::beside(&drawn, self.gap, self.background)?);
        }
        Image::below(&pictures, self.gap, self.background)
    }

    /// Draws the samples at these places.
    ///
    /// # Errors
    /// As [`draw`](Self::draw), if a place is not among the samples, or they cannot be read.
    pub fn draw_samples(&self, samples: &Samples<'_>, indices: &[usize]) -> Result<Image> {
        let len = samples.len();
        if let Some(&index) = indices.iter().find(|&&i| i >= len) {
            return Err(Error::Index { index, len });
        }
        let tiles: Result<Vec<Vec<f64>>> = indices.iter().map(|&i| samples.to_f64(i..i + 1)).collect();
        self.draw(samples.shape(), &tiles?)
    }

    /// The bytes of a PNG file of one sample.
    ///
    /// # Errors
    /// As [`draw_samples`](Self::draw_samples).
    pub fn sample_png(&self, samples: &Samples<'_>, index: usize) -> Result<Vec<u8>> {
        let (rows, columns, channels) = match *samples.shape() {
            [rows, columns] => (rows, columns, 1),
            [rows, columns, 3] => (rows, columns, 3),
            _ => (0, 0, 0),
        };
        // A colour map has 256 colours; enlarged pictures are for people.
        let as_it_is = channels > 0 && self.map == ColourMap::Grey && self.enlarge <= 1;
        if !self.sixteen_bits || !as_it_is || index >= samples.len() {
            return self.draw_samples(samples, &[index])?.to_png();
        }
        let values = samples.to_f64(index..index + 1)?;
        let (low, high) = match self.range {
            ValueRange::Given(low, high) => (low, high),
            _ => ends(&values),
        };
        let deep: Vec<u16> = values.iter().map(|&value| colour::shade(value, low, high, u16::MAX)).collect();
        image::png_of_16_bits((rows, columns), channels, &deep)
    }
}

/// Writes one PNG per sample into `folder` (made if it is not there), called as [`png_names`] says and drawn as `grid` says, and
/// returns the files. [`ValueRange::Picture`] means the range of the whole set.
///
/// # Errors
/// As [`Grid::draw`], if the samples cannot be read, or the files cannot be written.
pub fn write_folder(
    folder: impl AsRef<Path>,
    samples: &Samples<'_>,
    names: Option<&[String]>,
    grid: &Grid,
) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, Action::Make, &e))?;
    let mut grid = grid.clone();
    if grid.range == ValueRange::Picture {
        // Sample by sample, so that a set larger than memory can be written.
        let mut whole = (f64::INFINITY, f64::NEG_INFINITY);
        for n in 0..samples.len() {
            whole = widened(whole, &samples.to_f64(n..n + 1)?);
        }
        grid.range = ValueRange::Given(whole.0, whole.1);
    }
    let files: Vec<PathBuf> = png_names(samples.len(), names).iter().map(|name| folder.join(name)).collect();
    for (n, path) in files.iter().enumerate() {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::io(parent, Action::Make, &e))?;
        }
        let png = grid.sample_png(samples, n)?;
        write_file(path, |out| out.write_all(&png))?;
    }
    Ok(files)
}

/// The names of the PNG files of samples, all different. The ending of a name becomes `png`; where samples differ in the ending only, `.png`
/// is added to it. Without names: `000.png`, `001.png` and so on.
///
/// ```
/// use matmix::picture::png_names;
///
/// let names = ["a.jpg", "a.png", "b.jpg"].map(String::from);
/// assert_eq!(png_names(3, Some(&names)), ["a.jpg.png", "a.png", "b.png"]);
/// assert_eq!(png_names(2, None), ["000.png", "001.png"]);
/// ```
pub fn png_names(samples: usize, names: Option<&[String]>) -> Vec<String> {
    let digits = samples.saturating_sub(1).to_string().len().max(3);
    let Some(names) = names else { return (0..samples).map(|n| format!("{n:0digits$}.png")).collect() };
    // Some file systems take capital letters for small ones.
    let key = |name: &str| name.to_lowercase();
    let with_png = |name: &str| Path::new(name).with_extension("png").to_string_lossy().into_owned();
    let mut alike: HashMap<String, usize> = HashMap::new();
    names.iter().for_each(|name| *alike.entry(key(&with_png(name))).or_default() += 1);
    // PNG files keep their names, also if another sample comes first.
    let mut taken: HashSet<String> = HashSet::new();
    let keeps: Vec<bool> =
        names.iter().map(|name| with_png(name) == *name && taken.insert(key(name))).collect();
    let free = |(name, keeps): (&String, bool)| {
        let short = with_png(name);
        if keeps {
            return name.clone();
        }
        let alone = alike[&key(&short)] == 1;
        let long = std::iter::once(format!("{name}.png"));
        let numbered = (2..).map(|n| format!("{name}-{n}.png"));
        let mut candidates = alone.then_some(short).into_iter().chain(long).chain(numbered);
        candidates.find(|name| taken.insert(key(name))).unwrap_or_default()
    };
    names.iter().zip(keeps).map(free).collect()
}

/// The smallest and the largest finite value; (0, 0) if there is none.
fn ends<'v>(values: impl IntoIterator<Item = &'v f64>) -> (f64, f64) {
    let (low, high) = widened((f64::INFINITY, f64::NEG_INFINITY), values);
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

fn widened<'v>(range: (f64, f64), values: impl IntoIterator<Item = &'v f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|v| v.is_finite());
    finite.fold(range, |(low, high), &v| (low.min(v), high.max(v)))
}

#[cfg(all(test, feature = "demo"))]
mod tests {
    use super::*;
    use crate::data::{OpenOptions, digits, open};

    fn reds(image: &Image) -> Vec<u8> {
        image.rgb.iter().copied().step_by(3).collect()
    }

    #[test]
    fn tiles_fill_row_after_row_with_gaps() {
        let tiles: Vec<Vec<f64>> = (0..3).map(|i| vec![f64::from(i)]).collect();
        let grid = Grid { columns: Some(2), gap: 1, background: [7; 3], ..Grid::default() };
        let image = grid.draw(&[1, 1], &tiles).unwrap();
        assert_eq!((image.width, image.height), (3, 3));
        assert_eq!(reds(&image), [0, 7, 128, 7, 7, 7, 255, 7, 7]);
        let enlarged = Grid { enlarge: 3, gap: 1, columns: Some(3), ..Grid::default() };
        assert_eq!(enlarged.draw(&[1, 1], &tiles).unwrap().width, 11);
        let rows = [vec![vec![0.0]], vec![vec![1.0], vec![2.0]]];
        assert_eq!(reds(&grid.draw_rows(&[1, 1], &rows).unwrap()), [0, 7, 7, 7, 7, 7, 128, 7, 255]);
    }

    #[test]
    fn the_range_is_that_of_the_picture_of_the_tile_or_the_one_given() {
        let tiles = [[0.0, 1.0], [0.0, 4.0]];
        let draw = |range| {
            let grid = Grid { range, gap: 0, columns: Some(2), ..Grid::default() };
            reds(&grid.draw(&[1, 2], &tiles).unwrap())
        };
        assert_eq!(draw(ValueRange::Picture), [0, 64, 0, 255]);
        assert_eq!(draw(ValueRange::Tile), [0, 255, 0, 255]);
        assert_eq!(draw(ValueRange::Given(0.0, 2.0)), [0, 128, 0, 255]);
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        let grid = Grid::default();
        assert_eq!(grid.draw(&[2, 2], &[[0.0; 3]]), Err(Error::DataLength { shape: vec![2, 2], found: 3 }));
        assert_eq!(grid.draw::<Vec<f64>>(&[2, 2], &[]), Err(Error::EmptySet));
        assert_eq!(grid.draw(&[0], &[[0.0; 0]]), Err(Error::EmptyShape { shape: vec![0] }));
        assert!(Grid { columns: Some(0), ..Grid::default() }.draw(&[1], &[[0.0]]).is_err());
        assert!(Grid { enlarge: 1 << 40, ..Grid::default() }.draw(&[1], &[[0.0]]).is_err());
        let digits = digits().samples;
        assert_eq!(grid.draw_samples(&digits, &[1000]), Err(Error::Index { index: 1000, len: 1000 }));
    }

    #[test]
    fn a_folder_of_samples_is_read_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let seven = OpenOptions { take: Some(700..712), ..Default::default() };
        let samples = open("demo:mnist", &seven).unwrap().samples;
        let grid = Grid { range: ValueRange::Given(0.0, 255.0), ..Grid::default() };
        let files = write_folder(folder.path().join("new"), &samples, None, &grid).unwrap();
        assert_eq!((files.len(), files[11].file_name().unwrap()), (12, "011.png".as_ref()));
        let back = open(folder.path().join("new").to_str().unwrap(), &OpenOptions::default()).unwrap();
        assert_eq!(back.samples.to_f64(0..12).unwrap(), samples.to_f64(0..12).unwrap());
    }
}
