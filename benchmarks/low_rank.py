"""(c) GLRAM to convergence against TensorLy and NumPy; (d) PCA against scikit-learn's solvers."""

from __future__ import annotations

from typing import Any

import matmix
import numpy as np

from .data import digits
from .harness import OURS, Case, Contestant, timed

# The change of the squared error, relative to the squares of the data, at which everybody stops.
TOLERANCE = 1e-6


def relative_error(X: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """What is lost: ‖X − X̂‖/‖X‖ over all samples, in double precision."""
    Y = left.T.astype(np.float64) @ X.astype(np.float64) @ right.astype(np.float64)
    total = np.vdot(X.astype(np.float64), X.astype(np.float64))
    return {"relative error": float(np.sqrt(max(total - np.vdot(Y, Y), 0.0) / total))}


def numpy_glram(X: np.ndarray, rank: int, max_iter: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Ye's alternation: the eigenvectors of Σ Z Zᵀ, where Z are the samples reduced along the other mode. All
    samples are reduced in one product; the scatter is one product of the reduced ones."""
    n, p, q = X.shape
    rows = X.reshape(n * p, q)
    total = float(np.vdot(X, X))
    # Where the library begins, too: the eigenvectors of the whole scatter of the second mode.
    right = _leading(rows.T @ rows, rank)
    before = -np.inf
    left = right
    for _ in range(max_iter):
        z = (rows @ right).reshape(n, p, rank).transpose(1, 0, 2).reshape(p, n * rank)
        left = _leading(z @ z.T, rank)
        z = np.matmul(left.T, X).reshape(n * rank, q)
        scatter = z.T @ z
        right = _leading(scatter, rank)
        captured = float(np.einsum("ij,ik,kj->", right, scatter, right))
        if captured - before <= TOLERANCE * total:
            break
        before = captured
    return left, right


def _leading(scatter: np.ndarray, rank: int) -> np.ndarray:
    return np.linalg.eigh(scatter)[1][:, ::-1][:, :rank].astype(scatter.dtype)


def glram_case(n: int, threads: int) -> Case:
    rank = 4

    def build(only: set[str] | None) -> list[Contestant]:
        import tensorly
        from tensorly.decomposition import partial_tucker

        X = digits(n)[0]

        def ours() -> Any:
            return matmix.GLRAM(rank, tol=TOLERANCE, n_threads=threads).fit(X)

        def tucker(init: str) -> list[np.ndarray]:
            # Its tolerance is one of the relative error itself, not of its square.
            (_, factors), _ = partial_tucker(
                tensorly.tensor(X), [rank, rank], modes=[1, 2], init=init, tol=TOLERANCE, random_state=0
            )
            return factors

        def contestant(name: str, work: Any, factors: Any) -> Contestant:
            return Contestant(name, lambda: timed(work), lambda: relative_error(X, *factors(work())))

        return [
            contestant(OURS, ours, lambda model: model.loadings_),
            contestant("NumPy", lambda: numpy_glram(X, rank), lambda factors: factors),
            contestant("TensorLy, random start", lambda: tucker("random"), lambda factors: factors),
            contestant("TensorLy, SVD start", lambda: tucker("svd"), lambda factors: factors),
        ]

    names = [OURS, "NumPy", "TensorLy, random start", "TensorLy, SVD start"]
    title = f"{n:,} digits of 28×28, cores {rank}×{rank}, f32"
    return Case("glram", title, build, names, threads=threads, tolerance=1e-3, better=-1, memory=True)


def pca_case(n: int, threads: int) -> Case:
    rank = 16
    solvers = ["full", "covariance_eigh", "arpack", "randomized"]

    def build(only: set[str] | None) -> list[Contestant]:
        from sklearn.decomposition import PCA

        X = digits(n)[0].reshape(n, -1)

        def contestant(name: str, work: Any, variance: Any) -> Contestant:
            def quality() -> dict[str, float]:
                return {"explained share of the variance": float(np.sum(variance(work())))}

            return Contestant(name, lambda: timed(work), quality)

        def ours() -> Any:
            return matmix.LowRank(rank, n_threads=threads).fit(X)

        return [
            contestant(OURS, ours, lambda model: model.explained_variance_ratio_[0]),
            *(
                contestant(
                    f"scikit-learn, {solver}",
                    lambda solver=solver: PCA(rank, svd_solver=solver, random_state=0).fit(X),
                    lambda model: model.explained_variance_ratio_,
                )
                for solver in solvers
            ),
        ]

    names = [OURS, *(f"scikit-learn, {solver}" for solver in solvers)]
    title = f"PCA({rank}) of {n:,} × 784, f32"
    return Case("pca", title, build, names, threads=threads, tolerance=1e-3, better=1, memory=True)


def cases(quick: bool, threads: int) -> list[Case]:
    n = 1000 if quick else 10_000
    return [glram_case(n, threads), pca_case(n, threads)]
