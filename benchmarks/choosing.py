"""Choosing K: `matmix.select` beside a BIC loop over scikit-learn's GaussianMixture on PCA features, the same digits.

    python -m benchmarks.choosing [--most 20]

800 of the 1,000 embedded digits are fitted to, and the mean log-likelihood of the other 200 is the quality of what was
chosen. A Gaussian mixture of PCA features says nothing about the rest of a picture; its density is completed by
isotropic noise with the variance that the training samples have there, so that both are densities of the same 784
numbers.
"""

from __future__ import annotations

import argparse
import time

import matmix
import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture


def split() -> tuple[np.ndarray, np.ndarray]:
    """The digits between 0 and 1, every fifth of them held out."""
    X, _ = matmix.datasets.load_digits28(return_X_y=True)
    X = X.astype(np.float64)
    X /= max(1.0, X.max())
    test = np.arange(len(X)) % 5 == 4
    return X[~test], X[test]


def completed(pca: PCA, mixture: GaussianMixture, seen: np.ndarray, fresh: np.ndarray) -> float:
    """The mean log-likelihood of whole samples: that of the features, and of isotropic noise in the rest."""
    rest = seen.shape[1] - pca.n_components_

    def left(x: np.ndarray) -> np.ndarray:
        return ((x - pca.inverse_transform(pca.transform(x))) ** 2).sum(axis=1)

    variance = left(seen).mean() / rest
    noise = -0.5 * (rest * np.log(2 * np.pi * variance) + left(fresh) / variance)
    return float((mixture.score_samples(pca.transform(fresh)) + noise).mean())


def bic_loop(seen: np.ndarray, fresh: np.ndarray, features: float, covariance: str, most: int) -> str:
    """The usual loop: PCA, a fit for every K, the one of least BIC."""
    begun = time.perf_counter()
    pca = PCA(features, svd_solver="full", random_state=0).fit(seen)
    z = pca.transform(seen)
    fits = [GaussianMixture(k, covariance_type=covariance, random_state=0).fit(z) for k in range(1, most + 1)]
    best = min(fits, key=lambda fit: fit.bic(z))
    seconds = time.perf_counter() - begun
    quality = completed(pca, best, seen, fresh)
    name = f"BIC loop, GaussianMixture ({covariance}) on PCA({features})"
    return f"| {name} | {best.n_components} of {pca.n_components_} features | {seconds:.1f} s | {quality:.1f} |"


def ours(seen: np.ndarray, fresh: np.ndarray, most: int, rank: str | int, criterion: str) -> str:
    """One call."""
    begun = time.perf_counter()
    estimator = matmix.Mixture(random_state=0)
    chosen = matmix.select(seen, range(1, most + 1), rank, criterion=criterion, estimator=estimator)
    seconds = time.perf_counter() - begun
    cores = "×".join(map(str, chosen.best_params_["rank"]))
    quality = chosen.best_estimator_.score(fresh)
    name = f"`matmix.select`, {criterion}, rank {rank}"
    return f"| {name} | {chosen.best_params_['n_components']} with cores of {cores} | {seconds:.1f} s | {quality:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=20)
    most = parser.parse_args().most
    seen, fresh = split()
    flat = [x.reshape(len(x), -1) for x in (seen, fresh)]
    print("| | chosen | time | log-likelihood held out |\n|---|---|---|---|", flush=True)
    for features in (10, 40, 0.9):
        for covariance in ("full", "diag"):
            print(bic_loop(*flat, features, covariance, most), flush=True)
    print(ours(seen, fresh, most, 4, "held-out"), flush=True)
    print(ours(seen, fresh, most, "auto", "held-out"), flush=True)


if __name__ == "__main__":
    main()
