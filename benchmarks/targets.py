"""What the benchmark has to show, and whether it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .harness import OURS

Results = dict[str, Any]


@dataclass
class Target:
    """One promise: a number found in the results, and the bound it is held against."""

    what: str
    bound: float
    found: Callable[[Results], float]
    unit: str = "×"
    at_most: bool = False

    def reached(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


def case(results: Results, name: str) -> dict[str, Any]:
    return next(case for case in results["cases"] if case["name"] == name)


def seconds(results: Results, name: str, contestant: str = OURS) -> float:
    return case(results, name)["contestants"][contestant]["seconds"]


def times_faster(name: str, prefix: str) -> Callable[[Results], float]:
    """How many times faster ours is than the fastest contestant whose name begins with `prefix`."""

    def found(results: Results) -> float:
        contestants = case(results, name)["contestants"]
        theirs = [c["seconds"] for peer, c in contestants.items() if peer.startswith(prefix) and "seconds" in c]
        if not theirs:
            raise KeyError(prefix)
        return min(theirs) / contestants[OURS]["seconds"]

    return found


def share_of_product(name: str) -> Callable[[Results], float]:
    """Useful flops per second as a percentage of the matrix product of the same precision and threads."""

    def found(results: Results) -> float:
        row = case(results, name)
        rate = row["useful_flops"] / row["contestants"][OURS]["seconds"]
        return 100 * rate / results["yardstick"][f"{row['precision']}, {row['threads']}"]

    return found


def growth(name: str, base: str) -> Callable[[Results], float]:
    """How much longer one takes than the other, for as many samples."""

    def per_sample(results: Results, name: str) -> float:
        return seconds(results, name) / case(results, name)["samples"]

    return lambda results: per_sample(results, name) / per_sample(results, base)


def targets(threads: int) -> list[Target]:
    fastest = "the fastest solver of scikit-learn"
    return [
        Target("EM iteration, f32: useful flops per second of sgemm's", 60, share_of_product("iteration"), " %"),
        Target("the same in f64, of dgemm's", 60, share_of_product("iteration-f64"), " %"),
        Target("EM iteration against NumPy", 5, times_faster("iteration", "NumPy")),
        Target("EM iteration against PyTorch", 3, times_faster("iteration", "PyTorch")),
        Target("mixture of PPCA, iteration against ppca_rs", 500, times_faster("mixture-ppca", "ppca_rs")),
        Target("mixture of PPCA, iteration against NumPy", 3, times_faster("mixture-ppca", "NumPy")),
        Target("GLRAM to convergence against TensorLy from its faster start", 20, times_faster("glram", "TensorLy")),
        Target("GLRAM to convergence against NumPy", 3, times_faster("glram", "NumPy")),
        Target(f"PCA(16) against {fastest}", 1, times_faster("pca", "scikit-learn")),
        Target(f"{threads} threads against one", 0.9 * threads, growth("growth-one-thread", "growth-all-threads")),
        Target("K = 200 against K = 10, per iteration", 8, growth("iteration-k200", "iteration"), at_most=True),
    ]
