//! The windows of images as samples of their own: for dictionaries of patches, textures, recognition and denoising.
//!
//! Nothing is copied but the windows of the chunk at hand: a 64×64 image has 3,481 windows of 6×6, thirty times its size.

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::index::sample as distinct;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::contrast::Contrast;
use super::missing::Missing;
use super::samples::Samples;
use super::source::{Buffer, Chunk, Element, Residence, Source};
use super::windows::Windows;
use crate::error::{Error, Result};

/// Windows that are looked at for their mean variance.
const LOOKED_AT: usize = 20_000;

/// Which windows of images are samples, and what is done to them.
///
/// ```
/// use matmix::data::Patches;
/// use matmix::{FitOptions, Samples, fit};
///
/// let pixels: Vec<u8> = (0..5 * 16 * 16).map(|i| (i * i % 251) as u8).collect();
/// let images = Samples::from_vec(&[16, 16], pixels)?;
/// let patches = Patches::new(6).normalised(&images, 0.1, 0)?;
/// let samples = patches.of(&images)?;
/// assert_eq!((samples.len(), samples.shape()), (5 * 11 * 11, &[6, 6][..]));
/// let fitted = fit(&samples, &FitOptions { components: 2, max_iter: 3, ..FitOptions::default() })?;
/// assert_eq!(fitted.model.shape(), [6, 6]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patches {
    /// The sides of a window: one for all modes, cut to the sides of the image that are shorter, or one per mode.
    pub size: Vec<usize>,
    /// How far a window is from the next one: one step for all modes, or one per mode.
    pub stride: Vec<usize>,
    /// Whether every window is to be X − its mean. Those of like contrast always are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub centred: bool,
    /// c, where every window is to be (X − its mean) / √(its variance + c); contrasts are left as they are if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
}

impl Patches {
    /// All windows of this side in every mode, as they are.
    pub fn new(size: usize) -> Self {
        Self { size: vec![size], stride: vec![1], centred: false, floor: None }
    }

    /// The same windows, so many elements apart.
    pub fn with_stride(mut self, stride: usize) -> Self {
        self.stride = vec![stride];
        self
    }

    /// The same windows without their means, their contrasts as they are.
    pub fn centred(mut self) -> Self {
        self.centred = true;
        self.floor = None;
        self
    }

    /// The same windows, and this done to them; a share is one of the variance of the windows of these images, see
    /// [`normalised`](Self::normalised).
    ///
    /// # Errors
    /// As of [`normalised`](Self::normalised).
    pub fn with_contrast(self, images: &Samples<'_>, contrast: Contrast, seed: u64) -> Result<Self> {
        match contrast {
            Contrast::Like(share) => self.normalised(images, share, seed),
            Contrast::Kept => Ok(self.centred()),
            Contrast::None => Ok(Self { centred: false, floor: None, ..self }),
        }
    }

    /// Whether windows are what stands in the images.
    fn is_plain(&self) -> bool {
        !self.centred && self.floor.is_none()
    }

    /// The same windows without their means and of like contrast: c is `contrast` times the mean variance of the windows of these
    /// images (of 20,000, drawn with `seed`, where there are more), so that what is all but flat stays small.
    ///
    /// # Errors
    /// A contrast that is not above 0; images without such windows, or that cannot be read.
    pub fn normalised(mut self, images: &Samples<'_>, contrast: f64, seed: u64) -> Result<Self> {
        if !(contrast.is_finite() && contrast > 0.0) {
            let expected = "a finite number above 0";
            return Err(Error::Option { option: "contrast", value: contrast.to_string(), expected });
        }
        complete(images)?;
        (self.centred, self.floor) = (false, None);
        let raw = self.drawn(images, LOOKED_AT, seed)?;
        let (size, mut sum) = (raw.sample_len(), 0.0);
        for first in (0..raw.len()).step_by(1024) {
            let range = first..(first + 1024).min(raw.len());
            raw.check_finite(range.clone())?;
            for x in raw.to_f64(range)?.chunks_exact(size) {
                let mean = x.iter().sum::<f64>() / size as f64;
                sum += x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / size as f64;
            }
        }
        let floor = contrast * sum / raw.len() as f64;
        if !floor.is_finite() {
            return Err(Error::Overflow { sample: 0 });
        }
        self.floor = Some(floor);
        Ok(self)
    }

    /// The shape of the windows of images of this shape.
    ///
    /// # Errors
    /// If they have no such windows.
    pub fn shape(&self, image: &[usize]) -> Result<Vec<usize>> {
        Windows::sides(image, &self.size)
    }

    /// All windows of these images, image after image; each has the weight of its image.
    ///
    /// # Errors
    /// If the images have no such windows.
    pub fn of<'a>(&self, images: &Samples<'a>) -> Result<Samples<'a>> {
        self.samples(images, None)
    }

    /// So many of them, or all if there are no more: distinct, drawn with this seed, in the order of the images.
    ///
    /// # Errors
    /// As [`of`](Self::of), and if none are asked for.
    pub fn drawn<'a>(&self, images: &Samples<'a>, count: usize, seed: u64) -> Result<Samples<'a>> {
        if count == 0 {
            let expected = "at least 1";
            return Err(Error::Option { option: "number of patches", value: "0".into(), expected });
        }
        let total = self.windows(images.shape())?.count().saturating_mul(images.len());
        if count >= total {
            return self.of(images);
        }
        let mut chosen = distinct(&mut ChaCha8Rng::seed_from_u64(seed), total, count).into_vec();
        chosen.sort_unstable();
        self.samples(images, Some(chosen.into()))
    }

    /// Check that these images have a window per component, at least.
    ///
    /// # Errors
    /// If they are not, or the images have no such windows.
    pub fn check_components(&self, images: &Samples<'_>, components: usize) -> Result<()> {
        let windows = self.windows(images.shape())?;
        let patches = windows.count().saturating_mul(images.len());
        if components <= patches {
            return Ok(());
        }
        let (size, image) = (windows.size, images.shape().to_vec());
        Err(Error::TooFewPatches { components, patches, size, images: images.len(), image })
    }

    pub(crate) fn windows(&self, image: &[usize]) -> Result<Windows> {
        if self.floor.is_some_and(|c| !(c.is_finite() && c >= 0.0)) {
            let value = format!("{:?}", self.floor);
            return Err(Error::Option { option: "floor", value, expected: "a finite number of at least 0" });
        }
        Windows::new(image, &self.size, &self.stride)
    }

    fn samples<'a>(&self, images: &Samples<'a>, chosen: Option<Arc<[usize]>>) -> Result<Samples<'a>> {
        let windows = self.windows(images.shape())?;
        let per_image = windows.count();
        if per_image.checked_mul(images.len()).is_none() {
            let expected = "windows that can be counted";
            return Err(Error::Option { option: "patch size", value: "too many".into(), expected });
        }
        let weights = images.weights().map(|weights| match &chosen {
            None => weights.iter().flat_map(|&w| std::iter::repeat_n(w, per_image)).collect(),
            Some(chosen) => chosen.iter().map(|n| weights[n / per_image]).collect(),
        });
        let classes = images.classes().map(|classes| match &chosen {
            None => classes.iter().flat_map(|&c| std::iter::repeat_n(c, per_image)).collect(),
            Some(chosen) => chosen.iter().map(|n| classes[n / per_image]).collect(),
        });
        if !self.is_plain() {
            complete(images)?;
        }
        let (budget, meter, missing) = (images.budget, images.meter.clone(), images.missing);
        let scale = if self.is_plain() { images.scale() } else { 1.0 };
        let (plain, floor) = (self.is_plain(), self.floor);
        let source = PatchSource { images: images.clone(), windows, plain, floor, chosen };
        let cut = Samples::from_source(Arc::new(source))?;
        Ok(Samples { scale, weights, classes, budget, meter, missing, ..cut })
    }
}

/// Refuses images of which cells may be missing: a window whose mean and contrast are not known cannot be given others.
pub(crate) fn complete(images: &Samples<'_>) -> Result<()> {
    match images.missing() {
        Missing::Error => Ok(()),
        Missing::Nan => Err(Error::Option {
            option: "missing",
            value: "nan".into(),
            expected: "`error` for patches without their means or of like contrast, which have to be known",
        }),
    }
}

/// Windows that are cut out when they are read.
struct PatchSource<'a> {
    images: Samples<'a>,
    windows: Windows,
    /// Whether windows are what stands in the images; otherwise their means are taken off.
    plain: bool,
    floor: Option<f64>,
    /// Those that were drawn, ascending.
    chosen: Option<Arc<[usize]>>,
}

impl PatchSource<'_> {
    /// The number of a window among all windows of all images.
    fn place(&self, n: usize) -> usize {
        self.chosen.as_ref().map_or(n, |chosen| chosen[n])
    }

    /// Adds windows of an image to those that are left as they are, or to those without their means.
    fn push<T: Copy + Into<f64>>(
        &self,
        image: &[T],
        windows: impl Iterator<Item = usize>,
        plain: &mut Vec<T>,
        normal: &mut Vec<f32>,
    ) {
        if self.plain {
            windows.for_each(|n| self.windows.push(image, n, plain));
        } else {
            let how = (self.images.scale(), self.floor);
            windows.for_each(|n| self.windows.push_normalised(image, n, how, normal));
        }
    }

    /// Adds windows `range` to what is in the buffer. `image` puts one image into a buffer of its own.
    fn cut(&self, range: Range<usize>, buffer: &mut Buffer, image: &mut ImageOf<'_>) -> Result<()> {
        let per_image = self.windows.count();
        let mut first = range.start;
        while first < range.end {
            let of = self.place(first) / per_image;
            let end = (first + 1..range.end).find(|&n| self.place(n) / per_image != of).unwrap_or(range.end);
            let windows = (first..end).map(|n| self.place(n) % per_image);
            image(of, &mut |chunk| match chunk {
                Chunk::U8(x) => self.push(x, windows.clone(), &mut buffer.u8, &mut buffer.f32),
                Chunk::F64(x) => self.push(x, windows.clone(), &mut buffer.f64, &mut buffer.f32),
                Chunk::F32(x) => match self.plain {
                    false => self.push(x, windows.clone(), &mut Vec::new(), &mut buffer.f32),
                    true => windows.clone().for_each(|n| self.windows.push(x, n, &mut buffer.f32)),
                },
            })?;
            first = end;
        }
        Ok(())
    }
}

impl Source for PatchSource<'_> {
    fn shape(&self) -> &[usize] {
        &self.windows.size
    }

    fn len(&self) -> usize {
        self.chosen.as_ref().map_or(self.images.len() * self.windows.count(), |chosen| chosen.len())
    }

    /// Windows without their means are numbers around 0, whatever the images are: single precision has more digits than they need.
    fn element(&self) -> Element {
        if self.plain { self.images.element() } else { Element::F32 }
    }

    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        buffer.clear();
        let mut own = Buffer::new();
        self.cut(range, buffer, &mut |n, take| {
            take(self.images.stored(n..n + 1, &mut own)?);
            Ok(())
        })?;
        Ok(buffer.chunk(self.element()))
    }

    fn residence(&self) -> Residence {
        self.images.residence()
    }

    fn load(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        let mut own = Buffer::new();
        self.cut(range, buffer, &mut |n, take| {
            self.images.load(n..n + 1, &mut own)?;
            take(own.chunk(self.images.element()));
            Ok(())
        })
    }

    fn check(&self) -> Result<()> {
        self.images.check_unchanged()
    }

    fn parts(&self) -> Vec<usize> {
        let per_image = self.windows.count();
        let up_to = |image: usize| match &self.chosen {
            None => image * per_image,
            Some(chosen) => chosen.partition_point(|&n| n < image * per_image),
        };
        self.images.parts().into_iter().map(|part| up_to(part.end) - up_to(part.start)).collect()
    }
}

/// Hands one image, by its number, to whoever wants to see it.
type ImageOf<'a> = dyn FnMut(usize, &mut dyn FnMut(Chunk<'_>)) -> Result<()> + 'a;

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Samples<'static> {
        let pixels = (0..6 * 7 * 9).map(|i| ((i * 37 + i * i / 11) % 256) as u8).collect::<Vec<_>>();
        Samples::from_vec(&[7, 9], pixels).unwrap()
    }

    /// Written out: every window by its indices.
    fn plain(images: &Samples<'_>, floor: Option<f64>) -> Vec<f64> {
        let mut out = Vec::new();
        for n in 0..images.len() {
            let x = images.to_f64(n..n + 1).unwrap();
            for (i, j) in (0..4).flat_map(|i| (0..6).map(move |j| (i, j))) {
                let window: Vec<f64> =
                    (0..4).flat_map(|a| (0..4).map(move |b| (i + a) * 9 + j + b)).map(|at| x[at]).collect();
                let mean = window.iter().sum::<f64>() / 16.0;
                let variance = window.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 16.0;
                out.extend(window.iter().map(|x| match floor {
                    None => *x,
                    Some(c) => (x - mean) / (variance + c).sqrt(),
                }));
            }
        }
        out
    }

    fn expected_means(windows: &[f64]) -> Vec<f64> {
        windows.chunks_exact(16).map(|x| x.iter().sum::<f64>() / 16.0).collect()
    }

    #[test]
    fn windows_are_those_written_out() {
        let images = images().scaled(1.0 / 255.0).unwrap();
        let raw = Patches::new(4).of(&images).unwrap();
        assert_eq!((raw.len(), raw.element(), raw.shape()), (6 * 24, Element::U8, &[4, 4][..]));
        assert_eq!(raw.to_f64(0..raw.len()).unwrap(), plain(&images, None));
        let patches = Patches::new(4).normalised(&images, 0.1, 0).unwrap();
        let floor = patches.floor.unwrap();
        let variances: Vec<f64> = plain(&images, None)
            .chunks_exact(16)
            .map(|x| x.iter().map(|a| x.iter().map(|b| (a - b).powi(2)).sum::<f64>()).sum::<f64>() / 512.0)
            .collect();
        let mean = variances.iter().sum::<f64>() / variances.len() as f64;
        assert!((floor - 0.1 * mean).abs() < 1e-12 * mean);
        let normal = patches.of(&images).unwrap();
        assert_eq!((normal.element(), normal.scale()), (Element::F32, 1.0));
        let found = normal.to_f64(5..100).unwrap();
        let expected = plain(&images, Some(floor));
        assert!(found.iter().zip(&expected[5 * 16..]).all(|(a, b)| (a - b).abs() < 1e-6));
        let centred = patches.centred().of(&images).unwrap();
        let means = expected_means(&plain(&images, None));
        let found = centred.to_f64(0..144).unwrap();
        let expected = plain(&images, None);
        assert!((0..144 * 16).all(|i| (found[i] - expected[i] + means[i / 16]).abs() < 1e-6));
    }

    #[test]
    fn drawn_windows_are_distinct_ones_of_all_and_the_same_each_time() {
        let images = images();
        let (all, some) =
            (Patches::new(4).of(&images).unwrap(), Patches::new(4).drawn(&images, 50, 7).unwrap());
        let rows = |s: &Samples<'_>| {
            s.to_f64(0..s.len()).unwrap().chunks_exact(16).map(<[f64]>::to_vec).collect::<Vec<_>>()
        };
        let (all, some) = (rows(&all), rows(&some));
        assert_eq!(some.len(), 50);
        let mut rest = all.iter();
        assert!(some.iter().all(|x| rest.any(|y| x == y)), "in the order of all windows, none twice");
        assert_eq!(rows(&Patches::new(4).drawn(&images, 50, 7).unwrap()), some);
        assert_ne!(rows(&Patches::new(4).drawn(&images, 50, 8).unwrap()), some);
        assert_eq!(Patches::new(4).drawn(&images, 1000, 0).unwrap().len(), 6 * 24);
        assert!(Patches::new(4).drawn(&images, 0, 0).is_err());
    }

    #[test]
    fn windows_have_the_weight_of_their_image_and_can_be_selected() {
        let weights = vec![1.0, 0.0, 2.0, 1.0, 1.0, 3.0];
        let images = images().with_weights(weights).unwrap().select(&[5, 2]).unwrap();
        let patches = Patches::new(4).with_stride(3).of(&images).unwrap();
        assert_eq!(
            (patches.len(), patches.weights().unwrap()),
            (8, &[3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0][..])
        );
        let last = patches.clone().select(&[7]).unwrap();
        assert_eq!(last.to_f64(0..1).unwrap(), patches.to_f64(7..8).unwrap());
    }

    #[test]
    fn what_is_flat_stays_flat_and_what_cannot_be_is_told() {
        let flat = Samples::from_vec(&[5, 5], vec![3u8; 50]).unwrap();
        let patches = Patches::new(3).normalised(&flat, 0.1, 0).unwrap();
        assert_eq!(patches.of(&flat).unwrap().to_f64(0..18).unwrap(), vec![0.0; 18 * 9]);
        assert!(Patches::new(3).normalised(&flat, 0.0, 0).is_err());
        let broken = Samples::from_vec(&[5, 5], vec![f32::NAN; 25]).unwrap();
        assert!(matches!(Patches::new(3).normalised(&broken, 0.1, 0), Err(Error::NotFinite { .. })));
        let wrong = Patches { floor: Some(f64::NAN), ..Patches::new(3) };
        assert!(wrong.of(&flat).is_err());
    }

    #[test]
    fn files_are_cut_as_memory_is_part_by_part() {
        let folder = tempfile::tempdir().unwrap();
        let pixels: Vec<f64> = (0..4 * 30).map(|i| f64::from(i * 7 % 31)).collect();
        let mut paths = Vec::new();
        for (i, part) in pixels.chunks(60).enumerate() {
            let path = folder.path().join(format!("{i}.npy"));
            crate::data::npy::write_array(&path, &[2, 5, 6], part).unwrap();
            paths.push(path);
        }
        let there = Samples::from_vec(&[5, 6], pixels).unwrap();
        for images in [
            Samples::from_npy_files(&paths).unwrap(),
            Samples::from_npy_files(&paths).unwrap().with_memory_budget(100),
        ] {
            let patches = Patches::new(3).of(&images).unwrap();
            assert_eq!(patches.parts(), [0..24, 24..48]);
            let mut buffer = Buffer::new();
            patches.load(3..40, &mut buffer).unwrap();
            let expected = Patches::new(3).of(&there).unwrap().to_f64(3..40).unwrap();
            assert_eq!(buffer.f64, expected);
            assert_eq!(patches.to_f64(3..40).unwrap(), expected);
            let drawn = Patches::new(3).drawn(&images, 20, 1).unwrap();
            assert_eq!(drawn.parts().iter().map(Range::len).sum::<usize>(), 20);
        }
    }
}
