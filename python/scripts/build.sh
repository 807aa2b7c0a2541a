#!/bin/sh
# Makes the virtual environment, builds the wheel and installs it there.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
wheels=$(sh scripts/target.sh)/wheels
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r python/requirements-test.txt
rm -rf "$wheels"
"$venv/bin/maturin" build --release --out "$wheels"
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheels"/matmix-*.whl
