//! Every format through the front door: the same pixels give the same samples, and bad input gets a message that
//! names the file, says what was found and what would be right.

use std::path::{Path, PathBuf};

use crate::made::{MatFile, gzip, idx, npy_bytes, npz};
use matmix::data::{DataSet, Labels, OpenOptions, open};
use zip::CompressionMethod;

/// Three images of 4×4 pixels, row after row.
fn pixels() -> Vec<u8> {
    (0..48).map(|i| (i * 37 % 251) as u8).collect()
}

fn save(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn opened(path: &Path, options: &OpenOptions) -> DataSet {
    open(path.to_str().unwrap(), options).unwrap()
}

fn message(spec: impl AsRef<Path>, options: &OpenOptions) -> String {
    match open(spec.as_ref().to_str().unwrap(), options) {
        Ok(set) => panic!("{} should not open: {set:?}", spec.as_ref().display()),
        Err(error) => error.to_string(),
    }
}

fn default() -> OpenOptions {
    OpenOptions::default()
}

/// The pixels as MATLAB holds them: the axes are sample, row, column, and the first varies fastest.
fn column_major(x: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for column in 0..4 {
        for row in 0..4 {
            (0..3).for_each(|n| out.push(x[n * 16 + row * 4 + column]));
        }
    }
    out
}

#[test]
fn the_same_pixels_come_out_of_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let x = pixels();
    let arrays = [
        ("images.npy", npy_bytes("|u1", "3, 4, 4", &x)),
        ("labels.npy", npy_bytes("<i8", "3,", &[1u64, 7, 7].map(u64::to_le_bytes).concat())),
    ];
    let mat = |packed| {
        MatFile::new(false, packed)
            .variable("fea", 9, &[3, 16], 2, &column_major(&x))
            .variable("gnd", 6, &[3, 1], 2, &[1, 7, 7])
            .bytes
    };
    let images = idx(8, &[3, 4, 4], &x);
    let beside = idx(8, &[3], &[1, 7, 7]);
    let at = folder.path();
    let mut paths = vec![
        save(at, "a.npz", &npz(CompressionMethod::Deflated, &arrays)),
        save(at, "b.npz", &npz(CompressionMethod::Stored, &arrays)),
        save(at, "packed.mat", &mat(true)),
        save(at, "plain.mat", &mat(false)),
        save(at, "a-images-idx3-ubyte", &images),
        save(at, "b-images.idx3-ubyte.gz", &gzip(&images)),
    ];
    save(at, "a-labels-idx1-ubyte.gz", &gzip(&beside));
    save(at, "b-labels.idx1-ubyte", &beside);
    for ending in ["png", "bmp", "pgm", "tiff"] {
        for (n, label) in ["1", "7", "7"].into_iter().enumerate() {
            let path = at.join(ending).join(label).join(format!("{n}.{ending}"));
            crate::pictures::save(path, 4, 4, &x[n * 16..n * 16 + 16]);
        }
        paths.push(at.join(ending));
    }
    let check = |path: &Path, options: &OpenOptions| {
        let set = opened(path, options);
        assert_eq!((set.samples.shape(), set.samples.element().name()), (&[4, 4][..], "u8"));
        let expected: Vec<f64> = x.iter().map(|&b| f64::from(b)).collect();
        assert_eq!(set.samples.to_f64(0..3).unwrap(), expected, "{}", path.display());
        assert_eq!(set.labels, Some(Labels::new(["1", "7", "7"])), "{}", path.display());
    };
    for path in &paths {
        check(path, &default());
    }
    let text = save(at, "y.txt", b"1\n7\n7\n");
    let labelled = OpenOptions { labels: Some(text), ..default() };
    check(&save(at, "x.npy", &npy_bytes("|u1", "3, 4, 4", &x)), &labelled);
    let numbers = |n: usize| x[n * 16..n * 16 + 16].iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let csv = format!("{}\n{}\n{}\n", numbers(0), numbers(1), numbers(2));
    let table = opened(
        &save(at, "x.csv", csv.as_bytes()),
        &OpenOptions { shape: Some(vec![4, 4]), ..labelled.clone() },
    );
    assert_eq!(
        (table.samples.shape(), table.format, table.samples.element().name()),
        (&[4, 4][..], "CSV", "f64")
    );
    assert_eq!(table.samples.to_f64(0..3).unwrap(), x.iter().map(|&b| f64::from(b)).collect::<Vec<_>>());
    let flat = save(at, "flat.npy", &npy_bytes("|u1", "3, 16", &x));
    check(&flat, &OpenOptions { shape: Some(vec![4, 4]), ..labelled });
    // Without an ending the first bytes tell.
    check(&save(at, "nameless", &npz(CompressionMethod::Deflated, &arrays)), &default());
}

#[test]
fn samples_are_taken_excluded_limited_and_scaled_in_this_order() {
    let options = OpenOptions {
        take: Some(50..usize::MAX),
        exclude: vec!["1".into(), "2".into()],
        limit: Some(60),
        scale: Some(0.5),
        shape: Some(vec![784]),
        ..default()
    };
    let set = open("demo:mnist", &options).unwrap();
    assert_eq!((set.samples.len(), set.samples.shape()), (60, &[784][..]));
    let labels = set.labels.unwrap();
    assert_eq!(labels.names, ["0", "3"]);
    assert_eq!((labels.name(49), labels.name(50)), ("0", "3"));
    let all = matmix::data::digits().samples;
    let halved: Vec<f64> = all.to_f64(300..301).unwrap().iter().map(|x| x / 2.0).collect();
    assert_eq!(set.samples.to_f64(50..51).unwrap(), halved);
}

#[test]
fn an_array_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let arrays =
        [("a.npy", npy_bytes("|u1", "1, 2", &[1, 2])), ("b.npy", npy_bytes("|u1", "2, 2", &[3, 4, 5, 6]))];
    let path = save(folder.path(), "x.npz", &npz(CompressionMethod::Deflated, &arrays));
    let spec = format!("{}:a", path.display());
    let set = open(&spec, &default()).unwrap();
    assert_eq!((set.samples.len(), set.name, set.format), (1, spec, ".npz"));
    let mat = MatFile::new(true, true).variable("faces", 9, &[2, 4], 2, &[0; 8]).bytes;
    let path = save(folder.path(), "x.mat", &mat);
    assert_eq!(opened(Path::new(&format!("{}:faces", path.display())), &default()).samples.shape(), [2, 2]);
    assert!(message(format!("{}:fea", path.display()), &default()).contains(
        "x.mat: it has no array `fea` of real numbers that could be samples; it holds `faces` (2×4)"
    ));
}

#[test]
fn every_message_names_the_file_and_says_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let is = |message: String, file: &str, expected: &str| {
        assert!(message.contains(&format!("{file}: ")) && message.contains(expected), "{message}");
    };
    let x = pixels();
    let npy = npy_bytes("|u1", "3, 4, 4", &x);
    let good = save(at, "x.npy", &npy);

    is(message(at.join("no.npy"), &default()), "no.npy", "cannot open");
    is(message("demo:faces", &default()), "demo:faces", "there is demo:mnist");
    is(message(save(at, "cut.npy", &npy[..100]), &default()), "cut.npy", "cut short");
    is(message(save(at, "text.npy", b"1,2,3"), &default()), "text.npy", "does not begin with \\x93NUMPY");
    is(message(save(at, "line.npy", &npy_bytes("|u1", "3,", &x[..3])), &default()), "line.npy", "two axes");
    is(message(save(at, "none.npy", &npy_bytes("|u1", "0, 4", &[])), &default()), "none.npy", "no samples");
    is(message(save(at, "empty.npy", &[]), &default()), "empty.npy", "does not begin");
    is(
        message(
            save(at, "cut.npz", &npz(CompressionMethod::Stored, &[("x.npy", npy.clone())])[..60]),
            &default(),
        ),
        "cut.npz",
        "cut short",
    );
    is(
        message(save(at, "cut-ubyte", &idx(8, &[3, 4, 4], &x[..40])), &default()),
        "cut-ubyte",
        "need 48 bytes of data, but 40 are there",
    );
    is(
        message(save(at, "cut-ubyte.gz", &gzip(&idx(8, &[3, 4, 4], &x))[..40]), &default()),
        "cut-ubyte.gz",
        "breaks off",
    );
    is(
        message(save(at, "y-idx1-ubyte", &idx(8, &[3], &[1, 2, 3])), &default()),
        "y-idx1-ubyte",
        "as files of labels have",
    );
    is(
        message(save(at, "x.text", b"1,2\n3,4\n"), &default()),
        "x.text",
        "none of the formats that are read: .npy",
    );
    is(
        message(save(at, "x.csv", b"1,2\n3,4 4\n"), &default()),
        "x.csv",
        "line 2, column 2: `4 4` is no number",
    );
    is(message(save(at, "x.h5", b"\x89HDF\r\n\x1a\n"), &default()), "x.h5", "it is an HDF5 file");
    is(message(save(at, "x.nii.gz", &gzip(b"brain")), &default()), "x.nii.gz", "it is a NIfTI file");
    is(message(save(at, "x.mp4", b""), &default()), "x.mp4", "write its frames as images into a folder");
    save(at, "x.zarr/zarr.json", b"{}");
    is(message(at.join("x.zarr"), &default()), "x.zarr", "the Python package reads zarr arrays");
    is(message(save(at, "x.gz", &gzip(b"hello world")), &default()), "x.gz", "not a readable IDX file");
    let mat = MatFile::new(false, true).variable("fea", 9, &[3, 16], 2, &x).bytes;
    is(message(save(at, "cut.mat", &mat[..mat.len() - 9]), &default()), "cut.mat", "cut short");

    let shape = OpenOptions { shape: Some(vec![5, 5]), ..default() };
    is(
        message(&good, &shape),
        "x.npy",
        "its samples are 4×4 (16 numbers each); the shape 5×5 (25 numbers) does not fit",
    );
    let labels = OpenOptions { labels: Some(save(at, "y.txt", b"1\n2\n")), ..default() };
    is(message(&good, &labels), "y.txt", "2 labels for 3 samples; exactly one per sample");
    save(at, "t-images-idx3-ubyte", &idx(8, &[3, 4, 4], &x));
    save(at, "t-labels-idx1-ubyte", &idx(8, &[2], &x[..2]));
    // Labels within or beside the data are left out, with a note: which, how many of what.
    let untaken = |path: &Path, options: &OpenOptions, said: &str| {
        let set = open(path.to_str().unwrap(), options).unwrap();
        let notes: Vec<String> = set.notes.iter().map(ToString::to_string).collect();
        assert!(set.labels.is_none() && notes.iter().any(|note| note.ends_with(said)), "{notes:?}");
    };
    let said = "t-labels-idx1-ubyte has 2 labels for 3 samples and was not taken";
    untaken(&at.join("t-images-idx3-ubyte"), &default(), said);
    let two = [("x.npy", npy_bytes("|u1", "3, 2", &[0; 6])), ("y.npy", npy_bytes("|u1", "2,", &[0, 1]))];
    let path = save(at, "labels.npz", &npz(CompressionMethod::Stored, &two));
    untaken(&path, &default(), "its array `y` has 2 labels for 3 samples and was not taken");
    let faces = MatFile::new(false, true).variable("fea", 9, &[4, 2], 2, &[0; 8]);
    let path = save(at, "labels.mat", &faces.variable("gnd", 9, &[3, 1], 2, &[1, 2, 3]).bytes);
    let rows = OpenOptions { shape: Some(vec![2]), ..default() };
    untaken(&path, &rows, "its variable `gnd` has 3 labels for 4 samples and was not taken");
    let missing = OpenOptions { labels: Some(at.join("no.txt")), ..default() };
    is(message(&good, &missing), "no.txt", "cannot open");
    is(
        message(&good, &OpenOptions { exclude: vec!["3".into()], ..default() }),
        "x.npy",
        "its samples have no labels",
    );
    let exclude = OpenOptions { exclude: vec!["12".into()], ..default() };
    is(message("demo:mnist", &exclude), "demo:mnist", "no sample has the label `12`; the labels are 0, 1, 2");
    is(
        message(&good, &OpenOptions { take: Some(3..9), ..default() }),
        "x.npy",
        "sample 3 was asked for, but the set has 3",
    );
    is(
        message(&good, &OpenOptions { colour: true, ..default() }),
        "x.npy",
        "the option `colour` is for images; this is .npy",
    );
    is(
        message(&good, &OpenOptions { resize: Some((2, 2)), ..default() }),
        "x.npy",
        "the option `resize` is for images",
    );
    is(message(format!("{}:a", good.display()), &default()), "x.npy:a", "cannot open");

    let images = at.join("images");
    std::fs::create_dir(&images).unwrap();
    is(message(&images, &default()), "images", "there are no images in this folder");
    crate::pictures::save(images.join("a.png"), 4, 4, &x[..16]);
    is(message(images.join("a.png"), &default()), "a.png", "it is one image; give the folder");
    is(message(&images, &labels), "y.txt", "2 labels for 1 samples");
    crate::pictures::save(images.join("b.png"), 2, 4, &x[..8]);
    is(message(&images, &default()), "b.png", "it has 2×4 pixels, but");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (options, expected) in [
        (OpenOptions { limit: Some(0), ..default() }, "option `limit` is 0; it must be at least 1"),
        (OpenOptions { shape: Some(vec![]), ..default() }, "option `shape` is ()"),
        (OpenOptions { shape: Some(vec![usize::MAX, 2]), ..default() }, "sides of at least 1"),
        (OpenOptions { resize: Some((0, 3)), ..default() }, "option `resize` is 0×3"),
        (OpenOptions { scale: Some(f64::NAN), ..default() }, "option `scale` is NaN"),
        (OpenOptions { take: Some(3..3), ..default() }, "option `take` is 3:3"),
    ] {
        let message = message("demo:mnist", &options);
        assert!(message.contains(expected), "{message}");
    }
}

/// Every choice that was made is in the set, and none where nothing was to choose.
#[test]
fn choices_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let notes = |path: &Path, options: &OpenOptions| -> Vec<String> {
        opened(path, options).notes.iter().map(ToString::to_string).collect()
    };
    let array = npy_bytes("|u1", "3, 2", &[1, 2, 3, 4, 5, 6]);
    let one = [("x.npy", array.clone())];
    assert!(notes(&save(at, "one.npz", &npz(CompressionMethod::Stored, &one)), &default()).is_empty());
    assert!(notes(&save(at, "x.npy", &array), &default()).is_empty());
    let several =
        [("x.npy", array.clone()), ("z.npy", array.clone()), ("y.npy", npy_bytes("|u1", "3,", &[0, 1, 0]))];
    let several = save(at, "several.npz", &npz(CompressionMethod::Deflated, &several));
    assert_eq!(
        notes(&several, &default()),
        ["the samples are `x`; there are also `z`", "the labels are its array `y`"]
    );
    let given = OpenOptions { labels: Some(save(at, "y.txt", b"a\nb\na\n")), ..default() };
    assert_eq!(notes(&several, &given), ["the samples are `x`; there are also `z`"]);
    save(at, "t-images-idx2-ubyte", &idx(8, &[3, 2], &[0; 6]));
    let labels = save(at, "t-labels-idx1-ubyte", &idx(8, &[3], &[0; 3]));
    let beside = format!("the labels are those of {}", labels.display());
    assert_eq!(notes(&at.join("t-images-idx2-ubyte"), &default()), [beside]);
    let faces = MatFile::new(false, true).variable("fea", 9, &[4, 2], 2, &[0; 8]).variable(
        "gnd",
        9,
        &[2, 1],
        2,
        &[1, 2],
    );
    assert_eq!(
        notes(&save(at, "faces.mat", &faces.bytes), &default()),
        [
            "the samples are along axis 1 of an array of 4×2",
            "the samples are taken for images of 2×2",
            "the labels are its variable `gnd`",
        ]
    );
    let table = save(at, "x.csv", b"height,width\n1,2\n");
    assert_eq!(
        notes(&table, &default()),
        ["the first line (`height,width`) is taken for the names of the columns"]
    );
}

/// A limit for every reader of something packed: the budget, or what follows from the size of the file.
#[test]
fn what_unpacks_to_more_than_it_may_is_refused_before_it_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let zeros = vec![0; 1 << 20];
    let begun = std::time::Instant::now();
    let mat = |packed| MatFile::new(false, packed).variable("fea", 9, &[1024, 1024], 2, &zeros).bytes;
    let npy = [("x.npy", npy_bytes("|u1", "1024, 1024", &zeros))];
    let mut fortran = npy[0].1.clone();
    let order = fortran.windows(5).position(|w| w == b"False").unwrap();
    fortran[order..order + 5].copy_from_slice(b"True ");
    for path in [
        save(at, "x.mat", &mat(true)),
        save(at, "x.npz", &npz(CompressionMethod::Deflated, &npy)),
        save(at, "x-ubyte.gz", &gzip(&idx(8, &[1024, 1024], &zeros))),
        save(at, "x.csv", "1,2\n".repeat(1 << 16).as_bytes()),
        save(at, "fortran.npy", &fortran),
    ] {
        let small = OpenOptions { memory_budget: Some(1 << 19), ..default() };
        let said = message(&path, &small);
        assert!(said.contains("more than the budget of 524.3 kB"), "{said}");
        assert_eq!(opened(&path, &default()).samples.stored_bytes(), 1 << 20);
    }
    // Without a budget a few kilobytes are no gigabytes.
    let said = message(save(at, "y-ubyte.gz", &gzip(&idx(8, &[1 << 16, 1 << 16], &zeros))), &default());
    assert!(
        said.contains("it would unpack to 4.3 GB") && said.contains("unless a memory budget allows it"),
        "{said}"
    );
    assert!(begun.elapsed().as_secs() < 20);
}

/// Opening what is no file would wait for ever.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("x.npy");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(message(&pipe, &default()).ends_with("x.npy: cannot open: it is a pipe or a device, not a file"));
    assert!(matmix::Samples::from_npy(&pipe).is_err() && Labels::read(&pipe).is_err());
    assert!(matmix::ModelFile::load(&pipe).is_err());
    std::fs::rename(&pipe, folder.path().join("x.png")).unwrap();
    assert!(message(folder.path(), &default()).contains("x.png: cannot open: it is a pipe"));
    assert!(message("/dev/zero", &default()).contains("it is a pipe or a device"));
}
