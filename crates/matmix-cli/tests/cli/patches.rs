//! Models of patches: fitted, shown, asked for Fisher vectors, recognised and denoised with; and what cannot be done with them.

use crate::{ok, pictures, run, snapshot};

const DIGITS: &[&str] = &["demo:mnist", "--scale", "1/255"];

#[test]
fn a_model_of_patches_is_fitted_told_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let asked =
        ["--take", "0:20", "--patches", "6", "--stride", "2", "-k", "3", "-r", "3", "--max-iter", "5"];
    let fit = [&["fit"], DIGITS, &asked[..], &["-o", "p.mm"]].concat();
    // 12×12 windows of each of 20 digits.
    let told = String::from_utf8(ok(path, &fit).stderr).unwrap();
    assert!(told.contains("fitted to 2,880 samples of 6×6"), "{told}");
    let info = String::from_utf8(ok(path, &["info", "p.mm"]).stdout).unwrap();
    assert!(info.contains("in windows of 6, 2 apart, of like contrast"), "{info}");
    let some = ["demo:mnist", "--take", "20:25"];
    ok(path, &[&["transform", "p.mm"], &some[..], &["-o", "cores.npy"]].concat());
    ok(path, &[&["transform", "p.mm"], &some[..], &["--fisher", "--grid", "3", "-o", "f.npy"]].concat());
    let header = |name: &str| {
        let bytes = std::fs::read(path.join(name)).unwrap();
        String::from_utf8_lossy(&bytes[10..100]).into_owned()
    };
    assert!(header("cores.npy").contains("(5, 144, 3, 3,)"), "{}", header("cores.npy"));
    // 9 cells, 3 components, twice 3×3 numbers.
    assert!(header("f.npy").contains("<f4") && header("f.npy").contains("(5, 486,)"), "{}", header("f.npy"));
    snapshot!("patches_rebuilt", path, &["reconstruct", "p.mm", "demo:mnist", "-o", "x.npy"]);
    let drawn =
        [&["fit"], DIGITS, &asked[..], &["--draw", "500", "--contrast", "none", "-o", "d.mm"]].concat();
    let told = String::from_utf8(ok(path, &drawn).stderr).unwrap();
    assert!(told.contains("fitted to 500 samples of 6×6"), "{told}");
    snapshot!("patches_fisher_raw", path, &["transform", "d.mm", "demo:mnist", "--fisher", "-o", "x.npy"]);
    snapshot!(
        "patches_no_contrast",
        path,
        &["fit", "demo:mnist", "--patches", "6", "--contrast", "0", "-o", "x.mm"]
    );
    snapshot!("patches_too_large", path, &["fit", "demo:mnist", "--patches", "29x29", "-o", "x.mm"]);
    assert!(!path.join("x.mm").exists() && !path.join("x.npy").exists());
}

#[test]
fn digits_are_recognised_by_their_patches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Every fourth of the digits 0, 1 and 2 is known, and the one after it asked for.
    let digits = matmix::data::digits();
    let pixels = digits.samples.to_f64(0..300).unwrap();
    let labels = digits.labels.unwrap();
    for (name, first) in [("known", 0), ("asked", 1)] {
        let places = (first..300).step_by(4);
        let some: Vec<u8> =
            places.clone().flat_map(|n| &pixels[n * 784..][..784]).map(|x| *x as u8).collect();
        matmix::data::npy::write_array(path.join(format!("{name}.npy")), &[75, 28, 28], &some).unwrap();
        let names: Vec<&str> = places.map(|n| labels.name(n)).collect();
        std::fs::write(path.join(format!("{name}.txt")), names.join("\n")).unwrap();
    }
    let sets = [
        ["--gallery", "known.npy", "--gallery-labels", "known.txt"],
        ["--probe", "asked.npy", "--probe-labels", "asked.txt"],
    ]
    .concat();
    let few = ["--method", "patches", "-k", "4", "--stride", "2", "--grid", "3"];
    let output = snapshot!(
        "recognize_patches",
        path,
        &[&["recognize"], &sets[..], &few, &["--save", "p.mm", "--mistakes", "wrong.png"]].concat()
    );
    assert!(output.status.success() && path.join("wrong.png").exists());
    // The model that was kept finds the same.
    let json = |more: &[&str]| -> serde_json::Value {
        let all =
            [&["recognize"], more, &sets[..], &["--method", "patches", "--grid", "3", "--json"]].concat();
        serde_json::from_slice(&ok(path, &all).stdout).unwrap()
    };
    let again = json(&["p.mm"]);
    assert_eq!(again, json(&["-k", "4", "--stride", "2"]));
    assert_eq!(again["method"], "patches");
    // The file holds the gallery, too: the probes are enough.
    let alone = ["recognize", "p.mm", "--probe", "asked.npy", "--probe-labels", "asked.txt", "--json"];
    let alone: serde_json::Value = serde_json::from_slice(&ok(path, &alone).stdout).unwrap();
    assert_eq!(alone, again);
    let without = ["recognize", "m.mm", "--probe", "asked.npy"];
    ok(path, &["fit", "known.npy", "-k", "1", "-r", "2", "-o", "m.mm", "-q"]);
    snapshot!("recognize_no_gallery", path, &without);
    // Without a model, and without options: one is fitted to the gallery.
    snapshot!("recognize_no_model", path, &[&["recognize"], &sets[..]].concat());
    ok(path, &["fit", "known.npy", "-o", "plain.mm", "-q"]);
    let by = |more: &[&str]| ok(path, &[&["recognize"], more, &sets[..], &["-o", "-"]].concat()).stdout;
    assert_eq!(by(&["plain.mm"]), by(&[]));
    assert_eq!(by(&["--method", "cores"]), by(&[]));
    snapshot!("recognize_save_cores", path, &[&["recognize"], &sets[..], &["--save", "x.mm"]].concat());
    snapshot!("recognize_nothing_known", path, &["recognize", "--probe", "asked.npy"]);
    assert!(
        !run(path, &[&["recognize", "p.mm"], &sets[..]].concat()).status.success(),
        "no cores of whole samples"
    );
}

/// What is saved has been made of images as the model it began from takes them, and takes others the same way.
#[test]
fn a_gallery_that_is_kept_remembers_what_its_model_knew_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Stripes of five widths, in one size to be known and in another to be asked for.
    for (set, rows, columns) in [("known", 12, 10), ("asked", 18, 20)] {
        for i in 0..15 {
            let pixel = |at: usize| {
                let across = at % columns * 60 / columns;
                (60 + 30 * (across / (4 + 3 * (i % 5)) % 5) + (at * at * (i + 3)) % 11) as u8
            };
            let bytes: Vec<u8> = (0..rows * columns).map(pixel).collect();
            pictures::save(path.join(format!("{set}/{}/{i:02}.png", i % 5)), rows, columns, &bytes);
        }
    }
    let fit = ["--patches", "3", "-k", "2", "-r", "2", "--max-iter", "5", "-q"];
    ok(path, &[&["fit", "known", "--scale", "1/255", "--resize", "9x9", "-o", "m.mm"], &fit[..]].concat());
    let found = |args: &[&str]| {
        let output = ok(path, &[&["recognize"], args, &["--probe", "asked", "-q", "-o", "-"]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let first = found(&["m.mm", "--method", "patches", "--gallery", "known", "--save", "known.mm"]);
    let again = found(&["known.mm"]);
    // The second knows no names of neighbours, but who they are and how far away.
    let without_names = first.replace(",neighbour_name", "");
    let (first, again) = (without_names.lines().collect::<Vec<_>>(), again.lines().collect::<Vec<_>>());
    assert_eq!(first[0], again[0]);
    for (one, other) in first.iter().zip(&again).skip(1) {
        let (one, other): (Vec<&str>, Vec<&str>) = (one.split(',').collect(), other.split(',').collect());
        assert_eq!(one[..5], other[..5]);
        assert_eq!(one.last(), other.last());
    }
    let input = matmix::ModelFile::load(path.join("known.mm")).unwrap().input.unwrap();
    assert_eq!((input.resize, input.shape), (Some((9, 9)), vec![9, 9]));
}

/// The mean square of what differs between bytes and the values that were drawn.
fn mean_square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64
}

#[test]
fn a_picture_is_denoised_by_its_own_patches_and_by_those_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Squares and stripes, and as much noise as numbers that look random make: uniform of width 60, a deviation of 17.
    let clean: Vec<u8> =
        (0..48 * 48)
            .map(|i| {
                if i % 48 < 24 {
                    60 + 120 * (i / 48 / 8 % 2) as u8
                } else {
                    60 + 120 * (i % 48 / 6 % 2) as u8
                }
            })
            .collect();
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let noisy: Vec<u8> = clean.iter().map(|&x| (f64::from(x) + 60.0 * random() - 30.0) as u8).collect();
    let image = |bytes: &[u8]| {
        let rgb = bytes.iter().flat_map(|&x| [x; 3]).collect();
        matmix::picture::Image { width: 48, height: 48, rgb }
    };
    image(&noisy).write_png(path.join("noisy.png")).unwrap();
    std::fs::create_dir(path.join("others")).unwrap();
    for name in ["a.png", "b.png"] {
        image(&clean).write_png(path.join("others").join(name)).unwrap();
    }
    let few = ["-k", "4", "--save", "own.mm"];
    snapshot!("denoise", path, &[&["denoise", "noisy.png", "-o", "clean.png"], &few[..]].concat());
    let fit = ["--patches", "8", "--contrast", "kept", "-k", "4", "-r", "5", "--max-iter", "20", "-q"];
    ok(path, &[&["fit", "others", "-o", "others.mm"], &fit[..]].concat());
    let info = String::from_utf8(ok(path, &["info", "others.mm"]).stdout).unwrap();
    assert!(info.contains("in windows of 8, 1 apart, without their means"), "{info}");
    ok(path, &["denoise", "noisy.png", "-m", "others.mm", "--sigma", "17", "-o", "by-others.npy"]);
    ok(path, &["denoise", "others", "-m", "own.mm", "--sigma", "17", "-o", "folder"]);
    assert!(path.join("folder/a.png").exists() && path.join("folder/b.png").exists());
    let truth: Vec<f64> = clean.iter().map(|&x| f64::from(x)).collect();
    let before = mean_square(&noisy.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), &truth);
    let by_others = matmix::Samples::from_npy(path.join("by-others.npy")).unwrap();
    assert_eq!((by_others.len(), by_others.shape()), (1, &[48, 48][..]));
    let own = matmix::data::open_picture(&path.join("clean.png"), &matmix::data::OpenOptions::default());
    for found in [by_others, own.unwrap().unwrap().samples] {
        let after = mean_square(&found.to_f64(0..1).unwrap(), &truth);
        assert!(after < 0.25 * before, "{before} {after}");
    }
    snapshot!("denoise_whole", path, &["denoise", "demo:mnist", "-o", "one.png"]);
    snapshot!("denoise_no_noise", path, &["denoise", "noisy.png", "--sigma", "0", "-o", "x.png"]);
    ok(path, &["fit", "others", "-k", "1", "-r", "2", "--max-iter", "2", "-q", "-o", "whole.mm"]);
    snapshot!("denoise_model", path, &["denoise", "noisy.png", "-m", "whole.mm", "-o", "x.png"]);
    snapshot!("denoise_over", path, &["denoise", "noisy.png", "-o", "noisy.png"]);
    assert!(!path.join("x.png").exists() && !path.join("one.png").exists());
}
