"""(a) One EM iteration of mixB2DPPCA, ours and the same step in NumPy and PyTorch; (g) how ours grows."""

from __future__ import annotations

from typing import Any

import matmix
import numpy as np

from .backends import backends
from .data import planted, start_of
from .em_step import fastest
from .harness import OURS, Case, Contestant, per_iteration, timed
from .maximize import Parameters


def useful_flops(n: int, shape: tuple[int, ...], k: int, rank: int) -> float:
    """The contractions of one iteration with a pass for each of the two modes, and nothing else."""
    p, q = shape
    return sum(2.0 * n * k * (p * q * rank + side * rank * rank) for side in (p, q))


def our_iteration(X: np.ndarray, start: Any, k: int, rank: int, threads: int, many: int) -> Contestant:
    """Ours through the Python package: two fits from the same start model, the difference divided."""

    def fit(iterations: int) -> matmix.Mixture:
        # Guesses where the iterations lead are no iterations.
        options = {"init_params": start.model_, "max_iter": iterations, "tol": 0, "accelerate": False}
        return matmix.Mixture(k, rank, **options, n_threads=threads).fit(X)

    def quality() -> dict[str, float]:
        history = fit(1).history_
        assert not any("reseed" in str(event).lower() for event in history.events), history.events
        return {"mean log-likelihood after one iteration": history.log_likelihood[1]}

    return Contestant(OURS, lambda: per_iteration(fit, 1, 1 + many), quality)


def step_contestants(X: np.ndarray, start: Any, threads: int, only: set[str] | None) -> list[Contestant]:
    """The same step in NumPy and PyTorch, each in its fastest formulation."""
    model = Parameters.of(start)
    contestants = []
    for backend in backends(threads, only):
        step = fastest(backend, X, model, threads)

        def quality(step: Any = step) -> dict[str, float]:
            return {"mean log-likelihood after one iteration": step.log_likelihood(X, step.iterate(X, model))}

        def sample(step: Any = step) -> float:
            return timed(lambda: step.iterate(X, model))

        # Choosing the formulation has warmed it up.
        contestants.append(Contestant(backend.name, sample, quality, step.name, slow=len(model.weights) > 50))
    return contestants


def case(
    name: str,
    n: int,
    side: int,
    k: int,
    rank: int,
    threads: int,
    precision: str = "f32",
    peers: bool = True,
    memory: bool = False,
    many: int = 5,
) -> Case:
    shape = (side, side)

    def build(only: set[str] | None) -> list[Contestant]:
        X = planted(n, shape, k, rank, {"f32": "float32", "f64": "float64"}[precision])
        start = start_of(X, k, rank)
        contestants = [our_iteration(X, start, k, rank, threads, many)]
        if peers:
            contestants += step_contestants(X, start, threads, only)
        return contestants

    title = f"{n:,} × {side}×{side}, K = {k}, cores {rank}×{rank}, {precision}"
    return Case(
        name,
        title,
        build,
        [OURS, "NumPy", "PyTorch"] if peers else [OURS],
        useful_flops=useful_flops(n, shape, k, rank),
        precision=precision,
        threads=threads,
        memory=memory,
        facts={"samples": n},
    )


def cases(quick: bool, threads: int) -> list[Case]:
    if quick:
        return [
            case("iteration", 2000, 28, 10, 4, threads, memory=True),
            case("iteration-f64", 2000, 28, 10, 4, threads, "f64"),
            case("iteration-64", 200, 64, 8, 8, threads),
            case("iteration-512", 16, 512, 2, 16, threads, many=2),
            case("iteration-k1", 2000, 28, 1, 4, threads),
            case("iteration-k200", 8000, 28, 200, 4, threads, many=2),
        ]
    return [
        case("iteration", 60_000, 28, 10, 4, threads, memory=True, many=10),
        case("iteration-f64", 60_000, 28, 10, 4, threads, "f64"),
        case("iteration-64", 10_000, 64, 8, 8, threads, memory=True),
        case("iteration-512", 500, 512, 4, 16, threads, memory=True),
        case("iteration-k1", 60_000, 28, 1, 4, threads, many=20),
        case("iteration-k200", 60_000, 28, 200, 4, threads, many=2),
    ]


def growth(quick: bool, threads: int) -> list[Case]:
    """Ours alone: each of the sizes grown, beside the iteration it is compared with."""
    n = 1000 if quick else 6000
    many = 3 if quick else 10

    def grown(name: str, factor: str, ideal: float, base: str = "growth-base", **sizes: Any) -> Case:
        settings: dict[str, Any] = {"n": n, "side": 28, "k": 10, "rank": 4, "threads": threads, "many": many, **sizes}
        result = case(name, peers=False, **settings)
        result.facts |= {"grown": factor, "ideal": ideal, "base": base}
        return result

    return [
        grown("growth-base", "", 1),
        grown("growth-n", "N × 10", 10, n=10 * n),
        grown("growth-p", "P × 4 (56×56)", 4, side=56),
        grown("growth-k", "K × 10", 10, k=100),
        grown("growth-rank", "ranks × 2 (8×8)", 2, rank=8),
        grown("growth-one-thread", "", 1, n=10 * n, threads=1),
        grown("growth-all-threads", f"1 → {threads} threads", 1 / threads, "growth-one-thread", n=10 * n),
    ]
