//! Data larger than memory: many files as one set, and sets that are read piece by piece within a budget. The same
//! bits as from memory, and an error where a file is not what it was.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::parts::Parts;
use crate::planted::statistics;
use crate::planted::{drawn, drawn_f32, random_mixture};
use matmix::Meter;
use matmix::data::{Buffer, Chunk, Element, OpenOptions, Residence, Source, npy, open};
use matmix::pass::EmSums;
use matmix::{
    Error, Fit, FitOptions, LowRankOptions, Mixture, Precision, Result, Samples, Search, Start, fit,
    fit_low_rank, fit_on, fit_with,
};

fn bits(fit: &Fit) -> Vec<u64> {
    let parts = fit.model.components().iter().flat_map(|c| {
        let loadings = c.loadings().iter().flat_map(|u| u.as_slice());
        c.mean().iter().chain(loadings).copied().chain([c.noise_variance()])
    });
    let history = fit.history.log_likelihood.iter().chain(&fit.history.reconstruction_error).copied();
    fit.model.weights().iter().copied().chain(parts).chain(history).map(f64::to_bits).collect()
}

fn options() -> FitOptions {
    FitOptions { components: 3, rank: vec![2, 1], max_iter: 5, ..FitOptions::default() }
}

fn planted() -> Mixture {
    random_mixture(1, &[4, 3], &[2, 1], 3)
}

/// The samples as files of so many each (the last one takes what is left).
fn files(folder: &Path, samples: &Samples<'_>, sizes: &[usize]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut first = 0usize;
    for (i, &size) in sizes.iter().chain([&usize::MAX]).enumerate() {
        let end = samples.len().min(first.saturating_add(size));
        if first == end {
            break;
        }
        let path = folder.join(format!("part-{i:02}.npy"));
        let mut buffer = Buffer::new();
        let shape = [&[end - first], samples.shape()].concat();
        match samples.stored(first..end, &mut buffer).unwrap() {
            Chunk::U8(x) => npy::write_array(&path, &shape, x).unwrap(),
            Chunk::F32(x) => npy::write_array(&path, &shape, x).unwrap(),
            Chunk::F64(x) => npy::write_array(&path, &shape, x).unwrap(),
            other => panic!("{:?}", other.element()),
        }
        paths.push(path);
        first = end;
    }
    paths
}

/// 20,000 samples of 12 elements are ten chunks of 2,048; in single precision they take 960 kB.
const MANY: usize = 20_000;
const BUDGET: u64 = 600_000;

#[test]
fn files_are_parts_wherever_they_are() {
    let folder = tempfile::tempdir().unwrap();
    // Fewer samples than the subset of a start, and more; more parts than one level of the tree takes.
    for (count, sizes) in [(900, &[13, 200, 1, 300][..]), (5_000, &[100; 20]), (5_000, &[2_100, 2_100])] {
        for samples in [drawn_f32(&planted(), count, 2), drawn(&planted(), count, 2)] {
            let paths = files(folder.path(), &samples, sizes);
            let on_disk = Samples::from_npy_files(&paths).unwrap();
            assert_eq!((on_disk.len(), on_disk.parts().len()), (count, sizes.len() + 1));
            let here = fit(&on_disk, &options()).unwrap();
            let engine = Parts::new(&samples, sizes);
            let there = fit_on(&engine, &options(), &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(bits(&here), bits(&there), "{count} samples in {sizes:?}");
            for threads in [1, 4] {
                let options = FitOptions { threads: Some(threads), ..options() };
                assert_eq!(bits(&fit(&on_disk, &options).unwrap()), bits(&here));
                if count > 1_000 && threads == 1 {
                    let streamed = on_disk.clone().with_memory_budget(on_disk.stored_bytes() - 1);
                    assert_eq!(bits(&fit(&streamed, &options).unwrap()), bits(&here), "streamed");
                }
            }
            // One file is a set in one piece.
            let one = Samples::from_npy_files(&files(folder.path(), &samples, &[])).unwrap();
            assert_eq!(bits(&fit(&one, &options()).unwrap()), bits(&fit(&samples, &options()).unwrap()));
        }
    }
}

#[test]
fn selected_samples_stay_in_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn_f32(&planted(), 100, 2);
    let whole = Samples::from_npy_files(&files(folder.path(), &samples, &[30, 30, 30])).unwrap();
    let parts = |indices: &[usize]| whole.clone().select(indices).unwrap().parts();
    assert_eq!(parts(&(20..95).collect::<Vec<_>>()), [0..10, 10..40, 40..70, 70..75]);
    assert_eq!(parts(&[1, 2, 95]), [0..2, 2..3]);
    assert_eq!(parts(&[95, 1, 2]), [Range { start: 0, end: 3 }]);
    assert_eq!(whole.clone().rows().unwrap().parts(), [0..120, 120..240, 240..360, 360..400]);
    let order: Vec<usize> = (0..100).rev().collect();
    let (a, b) = (whole.select(&order).unwrap(), samples.select(&order).unwrap());
    assert_eq!(a.to_f64(0..100).unwrap(), b.to_f64(0..100).unwrap());
}

#[test]
fn streamed_samples_give_the_bits_of_mapped_ones() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn_f32(&planted(), MANY, 2);
    let path = files(folder.path(), &samples, &[]).remove(0);
    let mapped = Samples::from_npy(&path).unwrap();
    let streamed = mapped.clone().with_memory_budget(BUDGET);
    let expected = bits(&fit(&mapped, &options()).unwrap());
    assert_eq!(bits(&fit(&samples, &options()).unwrap()), expected);
    for threads in [1, 4] {
        for start in [Start::KMeans, Start::Random] {
            let options = FitOptions { threads: Some(threads), start, ..options() };
            assert_eq!(bits(&fit(&streamed, &options).unwrap()), bits(&fit(&mapped, &options).unwrap()));
        }
    }
    let low = |samples: &Samples<'_>| fit_low_rank(samples, &LowRankOptions::default()).unwrap();
    assert_eq!(low(&streamed), low(&mapped));
    let model = fit(&mapped, &options()).unwrap().model;
    assert_eq!(model.score_samples(&streamed).unwrap(), model.score_samples(&mapped).unwrap());
    // Views of the set: scaled, weighted, every third sample, rows.
    let view = |samples: &Samples<'static>| {
        let third: Vec<usize> = (0..MANY).filter(|n| n % 3 != 1).collect();
        let weights = (0..third.len()).map(|n| (n % 4) as f64).collect();
        samples.clone().scaled(0.1).unwrap().select(&third).unwrap().with_weights(weights).unwrap()
    };
    let small = |samples: Samples<'static>| samples.with_memory_budget(BUDGET);
    let seen = fit(&view(&mapped), &options()).unwrap();
    assert_eq!(bits(&fit(&small(view(&mapped)), &options()).unwrap()), bits(&seen));
    let rows = FitOptions { rank: vec![1], ..options() };
    let (a, b) = (small(mapped.clone().rows().unwrap()), mapped.rows().unwrap());
    assert_eq!(bits(&fit(&a, &rows).unwrap()), bits(&fit(&b, &rows).unwrap()));
}

/// A set that hands out what is in memory but has to be asked, and notes everything it is asked for.
struct Counting {
    elements: Vec<f32>,
    loaded: Mutex<Vec<usize>>,
    buffers: Mutex<HashSet<usize>>,
    fails_at: Option<usize>,
    panics: bool,
}

impl Counting {
    fn new(samples: &Samples<'_>) -> Self {
        let elements = samples.to_f64(0..samples.len()).unwrap().iter().map(|&x| x as f32).collect();
        let loaded = Mutex::new(vec![0; samples.len()]);
        Self { elements, loaded, buffers: Mutex::default(), fails_at: None, panics: false }
    }
}

impl Source for Counting {
    fn shape(&self) -> &[usize] {
        &[4, 3]
    }

    fn len(&self) -> usize {
        self.elements.len() / 12
    }

    fn element(&self) -> Element {
        Element::F32
    }

    fn residence(&self) -> Residence {
        Residence::Elsewhere
    }

    fn read<'a>(&'a self, range: Range<usize>, _: &'a mut Buffer) -> Result<Chunk<'a>> {
        Ok(Chunk::F32(&self.elements[range.start * 12..range.end * 12]))
    }

    fn load(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        range.clone().for_each(|n| self.loaded.lock().unwrap()[n] += 1);
        assert!(!(self.panics && range.contains(&6_000)), "a decoder that panics");
        if self.fails_at.is_some_and(|n| range.contains(&n)) {
            return Err(Error::Data { name: "the disk".into(), problem: "it is gone".into() });
        }
        buffer.f32.extend_from_slice(&self.elements[range.start * 12..range.end * 12]);
        self.buffers.lock().unwrap().insert(buffer.f32.as_ptr() as usize);
        Ok(())
    }
}

fn pass(samples: &Samples<'_>, threads: usize) -> Result<EmSums> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| statistics(&planted(), samples, 0, Precision::Auto))
}

#[test]
fn a_pass_loads_every_sample_once_and_stays_within_its_budget() {
    let samples = drawn_f32(&planted(), MANY, 2);
    let expected = pass(&samples, 1).unwrap();
    const CHUNK: usize = 320 * 12 * 4;
    let mut most = 0;
    for budget in [300_000, 600_000, 100_000_000] {
        for threads in [1, 3] {
            let source = Arc::new(Counting::new(&samples));
            let set = Samples::from_source(source.clone()).unwrap().with_memory_budget(budget);
            assert_eq!(pass(&set, threads).unwrap(), expected);
            assert!(source.loaded.lock().unwrap().iter().all(|&times| times == 1));
            let buffers = source.buffers.lock().unwrap().len();
            assert!(buffers >= 2 && buffers * CHUNK <= budget as usize, "{buffers} buffers for {budget}");
            most = most.max(buffers);
        }
    }
    assert!(most > 4, "a large budget is used");
}

#[test]
fn a_budget_for_less_than_two_chunks_says_what_is_needed() {
    let set = Samples::from_source(Arc::new(Counting::new(&drawn_f32(&planted(), MANY, 2)))).unwrap();
    let error = pass(&set.clone().with_memory_budget(10_000), 1).unwrap_err();
    let Error::Memory { budget: 10_000, needed } = error else { panic!("{error:?}") };
    assert!(pass(&set.clone().with_memory_budget(needed), 1).is_ok());
    assert!(pass(&set.with_memory_budget(needed - 1), 1).is_err());
    let text = error.to_string();
    assert!(text.starts_with("a memory budget of 10.0 kB is too small: at least "), "{text}");
    // What fits is not read piece by piece, whatever the chunks.
    let few = Samples::from_vec(&[4, 3], vec![1.0; 24]).unwrap().with_memory_budget(1);
    assert!(pass(&few, 1).is_ok());
}

#[test]
fn the_first_failure_in_order_is_the_one_that_is_told() {
    let samples = drawn_f32(&planted(), MANY, 2);
    let mut source = Counting::new(&samples);
    source.fails_at = Some(9_000);
    source.elements[5_000 * 12] = f32::NAN;
    let set = Samples::from_source(Arc::new(source)).unwrap();
    for threads in [1, 3] {
        let error = pass(&set, threads).unwrap_err();
        assert!(matches!(error, Error::NotFinite { sample: 5_000, .. }), "{error}");
    }
    let mut source = Counting::new(&samples);
    source.fails_at = Some(9_000);
    let error = pass(&Samples::from_source(Arc::new(source)).unwrap(), 3).unwrap_err();
    assert_eq!(error.to_string(), "the disk: it is gone");
    // A reader that dies leaves nobody waiting.
    let mut source = Counting::new(&samples);
    source.panics = true;
    let error = pass(&Samples::from_source(Arc::new(source)).unwrap(), 3).unwrap_err();
    assert!(matches!(error, Error::Engine { .. }), "{error}");
}

#[test]
fn a_file_that_shrinks_or_goes_during_a_fit_ends_it_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn_f32(&planted(), MANY, 2);
    let run = |change: fn(&Path), expected: &str| {
        let path = files(folder.path(), &samples, &[]).remove(0);
        let streamed = Samples::from_npy(&path).unwrap().with_memory_budget(BUDGET);
        let result = fit_with(&streamed, &options(), &mut |p| {
            if p.iteration == 1 {
                change(&path);
            }
            ControlFlow::Continue(())
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains("part-00.npy") && error.contains(expected), "{error}");
    };
    run(
        |path| std::fs::File::options().write(true).open(path).unwrap().set_len(500_000).unwrap(),
        "it has become shorter",
    );
    run(|path| std::fs::remove_file(path).unwrap(), "cannot open");
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    npy::write_array(at("a.npy"), &[2, 3], &[0.0f32; 6]).unwrap();
    npy::write_array(at("b.npy"), &[2, 4], &[0.0f32; 8]).unwrap();
    npy::write_array(at("c.npy"), &[2, 3], &[0.0f64; 6]).unwrap();
    npy::write_array(at("d.npy"), &[0, 3], &[0.0f32; 0]).unwrap();
    std::fs::write(at("e.npy"), "no array").unwrap();
    let message = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|n| at(n)).collect();
        Samples::from_npy_files(&paths).unwrap_err().to_string()
    };
    let says = |text: String, expected: &[&str]| {
        assert!(expected.iter().all(|e| text.contains(e)), "{text}");
    };
    says(message(&["a.npy", "b.npy"]), &["b.npy: its samples are 4, but those of ", "a.npy are 3"]);
    says(message(&["a.npy", "c.npy"]), &["c.npy: its elements are read as f64", "a.npy as f32"]);
    says(message(&["a.npy", "e.npy"]), &["e.npy: not a readable .npy file"]);
    says(message(&["a.npy", "f.npy"]), &["f.npy: cannot open"]);
    says(message(&["d.npy"]), &["the set has no samples"]);
    says(message(&[]), &["the set has no samples"]);
    let paths = [at("d.npy"), at("a.npy")];
    assert_eq!(Samples::from_npy_files(&paths).unwrap().parts(), [Range { start: 0, end: 2 }]);
}

#[test]
fn lists_and_patterns_of_files_are_opened_as_one_set() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn_f32(&planted(), 90, 2);
    files(folder.path(), &samples, &[30, 20]);
    std::fs::write(folder.path().join("part-x.txt"), "another file").unwrap();
    let at = |spec: &str| {
        let parts: Vec<String> =
            spec.split(',').map(|s| folder.path().join(s).display().to_string()).collect();
        parts.join(",")
    };
    let numbers = samples.to_f64(0..90).unwrap();
    for spec in
        ["part-*.npy", "part-??.npy", "part-00.npy,part-01.npy,part-02.npy", "part-00.npy,part-0?.npy"]
    {
        let opened = open(&at(spec), &OpenOptions::default()).unwrap();
        if spec.starts_with("part-00.npy,part-0?") {
            // A file that is named twice is there twice.
            assert_eq!(opened.samples.len(), 120);
            continue;
        }
        assert_eq!((opened.format, opened.samples.parts().len()), (".npy files", 3));
        assert_eq!(opened.samples.to_f64(0..90).unwrap(), numbers);
    }
    let swapped = open(&at("part-01.npy,part-00.npy"), &OpenOptions::default()).unwrap().samples;
    assert_eq!(swapped.to_f64(0..20).unwrap(), numbers[30 * 12..50 * 12]);
    let message = |spec: &str| open(&at(spec), &OpenOptions::default()).unwrap_err().to_string();
    assert!(message("none-*.npy").contains("no file is called like that; * stands for any letters"));
    assert!(message("part-*").contains("part-x.txt: only .npy files can be parts of one set"));
    // Whatever else is asked for applies to the set as a whole.
    let options = OpenOptions { take: Some(25..55), scale: Some(2.0), ..OpenOptions::default() };
    let some = open(&at("part-*.npy"), &options).unwrap().samples;
    assert_eq!((some.len(), some.parts()), (30, vec![0..5, 5..25, 25..30]));
}

#[test]
fn idx_files_of_every_type_and_folders_are_read_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let planted = planted();
    let values: Vec<i16> =
        drawn(&planted, 5_000, 3).to_f64(0..5_000).unwrap().iter().map(|x| (x * 100.0) as i16).collect();
    let body: Vec<u8> = values.iter().flat_map(|x| x.to_be_bytes()).collect();
    let path = folder.path().join("shorts.idx");
    std::fs::write(&path, crate::made::idx(0x0B, &[5_000, 4, 3], &body)).unwrap();
    let name = path.display().to_string();
    let whole = open(&name, &OpenOptions::default()).unwrap().samples;
    assert_eq!((whole.residence(), whole.element()), (Residence::Mapped, Element::F32));
    let budget = OpenOptions { memory_budget: Some(230_000), ..OpenOptions::default() };
    let streamed = open(&name, &budget).unwrap().samples;
    let in_memory =
        Samples::from_vec(&[4, 3], values.iter().map(|&x| f32::from(x)).collect::<Vec<_>>()).unwrap();
    let expected = bits(&fit(&in_memory, &options()).unwrap());
    for samples in [whole, streamed] {
        let options = FitOptions { threads: Some(1), ..options() };
        assert_eq!(bits(&fit(&samples, &options).unwrap()), expected);
    }
    // A folder larger than the budget is decoded ahead.
    for n in 0..70u8 {
        let pixels: Vec<u8> = (0..12).map(|i| n.wrapping_mul(37).wrapping_add(i * 11)).collect();
        crate::pictures::save(folder.path().join(format!("{n:03}.png")), 4, 3, &pixels);
    }
    std::fs::remove_file(path).unwrap();
    let name = folder.path().display().to_string();
    let whole = open(&name, &OpenOptions::default()).unwrap().samples;
    let few = OpenOptions { memory_budget: Some(800), ..OpenOptions::default() };
    let few = open(&name, &few).unwrap().samples;
    assert_eq!((whole.residence(), few.residence()), (Residence::Memory, Residence::Elsewhere));
    let decoded = few.with_memory_budget(100_000);
    assert_eq!(bits(&fit(&decoded, &options()).unwrap()), bits(&fit(&whole, &options()).unwrap()));
}

#[test]
fn what_must_be_unpacked_is_refused_beyond_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gz");
    std::fs::write(&path, crate::made::gzip(&crate::made::idx(8, &[100, 4, 3], &[7; 1200]))).unwrap();
    let budget = |bytes| OpenOptions { memory_budget: Some(bytes), ..OpenOptions::default() };
    let name = path.display().to_string();
    assert!(open(&name, &budget(1200)).is_ok());
    let error = open(&name, &budget(1199)).unwrap_err().to_string();
    let expected = "its samples are unpacked into memory and take 1.2 kB, more than the budget of 1.2 kB";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_meter_counts_the_samples_of_each_pass() {
    let folder = tempfile::tempdir().unwrap();
    let samples = drawn_f32(&planted(), MANY, 2);
    let path = files(folder.path(), &samples, &[]).remove(0);
    for budget in [BUDGET, u64::MAX] {
        let meter = Arc::new(Meter::new());
        let metered = Samples::from_npy(&path).unwrap().with_memory_budget(budget).with_meter(meter.clone());
        pass(&metered, 2).unwrap();
        let reading = meter.read();
        assert_eq!((reading.passes, reading.done, reading.total), (1, MANY as u64, MANY as u64));
        let most = AtomicUsize::new(0);
        let options = FitOptions { stages: false, search: Search::None, ..options() };
        let fitted = fit_with(&metered, &options, &mut |_| {
            most.fetch_max(meter.read().done as usize, Ordering::Relaxed);
            ControlFlow::Continue(())
        });
        // Moments, clusters, the start, and every mode in one pass per iteration.
        let passes = 3 + fitted.unwrap().n_iterations() as u64;
        assert_eq!((meter.read().passes, most.into_inner()), (1 + passes, MANY));
    }
}
