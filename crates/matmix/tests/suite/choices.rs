//! Every option has one text: what is typed is what is shown and what a file keeps.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use matmix::data::{Contrast, Element, FillValue, OpenOptions, Residence, Unobserved};
use matmix::pass::Question;
use matmix::picture::{ColourMap, Grid, ValueRange};
use matmix::report::{Axis, Colours, ReportOptions};
use matmix::{
    Algorithm, Criterion, Device, Distance, Dof, FitOptions, LowRankOptions, Missing, Noise,
    PatchDenoiserOptions, PatchFisherOptions, Precision, Preset, Purpose, Reconstruction, Search, SearchMove,
    SelectOptions, Start, StopReason, StopRule, Temper,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// From text to a value and back, and through JSON.
fn round_trip<T>(texts: &[&str])
where
    T: FromStr<Err = matmix::Error> + Display + Debug + PartialEq + Serialize + DeserializeOwned,
{
    for &text in texts {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string(), text);
        json(&value);
    }
    assert!("no such thing".parse::<T>().is_err());
    assert!(serde_json::from_str::<T>("\"no such thing\"").is_err());
}

fn json<T: Debug + PartialEq + Serialize + DeserializeOwned>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value, "{text}");
}

/// Options go through JSON, what is left out is the default, and what nobody knows is refused.
fn options<T: Debug + PartialEq + Default + Serialize + DeserializeOwned>(changed: &T) {
    json(changed);
    assert_ne!(*changed, T::default());
    assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    assert!(serde_json::from_str::<T>("{\"no such option\": 1}").is_err());
}

#[test]
fn what_is_typed_is_what_is_shown_and_kept() {
    round_trip::<Algorithm>(&["exact", "paper"]);
    round_trip::<ColourMap>(&["grey", "diverging"]);
    round_trip::<Contrast>(&["0.1", "2", "kept", "none"]);
    round_trip::<Colours>(&["auto", "grey", "sequential", "diverging"]);
    round_trip::<Distance>(&["auto", "data", "paper", "weighted", "fisher"]);
    round_trip::<Dof>(&["estimated", "shared", "5.5"]);
    round_trip::<Element>(&["u8", "f32", "f64"]);
    round_trip::<FillValue>(&["255", "-9999.5", "below:0", "below:-0.25"]);
    round_trip::<Missing>(&["error", "nan"]);
    round_trip::<Noise>(&["gaussian", "t"]);
    round_trip::<Preset>(&[
        "pca",
        "2dpca",
        "glram",
        "mpca",
        "ppca",
        "psopca",
        "mixppca",
        "mp2dpca",
        "mixb2dppca",
    ]);
    round_trip::<Residence>(&["memory", "mapped", "elsewhere"]);
    round_trip::<Question>(&[
        "component",
        "log_likelihood",
        "entropy",
        "squared_error",
        "log_densities",
        "responsibilities",
        "core",
        "all_cores",
        "rebuilt",
        "denoised",
    ]);
    round_trip::<Search>(&["auto", "none"]);
    round_trip::<Start>(&["kmeans", "random"]);
    round_trip::<SearchMove>(&["begin", "split", "merge", "exchange", "breathe", "rank"]);
    round_trip::<StopReason>(&["converged", "max_iterations", "stopped"]);
    round_trip::<StopRule>(&["likelihood", "error"]);
    round_trip::<Temper>(&["auto", "none", "0.1", "1"]);
    round_trip::<Unobserved>(&["error", "nan", "255", "below:0", "alpha", "alpha:0.25"]);
    round_trip::<ValueRange>(&["picture", "tile", "0:255", "-1.5:0.0001"]);
    // Those whose names other tests know.
    round_trip::<Criterion>(&Criterion::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>());
    round_trip::<Device>(&Device::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>());
    round_trip::<Precision>(&Precision::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>());
    round_trip::<Purpose>(&Purpose::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>());
    round_trip::<Reconstruction>(&Reconstruction::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>());
    for range in ["1", "1:", ":1", "0:inf", "a:b"] {
        assert!(range.parse::<ValueRange>().is_err(), "{range}");
    }
}

#[test]
fn options_go_through_a_file() {
    let fit = FitOptions { components: 3, dof: Dof::Fixed(4.0), ..FitOptions::default() };
    options(&fit);
    options(&SelectOptions { folds: 5, fit: fit.clone(), ..SelectOptions::default() });
    options(&LowRankOptions { centred: false, ..LowRankOptions::default() });
    options(&PatchFisherOptions { grid: 3, fit: fit.clone(), ..PatchFisherOptions::default() });
    options(&PatchDenoiserOptions { size: vec![4, 6], fit, ..PatchDenoiserOptions::default() });
    options(&Grid { range: ValueRange::Given(0.0, 1.0), map: ColourMap::Diverging, ..Grid::default() });
    options(&OpenOptions {
        take: Some(3..10),
        missing: Some(Unobserved::Value(FillValue::Below(0.0))),
        resize: Some((4, 6)),
        ..OpenOptions::default()
    });
    let labels = Some(matmix::data::Labels::new(["a", "b", "a"]));
    let axes = vec![Axis { name: "time".into(), step: 0.5, ..Axis::default() }];
    options(&ReportOptions { labels, axes, colours: Colours::Grey, ..ReportOptions::default() });
}

#[test]
fn a_description_has_what_decides_a_fit_and_nothing_else() {
    let samples = matmix::Samples::from_vec(&[2], vec![1.0, 2.0, 4.0, 0.0, 1.0, 5.0]).unwrap();
    let checkpoint = Some(matmix::Checkpoint { path: "state".into(), every: 1, resume: true });
    let options = FitOptions { rank: vec![1], seed: 7, max_iter: 2, ..FitOptions::default() };
    let kept = FitOptions { checkpoint, threads: Some(3), ..options.clone() };
    assert_eq!(kept.described(), options.described());
    let described = options.described();
    assert!(described.as_object().unwrap().values().all(|value| !value.is_null()), "{described}");
    assert_eq!(serde_json::from_value::<FitOptions>(described).unwrap(), options);
    let model = matmix::fit(&samples, &options).unwrap().model;
    let gone_on = FitOptions { start: Start::Model(Box::new(model)), ..options };
    assert_eq!(gone_on.described()["start"], "model");
}
