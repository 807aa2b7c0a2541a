//! Cells that were not observed: transparent places, masks, what a model remembers of them, and what is written.

use matmix::data::npy;

use crate::{ok, pictures, run, snapshot};

/// Twelve pictures of 6×4 in which something is transparent, and one of which nothing is.
fn images(folder: &std::path::Path) {
    std::fs::create_dir(folder.join("images")).unwrap();
    for i in 0..13u32 {
        let pixel = |j: u32| {
            [
                ((i * i * 31 + j * j * 7) % 251) as u8,
                if (i + j).is_multiple_of(7) && i < 12 { 0 } else { 255 },
            ]
        };
        let pixels: Vec<u8> = (0..24).flat_map(pixel).collect();
        std::fs::write(folder.join(format!("images/{i:02}.png")), pictures::png(6, 4, 4, 8, &[], &pixels))
            .unwrap();
    }
}

fn mean_score(folder: &std::path::Path, args: &[&str]) -> f64 {
    let output = ok(folder, &[&["score"], args, &["--json", "-q"]].concat());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    told["mean_log_likelihood"].as_f64().unwrap()
}

#[test]
fn transparent_places_are_missing_and_a_model_remembers_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    images(path);
    let fit = ["fit", "images", "--scale", "1/255", "--missing", "alpha", "-k", "1", "-r", "1", "-o", "m.mm"];
    snapshot!("fit_alpha", path, &fit);
    let plainly = mean_score(path, &["m.mm", "images"]);
    assert_eq!(plainly, mean_score(path, &["m.mm", "images", "--missing", "alpha"]));
    assert_ne!(plainly, mean_score(path, &["m.mm", "images", "--missing", "error"]));
    snapshot!("info_alpha", path, &["info", "m.mm"]);
    snapshot!("impute_alpha", path, &["impute", "m.mm", "images", "-o", "filled.npy"]);
    let filled = matmix::Samples::from_npy(path.join("filled.npy")).unwrap().to_f64(0..13).unwrap();
    assert!(filled.iter().all(|x| x.is_finite()) && (filled[1] - 7.0 / 255.0).abs() < 1e-6);
    // Pictures keep every pixel that was observed.
    ok(path, &["impute", "m.mm", "images", "-o", "filled", "-q"]);
    let pixels =
        matmix::data::open(path.join("filled").to_str().unwrap(), &Default::default()).unwrap().samples;
    let pixels = pixels.to_f64(0..13).unwrap();
    let is = |i: u32, j: u32| f64::from((i * i * 31 + j * j * 7) % 251);
    let seen =
        (0..13u32).flat_map(|i| (0..24).map(move |j| (i, j))).filter(|(i, j)| (i + j) % 7 != 0 || *i == 12);
    assert!(seen.into_iter().all(|(i, j)| pixels[(24 * i + j) as usize] == is(i, j)));
    let output = run(path, &["impute", "m.mm", "images", "-o", "drawn", "--draws", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let output =
        run(path, &["impute", "m.mm", "images", "-o", "drawn.npy", "--draws", "18446744073709551615"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("18446744073709551615 samples of 6×4 take") && said.contains("--draws"), "{said}");
    ok(path, &["report", "m.mm", "images", "-o", "page.html", "-q"]);
    let page = std::fs::read_to_string(path.join("page.html")).unwrap();
    assert!(page.contains("id=\"missing\"") && page.contains("12 of 13"));
    // An array in its place has NaN where something is missing.
    let mut values = filled.clone();
    values[5] = f64::NAN;
    npy::write_array(path.join("x.npy"), &[13, 6, 4], &values).unwrap();
    let scale = ["m.mm", "x.npy", "--scale", "1"];
    assert!(mean_score(path, &scale).is_finite());
    snapshot!("transparent_places_are_noted", path, &["info", "images"]);
}

#[test]
fn a_mask_says_what_was_observed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let values: Vec<f32> = (0..240).map(|i| (i * i % 37) as f32).collect();
    npy::write_array(path.join("x.npy"), &[20, 4, 3], &values).unwrap();
    let mask: Vec<u8> = (0..12).map(|i| u8::from(i % 5 != 0)).collect();
    npy::write_array(path.join("mask.npy"), &[4, 3], &mask).unwrap();
    pictures::save(path.join("mask.png"), 4, 3, &mask);
    let fit = ["fit", "x.npy", "--mask", "mask.npy", "-k", "1", "-r", "1", "-o", "m.mm"];
    snapshot!("fit_mask", path, &fit);
    // The model knows what it never saw, and has it left out of new samples.
    let told = mean_score(path, &["m.mm", "x.npy", "--mask", "mask.png"]);
    assert_eq!(mean_score(path, &["m.mm", "x.npy"]), told);
    let nan: Vec<f32> =
        values.iter().enumerate().map(|(i, &x)| if i % 12 % 5 == 0 { f32::NAN } else { x }).collect();
    npy::write_array(path.join("nan.npy"), &[20, 4, 3], &nan).unwrap();
    assert_eq!(mean_score(path, &["m.mm", "nan.npy", "--missing", "nan"]), told);
    // A mask is an input: it is not replaced.
    let output = run(path, &["impute", "m.mm", "x.npy", "--mask", "mask.npy", "-o", "mask.npy"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(matmix::Samples::from_npy(path.join("mask.npy")).unwrap().len(), 4);
}

#[test]
fn masks_and_transparency_that_cannot_be_meant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    npy::write_array(path.join("x.npy"), &[5, 4, 3], &[1.5f32; 60]).unwrap();
    npy::write_array(path.join("few.npy"), &[3, 4, 3], &[1u8; 36]).unwrap();
    npy::write_array(path.join("other.npy"), &[4, 4], &[1u8; 16]).unwrap();
    let fit = |more: &'static [&'static str]| [&["fit", "x.npy", "-r", "1", "-o", "m.mm"], more].concat();
    snapshot!("misuse_mask_count", path, &fit(&["--mask", "few.npy"]));
    snapshot!("misuse_mask_shape", path, &fit(&["--mask", "other.npy"]));
    snapshot!("misuse_mask_nowhere", path, &fit(&["--mask", "nowhere.npy"]));
    snapshot!("misuse_alpha_of_an_array", path, &fit(&["--missing", "alpha"]));
    snapshot!("misuse_missing_word", path, &fit(&["--missing", "transparent"]));
}

/// Samples with missing cells have the same outliers in another unit.
#[test]
fn the_unit_does_not_change_who_is_an_outlier() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let value = |i: usize| {
        let (sample, cell) = (i / 12, i % 12);
        let x = (sample * 37 % 17) as f64 * (1.0 + cell as f64) + (i * i % 23) as f64;
        if sample % 2 == 0 && (i * 7919 % 11) < sample % 10 { f64::NAN } else { x }
    };
    let values: Vec<f64> = (0..720).map(value).collect();
    let lists = [2f64.powi(-20), 1.0, 2f64.powi(20)].map(|unit| {
        let scaled: Vec<f64> = values.iter().map(|x| unit * x).collect();
        npy::write_array(path.join("x.npy"), &[60, 4, 3], &scaled).unwrap();
        ok(
            path,
            &["fit", "x.npy", "--missing", "nan", "-r", "1", "--max-iter", "20", "--tol", "0", "-o", "m.mm"],
        );
        let list = |args: &[&str], key: &str| {
            let output = ok(path, &[args, &["m.mm", "x.npy", "--json", "-q"]].concat());
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let samples = told[key].as_array().unwrap().iter();
            samples.map(|one| one["sample"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        let outliers = list(&["outliers", "--contamination", "0.5"], "outliers");
        assert_eq!(list(&["score", "--worst", "30"], "worst"), outliers);
        outliers
    });
    assert!(lists[0] == lists[1] && lists[1] == lists[2], "{lists:?}");
    let incomplete = lists[1].iter().filter(|sample| *sample % 2 == 0).count();
    assert!((8..=22).contains(&incomplete), "{:?}", lists[1]);
}
