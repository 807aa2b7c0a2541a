# %% [markdown]
# # Faces classified: the paper's protocol for known labels
#
# `python python/examples/classify_faces.py Yale_64x64.mat` prints the table of docs/classify.md: six images of each
# person to learn from, the others to be tested on, ten splits. A folder with one folder of images per person will do
# as well.

# %%
import sys
import warnings
from typing import Any

import matmix
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

warnings.filterwarnings("ignore", message=".*still changing")

faces = matmix.datasets.open(sys.argv[1])
y = faces.target
MATRICES = faces.data / 255.0
VECTORS = MATRICES.reshape(len(y), -1)
REPEATS, KNOWN = 10, 6


def split(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Six images of each person, and the others."""
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.flatnonzero(y == person)) for person in np.unique(y)]
    return np.concatenate([of[:KNOWN] for of in order]), np.concatenate([of[KNOWN:] for of in order])


def row(name: str, model: Any, X: np.ndarray) -> None:
    found = []
    for seed in range(REPEATS):
        train, test = split(seed)
        found.append(100 * np.mean(model.fit(X[train], y[train]).predict(X[test]) == y[test]))
    print(f"| {name} | {np.mean(found):.1f} ± {np.std(found):.1f} |", flush=True)


# %%
row("`KNeighborsClassifier(1)`", KNeighborsClassifier(1), VECTORS)
row("`LinearDiscriminantAnalysis()`", LinearDiscriminantAnalysis(), VECTORS)
cores = matmix.NearestCore(matmix.Mixture(8, 8, random_state=0), distance="fisher")
row("`NearestCore` (fisher), K = 8, 8×8", cores, MATRICES)
for rank in (1, 2, 4, 8):
    for floor in (1e-6, 0.3):
        model = matmix.MixtureClassifier(1, rank=rank, noise_floor=floor, random_state=0)
        row(f"`MixtureClassifier`, {rank}×{rank}, `noise_floor={floor:g}`", model, MATRICES)
for rank in (1, 2, 4):
    for floor in (1e-6, 0.3):
        model = matmix.MixtureClassifier(1, rank=rank, noise_floor=floor, random_state=0)
        row(f"`MixtureClassifier`, {rank} of vectors, `noise_floor={floor:g}`", model, VECTORS)
