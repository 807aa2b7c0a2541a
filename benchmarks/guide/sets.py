"""What is measured on: the embedded digits, scikit-learn's digits and photographs, and windows that are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import matmix
import numpy as np
from sklearn.datasets import load_digits, load_sample_images


@dataclass(frozen=True)
class Set:
    """Samples, their classes where they have any, and what is tried on them."""

    name: str
    X: np.ndarray
    y: np.ndarray | None
    components: int
    ranks: tuple[int, ...]
    """Cores of the bilateral mixture are r×r; the mixture of PPCA is tried with the numbers of `factors`."""
    factors: tuple[int, ...] = (4, 16, 64)
    dimensions: tuple[int, ...] = (15, 30, 60)
    """Principal components, for models that work on those."""

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the samples to fit to are, and the fifth that is held out."""
        order = np.random.default_rng(seed).permutation(len(self.X))
        return np.split(order, [len(order) * 4 // 5])


def spread_out(values: np.ndarray, levels: int, seed: int) -> np.ndarray:
    """Integers as numbers between 0 and 1, each uniform over its level: a density of a few exact values, and of pixels
    that are always black, could be as large as one likes."""
    noise = np.random.default_rng(seed).random(values.shape)
    return (values + noise) / levels


def embedded_digits() -> Set:
    X, y = matmix.datasets.load_digits28(return_X_y=True)
    return Set("digits 28×28", spread_out(X, 256, 0), y, 10, (4, 8, 14))


def small_digits() -> Set:
    bunch = load_digits()
    return Set("digits 8×8", spread_out(bunch.images, 17, 1), bunch.target, 10, (2, 4, 6), (4, 8, 16), (10, 20, 40))


def photographs(n: int = 1500, side: int = 16) -> Set:
    """Windows of scikit-learn's two photographs, grey, each minus its mean."""
    rng = np.random.default_rng(2)
    windows = []
    for image in load_sample_images().images:
        grey = spread_out(image, 256, 3).mean(2)
        corners = [rng.integers(0, side_of - side, n // 2) for side_of in grey.shape]
        windows += [grey[i : i + side, j : j + side] for i, j in zip(*corners, strict=True)]
    X = np.array(windows)
    return Set(f"photographs {side}×{side}", X - X.mean((1, 2), keepdims=True), None, 10, (4, 8, 12), (4, 16))


def made_windows(n: int = 900, channels: int = 16, times: int = 48, states: int = 3) -> Set:
    """Channels × time, as of an array of sensors: in each state other places and another band of frequencies, and any
    combination of the two. This is what a bilateral model says."""
    rng = np.random.default_rng(4)
    y = np.arange(n) % states
    place, time = np.linspace(0, 1, channels), np.arange(times) / times
    X = 0.5 * rng.normal(size=(n, channels, times))
    for state in range(states):
        sources = np.exp(-((place[:, None] - rng.random(4)) ** 2) / (2 * 0.12**2))
        angles = 2 * np.pi * time * (3 + 4 * state + np.arange(2))[:, None]
        band = np.concatenate([np.cos(angles), np.sin(angles)])
        cores = rng.normal(size=(np.sum(y == state), 4, 4))
        X[y == state] += sources @ cores @ band
    return Set(f"made windows {channels}×{times}", X, y, states, (2, 4, 8), (4, 16, 32))


ALL: tuple[Callable[[], Set], ...] = (embedded_digits, small_digits, photographs, made_windows)
