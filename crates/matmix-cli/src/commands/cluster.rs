//! `matmix fit --dask`: the fit runs on a cluster, by way of the Python package.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::hinted;

/// What it takes, for whoever does not have it.
const INSTALL: &str = "--dask runs through the Python package: `pip install '.[dask]'` at the top of the repository, for the python3 on your path";

/// Asks `python3 -m matmix._cluster` for a fit; what it answers.
pub(crate) fn ask(request: &Value) -> anyhow::Result<Value> {
    let python = || Command::new("python3");
    let found = python()
        .args(["-c", "import matmix._cluster, dask.array, distributed"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| hinted(format!("--dask: python3 cannot be run: {error}"), INSTALL))?;
    if !found.status.success() {
        let said = String::from_utf8_lossy(&found.stderr);
        let reason = said.lines().last().unwrap_or("it does not say why");
        return Err(hinted(format!("--dask: python3 cannot import matmix with Dask: {reason}"), INSTALL));
    }
    let answer = python()
        .args(["-m", "matmix._cluster", &request.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| hinted(format!("--dask: python3 cannot be run: {error}"), INSTALL))?;
    let lines = String::from_utf8_lossy(&answer.stdout);
    let parsed: Option<Value> = lines.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let hint = "the workers need matmix too, and must find the files under the same names; docs/scaling.md has the rest";
    match parsed {
        Some(answer) if answer["error"].is_null() => Ok(answer),
        Some(answer) => Err(hinted(answer["error"].as_str().unwrap_or("the fit failed").to_string(), hint)),
        None => Err(hinted(format!("--dask: python3 ended without an answer ({})", answer.status), hint)),
    }
}
