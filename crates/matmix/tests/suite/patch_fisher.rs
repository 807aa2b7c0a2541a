//! Fisher vectors over patches: against their formulas written out, the same on any number of threads, and to recognise with.

use crate::planted::normals;
use matmix::data::{Gallery, Patches};
use matmix::{Error, FitOptions, ModelFile, PatchFisher, PatchFisherOptions, PatchRecognizer, Samples, fit};

/// Pictures with gratings of two directions, and some of everything else.
fn pictures(shape: &[usize], count: usize) -> Samples<'static> {
    let size: usize = shape.iter().product();
    let width = shape[shape.len() - 1];
    let value = |n: usize, i: usize| {
        let (x, y) = ((i % width) as f64, (i / width) as f64);
        let wave = (if n.is_multiple_of(2) { x + 0.3 * y } else { y - 0.2 * x } * 0.9 + n as f64).sin();
        wave * 60.0 + 100.0
    };
    let noise = normals(5, count * size);
    let elements: Vec<u8> =
        (0..count * size).map(|i| (value(i / size, i % size) + 15.0 * noise[i]) as u8).collect();
    Samples::from_vec(shape, elements).unwrap().scaled(1.0 / 255.0).unwrap()
}

fn small(components: usize, rank: usize) -> PatchFisherOptions {
    let fit = FitOptions { components, rank: vec![rank], max_iter: 8, ..FitOptions::default() };
    PatchFisherOptions { fit, grid: 3, max_patches: 800, ..PatchFisherOptions::default() }
}

/// g triangular windows over n positions, each with sum 1.
fn triangles(n: usize, g: usize) -> Vec<Vec<f64>> {
    let g = g.min(n);
    (0..g)
        .map(|c| {
            let distance = |i: usize| ((i as f64 + 0.5) * g as f64 / n as f64 - c as f64 - 0.5).abs();
            let w: Vec<f64> = (0..n).map(|i| f64::max(0.0, 1.0 - distance(i))).collect();
            let sum: f64 = w.iter().sum();
            w.iter().map(|w| w / sum).collect()
        })
        .collect()
}

/// The vector of every image by the equations, in double precision, all windows at once. `positions` along each mode.
fn plain(fisher: &PatchFisher, images: &Samples<'_>, positions: &[usize]) -> Vec<Vec<f64>> {
    let model = fisher.model();
    let (k, rho) = (model.n_components(), model.core_len());
    let variance = model.posterior_variance();
    let windows = fisher.patches().of(images).unwrap();
    let windows = Samples::from_vec(windows.shape(), windows.to_f64(0..windows.len()).unwrap()).unwrap();
    let found = model.project(&windows).unwrap();
    let count: usize = positions.iter().product();
    // The weights of every cell over all positions: the product of those along the modes.
    let mut cells = vec![vec![1.0]];
    for &n in positions {
        let along = triangles(n, fisher.grid());
        cells = cells
            .iter()
            .flat_map(|cell| {
                along.iter().map(move |t| {
                    cell.iter().flat_map(|w| t.iter().map(move |v| w * v)).collect::<Vec<f64>>()
                })
            })
            .collect();
    }
    let mut out = Vec::new();
    for n in 0..images.len() {
        let mut vector = Vec::new();
        for cell in &cells {
            let mut x = Vec::new();
            for j in 0..k {
                let (mut first, mut second) = (vec![0.0; rho], vec![0.0; rho]);
                for (t, w) in cell.iter().enumerate() {
                    let at = (n * count + t) * k + j;
                    let gamma = w * found.responsibilities[at];
                    for i in 0..rho {
                        let q = found.cores[at * rho + i];
                        first[i] += gamma * q;
                        second[i] += gamma * (q * q + variance[j * rho + i] - 1.0) / 2f64.sqrt();
                    }
                }
                x.extend(first.iter().chain(&second).map(|s| s / model.weights()[j].sqrt()));
            }
            let norm = x.iter().map(|x| x.abs()).sum::<f64>().sqrt();
            vector.extend(x.iter().map(|x| x.signum() * x.abs().sqrt() / norm));
        }
        out.push(vector);
    }
    out
}

fn assert_is_plain(fisher: &PatchFisher, images: &Samples<'_>, positions: &[usize]) {
    let found = fisher.features(images).unwrap();
    let width = fisher.width(images.shape()).unwrap();
    let expected = plain(fisher, images, positions);
    assert_eq!((found.len(), expected[0].len()), (width * images.len(), width));
    for (found, expected) in found.chunks_exact(width).zip(&expected) {
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            // Before the root: it turns the rounding of what is next to nothing into something.
            let (a, b) = (f64::from(a * a.abs()), b * b.abs());
            assert!((a - b).abs() < 3e-5, "{i}: {a} instead of {b}");
        }
    }
}

#[test]
fn vectors_are_those_of_the_equations() {
    let images = pictures(&[20, 17], 5);
    for (components, rank) in [(1, 4), (5, 3), (3, 6)] {
        let fisher = PatchFisher::fit(&images, &small(components, rank)).unwrap();
        assert_is_plain(&fisher, &images, &[15, 12]);
    }
    let stride = PatchFisherOptions { stride: vec![3, 2], size: vec![5, 4], ..small(4, 2) };
    assert_is_plain(&PatchFisher::fit(&images, &stride).unwrap(), &images, &[6, 7]);
    // Images of another size have as many numbers.
    let fisher = PatchFisher::fit(&images, &small(3, 3)).unwrap();
    assert_eq!(fisher.width(&[40, 23]), fisher.width(&[20, 17]));
    assert_is_plain(&fisher, &pictures(&[40, 23], 2), &[35, 18]);
}

#[test]
fn samples_of_any_order_have_vectors() {
    let colour = pictures(&[14, 12, 3], 4);
    let fisher = PatchFisher::fit(&colour, &small(3, 2)).unwrap();
    assert_eq!(fisher.model().shape(), [6, 6, 3]);
    assert_is_plain(&fisher, &colour, &[9, 7, 1]);
    let volumes = pictures(&[7, 8, 9], 3);
    let options = PatchFisherOptions { size: vec![3], ..small(2, 2) };
    assert_is_plain(&PatchFisher::fit(&volumes, &options).unwrap(), &volumes, &[5, 6, 7]);
    let signals = pictures(&[50], 4);
    assert_is_plain(&PatchFisher::fit(&signals, &small(2, 3)).unwrap(), &signals, &[45]);
    // One window, and so one cell.
    let tiny = pictures(&[6, 6], 40);
    assert_is_plain(&PatchFisher::fit(&tiny, &small(2, 3)).unwrap(), &tiny, &[1, 1]);
}

#[test]
fn threads_change_no_bit() {
    let images = pictures(&[24, 24], 9);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fisher = PatchFisher::fit(&images, &small(4, 3)).unwrap();
            let classes: Vec<usize> = (0..9).map(|n| n % 2).collect();
            let recognizer = PatchRecognizer::new(fisher.clone(), &images, &classes, 0.1).unwrap();
            let bits = |x: Vec<f64>| x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let features: Vec<u32> = fisher.features(&images).unwrap().iter().map(|x| x.to_bits()).collect();
            (features, bits(recognizer.scores(&images).unwrap()))
        })
    };
    let one = run(1);
    assert_eq!(run(2), one);
    assert_eq!(run(8), one);
}

#[test]
fn images_in_files_have_the_vectors_of_those_in_memory() {
    let images = pictures(&[24, 24], 6);
    let fisher = PatchFisher::fit(&images, &small(3, 3)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images.npy");
    let mut buffer = matmix::data::Buffer::new();
    let matmix::data::Chunk::U8(bytes) = images.stored(0..6, &mut buffer).unwrap() else { panic!("bytes") };
    matmix::data::npy::write_array(&path, &[6, 24, 24], bytes).unwrap();
    let mapped = Samples::from_npy(&path).unwrap().scaled(1.0 / 255.0).unwrap();
    assert_eq!(fisher.features(&mapped).unwrap(), fisher.features(&images).unwrap());
    let read = mapped.with_memory_budget(1 << 20);
    assert_eq!(fisher.features(&read).unwrap(), fisher.features(&images).unwrap());
}

#[test]
fn gratings_are_told_apart_and_the_model_file_is_enough() {
    let images = pictures(&[20, 20], 24);
    let classes: Vec<usize> = (0..24).map(|n| n % 2).collect();
    let fisher = PatchFisher::fit(&images, &small(4, 3)).unwrap();
    let file = ModelFile::from_bytes("bytes", &fisher.to_file(&images).unwrap().to_bytes()).unwrap();
    let again = PatchFisher::from_file(&file, 3).unwrap();
    assert_eq!(again.features(&images).unwrap(), fisher.features(&images).unwrap());
    // A model of patches sees the windows of whatever it is given.
    assert_eq!(file.view(&images).unwrap().len(), 24 * 15 * 15);
    let half = |from: usize| (from..from + 12).collect::<Vec<_>>();
    let gallery = images.clone().select(&half(0)).unwrap();
    let probes = images.clone().select(&half(12)).unwrap();
    let recognizer = PatchRecognizer::new(again, &gallery, &classes[..12], 0.1).unwrap();
    let found = recognizer.evaluate(&probes, &classes[12..]).unwrap();
    assert_eq!((found.accuracy, found.confusion), (1.0, vec![vec![6, 0], vec![0, 6]]));
    let nearest = recognizer.neighbours(&probes, 3).unwrap();
    assert!(nearest.iter().all(|n| n.len() == 3 && n.is_sorted_by(|a, b| a.distance <= b.distance)));
}

#[test]
fn the_file_of_a_recogniser_holds_its_gallery() {
    let images = pictures(&[14, 12], 12);
    let classes: Vec<usize> = (0..12).map(|n| n % 3).collect();
    let fisher = PatchFisher::fit(&images, &small(2, 2)).unwrap();
    let recognizer = PatchRecognizer::new(fisher, &images, &classes, 0.1).unwrap();
    let names = ["a", "b", "c"].map(String::from);
    let file = recognizer.to_file(&images, &names).unwrap();
    assert!(recognizer.to_file(&images, &names[..2]).is_err());
    let read = ModelFile::from_bytes("file", &file.to_bytes()).unwrap();
    assert_eq!(read, file);
    let again = PatchRecognizer::from_file(&read).unwrap();
    let others = pictures(&[14, 12], 5);
    assert_eq!(again.scores(&others).unwrap(), recognizer.scores(&others).unwrap());
    assert_eq!(again.neighbours(&others, 4).unwrap(), recognizer.neighbours(&others, 4).unwrap());
    // A mixture over patches alone is no recogniser, and a gallery must fit.
    let alone = ModelFile { gallery: None, ..file.clone() };
    assert!(PatchRecognizer::from_file(&alone).unwrap_err().to_string().contains("gallery"));
    let gallery = file.gallery.clone().unwrap();
    let other = Gallery { grid: gallery.grid + 1, ..gallery.clone() };
    let other = ModelFile { gallery: Some(other), ..file.clone() };
    assert!(PatchRecognizer::from_file(&other).unwrap_err().to_string().contains("another length"));
    for bad in [
        Gallery { classes: vec![7; 12], ..gallery.clone() },
        Gallery { names: vec!["a".into()], ..gallery.clone() },
        Gallery { mean: vec![f64::NAN; gallery.mean.len()], ..gallery.clone() },
    ] {
        let bytes = ModelFile { gallery: Some(bad), ..file.clone() }.to_bytes();
        assert!(ModelFile::from_bytes("file", &bytes).is_err());
    }
}

#[test]
fn what_cannot_be_is_told() {
    let images = pictures(&[20, 20], 4);
    let fails = |options: PatchFisherOptions| PatchFisher::fit(&images, &options).unwrap_err();
    assert!(matches!(
        fails(PatchFisherOptions { grid: 0, ..small(2, 2) }),
        Error::Option { option: "grid", .. }
    ));
    let large = PatchFisherOptions { size: vec![21, 21], ..small(2, 2) };
    assert!(matches!(fails(large), Error::Option { option: "patch size", .. }));
    assert!(matches!(
        fails(PatchFisherOptions { contrast: -1.0, ..small(2, 2) }),
        Error::Option { option: "contrast", .. }
    ));
    let fisher = PatchFisher::fit(&images, &small(2, 2)).unwrap();
    assert!(matches!(fisher.features(&pictures(&[5, 20], 1)), Err(Error::ShapeMismatch { .. })));
    let mut broken = images.to_f64(0..4).unwrap();
    broken[2 * 400 + 3 * 20 + 7] = f64::NAN;
    let broken = Samples::from_vec(&[20, 20], broken).unwrap();
    match fisher.features(&broken) {
        Err(Error::NotFinite { sample: 2, position, .. }) => assert_eq!(position, [3, 7]),
        other => panic!("{other:?}"),
    }
    // A model of whole images is no model of patches.
    let whole = fit(&images, &FitOptions { max_iter: 1, ..FitOptions::default() }).unwrap();
    let file = ModelFile::new(matmix::Model::Mixture(whole.model.clone()));
    assert!(PatchFisher::from_file(&file, 5).is_err());
    assert!(PatchFisher::new(whole.model, Patches::new(6), 5).is_err(), "patches as they are");
    assert!(PatchRecognizer::new(fisher.clone(), &images, &[0, 1], 0.1).is_err());
    assert!(PatchRecognizer::new(fisher, &images, &[0, 1, 0, 1], f64::NAN).is_err());
}
