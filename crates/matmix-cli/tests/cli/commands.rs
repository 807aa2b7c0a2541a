//! Every command once, with what it prints.

use matmix::Samples;
use matmix::data::npy;

use crate::{SMALL, fit, ok, run, snapshot};

#[test]
fn help() {
    let folder = tempfile::tempdir().unwrap();
    snapshot!("help", folder.path(), &["--help"]);
    for command in [
        "fit",
        "select",
        "transform",
        "reconstruct",
        "denoise",
        "assign",
        "classify",
        "cluster",
        "score",
        "outliers",
        "sample",
        "recognize",
        "info",
        "compare",
        "montage",
        "report",
        "demo",
        "paper",
        "completions",
        "man",
    ] {
        snapshot!(format!("help_{command}"), folder.path(), &[command, "--help"]);
    }
}

#[test]
fn several_files_are_one_set() {
    let folder = tempfile::tempdir().unwrap();
    for (name, first) in [("part-1.npy", 0u8), ("part-2.npy", 100)] {
        let pixels: Vec<u8> = (0..96).map(|i| first + i).collect();
        matmix::data::npy::write_array(folder.path().join(name), &[6, 4, 4], &pixels).unwrap();
    }
    snapshot!("info_files", folder.path(), &["info", "part-*.npy", "--memory", "64KiB"]);
}

#[test]
fn fit_prints_a_table_and_json() {
    let folder = tempfile::tempdir().unwrap();
    snapshot!("fit", folder.path(), &[&["fit"], SMALL, &["-o", "m.mm"]].concat());
    let output =
        snapshot!("fit_json", folder.path(), &[&["fit"], SMALL, &["-o", "m.mm", "--json", "-q"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in [
        "n_samples",
        "shape",
        "rank",
        "n_components",
        "n_iterations",
        "stop_reason",
        "log_likelihood",
        "reconstruction_error",
        "bic",
        "seconds",
        "seed",
    ] {
        assert!(!json[key].is_null(), "{key}");
    }
    snapshot!("fit_glram", folder.path(), &[&["fit"], SMALL, &["-o", "g.mm", "--model", "glram"]].concat());
    // The paper's algorithm from a model already there.
    fit(folder.path(), "p.mm", &["--algorithm", "paper", "--init", "m.mm", "--max-iter", "3"]);
    fit(folder.path(), "r.mm", &["--init", "random", "--n-init", "2", "--stop", "error", "--tol", "1e-3"]);
}

#[test]
fn components_and_ranks_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let model = matmix::Mixture::new(
        &[5, 4],
        vec![1.0, 1.0, 2.0],
        (0..3)
            .map(|k| {
                let loading = |rows: usize| {
                    matmix::Matrix::from_fn(rows, 1, |i, _| if (i + k) % 2 == 0 { 1.5 } else { 0.5 })
                };
                let mean = (0..20).map(|i| 4.0 * ((i + 7 * k) % 3) as f64).collect();
                matmix::Component::new(&[5, 4], mean, vec![loading(5), loading(4)], 0.3).unwrap()
            })
            .collect(),
    );
    let drawn = model.unwrap().sample(240, 1).samples;
    matmix::data::npy::write_array(path.join("x.npy"), &[240, 5, 4], &drawn).unwrap();
    snapshot!("select", path, &["select", "x.npy", "-k", "1..5", "-r", "1", "-o", "m.mm"]);
    snapshot!("select_bic", path, &["select", "x.npy", "-k", "3", "-r", "auto", "--criterion", "bic"]);
    let json = ok(path, &["select", "x.npy", "-k", "1..4", "-r", "1", "--json", "-q", "--criterion", "aic"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (json["n_components"].as_u64(), json["candidates"].as_array().map(Vec::len)),
        (Some(3), Some(4))
    );
    // The same through `fit`, and the model that was written.
    snapshot!("fit_auto", path, &["fit", "x.npy", "-k", "1..5", "-r", "1", "-o", "f.mm"]);
    let model = |name: &str| matmix::ModelFile::load(path.join(name)).unwrap().model;
    assert_eq!(model("m.mm"), model("f.mm"));
    snapshot!("select_misuse", path, &["select", "x.npy", "-k", "5..2"]);
    // By a purpose, up to a share of the variance, and as a picture.
    let keep = ["select", "x.npy", "-k", "3", "--for", "compression", "--keep", "4", "--plot", "curve.png"];
    snapshot!("select_keep", path, &keep);
    let picture = std::fs::read(path.join("curve.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    snapshot!("select_explain", path, &["select", "x.npy", "-k", "1..3", "--explain", "0.9"]);
    snapshot!("select_plot_misuse", path, &["select", "x.npy", "--plot", "curve.svg"]);
    snapshot!("select_twice", path, &["select", "x.npy", "--for", "density", "--criterion", "bic"]);
    // Columns that explain nothing, and the same without them.
    snapshot!(
        "fit_prune",
        path,
        &["fit", "x.npy", "-k", "3", "-r", "3", "--search", "auto", "--prune", "-o", "p.mm"]
    );
    snapshot!("compare_auto", path, &["compare", "x.npy", "-k", "auto"]);
    // A search says what it did.
    snapshot!("fit_search", path, &["fit", "x.npy", "-k", "3", "-r", "1", "--search", "auto", "-o", "s.mm"]);
}

#[test]
fn what_a_model_says_about_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fit(path, "m.mm", &[]);
    let data = ["demo:mnist", "--take", "300:306"];
    let with = |command, more: &[&'static str]| [&[command, "m.mm"], &data[..], more].concat();
    snapshot!("transform", path, &with("transform", &["-o", "f.npy"]));
    snapshot!("transform_all", path, &with("transform", &["-o", "all.npy", "--all"]));
    snapshot!("reconstruct", path, &with("reconstruct", &["-o", "x.npy"]));
    snapshot!("reconstruct_folder", path, &with("reconstruct", &["-o", "pictures"]));
    snapshot!("assign", path, &with("assign", &[]));
    snapshot!("score", path, &with("score", &["-o", "s.npy", "--worst", "3"]));
    snapshot!("score_json", path, &with("score", &["--worst", "1", "--json"]));
    snapshot!("outliers", path, &with("outliers", &["--contamination", "0.34", "--picture", "worst.png"]));
    snapshot!("outliers_json", path, &with("outliers", &["--threshold", "-1000", "--json"]));
    snapshot!("outliers_share", path, &with("outliers", &["--contamination", "0.7"]));
    // A machine of the tests may have a GPU; what is asked for here none has.
    assert!(String::from_utf8_lossy(&ok(path, &["info", "--devices"]).stdout).contains("cpu"));
    snapshot!("assign_json", path, &with("assign", &["--limit", "2", "--json"]));
    snapshot!("sample", path, &["sample", "m.mm", "-n", "4", "--seed", "1", "-o", "drawn.npy"]);
    snapshot!("sample_png", path, &["sample", "m.mm", "-n", "4", "-o", "drawn.png"]);
    snapshot!("info_model", path, &["info", "m.mm"]);
    snapshot!("info_data", path, &["info", "demo:mnist"]);
    snapshot!("montage_model", path, &["montage", "m.mm", "-o", "means.png"]);
    snapshot!("montage_data", path, &with_montage());
    let shape = |name: &str| {
        let samples = Samples::from_npy(path.join(name)).unwrap();
        (samples.len(), samples.shape().to_vec())
    };
    assert_eq!(shape("f.npy"), (6, vec![3, 3]));
    assert_eq!(shape("all.npy"), (6, vec![2, 3, 3]));
    assert_eq!(shape("x.npy"), (6, vec![28, 28]));
    assert_eq!(shape("drawn.npy"), (4, vec![28, 28]));
    assert_eq!(std::fs::read_dir(path.join("pictures")).unwrap().count(), 6);
}

#[test]
fn a_report_is_one_page_with_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fit(path, "m.mm", &[]);
    let data = ["report", "m.mm", "demo:mnist", "--limit", "250"];
    let asked =
        ["-o", "r.html", "--title", "Digits & <more>", "--recognize", "fisher", "--values", "ink (1)"];
    snapshot!("report", path, &[&data[..], &asked].concat());
    let page = std::fs::read_to_string(path.join("r.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("Digits &amp; &lt;more&gt;") && !page.contains("<more>"));
    assert!(page.contains("fisher") && page.contains("ink"), "recognition and values");
    let few =
        ["report", "m.mm", "demo:mnist", "--take", "80:120", "-o", "d.html", "-q", "--recognize", "data"];
    ok(path, &few);
    assert!(std::fs::read_to_string(path.join("d.html")).unwrap().contains("by the distance “data”"));
    fit(path, "g.mm", &["--model", "glram"]);
    let axes = ["--axes", "row, column (cm)=0:2.7", "--held-out", "demo:mnist", "-o", "held.html", "-q"];
    ok(path, &[&["report", "m.mm", "demo:mnist", "--take", "0:60"][..], &axes].concat());
    let page = std::fs::read_to_string(path.join("held.html")).unwrap();
    assert!(page.contains("variance explained), 1\u{202f}000 samples"));
    // 28 columns over 2.7 cm.
    assert!(page.contains(r#""name":"column","unit":"cm","start":0.0,"step":0.1"#));
    let bad = ["report", "m.mm", "demo:mnist", "--axes", "row=1, column", "-o", "bad.html"];
    snapshot!("report_with_bad_axes", path, &bad);
    snapshot!("report_without_noise", path, &["report", "g.mm", "demo:mnist", "-o", "g.html"]);
    assert!(!path.join("g.html").exists());
    for model in ["mixppca", "mp2dpca"] {
        fit(path, "m.mm", &["--model", model]);
        ok(path, &["report", "m.mm", "demo:mnist", "--limit", "40", "-o", "r.html", "-q"]);
    }
}

fn with_montage() -> Vec<&'static str> {
    vec!["montage", "demo:mnist", "--model", "m.mm", "-o", "grid.png", "-n", "5"]
}

#[test]
fn models_of_flat_samples_and_of_rows_give_back_what_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for model in ["mixppca", "mp2dpca", "pca", "2dpca"] {
        fit(path, "m.mm", &["--model", model]);
        ok(path, &["reconstruct", "m.mm", "demo:mnist", "--limit", "5", "-o", "x.npy", "-q"]);
        let samples = Samples::from_npy(path.join("x.npy")).unwrap();
        assert_eq!((samples.len(), samples.shape()), (5, &[28, 28][..]), "{model}");
        ok(path, &["transform", "m.mm", "demo:mnist", "--limit", "5", "-o", "f.npy", "-q"]);
        ok(path, &["montage", "m.mm", "-o", "means.png", "-q"]);
    }
    fit(path, "m.mm", &["--model", "mp2dpca"]);
    let csv = String::from_utf8(ok(path, &["assign", "m.mm", "demo:mnist", "--limit", "2"]).stdout).unwrap();
    assert!(csv.starts_with("sample,row,label,component,") && csv.lines().count() == 1 + 2 * 28, "{csv}");
    ok(path, &["score", "m.mm", "demo:mnist", "--limit", "2"]);
}

#[test]
fn the_scale_of_the_fit_is_the_scale_of_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    fit(folder.path(), "m.mm", &[]);
    let with = |more: &[&'static str]| {
        ok(folder.path(), &[&["score", "m.mm", "demo:mnist", "--limit", "9"], more].concat()).stdout
    };
    assert_eq!(with(&[]), with(&["--scale", "1/255"]));
    assert_ne!(with(&[]), with(&["--scale", "1"]));
}

#[test]
fn recognition() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fit(path, "m.mm", &[]);
    let sets = [
        "--gallery",
        "demo:mnist",
        "--gallery-take",
        "150:260",
        "--probe",
        "demo:mnist",
        "--probe-take",
        "260:300",
    ];
    let args = |distance| [&["recognize", "m.mm", "--distance", distance], &sets[..]].concat();
    snapshot!("recognize", path, &args("paper"));
    snapshot!("recognize_fisher", path, &args("fisher"));
    for distance in ["data", "weighted"] {
        ok(path, &args(distance));
    }
    // Two or more known samples of every digit: without being asked the discriminant, and it says so.
    let plainly = [&["recognize", "m.mm"], &sets[..]].concat();
    assert_eq!(ok(path, &plainly).stdout, ok(path, &args("fisher")).stdout);
    let one_of_each = [&["recognize", "m.mm", "--json", "--gallery-take", "199:201"], &sets[4..]].concat();
    let told: serde_json::Value =
        serde_json::from_slice(&ok(path, &[&one_of_each[..], &["--gallery", "demo:mnist"]].concat()).stdout)
            .unwrap();
    assert_eq!(told["distance"], "data");
}

#[test]
fn models_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&["compare"], SMALL, &["--holdout", "0.2", "--json"]].concat());
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all.len(), 9);
    assert!(all.iter().all(|m| m["held_out_error"].as_f64().unwrap() > 0.0));
    snapshot!("compare", folder.path(), &[&["compare"], SMALL].concat());
    let two = ["--model", "glram", "--model", "mixb2dppca", "--holdout", "0.2"];
    snapshot!("compare_two", folder.path(), &[&["compare"], SMALL, &two].concat());
}

/// What the demo says in words is what its table says in numbers.
#[test]
fn the_demo_says_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let output = snapshot!("demo", folder.path(), &["demo"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // parameters, ln p of seen and unseen digits, error.
    let figures = |digits: &str, model: &str, core: &str| -> Vec<f64> {
        let row = |l: &&str| l.trim_start().starts_with(digits) && l.contains(model) && l.contains(core);
        let line = text.lines().find(row).unwrap_or_else(|| panic!("{digits} {model} {core}: {text}"));
        let cells = line.replace(',', "");
        let all: Vec<f64> =
            cells.split_whitespace().rev().take(4).map(|x| x.parse().unwrap_or(f64::NAN)).collect();
        all.into_iter().rev().collect()
    };
    let ppca = figures("800", "mixture of PPCA", "16");
    let bilateral = ["4×4", "8×8", "14×14"].map(|core| figures("800", "mixB2DPPCA", core));
    assert!(bilateral.is_sorted_by(|a, b| a[2] < b[2]), "{text}");
    assert!(ppca[2] < bilateral[1][2] && ppca[0] > 9.0 * bilateral[2][0], "{text}");
    assert!(bilateral[2][1] - bilateral[2][2] < 0.1 * bilateral[2][1], "{text}");
    assert!(ppca[1] - ppca[2] > 0.3 * ppca[1], "{text}");
    assert!(ppca[3] < bilateral[0][3], "{text}");
    let few = figures("60", "mixB2DPPCA", "8×8");
    assert!(few[3] < figures("60", "GLRAM", "8×8")[3] && few[3] < figures("60", "PCA", "59")[3], "{text}");
    let noise: Vec<&str> =
        text.lines().find(|line| line.starts_with("Noise")).unwrap().split_whitespace().collect();
    let shares = noise.windows(2).filter(|pair| pair[1].starts_with('%'));
    let left: Vec<f64> = shares.map(|pair| pair[0].parse().unwrap()).collect();
    assert!(left[0] < left[1] && left[1] < 100.0, "{text}");
    for name in ["montage.png", "denoised.png", "report.html"] {
        assert!(folder.path().join("demo").join(name).exists(), "{name}");
    }
}

#[test]
fn clusters_are_listed_drawn_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let digits = ["demo:mnist", "--scale", "1/255", "--take", "0:300"];
    let cluster = |more: &[&'static str]| [&["cluster"], &digits[..], more].concat();
    let k = ["-k", "3", "-r", "3", "--max-iter", "10"];
    snapshot!("cluster", path, &cluster(&[&k[..], &["-o", "groups"]].concat()));
    // The table is that of `assign` by the model that was kept, and so is what the model is asked later.
    let table = std::fs::read(path.join("groups/clusters.csv")).unwrap();
    assert_eq!(ok(path, &[&["assign", "groups/model.mm"], &digits[..]].concat()).stdout, table);
    ok(path, &cluster(&["-m", "groups/model.mm", "-o", "again", "--sheet", "9"]));
    assert_eq!(std::fs::read(path.join("again/clusters.csv")).unwrap(), table);
    assert!(!path.join("again/model.mm").exists());
    // Up to 64 tiles of 28×28, twice as large; nine at most.
    let size = |name: &str| {
        let png = std::fs::read(path.join(name)).unwrap();
        [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()))
    };
    assert_eq!(
        (size("groups/cluster-2.png"), size("again/cluster-2.png")),
        ([8 * 56 + 14; 2], [3 * 56 + 4; 2])
    );
    let told = ok(path, &cluster(&["-m", "groups/model.mm", "--json", "-q"])).stdout;
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    let clusters = told["clusters"].as_array().unwrap();
    assert_eq!(clusters.iter().map(|c| c["n_samples"].as_u64().unwrap()).sum::<u64>(), 300);
    for (j, cluster) in clusters.iter().enumerate() {
        let of = |label: &str| {
            let samples = told["samples"].as_array().unwrap().iter();
            samples.filter(|s| s["component"] == j && (label.is_empty() || s["label"] == label)).count()
                as u64
        };
        assert_eq!(cluster["n_samples"], of(""));
        assert_eq!(cluster["n_with_label"], of(cluster["label"].as_str().unwrap()));
        assert!(["0", "1", "2"].iter().all(|label| cluster["n_with_label"].as_u64().unwrap() >= of(label)));
    }
    snapshot!("cluster_how_many", path, &cluster(&[]));
    snapshot!("cluster_both", path, &cluster(&["-k", "3", "-m", "groups/model.mm"]));
    snapshot!("cluster_no_mixture", path, &cluster(&["-k", "3", "--kind", "glram"]));
}

/// Files keep their names in the table.
#[test]
fn clusters_of_a_folder_have_the_names_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fit(path, "m.mm", &[]);
    ok(path, &["reconstruct", "m.mm", "demo:mnist", "--limit", "6", "-o", "pictures"]);
    ok(path, &["cluster", "pictures", "-k", "2", "-r", "2", "--max-iter", "3", "-o", "groups"]);
    let table = std::fs::read_to_string(path.join("groups/clusters.csv")).unwrap();
    let names: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(names, ["000.png", "001.png", "002.png", "003.png", "004.png", "005.png"]);
}

#[test]
fn completions_name_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(ok(folder.path(), &["completions", shell]).stdout).unwrap();
        assert!(script.contains("recognize"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let page = |args: &[&str]| String::from_utf8(ok(folder.path(), args).stdout).unwrap();
    let whole = page(&["man"]);
    assert!(whole.contains(".TH matmix 1") && whole.contains("recognize"), "{whole}");
    let fit = page(&["man", "fit"]);
    assert!(fit.contains(".TH matmix-fit 1") && fit.contains("checkpoint\\-every"), "{fit}");
    snapshot!("man_of_nothing", folder.path(), &["man", "nothing"]);
}

#[test]
fn the_paper_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Four people with eight images each: digits that stand for faces.
    let images = matmix::data::digits().samples;
    let chosen: Vec<usize> = (0..4).flat_map(|d| (0..8).map(move |n| 100 * d + n)).collect();
    for (person, of) in chosen.chunks(8).enumerate() {
        let samples = images.clone().select(of).unwrap();
        let grid = matmix::picture::Grid::default();
        matmix::picture::write_folder(path.join(format!("faces/p{person}")), &samples, None, &grid).unwrap();
    }
    // FERET's images are the smallest; its grid is the same for four people as for fifty.
    let args =
        ["paper", "feret", "--data", "faces", "--repeats", "1", "--algorithm", "exact", "-o", "out", "-q"];
    let first = ok(path, &args).stdout;
    let results = path.join("out/results.csv");
    let all = std::fs::read_to_string(&results).unwrap();
    // The last four are those by patches.
    assert_eq!(all.lines().count(), 1 + 4 * (1 + 3 * 3) + 4);
    std::fs::write(&results, &all[..all.len() * 9 / 10]).unwrap();
    assert_eq!(ok(path, &args).stdout, first, "the tables do not depend on where it was stopped");
    for name in ["report.md", "table.csv", "settings.json"] {
        assert!(path.join("out").join(name).exists(), "{name}");
    }
}

#[test]
fn on_the_digits_the_mixture_is_better_than_glram_for_every_k() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["paper", "digits", "--repeats", "1", "--algorithm", "exact", "-o", "out"];
    let output = snapshot!("paper_digits", folder.path(), &args);
    let text = String::from_utf8(output.stdout).unwrap();
    for k in [2, 5, 10] {
        let claim = format!("| K = {k}: e(mixB2DPPCA) < e(GLRAM)");
        let line = text.lines().find(|l| l.starts_with(&claim)).unwrap();
        assert!(line.contains("| yes: "), "{line}");
    }
    for name in ["results.csv", "table.csv", "error.svg", "reconstructions.png", "report.md"] {
        assert!(folder.path().join("out").join(name).exists(), "{name}");
    }
}

#[test]
fn outliers_need_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Sixty samples along two directions, and two that are not.
    let value = |i: usize| {
        let (sample, cell) = (i / 12, i % 12);
        let (a, b) = ((sample * 37 % 61) as f64, (sample * 23 % 53) as f64);
        let x = a * (1.0 + cell as f64) + b * (cell as f64 - 4.0).powi(2) + (i * 71 % 19) as f64;
        if sample >= 60 { 300.0 * (1 - 2 * (cell as i32 % 2)) as f64 + x } else { x }
    };
    npy::write_array(path.join("x.npy"), &[62, 4, 3], &(0..744).map(value).collect::<Vec<f64>>()).unwrap();
    let found = |more: &[&str]| {
        let output = ok(path, &[&["outliers", "x.npy", "--contamination", "0.033", "--json"], more].concat());
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let samples = told["outliers"].as_array().unwrap().iter().map(|one| one["sample"].as_u64().unwrap());
        let mut samples: Vec<u64> = samples.collect();
        samples.sort_unstable();
        (samples, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for more in [&[][..], &["--seed", "3"], &["-k", "1", "-r", "2"], &["--missing", "nan"]] {
        let (samples, said) = found(more);
        assert_eq!(samples, [60, 61], "{more:?}");
        assert!(said.contains("fitted a mixture of PPCA: "), "{said}");
    }
    assert!(found(&["-k", "1", "-r", "2"]).1.contains("1 component with 2 factors each"));
    ok(path, &["fit", "x.npy", "-r", "1", "-o", "m.mm"]);
    for wrong in [&["outliers", "m.mm"][..], &["outliers", "m.mm", "x.npy", "-k", "2"]] {
        assert_eq!(run(path, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
