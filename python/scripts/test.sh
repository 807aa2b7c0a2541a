#!/bin/sh
# Everything that is promised about the Python package, in the virtual environment that `build.sh` made.
# MATMIX_BIN, if set, names the program (the one that the package brings along, say), and its models are compared with Python's.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
"$venv/bin/ruff" check python benchmarks scripts docs/gallery docs/site tests/site
"$venv/bin/ruff" format --check python benchmarks scripts docs/gallery docs/site tests/site
"$venv/bin/mypy"
# From outside the sources, so that the installed wheel is what is tested.
root=$PWD
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
(cd "$outside" && "$root/$venv/bin/python" -m mypy.stubtest matmix --mypy-config-file "$root/pyproject.toml" --allowlist "$root/python/tests/stubtest-allowlist.txt")
# The examples that tests run: a build takes longer than a test may.
if command -v cargo >/dev/null; then cargo build --quiet --features matmix/ndarray --example fit_digits --example model_input; fi
"$venv/bin/python" -m pytest -q python/tests
installed=$(cd "$outside" && "$root/$venv/bin/python" -c 'import matmix, os; print(os.path.dirname(matmix.__file__))')
(cd "$outside" && "$root/$venv/bin/python" -m pytest -q -p no:cacheprovider -c "$root/pyproject.toml" --rootdir "$outside" --doctest-modules "$installed")
"$venv/bin/python" -m pytest -q --doctest-glob='*.md' docs/python.md docs/guide
"$venv/bin/python" python/examples/digits.py out/python-digits
sh python/scripts/empty_venv.sh
