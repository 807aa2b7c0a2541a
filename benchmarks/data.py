"""What is measured on: planted mixtures with fixed seeds, and the embedded digits."""

from __future__ import annotations

import matmix
import numpy as np


def planted(n: int, shape: tuple[int, ...], k: int, rank: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Samples of a mixture of k components: means apart from each other, cores of the given rank, noise."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    means = rng.standard_normal((k, size))
    loadings = [rng.standard_normal((k, p, rank)) * (0.6 / np.sqrt(rank)) for p in shape]
    component = rng.permutation(np.arange(n) % k)
    X = np.empty((n, *shape), dtype)
    # A part at a time: the peak memory of whatever is measured should not be that of making the data.
    step = max(1, (1 << 22) // size)
    for start in range(0, n, step):
        which = component[start : start + step]
        noise = rng.standard_normal((len(which), size), dtype=np.float32) * np.float32(0.5)
        cores = rng.standard_normal((len(which), *[rank] * len(shape)))
        for j in np.unique(which):
            mine = which == j
            if len(shape) == 1:
                signal = cores[mine] @ loadings[0][j].T
            else:
                signal = loadings[0][j] @ cores[mine] @ loadings[1][j].T
            noise[mine] += signal.reshape(mine.sum(), size) + means[j]
        X[start : start + step] = noise.reshape(-1, *shape)
    return X


def start_of(X: np.ndarray, k: int, rank: int, iterations: int = 2) -> matmix.Mixture:
    """A model to begin with, the same for everybody: k-means and a few iterations on a part of the samples."""
    part = X[: min(len(X), max(500, 40 * k))]
    return matmix.Mixture(k, rank, search="none", max_iter=iterations, tol=0, random_state=0).fit(part)


def digits(n: int = 1000, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """The embedded digits between 0 and 1, shifted by up to three pixels until there are n, and their classes."""
    X, y = matmix.datasets.load_digits28(return_X_y=True)
    shifts = [(i, j) for i in range(-3, 4) for j in range(-3, 4)]
    shifts.sort(key=lambda s: s[0] ** 2 + s[1] ** 2)
    copies = [np.roll(X, shift, axis=(1, 2)) for shift in shifts[: -(-n // len(X))]]
    samples = np.concatenate(copies)[:n]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(samples))
    return (samples[order] / 255).astype(dtype), np.tile(y, len(copies))[:n][order]
