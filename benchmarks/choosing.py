"""Choosing K: `matmix.select` beside a BIC loop over scikit-learn's GaussianMixture on PCA features, the same digits.

    python -m benchmarks.choosing [--most 20]
    python -m benchmarks.choosing --own-ranks

800 of the 1,000 embedded digits are fitted to, and the mean log-likelihood of the other 200 is the quality of what was
chosen. A Gaussian mixture of PCA features says nothing about the rest of a picture; its density is completed by
isotropic noise with the variance that the training samples have there, so that both are densities of the same 784
numbers.

With `--own-ranks`: what components could gain by ranks of their own. The samples of every component of a mixture, and
those held out, have models of one component with several ranks; the best rank for all is beside the best for each. Both
are chosen by the very samples that judge, so that the gain is rather too large.
"""

from __future__ import annotations

import argparse
import time

import matmix
import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from .guide import sets


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


def own_ranks(data: sets.Set, seed: int) -> tuple[float, float, int, list[int]]:
    """The log-likelihood held out with the best rank for all components and with the best for each, and the ranks."""
    train, test = (data.X[places] for places in data.split(seed))
    ranks = sorted({r for rank in data.ranks for r in (rank, rank * 3 // 4, rank * 5 // 4)} & set(range(1, 17)))
    mixture = matmix.Mixture(data.components, data.ranks[-1], random_state=seed).fit(train)
    seen, fresh = mixture.predict(train), mixture.predict(test)
    scores = []
    for k in range(data.components):
        own, new = train[seen == k], test[fresh == k]
        if len(own) >= 20 and len(new):
            fits = (matmix.Mixture(1, min(r, *own.shape[1:]), random_state=seed).fit(own) for r in ranks)
            scores.append([fit.score_samples(new).sum() for fit in fits])
    table = np.array(scores) / len(test)
    common = int(table.sum(0).argmax())
    return table.sum(0).max(), table.max(1).sum(), ranks[common], [ranks[i] for i in table.argmax(1)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--own-ranks", action="store_true")
    arguments = parser.parse_args()
    if arguments.own_ranks:
        for data in (make() for make in sets.ALL):
            for seed in range(3):
                alike, own, rank, each = own_ranks(data, seed)
                print(f"{data.name}: {rank} for all {alike:.1f}, each its own {own:.1f}: {each}", flush=True)
        return
    most = arguments.most
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
