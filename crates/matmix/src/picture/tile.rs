//! One sample as a picture, whatever its order.

use super::colour::{ColourMap, MISSING, grey};
use super::image::Image;
use crate::error::Result;

/// Height of the plot of a vector, in pixels.
const PLOT_HEIGHT: usize = 48;
/// Widest plot of a vector; a longer one is drawn with several values per column.
const PLOT_WIDTH: usize = 512;
/// How many slices of a tensor are shown.
const SLICES: usize = 8;
/// Pixels between two slices.
const SLICE_GAP: usize = 1;

/// Draws a sample with its values in `low..=high`: a vector as a line, a matrix as it stands, a tensor whose last of
/// three modes has three slices in colour (red, green, blue), every other tensor as its first slices side by side.
///
/// The caller has checked that `values` has as many numbers as `shape` says.
pub(super) fn draw(shape: &[usize], values: &[f64], map: ColourMap, low: f64, high: f64) -> Result<Image> {
    match *shape {
        [length] => line(length, values, map, low, high),
        [rows, columns] => matrix(rows, columns, map, low, high, |i| values[i]),
        [rows, columns, 3] if map == ColourMap::Grey => {
            let mut out = Image::new(columns, rows, [0; 3])?;
            for (pixel, values) in out.rgb.chunks_exact_mut(3).zip(values.chunks_exact(3)) {
                if values.iter().any(|value| value.is_nan()) {
                    pixel.copy_from_slice(&MISSING);
                    continue;
                }
                pixel.iter_mut().zip(values).for_each(|(byte, &value)| *byte = grey(value, low, high));
            }
            Ok(out)
        }
        [rows, columns, ..] => {
            // The modes after the second are counted as one: slice s holds the elements s, s + count, …
            let count: usize = shape[2..].iter().product();
            let slices: Result<Vec<Image>> = (0..count.min(SLICES))
                .map(|slice| matrix(rows, columns, map, low, high, |i| values[i * count + slice]))
                .collect();
            Image::beside(&slices?, SLICE_GAP, [255; 3])
        }
        [] => Image::new(1, 1, [255; 3]),
    }
}

fn matrix(
    rows: usize,
    columns: usize,
    map: ColourMap,
    low: f64,
    high: f64,
    value: impl Fn(usize) -> f64,
) -> Result<Image> {
    let mut out = Image::new(columns, rows, [0; 3])?;
    for (i, pixel) in out.rgb.chunks_exact_mut(3).enumerate() {
        pixel.copy_from_slice(&map.colour(value(i), low, high));
    }
    Ok(out)
}

fn line(length: usize, values: &[f64], map: ColourMap, low: f64, high: f64) -> Result<Image> {
    let (low, high) = match map {
        ColourMap::Grey => (low, high),
        ColourMap::Diverging => (-low.abs().max(high.abs()), low.abs().max(high.abs())),
    };
    let width = length.clamp(1, PLOT_WIDTH);
    let mut out = Image::new(width, PLOT_HEIGHT, [255; 3])?;
    let last = PLOT_HEIGHT - 1;
    let row = |value: f64| last - usize::from(grey(value, low, high)) * last / 255;
    if low < 0.0 && high > 0.0 {
        (0..width).for_each(|x| out.set_pixel(x, row(0.0), [200; 3]));
    }
    let mut before: Option<usize> = None;
    for x in 0..width {
        let column = &values[x * length / width..((x + 1) * length / width).max(x * length / width + 1)];
        let rows = column.iter().filter(|v| v.is_finite()).map(|&v| row(v));
        // The stroke covers the values of this column and reaches to where the last one ended.
        let (top, bottom) = rows.fold((usize::MAX, 0), |(top, bottom), y| (top.min(y), bottom.max(y)));
        if top == usize::MAX {
            before = None;
            continue;
        }
        let (from, to) = before.map_or((top, bottom), |y| (top.min(y), bottom.max(y)));
        (from..=to).for_each(|y| out.set_pixel(x, y, [0; 3]));
        before = column.last().filter(|v| v.is_finite()).map(|&v| row(v));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reds(image: &Image) -> Vec<u8> {
        image.rgb.iter().copied().step_by(3).collect()
    }

    #[test]
    fn missing_cells_have_a_colour_of_their_own() {
        let image = draw(&[1, 3], &[0.0, f64::NAN, 5.0], ColourMap::Grey, 0.0, 5.0).unwrap();
        assert_eq!(image.rgb, [[0; 3], MISSING, [255; 3]].concat());
        let colours = [255.0, 0.0, 0.0, 0.0, f64::NAN, 255.0];
        let image = draw(&[1, 2, 3], &colours, ColourMap::Grey, 0.0, 255.0).unwrap();
        assert_eq!(image.rgb, [[255, 0, 0], MISSING].concat());
    }

    #[test]
    fn a_matrix_is_drawn_as_it_stands() {
        let image = draw(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], ColourMap::Grey, 0.0, 5.0).unwrap();
        assert_eq!((image.width, image.height, reds(&image)), (3, 2, vec![0, 51, 102, 153, 204, 255]));
    }

    #[test]
    fn three_channels_are_colours_and_other_slices_stand_side_by_side() {
        let values = [255.0, 0.0, 0.0, 0.0, 0.0, 255.0];
        let image = draw(&[1, 2, 3], &values, ColourMap::Grey, 0.0, 255.0).unwrap();
        assert_eq!(image.rgb, [255, 0, 0, 0, 0, 255]);
        let image = draw(&[1, 2, 2], &[0.0, 51.0, 102.0, 153.0], ColourMap::Grey, 0.0, 255.0).unwrap();
        assert_eq!(reds(&image), [0, 102, 255, 51, 153]);
        let many = draw(&[1, 1, 3, 4], &[0.0; 12], ColourMap::Grey, 0.0, 1.0).unwrap();
        assert_eq!(many.width, SLICES + (SLICES - 1) * SLICE_GAP);
    }

    #[test]
    fn a_vector_is_a_line_without_holes() {
        for length in [1, 2, 100, 2000] {
            let values: Vec<f64> = (0..length).map(|i| (i as f64 / 9.0).sin()).collect();
            let image = draw(&[length], &values, ColourMap::Grey, -1.0, 1.0).unwrap();
            assert_eq!((image.width, image.height), (length.min(PLOT_WIDTH), PLOT_HEIGHT));
            for x in 0..image.width {
                assert!((0..PLOT_HEIGHT).any(|y| image.pixel(x, y) == [0; 3]), "column {x} of {length}");
            }
        }
        // What is not finite leaves a hole.
        let image = draw(&[3], &[0.0, f64::NAN, 1.0], ColourMap::Grey, 0.0, 1.0).unwrap();
        assert!((0..PLOT_HEIGHT).all(|y| image.pixel(1, y) == [255; 3]));
        assert_eq!((image.pixel(0, PLOT_HEIGHT - 1), image.pixel(2, 0)), ([0; 3], [0; 3]));
    }
}
