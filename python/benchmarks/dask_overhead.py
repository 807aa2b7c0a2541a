"""What Dask adds to an iteration: the same fit, with the same blocks, in one process and on a cluster on this machine.

Both have two threads: one process with two, and two workers with one each. The samples are in the memory of whoever
works on them, so that the difference is what travels and what waits: parameters out, sums back, the client.

    python python/benchmarks/dask_overhead.py [--samples 60000] [--iterations 10]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import dask.array as da
import distributed
import matmix
import numpy as np


def seconds_per_iteration(X: Any, iterations: int, rounds: int, **options: Any) -> float:
    """The least median of some rounds."""
    medians = []
    for _ in range(rounds):
        times: list[float] = []
        model = matmix.Mixture(
            5,
            rank=4,
            random_state=0,
            max_iter=iterations,
            tol=0,
            callback=lambda progress, times=times: times.append(time.perf_counter()),
            **options,
        )
        model.fit(X)
        # The first interval holds whatever is done once.
        medians.append(statistics.median(np.diff(times)[1:]))
    return min(medians)


def main() -> None:
    """Prints the table of docs/scaling.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, nargs="+", default=[8, 64])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    digits, _ = matmix.datasets.load_digits28(return_X_y=True)
    X = np.resize(digits, (arguments.samples, 28, 28))
    print(f"{arguments.samples:,} × 28×28 bytes, K = 5, cores 4×4, {arguments.iterations} iterations\n")
    print("| blocks | in one process, ms per iteration | on a cluster | overhead of Dask | per block and pass |")
    print("|---|---|---|---|---|")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        for blocks in arguments.blocks:
            step = -(-arguments.samples // blocks)
            parts = matmix.Parts([X[start : start + step] for start in range(0, len(X), step)])
            array = da.from_array(X, chunks=(step, -1, -1)).persist()
            distributed.wait(array)
            rounds = (arguments.iterations, arguments.rounds)
            here = seconds_per_iteration(parts, *rounds, n_threads=2)
            there = seconds_per_iteration(array, *rounds)
            more = there - here
            # Two modes: two passes per iteration.
            each = more / blocks / 2
            print(
                f"| {blocks} | {1e3 * here:.1f} | {1e3 * there:.1f} | {1e3 * more:.1f} ms ({more / here:+.0%}) "
                f"| {1e3 * each:.2f} ms |"
            )
            del array


if __name__ == "__main__":
    main()
