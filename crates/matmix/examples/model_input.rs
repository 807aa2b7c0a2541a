//! Fits data and writes the model with what it takes for input, or asks a model file about data: what the Python tests cross with.
//!
//! ```sh
//! cargo run --example model_input -- fit model.mm faces/ mp2dpca '{"scale": 0.0039, "resize": [8, 6]}'
//! cargo run --example model_input -- score model.mm faces/
//! ```

use std::ops::ControlFlow;

use matmix::data::{OpenOptions, open};
use matmix::{FitOptions, Input, Model, ModelFile, Preset, Samples};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["fit", path, data, preset, reading] => {
            let reading: OpenOptions = serde_json::from_str(reading)?;
            let samples = open(data, &reading)?.samples;
            let options = FitOptions {
                components: 2,
                rank: vec![3],
                max_iter: 5,
                tol: 0.0,
                seed: 1,
                ..FitOptions::default()
            };
            let preset: Preset = preset.parse()?;
            let fit = preset.fit(&samples, &options, &mut |_| ControlFlow::Continue(()))?;
            let input = Input::of(samples.shape(), &samples)?.with_images(&reading);
            let name = Some(preset.to_string());
            let file = ModelFile { name, input: Some(input), ..ModelFile::new(fit.model) };
            file.save(path)?;
            tell(&file.model, &preset.view(&samples)?, samples.len())
        }
        ["score", path, data] => {
            let file = ModelFile::load(path)?;
            let input = file.input.as_ref().ok_or("the file does not say what its model takes for input")?;
            let samples = input.open(data, &OpenOptions::default())?.samples;
            tell(&file.model, &file.prepare(&samples, None)?, samples.len())
        }
        _ => Err("say `fit MODEL DATA PRESET READING` or `score MODEL DATA`".into()),
    }
}

/// The log-likelihood of every sample, a line for each: the sum over its rows where those are the model's samples.
#[allow(clippy::print_stdout)]
fn tell(model: &Model, view: &Samples<'_>, samples: usize) -> Result<(), Box<dyn std::error::Error>> {
    let Model::Mixture(model) = model else { return Err("the model has no noise model".into()) };
    for rows in model.score_samples(view)?.chunks(view.len() / samples) {
        println!("{}", rows.iter().sum::<f64>());
    }
    Ok(())
}
