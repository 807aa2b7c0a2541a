#!/bin/sh
# The wheel in a virtual environment that holds nothing else than what it asks for, without a Rust toolchain in reach: the
# first example of the documentation, and the program that comes along.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
wheels=$(sh scripts/target.sh)/wheels
folder=$(mktemp -d)
rm=$(command -v rm)
trap '"$rm" -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "$wheels"/matmix-*.whl
cd "$folder"
"$folder/venv/bin/python" -m pip check
found=$("$folder/venv/bin/python" -m pip list --format=freeze | grep -E '^(matplotlib|tqdm|pandas|dask|distributed)=' || true)
[ -z "$found" ] || { echo "what is optional was installed: $found" >&2; exit 1; }
# From here on nothing is on the path but the environment.
PATH=$folder/venv/bin
export PATH
if command -v cargo >/dev/null || command -v rustc >/dev/null; then echo "a Rust toolchain is in reach" >&2; exit 1; fi
for page in "$root/docs/python.md" "$root/README.md"; do
    [ -f "$page" ] || continue
    "$folder/venv/bin/python" "$root/python/scripts/first_example.py" "$page" >"$folder/example.py"
    "$folder/venv/bin/python" "$folder/example.py"
done
matmix --version
matmix demo --quiet --output "$folder/demo"
python -m matmix info demo:mnist
[ -s "$folder/demo/report.html" ] || { echo "the demo has left no report" >&2; exit 1; }
