//! Fits the embedded digits, or a `.npy` file, and writes the model file: what the Python tests and the benchmark
//! of the bindings compare with.
//!
//! ```sh
//! cargo run --release --example fit_digits -- model.safetensors [components rank iterations seed [data.npy]]
//! ```

use matmix::data::digits;
use matmix::{FitOptions, Model, ModelFile, Samples, fit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("give the name of the model file to write")?;
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let samples = match arguments.get(5) {
        Some(data) => Samples::from_npy(data)?,
        None => digits().samples,
    };
    let options = FitOptions {
        components: number(1, 3)?,
        rank: vec![number(2, 4)?],
        max_iter: number(3, 20)?,
        seed: number(4, 7)? as u64,
        tol: 0.0,
        ..FitOptions::default()
    };
    let fit = fit(&samples, &options)?;
    #[allow(clippy::print_stdout)]
    {
        println!("{:.6}", fit.history.seconds);
    }
    ModelFile::new(Model::Mixture(fit.model)).save(path)?;
    Ok(())
}
