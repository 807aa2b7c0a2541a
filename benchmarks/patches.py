"""Recognition and denoising by patches beside what else is there: `python -m benchmarks.patches recognition|denoising`.

Prints the tables of docs/patches.md.
Accuracies and decibels do not depend on the machine; the seconds do.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

SPLITS = 5
COMPONENTS = (1, 4, 16, 32)
PICTURES = ("brick", "camera", "cell", "clock", "coins", "grass", "gravel", "moon", "page", "text")
NOISE = (0.1, 0.2)

Classify = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From known images, their classes and new images to the classes of those."""


def flat(X: np.ndarray) -> np.ndarray:
    return X.reshape(len(X), -1)


def ridge_scores(F: np.ndarray, y: np.ndarray, G: np.ndarray, ridge: float = 0.1) -> np.ndarray:
    """The same discriminant as ours, on any features: ridge regression on the classes, the nearest by the cosine."""
    mean = F.mean(0)
    F, G = F - mean, G - mean
    wanted = (y[:, None] == np.unique(y)).astype(float)
    gram = F @ F.T
    gram[np.diag_indices(len(F))] += ridge * np.trace(gram) / len(F)
    directions = F.T @ np.linalg.solve(gram, wanted - wanted.mean(0))
    known, new = (x @ directions for x in (F, G))
    known, new = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known, new))
    return y[np.argmax(new @ known.T, axis=1)]


def hog(X: np.ndarray) -> np.ndarray:
    """Histograms of gradients in cells of a seventh (28×28) or a quarter (8×8) of a side, blocks of 2×2."""
    from skimage.feature import hog as of

    cell = max(2, X.shape[1] // 7)
    return np.array([of(x, orientations=9, pixels_per_cell=(cell, cell), cells_per_block=(2, 2)) for x in X])


def lbp(X: np.ndarray) -> np.ndarray:
    """Histograms of the 59 uniform patterns of eight neighbours in 4×4 cells, as roots of shares."""
    from skimage.feature import local_binary_pattern

    side = X.shape[1] // 4
    codes = np.array([local_binary_pattern((255 * x).astype(np.uint8), 8, 1, "nri_uniform") for x in X]).astype(int)
    cells = codes[:, : 4 * side, : 4 * side].reshape(len(X), 4, side, 4, side).transpose(0, 1, 3, 2, 4)
    shares = (cells.reshape(len(X), 16, -1, 1) == np.arange(59)).mean(2)
    return np.sqrt(shares).reshape(len(X), -1)


def classifiers() -> dict[str, Classify]:
    import matmix
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    def of(model: Any) -> Classify:
        return lambda X, y, Z: model.fit(flat(X), y).predict(flat(Z))

    def on_features(features: Callable[[np.ndarray], np.ndarray]) -> Classify:
        return lambda X, y, Z: ridge_scores(features(X), y, features(Z))

    def by_patches(k: int, size: int) -> Classify:
        fisher = matmix.PatchFisher(k, min(4, size), size=size, random_state=0)
        return lambda X, y, Z: matmix.PatchRecognizer(fisher).fit(X, y).predict(Z)

    def by_cores(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        mixture = matmix.Mixture(8, rank=min(8, X.shape[1] - 2), random_state=0)
        return matmix.NearestCore(mixture, distance="fisher").fit(X, y).predict(Z)

    found: dict[str, Classify] = {
        "pixels, 1-NN": of(KNeighborsClassifier(1)),
        "pixels, LDA (shrunken)": of(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        "pixels, linear SVM": of(LinearSVC(C=0.1)),
        "pixels, ridge": on_features(flat),
        "cores of a mixture, `fisher`": by_cores,
        "HOG, ridge": on_features(hog),
        "LBP, ridge": on_features(lbp),
    }
    found.update({f"patches of 6×6, K = {k}": by_patches(k, 6) for k in COMPONENTS})
    found.update({f"patches of 4×4, K = {k}": by_patches(k, 4) for k in COMPONENTS})
    return found


def recognition() -> None:
    """Half of the images known, the other half asked for; the mean and the standard deviation over the splits."""
    import matmix
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedShuffleSplit

    ours, small = matmix.datasets.load_digits28(return_X_y=True), load_digits()
    sets = {
        "embedded digits, 28×28": (ours[0] / 255, ours[1]),
        "scikit-learn's digits, 8×8": (small.images / 16, small.target),
    }
    print(f"| accuracy, percent | {' | '.join(sets)} |\n|---|---:|---:|")
    for name, classify in classifiers().items():
        cells = []
        for X, y in sets.values():
            splits = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(flat(X), y)
            right = [100 * np.mean(classify(X[a], y[a], X[b]) == y[b]) for a, b in splits]
            cells.append(f"{np.mean(right):.1f} ± {np.std(right, ddof=1):.1f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


@functools.cache
def clean_model(without: str) -> Any:
    """A mixture over patches of all other pictures, as they are without noise: of tiles of 96×96."""
    import matmix
    from skimage import data, img_as_float

    tiles = []
    for name in PICTURES:
        if name != without:
            x = img_as_float(getattr(data, name)())
            corners = itertools.product(*(range(0, side - 95, 96) for side in x.shape))
            tiles += [x[i : i + 96, j : j + 96] for i, j in corners]
    return matmix.PatchDenoiser(32, random_state=0).fit(np.array(tiles))


def denoisers() -> dict[str, Callable[[np.ndarray, float, str], np.ndarray]]:
    from skimage import restoration

    def tuned(function: Any, grid: Callable[[float], dict[str, list[Any]]], **fixed: Any) -> Any:
        """Parameters by scikit-image's own self-supervised helper."""

        def run(noisy: np.ndarray, sigma: float, picture: str) -> np.ndarray:
            fixed_function = functools.partial(function, **fixed)
            return restoration.calibrate_denoiser(noisy, fixed_function, denoise_parameters=grid(sigma))(noisy)

        return run

    def ours(noisy: np.ndarray, sigma: float, picture: str) -> np.ndarray:
        import matmix

        return matmix.denoise(noisy, sigma)

    def blind(noisy: np.ndarray, sigma: float, picture: str) -> np.ndarray:
        import matmix

        return matmix.denoise(noisy)

    def others(noisy: np.ndarray, sigma: float, picture: str) -> np.ndarray:
        return clean_model(picture).denoise(noisy[None], sigma)[0]

    return {
        "total variation, tuned": tuned(
            restoration.denoise_tv_chambolle, lambda s: {"weight": [s * f for f in (0.3, 0.5, 0.7, 0.9, 1.2, 1.5)]}
        ),
        "wavelets, tuned": tuned(
            restoration.denoise_wavelet,
            lambda s: {
                "sigma": [s * f for f in (0.5, 0.7, 1.0, 1.3)],
                "wavelet": ["db1", "db2", "sym4"],
                "mode": ["soft", "hard"],
            },
            rescale_sigma=True,
        ),
        "non-local means, tuned": tuned(
            restoration.denoise_nl_means,
            lambda s: {"h": [s * f for f in (0.4, 0.6, 0.8, 1.0)], "patch_size": [5, 7], "sigma": [s]},
            fast_mode=True,
            patch_distance=6,
        ),
        "patches, fitted to the noisy picture": ours,
        "the same, noise estimated": blind,
        "fitted to the other pictures, K = 32": others,
    }


def denoising(only: list[str]) -> None:
    """The mean over the pictures of the peak signal-to-noise ratio."""
    from skimage import data, img_as_float

    chosen = {name: run for name, run in denoisers().items() if not only or any(name.startswith(o) for o in only)}
    found = {(name, sigma): [] for name in chosen for sigma in NOISE}
    seconds = dict.fromkeys(chosen, 0.0)
    for picture in PICTURES:
        clean = img_as_float(getattr(data, picture)())
        for sigma in NOISE:
            noisy = clean + np.random.default_rng(0).normal(scale=sigma, size=clean.shape)
            for name, run in chosen.items():
                begun = time.process_time()
                error = np.mean((np.clip(run(noisy, sigma, picture), 0, 1) - clean) ** 2)
                seconds[name] += time.process_time() - begun
                found[name, sigma].append(-10 * np.log10(error))
                print(f"{picture} {sigma} {name} {found[name, sigma][-1]:.2f}", file=sys.stderr, flush=True)
    print(
        f"| PSNR, dB | {' | '.join(f'σ = {s}' for s in NOISE)} | processor seconds per picture |\n|---|---:|---:|---:|"
    )
    for name in chosen:
        cells = " | ".join(f"{np.mean(found[name, sigma]):.2f}" for sigma in NOISE)
        print(f"| {name} | {cells} | {seconds[name] / (len(PICTURES) * len(NOISE)):.1f} |")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    if sys.argv[1:2] == ["recognition"]:
        recognition()
    else:
        denoising(sys.argv[2:])
