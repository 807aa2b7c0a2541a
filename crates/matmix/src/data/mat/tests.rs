use super::*;
use crate::data::made::MatFile;

fn read(
    bytes: &[u8],
    wanted: Option<&str>,
    shape: Option<&[usize]>,
    given: Option<&Labels>,
) -> Result<Found> {
    super::read(Path::new("x.mat"), bytes, wanted, shape, given, Limit::new(bytes.len() as u64, None))
}

/// Two images 2×2, [1 2; 3 4] and [5 6; 7 8], as rows of `fea` and with labels 7 and 9.
fn faces(big: bool, packed: bool) -> Vec<u8> {
    let doubles = |x: &[f64]| -> Vec<u8> {
        x.iter().flat_map(|x| if big { x.to_be_bytes() } else { x.to_le_bytes() }).collect()
    };
    MatFile::new(big, packed)
        .variable("note", 4, &[1, 2], 4, b"h\0i\0")
        .variable("gnd", 6, &[2, 1], 9, &doubles(&[7.0, 9.0]))
        .variable("fea", 9, &[2, 4], 2, &[1, 5, 3, 7, 2, 6, 4, 8])
        .bytes
}

const UPRIGHT: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];

#[test]
fn faces_come_out_upright_in_every_encoding() {
    for (big, packed) in [(false, false), (false, true), (true, false), (true, true)] {
        let found = read(&faces(big, packed), None, None, None).unwrap();
        assert_eq!((found.samples.shape(), found.samples.element().name()), (&[2, 2][..], "u8"));
        assert_eq!(found.samples.to_f64(0..2).unwrap(), UPRIGHT);
        assert_eq!(found.labels, Some(Labels::new(["7", "9"])));
        assert_eq!(found.array.as_deref(), Some("fea"));
    }
}

#[test]
fn every_numeric_type_is_read() {
    for (kind, body) in [
        (1, vec![255]),
        (3, (-1i16).to_le_bytes().to_vec()),
        (5, (-1i32).to_le_bytes().to_vec()),
        (7, (-1f32).to_le_bytes().to_vec()),
        (9, (-1f64).to_le_bytes().to_vec()),
        (12, (-1i64).to_le_bytes().to_vec()),
    ] {
        let file = MatFile::new(false, false).variable("x", 6, &[2, 2], kind, &body.repeat(4)).bytes;
        let found = read(&file, None, Some(&[2]), None).unwrap();
        assert_eq!(found.samples.to_f64(0..2).unwrap(), [-1.0; 4], "type {kind}");
    }
    for (kind, size) in [(2, 1), (4, 2), (6, 4), (13, 8)] {
        let mut number = vec![0u8; size];
        number[0] = 200;
        let file = MatFile::new(false, true).variable("x", 6, &[2, 2], kind, &number.repeat(4)).bytes;
        assert_eq!(read(&file, None, Some(&[2]), None).unwrap().samples.to_f64(0..2).unwrap(), [200.0; 4]);
    }
}

#[test]
fn stacks_have_their_samples_last_unless_the_labels_say_first() {
    // reshape(0:11, 2, 2, 3): slice n is [4n 4n+2; 4n+1 4n+3].
    let stack: Vec<u8> = (0..12).collect();
    let last = MatFile::new(false, true).variable("stack", 9, &[2, 2, 3], 2, &stack).bytes;
    let found = read(&last, None, None, None).unwrap();
    assert_eq!((found.samples.len(), found.samples.shape()), (3, &[2, 2][..]));
    assert_eq!(found.samples.to_f64(1..2).unwrap(), [4.0, 6.0, 5.0, 7.0]);
    let labels = Labels::new(["a", "b"]);
    let found = read(&last, None, None, Some(&labels)).unwrap();
    assert_eq!((found.samples.len(), found.samples.shape()), (2, &[2, 3][..]));
    assert_eq!(found.samples.to_f64(1..2).unwrap(), [1.0, 5.0, 9.0, 3.0, 7.0, 11.0]);
    let told = read(&last, None, Some(&[2, 3]), None).unwrap();
    assert_eq!(told.samples.to_f64(0..2).unwrap(), found.samples.to_f64(0..2).unwrap());
}

#[test]
fn columns_are_samples_where_the_labels_say_so() {
    let file = MatFile::new(false, false)
        .variable("data", 9, &[4, 2], 2, &[1, 3, 2, 4, 5, 7, 6, 8])
        .variable("label", 9, &[1, 2], 2, &[0, 1])
        .bytes;
    let found = read(&file, None, None, None).unwrap();
    assert_eq!(found.samples.to_f64(0..2).unwrap(), UPRIGHT);
}

#[test]
fn bad_files_say_what_is_wrong() {
    let problem =
        |bytes: &[u8], shape: Option<&[usize]>| read(bytes, None, shape, None).err().unwrap().to_string();
    let is = |problem: String, expected: &str| assert!(problem.contains(expected), "{problem}");
    let whole = faces(false, false);
    is(problem(&whole[..whole.len() - 4], None), "the file is cut short");
    is(problem(&whole[..100], None), "it has 100 bytes; a version 5 file begins with a header of 128");
    let packed = faces(false, true);
    is(problem(&packed[..packed.len() - 4], None), "the file is cut short");
    is(
        problem(&whole, Some(&[3, 2])),
        "in its variable `fea`: it is 2×4, so that a sample has 4 numbers; the shape 3×2 has 6",
    );
    let file = |name: &str, class, dims: &[u32], body: &[u8]| {
        MatFile::new(false, false).variable(name, class, dims, 2, body).bytes
    };
    is(
        problem(&file("fea", 9, &[2, 3], &[0; 6]), None),
        "x.mat: the samples in `fea` have 3 numbers, which is no square image; their shape has to be given",
    );
    is(problem(&file("fea", 9, &[2, 3], &[0; 5]), None), "variable `fea` is 2×3, but holds 5 numbers");
    is(problem(&file("s", 2, &[2, 3], &[0; 6]), None), "it holds `s` (not a full array of real numbers)");
    let count = MatFile::new(false, false)
        .variable("fea", 9, &[2, 4], 2, &[0; 8])
        .variable("gnd", 9, &[3, 1], 2, &[1, 2, 3])
        .bytes;
    let other = Note::OtherLabels { from: "its variable `gnd`".into(), labels: 3, samples: 2 };
    let found = read(&count, None, Some(&[2, 2]), None).unwrap();
    assert!(found.labels.is_none() && found.notes.contains(&other), "{:?}", found.notes);
    let mut new = format!("{:<512}", "MATLAB 7.3 MAT-file, Platform: TEST").into_bytes();
    new.extend(b"\x89HDF\r\n\x1a\n");
    is(
        problem(&new, None),
        "it is a MATLAB file of version 7.3 (HDF5), which is not read here; in MATLAB save it",
    );
    is(problem(&[0; 200], None), "version 4");
    is(problem(&[b'x'; 200], None), "no mark of its byte order");
    let missing = read(&whole, Some("x"), None, None).err().unwrap();
    is(
        missing.to_string(),
        "x.mat: it has no array `x` of real numbers that could be samples; it holds `gnd` (2×1), `fea`",
    );
}

#[test]
fn a_packed_variable_is_unpacked_if_it_is_wanted_and_within_the_budget() {
    let file = MatFile::new(false, true)
        .variable("other", 9, &[1000, 1000], 2, &vec![0; 1_000_000])
        .variable("fea", 9, &[2, 4], 2, &[1, 5, 3, 7, 2, 6, 4, 8])
        .variable("gnd", 9, &[1000, 1000], 2, &vec![0; 1_000_000])
        .bytes;
    let within = |wanted, budget| {
        super::read(
            Path::new("x.mat"),
            &file,
            wanted,
            None,
            None,
            Limit::new(file.len() as u64, Some(budget)),
        )
    };
    assert_eq!(within(Some("fea"), 8).unwrap().samples.to_f64(0..2).unwrap(), UPRIGHT);
    assert!(matches!(within(Some("fea"), 7), Err(Error::Unpacked { needed: 8, limit: 7, .. })));
    assert!(matches!(within(Some("other"), 999_999), Err(Error::Unpacked { needed: 1_000_000, .. })));
    let found = within(None, 8).unwrap();
    assert!(found.notes.contains(&Note::Array { chosen: "fea".into(), others: vec!["other".into()] }));
    assert!(found.notes.contains(&Note::Square { shape: vec![2, 2] }));
    // Labels for another number of samples are left out before they are unpacked, and a note says so.
    let labels = MatFile::new(false, true)
        .variable("fea", 9, &[2, 4], 2, &[0; 8])
        .variable("gnd", 9, &[1_000_000, 1], 2, &vec![0; 1_000_000])
        .bytes;
    let limit = Limit::new(labels.len() as u64, Some(8));
    let found = super::read(Path::new("x.mat"), &labels, None, Some(&[2, 2]), None, limit).unwrap();
    let other = Note::OtherLabels { from: "its variable `gnd`".into(), labels: 1_000_000, samples: 2 };
    assert!(found.labels.is_none() && found.notes.contains(&other), "{:?}", found.notes);
}
