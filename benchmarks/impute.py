"""Hidden cells of the digits, filled in by matmix and by its peers in one run: root mean square errors.

    python -m benchmarks.impute [--pattern cells] [--hidden 0.3] [--side 10] [--squared 1] [--seeds 3] [--only matmix]

The embedded digits between 0 and 1: a share of the cells hidden at random, then a square somewhere in every digit (or
in a share of them, `--squared`). Ours are filled in as by default, with the exact posterior and with tempered ones.
scikit-learn's imputers see flattened pictures; its iterative one is given the forty nearest features for each cell (all
783 would take hours). Soft-impute shrinks the singular values of the filled matrix until it settles (Mazumder, Hastie
and Tibshirani 2010), at the best of several thresholds. Times are those of all processors together.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

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
    found = [soft_impute(X, threshold) for threshold in (1, 2, 4, 6, 8, 12, 20)]
    return min(found, key=lambda filled: float(((filled - truth)[hidden] ** 2).mean()))


TEMPERS = ("none", 0.5, 0.3, 0.2, 0.1, "auto")


def ours(X: np.ndarray, k: int, rank: int, seed: int) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
    """What is filled in, and its standard deviation, by how far observed cells are trusted."""
    pictures = X.reshape(-1, 28, 28)
    model = matmix.Mixture(k, rank, missing="nan", random_state=seed).fit(pictures)
    found = {temper: model.impute(pictures, return_std=True, temper=temper) for temper in TEMPERS}
    return {temper: (x.reshape(len(X), -1), sd.reshape(len(X), -1)) for temper, (x, sd) in found.items()}


def cells(shape: tuple[int, ...], share: float, seed: int) -> np.ndarray:
    """Which cells are hidden: a share of them at random."""
    return np.random.default_rng(seed).random(shape) < share


def squares(shape: tuple[int, ...], side: int, share: float, seed: int) -> np.ndarray:
    """Which cells are hidden: a square somewhere in a share of the digits."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros((shape[0], 28, 28), bool)
    for n in np.flatnonzero(np.arange(shape[0]) % 10 < 10 * share):
        top, left = rng.integers(0, 29 - side, 2)
        hidden[n, top : top + side, left : left + side] = True
    return hidden.reshape(shape)


def compare(truth: np.ndarray, hide: Callable[[int], np.ndarray], seeds: int, only: str) -> None:
    """Prints a table of all ways to fill in what is hidden."""
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    covered: dict[str, list[float]] = {}
    for seed in range(seeds):
        hidden = hide(seed)
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
            if only not in name:
                continue
            begun = time.process_time()
            filled = fill()
            seconds.setdefault(name, []).append(time.process_time() - begun)
            errors.setdefault(name, []).append(float(np.sqrt(((filled - truth)[hidden] ** 2).mean())))
            print(f"seed {seed}: {name} {errors[name][-1]:.4f}", file=sys.stderr, flush=True)
        for k, rank in ((5, 4), (1, 8), (5, 8), (1, 12)):
            if only not in f"matmix, K = {k}, {rank}×{rank}":
                continue
            begun = time.process_time()
            found = ours(X, k, rank, seed)
            taken = time.process_time() - begun
            for temper, (filled, deviation) in found.items():
                name = f"matmix, K = {k}, {rank}×{rank}, temper={temper!r}"
                seconds.setdefault(name, []).append(taken)
                off = np.abs(filled - truth)[hidden]
                errors.setdefault(name, []).append(float(np.sqrt((off**2).mean())))
                covered.setdefault(name, []).append(100 * float((off <= 1.96 * deviation[hidden]).mean()))
                print(f"seed {seed}: {name} {errors[name][-1]:.4f}", file=sys.stderr, flush=True)
    print("| | error | processor time | 95 % intervals cover |\n|---|---|---|---|")
    for name, values in errors.items():
        cover = f"{np.mean(covered[name]):.1f} %" if name in covered else ""
        taken = f"{np.mean(seconds[name]):.1f} s"
        print(f"| {name} | {np.mean(values):.4f} ± {np.std(values):.4f} | {taken} | {cover} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.impute", description=__doc__)
    parser.add_argument("--pattern", choices=("cells", "squares"), help="one of the two alone")
    parser.add_argument("--hidden", type=float, default=0.3, help="the share of the cells that is hidden")
    parser.add_argument("--side", type=int, default=10, help="the side of a square")
    parser.add_argument("--squared", type=float, default=1.0, help="the share of the digits that have a square")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose names hold this")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    digits, _ = matmix.datasets.load_digits28(return_X_y=True)
    truth = digits.reshape(len(digits), -1) / 255.0
    patterns: dict[str, tuple[str, Callable[[int], np.ndarray]]] = {
        "cells": (
            f"{100 * asked.hidden:g} % of the cells",
            lambda seed: cells(truth.shape, asked.hidden, seed),
        ),
        "squares": (
            f"a square of {asked.side}×{asked.side} in {100 * asked.squared:g} % of the digits",
            lambda seed: squares(truth.shape, asked.side, asked.squared, seed),
        ),
    }
    for pattern, (name, hide) in patterns.items():
        if asked.pattern in (None, pattern):
            print(f"\n{name}\n", flush=True)
            compare(truth, hide, asked.seeds, asked.only)


if __name__ == "__main__":
    main()
