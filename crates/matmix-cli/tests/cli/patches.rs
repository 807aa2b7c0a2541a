//! Models of patches: fitted, shown, asked for Fisher vectors, recognised with; and what cannot be done with them.

use crate::{ok, run, snapshot};

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
    assert!(header("cores.npy").contains("(5, 144, 3, 3)"), "{}", header("cores.npy"));
    // 9 cells, 3 components, twice 3×3 numbers.
    assert!(header("f.npy").contains("<f4") && header("f.npy").contains("(5, 486)"), "{}", header("f.npy"));
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
    let sets = [
        "--gallery",
        "demo:mnist",
        "--gallery-take",
        "150:260",
        "--probe",
        "demo:mnist",
        "--probe-take",
        "280:320",
    ];
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
    snapshot!("recognize_no_model", path, &[&["recognize"], &sets[..], &["--method", "cores"]].concat());
    assert!(
        !run(path, &[&["recognize", "p.mm"], &sets[..]].concat()).status.success(),
        "no cores of whole samples"
    );
}
