"""(f) The nearest known sample: ours against scikit-learn's brute force on the same cores, and against NumPy for the
paper's distance."""

from __future__ import annotations

from typing import Any

import matmix
import numpy as np

from .data import digits
from .harness import OURS, Case, Contestant, timed


def agreement(found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    return {"share of the probes recognised": float(np.mean(found == truth))}


def low_rank_case(n: int, probes: int, rank: int, threads: int) -> Case:
    """One core per sample: the distance is Euclidean, and scikit-learn can search for it."""

    def build(only: set[str] | None) -> list[Contestant]:
        from sklearn.neighbors import KNeighborsClassifier

        X, y = digits(n + probes)
        gallery, known, new, truth = X[:n], y[:n], X[n:], y[n:]
        model = matmix.GLRAM(rank, n_threads=threads).fit(gallery)
        nearest = matmix.NearestCore(model, distance="paper", prefit=True).fit(gallery, known)
        # Given its features for nothing, while ours has to compute those of the probes.
        cores, new_cores = (model.transform(part).reshape(len(part), -1) for part in (gallery, new))
        brute = KNeighborsClassifier(1, algorithm="brute").fit(cores, known)

        def contestant(name: str, work: Any, note: str) -> Contestant:
            return Contestant(name, lambda: timed(work), lambda: agreement(work(), truth), note)

        return [
            contestant(OURS, lambda: nearest.predict(new), "with the cores of the probes"),
            contestant("scikit-learn, brute force", lambda: brute.predict(new_cores), "the search alone"),
        ]

    title = f"{probes:,} probes, gallery of {n:,} digits, cores {rank}×{rank}, f32"
    names = [OURS, "scikit-learn, brute force"]
    return Case("recognition", title, build, names, threads=threads, tolerance=2e-3, better=1, memory=True)


def mixture_case(n: int, probes: int, k: int, rank: int, threads: int) -> Case:
    """The paper's Σ_k ‖B_a − B_b‖ over all components, which scikit-learn does not have."""

    def build(only: set[str] | None) -> list[Contestant]:
        X, y = digits(n + probes)
        gallery, known, new, truth = X[:n], y[:n], X[n:], y[n:]
        model = matmix.Mixture(k, rank, search="none", random_state=0, max_iter=20, tol=0, n_threads=threads)
        model.fit(gallery[:2000])
        nearest = matmix.NearestCore(model, distance="paper", prefit=True).fit(gallery, known)
        cores, new_cores = (
            model.transform(part).reshape(len(part), k, -1).transpose(1, 0, 2).copy() for part in (gallery, new)
        )

        def search() -> np.ndarray:
            found = np.empty(probes, y.dtype)
            norms = np.einsum("kni,kni->kn", cores, cores)
            for start in range(0, probes, 256):
                part = new_cores[:, start : start + 256]
                squares = np.einsum("kni,kni->kn", part, part)[:, :, None] + norms[:, None, :]
                squares -= 2 * (part @ cores.transpose(0, 2, 1))
                np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
                found[start : start + 256] = known[squares.sum(0).argmin(1)]
            return found

        def contestant(name: str, work: Any, note: str) -> Contestant:
            return Contestant(name, lambda: timed(work), lambda: agreement(work(), truth), note)

        return [
            contestant(OURS, lambda: nearest.predict(new), "with the cores of the probes"),
            contestant("NumPy", search, "the search alone"),
        ]

    title = f"{probes:,} probes, gallery of {n:,} digits, all cores {rank}×{rank} of K = {k}, f32"
    names = [OURS, "NumPy"]
    return Case("recognition-mixture", title, build, names, threads=threads, tolerance=2e-3, better=1)


def cases(quick: bool, threads: int) -> list[Case]:
    n, probes = (1000, 200) if quick else (20_000, 4000)
    return [low_rank_case(n, probes, 8, threads), mixture_case(n, probes, 10, 4, threads)]
