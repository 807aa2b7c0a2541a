# %% [markdown]
# # Digits classified: known labels, labels left out, holes and bad samples
#
# The tables of docs/classify.md. `python python/examples/classify.py` prints them; arguments say which ones: `ours`,
# `peers`, `unlabelled`, `holes` or `bad`.

# %%
import sys
import warnings
from collections.abc import Callable
from typing import Any

import matmix
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.impute import KNNImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

wanted = sys.argv[1:] or ["ours", "peers", "unlabelled", "holes", "bad"]
warnings.filterwarnings("ignore", message=".*still changing")
warnings.filterwarnings("ignore", message="Variables are collinear")

digits, y = matmix.datasets.load_digits28(return_X_y=True)
MATRICES = digits / 255.0
VECTORS = MATRICES.reshape(1000, -1)
FOLDS = [split for seed in range(2) for split in StratifiedKFold(2, shuffle=True, random_state=seed).split(VECTORS, y)]
"""Half of the digits to learn from and half to be tested on, four times."""


def ours(components: int, rank: int, **options: Any) -> Any:
    return matmix.MixtureClassifier(components, rank=rank, tol=1e-5, random_state=0, **options)


def accuracy(X: np.ndarray, fit: Callable[[np.ndarray, np.ndarray], Any]) -> str:
    """Mean and spread, in per cent, of what `fit` makes of the places of the training half and of the other one."""
    found = [100 * np.mean(fit(train, test).predict(X[test]) == y[test]) for train, test in FOLDS]
    return f"{np.mean(found):.1f} ± {np.std(found):.1f}"


def half(model: Any, X: np.ndarray) -> str:
    """From the training half with its labels."""
    return accuracy(X, lambda train, test: model.fit(X[train], y[train]))


def both(model: Any, X: np.ndarray) -> str:
    """From the training half with its labels and the other half without."""

    def fit(train: np.ndarray, test: np.ndarray) -> Any:
        known = y.copy()
        known[test] = -1
        return model.fit(X, known)

    return accuracy(X, fit)


def spoilt(model: Any, X: np.ndarray) -> str:
    """From the training half, of which 5 % are noise, too bright or inverted, and still have their labels."""
    rng = np.random.default_rng(1)

    def fit(train: np.ndarray, test: np.ndarray) -> Any:
        samples = X[train].copy()
        for kind, n in enumerate(rng.permutation(len(train))[: len(train) // 20]):
            x = samples[n]
            samples[n] = [rng.random(x.shape), 3 * x, 1 - x][kind % 3]
        return model.fit(samples, y[train])

    return accuracy(X, fit)


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


# %% [markdown]
# ## Components and ranks

# %%
if "ours" in wanted:
    row("components per class", "cores", "accuracy, %")
    row("---", "---", "---")
    for components, rank in [(1, 4), (1, 6), (1, 8), (1, 10), (2, 4), (3, 3), (3, 4), (5, 3), (5, 4), (10, 2)]:
        row(str(components), f"{rank}×{rank}", half(ours(components, rank), MATRICES))
    for components, rank, floor in [(1, 10, 1e-6), (1, 10, 0.3), (1, 20, 0.3), (1, 30, 0.3), (2, 10, 0.3)]:
        model = ours(components, rank, noise_floor=floor)
        row(str(components), f"{rank} of vectors, noise_floor={floor:g}", half(model, VECTORS))

# %% [markdown]
# ## Beside scikit-learn's

# %%
if "peers" in wanted:
    peers = {
        "LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis(),
        "LinearDiscriminantAnalysis(solver='lsqr', shrinkage='auto')": LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage="auto"
        ),
        "QuadraticDiscriminantAnalysis(solver='eigen', shrinkage=0.3)": QuadraticDiscriminantAnalysis(
            solver="eigen", shrinkage=0.3
        ),
        "KNeighborsClassifier(1)": KNeighborsClassifier(1),
    }
    for name, model in peers.items():
        row(name, half(model, VECTORS))

# %% [markdown]
# ## The other half without labels; 30 % of all cells missing; 5 % bad training samples

# %%
if "unlabelled" in wanted:
    row(
        "1 component, 10 of vectors, noise_floor=0.3, and the other half",
        both(ours(1, 10, unlabeled=-1, noise_floor=0.3), VECTORS),
    )

if "holes" in wanted:
    broken = np.where(np.random.default_rng(0).random(MATRICES.shape) < 0.3, np.nan, MATRICES)
    row("3 components, 3×3, missing='nan'", half(ours(3, 3, missing="nan", max_iter=30), broken))
    row("KNNImputer, then 1-NN", half(make_pipeline(KNNImputer(), KNeighborsClassifier(1)), broken.reshape(1000, -1)))

if "bad" in wanted:
    row("1 component, 20 of vectors, noise_floor=0.3", spoilt(ours(1, 20, noise_floor=0.3), VECTORS))
    row("the same, noise='t'", spoilt(ours(1, 20, noise_floor=0.3, noise="t"), VECTORS))
