//! `matmix fit --dask`: the fit runs on a cluster, by way of the Python package.

use std::process::{Command, Stdio};

use matmix::Error;

use serde_json::Value;

use crate::error::hinted;
use crate::interrupt;

/// What it takes, for whoever does not have it.
const INSTALL: &str = "--dask runs through the Python package: `pip install '.[dask]'` at the top of the repository, for the python3 on your path or the one that MATMIX_PYTHON names";

/// What python3 runs. With -c the current folder comes first among the places modules are sought in, and a `json.py` beside
/// the data would be run: it is taken out before anything is imported that is not built in. (Python 3.10 has no -P, and
/// -I would leave out what users have installed.) What is missing is told apart from what goes wrong.
const PROGRAM: &str = "\
import sys
sys.path[:] = [place for place in sys.path if place]
import json
try:
    import dask.array, distributed
    from matmix._cluster import main
except ImportError as error:
    print(json.dumps({'missing': str(error)}))
    sys.exit(1)
except KeyboardInterrupt:
    sys.exit(130)
sys.exit(main(sys.argv[1:]))
";

/// Asks the Python package for a fit; what it answers.
pub(crate) fn ask(request: &Value) -> anyhow::Result<Value> {
    // The package that brings this program along names its own interpreter.
    let interpreter = std::env::var_os("MATMIX_PYTHON").unwrap_or_else(|| "python3".into());
    let mut python = Command::new(interpreter);
    python.args(["-c", PROGRAM, &request.to_string()]);
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let answer = interrupt::run(&mut python)
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
        // It was stopped before there was a model.
        _ if interrupt::by().is_some() => Err(Error::Stopped.into()),
        Some(answer) => Err(hinted(answer["error"].as_str().unwrap_or("the fit failed").to_string(), hint)),
        None => Err(hinted(format!("--dask: python3 ended without an answer ({})", answer.status), hint)),
    }
}
