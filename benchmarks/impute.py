"""Hidden cells of the digits, filled in by matmix and by its peers in one run: root mean square errors.

    python -m benchmarks.impute [--hidden 0.3] [--seeds 3]

The embedded digits between 0 and 1, cells hidden at random. scikit-learn's imputers see flattened pictures; its
iterative one is given the forty nearest features for each cell (all 783 would take hours). Soft-impute shrinks the
singular values of the filled matrix until it settles (Mazumder, Hastie and Tibshirani 2010), at the best of several
thresholds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import matmix
import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer


def soft_impute(X: np.ndarray, threshold: float, iterations: int = 100) -> np.ndarray:
    hidden = np.isnan(X)
    filled = np.where(hidden, np.nanmean(X), X)
    for _ in range(iterations):
        u, s, v = np.linalg.svd(filled, full_matrices=False)
        shrunk = (u * np.maximum(s - threshold, 0)) @ v
        change = np.abs(shrunk - filled)[hidden].mean()
        filled[hidden] = shrunk[hidden]
        if change < 1e-4:
            break
    return filled


def best_soft_impute(X: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """At the threshold that is best by what is hidden, which nobody could know: the most it can do."""
    hidden = np.isnan(X)
    found = [soft_impute(X, threshold) for threshold in (1, 2, 4, 6, 8, 12)]
    return min(found, key=lambda filled: float(((filled - truth)[hidden] ** 2).mean()))


def ours(X: np.ndarray, k: int, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What is filled in, and its standard deviation."""
    pictures = X.reshape(-1, 28, 28)
    model = matmix.Mixture(k, rank, missing="nan", random_state=seed).fit(pictures)
    filled, deviation = model.impute(pictures, return_std=True)
    return filled.reshape(len(X), -1), deviation.reshape(len(X), -1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.impute", description=__doc__)
    parser.add_argument("--hidden", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    digits, _ = matmix.datasets.load_digits28(return_X_y=True)
    truth = digits.reshape(len(digits), -1) / 255.0
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    covered: dict[str, list[float]] = {}
    for seed in range(arguments.seeds):
        hidden = np.random.default_rng(seed).random(truth.shape) < arguments.hidden
        X = np.where(hidden, np.nan, truth)
        peers: dict[str, Callable[[], np.ndarray]] = {
            "cell means": lambda X=X: SimpleImputer(keep_empty_features=True).fit_transform(X),
            "KNNImputer()": lambda X=X: KNNImputer(keep_empty_features=True).fit_transform(X),
            "IterativeImputer(n_nearest_features=40)": lambda X=X: IterativeImputer(
                n_nearest_features=40, random_state=0, keep_empty_features=True
            ).fit_transform(X),
            "soft-impute, best threshold": lambda X=X: best_soft_impute(X, truth),
        }
        for name, fill in peers.items():
            begun = time.perf_counter()
            filled = fill()
            seconds.setdefault(name, []).append(time.perf_counter() - begun)
            errors.setdefault(name, []).append(float(np.sqrt(((filled - truth)[hidden] ** 2).mean())))
        for k, rank in ((5, 8), (1, 12), (5, 4)):
            name = f"matmix, K = {k}, {rank}×{rank}"
            begun = time.perf_counter()
            filled, deviation = ours(X, k, rank, seed)
            seconds.setdefault(name, []).append(time.perf_counter() - begun)
            off = np.abs(filled - truth)[hidden]
            errors.setdefault(name, []).append(float(np.sqrt((off**2).mean())))
            covered.setdefault(name, []).append(100 * float((off <= 1.96 * deviation[hidden]).mean()))
        print(f"seed {seed} done", flush=True)
    print("| | error | time | 95 % intervals cover |\n|---|---|---|---|")
    for name, found in errors.items():
        cover = f"{np.mean(covered[name]):.1f} %" if name in covered else ""
        print(f"| {name} | {np.mean(found):.4f} ± {np.std(found):.4f} | {np.mean(seconds[name]):.1f} s | {cover} |")


if __name__ == "__main__":
    main()
