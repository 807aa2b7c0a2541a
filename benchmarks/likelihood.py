"""(b) The time to a given log-likelihood: whole fits from the same start."""

from __future__ import annotations

from typing import Any

import matmix
import numpy as np

from .backends import backends
from .data import digits, planted
from .em_step import Step, fastest
from .harness import OURS, Case, Contestant, timed
from .maximize import Parameters, maximize


def our_target(
    X: np.ndarray, k: int, rank: int, known: int, short_of: float, iterations: int
) -> tuple[Any, float, int]:
    """The start, which is k-means on the first `known` samples; the log-likelihood to reach, which is ours after all
    iterations less the share `short_of`; and how many of our iterations reach it."""
    start = matmix.Mixture(k, rank, max_iter=0, tol=0, random_state=0).fit(X[:known])
    course = matmix.Mixture(k, rank, init_params=start.model_, max_iter=iterations, tol=0).fit(X).lower_bounds_
    target = course[-1] - short_of * abs(course[-1])
    return start, target, next(t for t, value in enumerate(course) if value >= target)


def iterate_until(step: Step, X: np.ndarray, model: Parameters, target: float, limit: int) -> tuple[float, int]:
    """Fits until the log-likelihood is reached. The pass that measures it is the first one of the next iteration."""
    # The variance of the data sets the smallest noise, as it does in the library.
    floor = 1e-6 * float(X.var(0, dtype=np.float64).mean())
    sums = step.sums(X, model, 0)
    iterations = 0
    while sums.log_likelihood / len(X) < target and iterations < limit:
        model = maximize(model, sums, 0, floor)
        for mode in range(1, X.ndim - 1):
            model = maximize(model, step.sums(X, model, mode), mode, floor)
        sums = step.sums(X, model, 0)
        iterations += 1
    return sums.log_likelihood / len(X), iterations


def case(name: str, title: str, make: Any, known: int, short_of: float, iterations: int, threads: int) -> Case:
    k, rank = 10, 4

    def build(only: set[str] | None) -> list[Contestant]:
        X = make()
        start, target, needed = our_target(X, k, rank, known, short_of, iterations)

        def fit() -> matmix.Mixture:
            model = matmix.Mixture(k, rank, init_params=start.model_, max_iter=needed, tol=0, n_threads=threads)
            return model.fit(X)

        def ours() -> dict[str, float]:
            return {"mean log-likelihood": fit().lower_bound_, "iterations": needed}

        contestants = [Contestant(OURS, lambda: timed(fit), ours)]
        model = Parameters.of(start)
        for backend in backends(threads, only):
            step = fastest(backend, X, model, threads, budget=10)

            def work(step: Step = step) -> tuple[float, int]:
                return iterate_until(step, X, model, target, 3 * iterations)

            def quality(work: Any = work) -> dict[str, float]:
                reached, count = work()
                return {"mean log-likelihood": reached, "iterations": count}

            contestants.append(Contestant(backend.name, lambda work=work: timed(work), quality, step.name))
        return contestants

    return Case(name, title, build, [OURS, "NumPy", "PyTorch"], threads=threads, tolerance=1e-4)


def cases(quick: bool, threads: int) -> list[Case]:
    n, iterations = (1000, 20) if quick else (20_000, 100)
    return [
        case(
            "likelihood-digits",
            "1,000 digits of 28×28, K = 10, cores 4×4, f32, from k-means to 0.1 % of the end",
            lambda: digits(1000)[0],
            1000,
            1e-3,
            iterations,
            threads,
        ),
        case(
            "likelihood-planted",
            f"{n:,} × 28×28 planted, K = 10, cores 4×4, f32, from k-means on 40 of them to 1e-6 of the end",
            lambda: planted(n, (28, 28), 10, 4),
            40,
            1e-6,
            iterations,
            threads,
        ),
    ]
