//! `matmix fit --dask`: the fit runs on a cluster, by way of the Python package.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::hinted;

/// What it takes, for whoever does not have it.
const INSTALL: &str = "--dask runs through the Python package: `pip install '.[dask]'` at the top of the repository, for the python3 on your path";

/// What python3 runs. What is missing is told apart from what goes wrong.
const PROGRAM: &str = "\
import json, sys
try:
    import dask.array, distributed
    from matmix._cluster import main
except ImportError as error:
    print(json.dumps({'missing': str(error)}))
    sys.exit(1)
sys.exit(main(sys.argv[1:]))
";

/// Asks the Python package for a fit; what it answers.
pub(crate) fn ask(request: &Value) -> anyhow::Result<Value> {
    let answer = Command::new("python3")
        .args(["-c", PROGRAM, &request.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| hinted(format!("--dask: python3 cannot be run: {error}"), INSTALL))?;
    let lines = String::from_utf8_lossy(&answer.stdout);
    let parsed: Option<Value> = lines.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let hint = "the workers need matmix too, and must find the files under the same names; docs/scaling.md has the rest";
    match parsed {
        Some(Value::Object(answer)) if answer.contains_key("missing") => {
            let missing = answer["missing"].as_str().unwrap_or_default();
            Err(hinted(format!("--dask: python3 cannot import what it needs: {missing}"), INSTALL))
        }
        Some(answer) if answer["error"].is_null() => Ok(answer),
        Some(answer) => Err(hinted(answer["error"].as_str().unwrap_or("the fit failed").to_string(), hint)),
        None => Err(hinted(format!("--dask: python3 ended without an answer ({})", answer.status), hint)),
    }
}
