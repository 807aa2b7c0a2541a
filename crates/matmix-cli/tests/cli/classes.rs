//! Labels that are known in part: fitting, classifying, and what goes wrong.

use crate::{SMALL, ok, run, snapshot};

/// Digits, a hundred of each class after those of the class before.
const DIGITS: &[&str] = &["demo:mnist", "--scale", "1/255"];

fn classes_of(csv: &str, column: usize) -> Vec<String> {
    csv.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().to_string()).collect()
}

#[test]
fn labels_lead_to_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let fit = [&["fit"], DIGITS, &["--take", "0:300", "--supervised", "-k", "1", "-r", "4"]].concat();
    snapshot!("fit_supervised", path, &[&fit[..], &["--max-iter", "8", "-o", "all.mm"]].concat());
    snapshot!("classify", path, &["classify", "all.mm", "demo:mnist", "--take", "50:250"]);
    snapshot!("info_classes", path, &["info", "all.mm"]);

    // Every second label is left out, one way or the other; what is found for the others is nearly the same.
    let label = |n: usize| match n % 4 {
        0 => String::new(),
        2 => "-1".into(),
        _ => (n / 100).to_string(),
    };
    let labels: Vec<String> = (0..1000).map(label).collect();
    std::fs::write(path.join("some.txt"), labels.join("\n") + "\n").unwrap();
    let some = [&fit[..], &["--labels", "some.txt", "--max-iter", "8", "-o", "some.mm", "-q"]].concat();
    ok(path, &[&some[..], &["--unlabeled", "-1"]].concat());
    let args = ["classify", "some.mm", "demo:mnist", "--take", "0:300", "--labels", "some.txt"];
    let args = [&args[..], &["--unlabeled", "-1"]].concat();
    let args = [&args[..], &["-o", "found.csv", "--probabilities", "p.npy", "--json", "-q"]].concat();
    let json: serde_json::Value = serde_json::from_slice(&ok(path, &args).stdout).unwrap();
    assert_eq!(json["classes"], serde_json::json!(["0", "1", "2"]));
    assert_eq!((&json["labelled"], &json["n_samples"]), (&150.into(), &300.into()));
    assert!(json["accuracy"].as_f64().unwrap() > 0.9, "{}", json["accuracy"]);
    assert!(json["samples"][0]["label"].is_null() && json["samples"][1]["label"] == "0");
    let csv = std::fs::read_to_string(path.join("found.csv")).unwrap();
    assert!(csv.starts_with("sample,label,class,probability\n0,,"), "{}", &csv[..60]);
    let right = classes_of(&csv, 2).iter().enumerate().filter(|(n, c)| **c == (n / 100).to_string()).count();
    assert!(right > 270, "{right}");
    let probabilities = matmix::Samples::from_npy(path.join("p.npy")).unwrap();
    assert_eq!((probabilities.len(), probabilities.shape()), (300, &[3][..]));
    for n in 0..300 {
        let p = probabilities.to_f64(n..n + 1).unwrap();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    // Without labels the table goes to stdout.
    matmix::data::npy::write_array(path.join("x.npy"), &[2, 28, 28], &[0u8; 2 * 784]).unwrap();
    let output = ok(path, &["classify", "some.mm", "x.npy"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("sample,class,probability\n0,"), "{text}");
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn minus_one_is_a_class_unless_it_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let signs: Vec<&str> = (0..1000).map(|n| if n < 100 { "1" } else { "-1" }).collect();
    std::fs::write(path.join("signs.txt"), signs.join("\n")).unwrap();
    let fit = ["fit", "demo:mnist", "--take", "0:200", "--labels", "signs.txt", "--supervised", "-r", "2"];
    let fit = [&fit[..], &["--max-iter", "3", "-o", "m.mm", "--force"]].concat();
    let classes = || {
        let told: serde_json::Value =
            serde_json::from_slice(&ok(path, &["info", "m.mm", "--json"]).stdout).unwrap();
        told["classes"]["names"].clone()
    };
    ok(path, &fit);
    assert_eq!(classes(), serde_json::json!(["-1", "1"]));
    let one = ok(path, &[&fit[..], &["--unlabeled", "-1"]].concat());
    assert_eq!(classes(), serde_json::json!(["1"]));
    assert!(String::from_utf8_lossy(&one.stderr).contains("note: the one class is 1"));
}

#[test]
fn a_class_called_like_a_formula_is_defused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let names = ["=1+1", "plain"];
    let labels: Vec<&str> = (0..1000).map(|n| names[n / 100 % 2]).collect();
    std::fs::write(path.join("y.txt"), labels.join("\n")).unwrap();
    let fit = [
        "fit",
        "demo:mnist",
        "--take",
        "0:200",
        "--labels",
        "y.txt",
        "--supervised",
        "-r",
        "2",
        "--max-iter",
        "3",
    ];
    ok(path, &[&fit[..], &["-o", "m.mm", "-q"]].concat());
    ok(path, &["classify", "m.mm", "demo:mnist", "--take", "0:200", "-o", "found.csv", "-q"]);
    let csv = std::fs::read_to_string(path.join("found.csv")).unwrap();
    assert!(csv.contains(",'=1+1,") && !csv.contains(",=1+1"), "{csv}");
}

#[test]
fn what_goes_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("none.txt"), "\n".repeat(1000)).unwrap();
    std::fs::write(path.join("few.txt"), "b\n".repeat(210) + "a\n" + &"b\n".repeat(789)).unwrap();
    let fit = [&["fit"], SMALL, &["-o", "m.mm"]].concat();
    let with = |more: &[&'static str]| [&fit[..], more].concat();
    snapshot!("misuse_no_label_known", path, &with(&["--supervised", "--labels", "none.txt"]));
    snapshot!("misuse_few_labels", path, &with(&["--supervised", "--labels", "few.txt"]));
    snapshot!("misuse_supervised_glram", path, &with(&["--supervised", "--model", "glram"]));
    ok(path, &with(&["-q"]));
    snapshot!("misuse_classify_plain", path, &["classify", "m.mm", "demo:mnist", "--limit", "3"]);
    let refused = run(path, &with(&["--supervised", "--patches", "6", "--force"]));
    assert_eq!(refused.status.code(), Some(2));
    let refused = run(path, &["fit", "demo:mnist", "--supervised", "-k", "auto", "-o", "n.mm"]);
    assert!(!refused.status.success());
}
