"""(e) One iteration of the mixture of PPCA against ppca_rs and NumPy; GaussianMixture for orientation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .backends import NumPy
from .data import planted, start_of
from .em_step import Step, fastest
from .harness import OURS, Case, Contestant, per_iteration, timed
from .iteration import our_iteration
from .maximize import Parameters, canonical


def case(n: int, size: int, k: int, rank: int, threads: int) -> Case:
    def build(only: set[str] | None) -> list[Contestant]:
        X = planted(n, (size,), k, rank)
        start = start_of(X, k, rank)
        model = Parameters.of(start)
        key = "mean log-likelihood after one iteration"
        contestants = [our_iteration(X, start, k, rank, threads, 10)]
        if only is None or "NumPy" in only:
            step = fastest(NumPy(), X, model, threads)

            def quality() -> dict[str, float]:
                return {key: step.log_likelihood(X, step.iterate(X, model))}

            contestants.append(Contestant("NumPy", lambda: timed(lambda: step.iterate(X, model)), quality, step.name))
        if only is None or "ppca_rs" in only:
            contestants.append(_ppca_rs(X, model, key))
        if only is None or "scikit-learn GaussianMixture" in only:
            contestants.append(_gaussian_mixture(X, k))
        return contestants

    names = [OURS, "NumPy", "ppca_rs", "scikit-learn GaussianMixture"]
    title = f"{n:,} × {size}, K = {k}, rank {rank}, f32 (ppca_rs has only f64)"
    # ppca_rs takes another step from the same model (no parameter expansion, other order of updates).
    return Case("mixture-ppca", title, build, names, threads=threads, tolerance=1e-2, better=1, memory=True)


def _ppca_rs(X: np.ndarray, model: Parameters, key: str) -> Contestant:
    """From the same start. It has only double precision, and its threads are those of the environment."""
    import ppca_rs

    dataset = ppca_rs.Dataset(X.astype(np.float64))
    parts = [
        ppca_rs.PPCAModel(float(np.sqrt(noise)), np.ascontiguousarray(loadings), mean[:, None])
        for noise, loadings, mean in zip(model.noise, model.loadings[0], model.means, strict=True)
    ]
    mix = ppca_rs.PPCAMix(parts, np.log(model.weights))
    kept: dict[str, Any] = {}

    def work() -> None:
        kept["model"] = mix.iterate(dataset)

    def quality() -> dict[str, float]:
        after = kept["model"]
        found = Parameters(
            np.asarray(after.weights),
            np.stack([np.asarray(part.mean).reshape(-1) for part in after.models]),
            canonical([np.stack([np.asarray(part.transform) for part in after.models])]),
            np.array([part.isotropic_noise**2 for part in after.models]),
        )
        return {key: Step(NumPy(), "dense", 1000, 1, False).log_likelihood(X.astype(np.float64), found)}

    return Contestant("ppca_rs", lambda: timed(work), quality, slow=True)


def _gaussian_mixture(X: np.ndarray, k: int) -> Contestant:
    """A mixture of Gaussians with full covariances: not the same model, and what people use instead."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    def fit(iterations: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            GaussianMixture(
                k, max_iter=iterations, tol=0, reg_covar=1e-3, init_params="random_from_data", random_state=0
            ).fit(X)

    return Contestant("scikit-learn GaussianMixture", lambda: per_iteration(fit, 1, 3), note="another model")


def cases(quick: bool, threads: int) -> list[Case]:
    return [case(300, 100, 3, 4, threads) if quick else case(10_000, 784, 5, 16, threads)]
