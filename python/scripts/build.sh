#!/bin/sh
# Makes the virtual environment, builds the wheel and installs it there.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r python/requirements-test.txt
rm -rf target/wheels
"$venv/bin/maturin" build --release --out target/wheels
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps target/wheels/matmix-*.whl
