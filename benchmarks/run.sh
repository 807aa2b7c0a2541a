#!/bin/sh
# Sets up .venv-bench with the pinned peers, builds the wheel there in release mode and runs the benchmarks.
# Arguments go to `python -m benchmarks`; --help lists them. MATMIX_BENCH_TORCH=0 leaves PyTorch out.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv-bench}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r benchmarks/requirements.txt
if [ "${MATMIX_BENCH_TORCH:-1}" != 0 ]; then
    "$venv/bin/python" -m pip install --quiet -r benchmarks/requirements-torch.txt ||
        echo "PyTorch did not install; the tables will say so." >&2
fi
wheels=$(sh scripts/target.sh)/wheels-bench
rm -rf "$wheels"
"$venv/bin/maturin" build --quiet --release --out "$wheels"
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheels"/matmix-*.whl
exec "$venv/bin/python" -m benchmarks "$@"
