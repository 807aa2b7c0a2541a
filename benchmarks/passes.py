"""How many passes over the samples a fit needs, and how long it takes, to come as far as plain EM does.

    python -m benchmarks.passes --rows digits rich-10-4 --seeds 0 1 2 --threads 2 --json out/passes.json
    python -m benchmarks.passes --table out/*.json

Plain EM alternates the modes, one pass each, over all samples, from the start of k-means; it is run to its
end by NumPy or PyTorch (`--peer`), or, with one pass for all modes, by the library itself. The library searches for its
start and has stages, or none ("whole"). There are two targets, a tenth of a nat per sample below that end: of the same
seed, which plain EM always reaches, and of the best of all seeds.
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
    model = matmix.Mixture(40, 10, search="none", random_state=0).fit(X)
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
    "rich-50-8": (rich, 50, 8),
    "large": (lambda: planted(20_000, (64, 64), 8, 8), 8, 8),
    "colours": (colours, 10, (4, 4, 2)),
}


class Course:
    """What a fit had reached after how many passes and seconds, as far as it looked at all samples."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float, float]] = []
        self.begun = time.perf_counter()

    def __call__(self, progress: Any) -> None:
        # What a search says is about the samples of the search.
        if progress.share == 1 and progress.step is None:
            self.points.append((progress.passes, time.perf_counter() - self.begun, progress.log_likelihood))


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


def measure(name: str, seeds: list[int], threads: int, peers: list[str]) -> dict[str, Any]:
    make, k, rank = ROWS[name]
    X = make()
    runs = []
    for seed in seeds:
        bare: dict[str, Any] = {"stages": False, "search": "none", "accelerate": False, "max_iter": LONGEST}
        plain, plainly = fit(X, k, rank, seed, threads, **bare)
        whole, wholly = fit(X, k, rank, seed, threads, stages=False)
        staged, model = fit(X, k, rank, seed, threads)
        courses = {"plain, one pass": plain, "whole": whole, "matmix": staged}
        if peers:
            start = matmix.Mixture(k, rank, random_state=seed, max_iter=0, tol=0, stages=False).fit(X)
            for backend in backends(threads, set(peers)):
                courses[backend.name] = alternating(backend, X, start, threads)
        reference = courses.get("NumPy") or courses.get("PyTorch") or plain
        ends = {"plain, one pass": plainly, "whole": wholly, "matmix": model}
        runs.append(
            {
                "seed": seed,
                "end of plain": reference.points[-1][2],
                "ends": {who: fitted.lower_bound_ for who, fitted in ends.items()},
                "courses": {who: course.points for who, course in courses.items()},
            }
        )
        print(name, {"seed": seed, **runs[-1]["ends"]}, flush=True)
    return {"row": name, "threads": threads, "samples": list(X.shape), "k": k, "rank": rank, "runs": runs}


def reaching(points: list[list[float]], target: float) -> tuple[float, float] | None:
    """The passes and seconds it took."""
    return next(((passes, seconds) for passes, seconds, reached in points if reached >= target), None)


def joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row of each name, with the seeds of all."""
    together: dict[str, dict[str, Any]] = {}
    for row in rows:
        together.setdefault(row["row"], {**row, "runs": []})["runs"] += row["runs"]
    return list(together.values())


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over the seeds of passes and seconds to the target of the same seed, how many reach which target, and
    what the ends differ by."""
    lines = [
        "| row | who | passes | of plain | time | times as fast | reached | best | end | stages |",
        "|---|---|---:|---:|---:|---:|---|---|---:|---:|",
    ]
    for row in rows:
        runs = row["runs"]
        names = list(runs[0]["courses"])
        plain = next(name for name in ("NumPy", "PyTorch", "plain, one pass") if name in names)
        best = max(run["end of plain"] for run in runs) - SHORT_OF
        own = [
            {who: reaching(points, run["end of plain"] - SHORT_OF) for who, points in run["courses"].items()}
            for run in runs
        ]
        stages = statistics.mean(run["ends"]["matmix"] - run["ends"]["whole"] for run in runs)
        for who in names:
            to_best = [reaching(run["courses"][who], best) for run in runs]
            n_best = sum(reached is not None for reached in to_best)
            of = [(run[who], run[plain], run["matmix"]) for run in own if run[who] and run[plain]]
            if not of:
                lines.append(f"| {row['row']} | {who} | – | – | – | – | 0 of {len(runs)} | {n_best} | | |")
                continue
            passes, seconds = (statistics.median(mine[i] for mine, _, _ in of) for i in (0, 1))
            ratio = statistics.mean(mine[0] / plainly[0] for mine, plainly, _ in of)
            speed = [mine[1] / ours[1] for mine, _, ours in of if ours]
            faster = f"{statistics.median(speed):.1f}" if speed else "–"
            ends = [run["ends"][who] if who in run["ends"] else run["courses"][who][-1][2] for run in runs]
            lines.append(
                f"| {row['row']} | {who} | {passes:.1f} | {ratio:.2f} | {seconds:.2f} s | {faster} | "
                f"{len(of)} of {len(runs)} | {n_best} | {statistics.mean(ends):.2f} | "
                f"{f'{stages:+.3f}' if who == 'matmix' else ''} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", action="append", default=[], choices=["NumPy", "PyTorch"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", nargs="+", type=Path, help="only prints the table of what was measured before")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(joined([row for path in arguments.table for row in json.loads(path.read_text())])))
        return
    rows = []
    for name in arguments.rows:
        rows.append(measure(name, arguments.seeds, arguments.threads, arguments.peer))
        # After every row: whoever stops a long run keeps what it has measured.
        if arguments.json:
            arguments.json.write_text(json.dumps(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
