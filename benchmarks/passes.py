"""How many passes over the samples a fit needs, and how long it takes, to come as far as plain EM does.

    python -m benchmarks.passes --rows digits rich-10-4 --seeds 5 --threads 2 --json out/passes.json
    python -m benchmarks.passes --table out/*.json

Plain EM alternates the modes, one pass each, over all samples, from the start that the library finds; it is run to its
end by NumPy or PyTorch (`--peer`), or, with one pass for all modes, by the library itself. The target is a tenth of a
nat per sample below that end. The optima of different starts differ by whole nats, so every start has a target of its
own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matmix
import numpy as np

from .backends import backends
from .data import digits, planted
from .em_step import fastest
from .maximize import Parameters, maximize

# How far from the end counts as there, in nats per sample.
SHORT_OF = 0.1
LONGEST = 300


def rich(n: int = 60_000, order: str = "shuffled") -> np.ndarray:
    """Samples of a model of the digits that is richer than what is fitted to them."""
    X, _ = digits()
    model = matmix.Mixture(40, 10, random_state=0).fit(X)
    drawn, component = model.sample(n, random_state=1)
    order_of = np.argsort(component, kind="stable") if order == "sorted" else np.random.default_rng(2).permutation(n)
    return np.ascontiguousarray(drawn[order_of], dtype=np.float32)


def colours(n: int = 40_000) -> np.ndarray:
    """Pieces of 16×16 pixels of the photographs that scikit-learn brings along."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(3)
    pieces = []
    for image in load_sample_images().images:
        rows, columns = (rng.integers(0, side - 16, n // 2) for side in image.shape[:2])
        pieces += [image[i : i + 16, j : j + 16] for i, j in zip(rows, columns, strict=True)]
    return np.stack(pieces).astype(np.float32) / 255


# The samples, K and the rank of each row.
ROWS: dict[str, tuple[Callable[[], np.ndarray], int, Any]] = {
    "digits": (lambda: digits()[0], 10, 4),
    "rich-10-4": (rich, 10, 4),
    "rich-10-4-sorted": (lambda: rich(order="sorted"), 10, 4),
    "rich-10-8": (rich, 10, 8),
    "rich-50-4": (rich, 50, 4),
    "large": (lambda: planted(20_000, (64, 64), 8, 8), 8, 8),
    "colours": (colours, 10, (4, 4, 2)),
}


class Course:
    """What a fit had reached after how many passes and seconds, as far as it looked at all samples."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float, float]] = []
        self.begun = time.perf_counter()

    def __call__(self, progress: Any) -> None:
        if progress.share == 1:
            self.points.append((progress.passes, time.perf_counter() - self.begun, progress.log_likelihood))

    def reaching(self, target: float) -> dict[str, float] | None:
        first = next((point for point in self.points if point[2] >= target), None)
        return None if first is None else {"passes": first[0], "seconds": first[1]}


def fit(X: np.ndarray, k: int, rank: Any, seed: int, threads: int, **options: Any) -> tuple[Course, matmix.Mixture]:
    course = Course()
    model = matmix.Mixture(k, rank, random_state=seed, n_threads=threads, callback=course, **options)
    return course, model.fit(X)


def alternating(backend: Any, X: np.ndarray, start: matmix.Mixture, threads: int) -> Course:
    """Plain EM by a peer, to the library's own rule of when to stop."""
    model = Parameters.of(start)
    step = fastest(backend, X, model, threads, budget=10)
    floor = 1e-6 * float(X.var(0, dtype=np.float64).mean())
    modes = X.ndim - 1
    course = Course()
    passes, last = 0, -np.inf
    for _ in range(LONGEST):
        for mode in range(modes):
            sums = step.sums(X, model, mode)
            passes += 1
            if mode == 0:
                reached = sums.log_likelihood / len(X)
                course.points.append((passes, time.perf_counter() - course.begun, reached))
            model = maximize(model, sums, mode, floor)
        if reached - last < 1e-5 * abs(reached):
            break
        last = reached
    return course


def measure(name: str, seeds: range, threads: int, peers: list[str]) -> dict[str, Any]:
    make, k, rank = ROWS[name]
    X = make()
    runs = []
    for seed in seeds:
        plain, plainly = fit(X, k, rank, seed, threads, stages=False, accelerate=False, max_iter=LONGEST)
        whole, wholly = fit(X, k, rank, seed, threads, stages=False)
        staged, model = fit(X, k, rank, seed, threads)
        courses = {"plain, one pass": plain, "whole": whole, "matmix": staged}
        if peers:
            start = matmix.Mixture(k, rank, random_state=seed, max_iter=0, tol=0, stages=False).fit(X)
            for backend in backends(threads, set(peers)):
                courses[backend.name] = alternating(backend, X, start, threads)
        reference = courses.get("NumPy") or courses.get("PyTorch") or plain
        target = reference.points[-1][2] - SHORT_OF
        runs.append(
            {
                "seed": seed,
                "target": target,
                "ends": {
                    "plain, one pass": plainly.lower_bound_,
                    "whole": wholly.lower_bound_,
                    "matmix": model.lower_bound_,
                },
                "reaching": {who: course.reaching(target) for who, course in courses.items()},
            }
        )
        print(json.dumps({name: runs[-1]}), flush=True)
    return {"row": name, "threads": threads, "samples": list(X.shape), "k": k, "rank": rank, "runs": runs}


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over the seeds of passes and seconds to the target, and what the ends differ by."""
    lines = [
        "| row | who | passes | of plain | time | times as fast | reached | end, against fits of all samples |",
        "|---|---|---:|---:|---:|---:|---|---:|",
    ]
    for row in rows:
        runs = row["runs"]
        names = list(runs[0]["reaching"])
        plain = next(name for name in ("NumPy", "PyTorch", "plain, one pass") if name in names)
        gain = statistics.mean(run["ends"]["matmix"] - run["ends"]["whole"] for run in runs)
        for who in names:
            reached = [run for run in runs if run["reaching"][who] and run["reaching"][plain]]
            if not reached:
                lines.append(f"| {row['row']} | {who} | – | – | – | – | 0 of {len(runs)} | |")
                continue
            of = [run["reaching"][who] for run in reached]
            ratio = [run["reaching"][who]["passes"] / run["reaching"][plain]["passes"] for run in reached]
            speed = [
                run["reaching"][who]["seconds"] / run["reaching"]["matmix"]["seconds"]
                for run in reached
                if run["reaching"]["matmix"]
            ]
            passes, seconds = (statistics.median(o[what] for o in of) for what in ("passes", "seconds"))
            faster = f"{statistics.median(speed):.1f}" if speed else "–"
            end = f"{gain:+.3f}" if who == "matmix" else ""
            lines.append(
                f"| {row['row']} | {who} | {passes:.1f} | {statistics.mean(ratio):.2f} | {seconds:.2f} s | {faster} | "
                f"{len(reached)} of {len(runs)} | {end} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", action="append", default=[], choices=["NumPy", "PyTorch"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", nargs="+", type=Path, help="only prints the table of what was measured before")
    arguments = parser.parse_args()
    if arguments.table:
        print(table([row for path in arguments.table for row in json.loads(path.read_text())]))
        return
    rows = []
    for name in arguments.rows:
        rows.append(measure(name, range(arguments.seeds), arguments.threads, arguments.peer))
        # After every row: whoever stops a long run keeps what it has measured.
        if arguments.json:
            arguments.json.write_text(json.dumps(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
