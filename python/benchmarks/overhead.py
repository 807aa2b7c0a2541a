"""What fitting from Python costs on top of fitting from Rust: 60,000 × 28×28 bytes, K = 5, cores of 4×4, 10 iterations.

Both sides fit the same `.npy` file (the embedded digits, shifted and repeated), memory-mapped; the measured time is the
wall time of the whole call, the best of several, taken in turns so that both meet the same machine.

    python python/benchmarks/overhead.py [repeats]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matmix
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
K, RANK, ITERATIONS, SEED = 5, 4, 10, 7


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    build = [
        "cargo",
        "build",
        "--quiet",
        "--release",
        "-p",
        "matmix",
        "--example",
        "fit_digits",
        "--message-format=json",
    ]
    built = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    example = next(part for part in built.split('"') if part.endswith("examples/fit_digits"))
    with tempfile.TemporaryDirectory() as folder:
        data, file = Path(folder, "x.npy"), Path(folder, "model.safetensors")
        X = matmix.datasets.load_digits28().data
        np.save(data, np.concatenate([np.roll(X, (i % 8 - 4, i // 8 - 4), axis=(1, 2)) for i in range(60)]))
        mapped = np.load(data, mmap_mode="r")
        rust, python = [], []
        for _ in range(repeats):
            options = [str(n) for n in (K, RANK, ITERATIONS, SEED)]
            done = subprocess.run([example, str(file), *options, str(data)], check=True, capture_output=True, text=True)
            rust.append(float(done.stdout))
            started = time.perf_counter()
            model = matmix.Mixture(K, RANK, max_iter=ITERATIONS, tol=0, random_state=SEED).fit(mapped)
            python.append(time.perf_counter() - started)
        assert np.array_equal(model.means_, matmix.load(file).means_), "the same seed must give the same bits"
    best = min(python) / min(rust) - 1
    print("| fit of 60,000 × 28×28 u8 | Rust, s | Python, s | overhead |")
    print("|---|---|---|---|")
    name = f"K = {K}, {RANK}×{RANK}, {ITERATIONS} iterations"
    print(f"| {name} | {min(rust):.3f} | {min(python):.3f} | {100 * best:+.1f} % |")


if __name__ == "__main__":
    main()
