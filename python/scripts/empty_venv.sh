#!/bin/sh
# The wheel in a virtual environment that holds nothing else than what it asks for, and the first example of the
# documentation there.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet target/wheels/matmix-*.whl
cd "$folder"
"$folder/venv/bin/python" -m pip check
found=$("$folder/venv/bin/python" -m pip list --format=freeze | grep -E '^(matplotlib|tqdm|pandas|dask|distributed)=' || true)
[ -z "$found" ] || { echo "what is optional was installed: $found" >&2; exit 1; }
for page in "$root/docs/python.md" "$root/README.md"; do
    [ -f "$page" ] || continue
    "$folder/venv/bin/python" "$root/python/scripts/first_example.py" "$page" >"$folder/example.py"
    "$folder/venv/bin/python" "$folder/example.py"
done
