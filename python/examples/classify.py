# %% [markdown]
# # Digits classified: known labels, labels left out, holes and bad samples
#
# The tables of docs/classify.md. `python python/examples/classify.py` prints them; arguments say which ones: `ranks`,
# `peers`, `holes` or `bad`.

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

wanted = sys.argv[1:] or ["ranks", "peers", "holes", "bad"]
warnings.filterwarnings("ignore", message=".*still changing")
warnings.filterwarnings("ignore", message="(The covariance|Variables are)")

X, y = matmix.datasets.load_digits28(return_X_y=True)
X = X / 255.0
FOLDS = [split for seed in range(2) for split in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, y)]
"""Half of the digits to learn from and half to be tested on, four times."""


def ours(components: int = 1, rank: int = 6, **options: Any) -> Any:
    return matmix.MixtureClassifier(components, rank=rank, tol=1e-5, random_state=0, **options)


def flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1)


def accuracy(fit: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]) -> str:
    """Mean and spread, in per cent, of whatever `fit` makes of the training half: a function from samples to labels."""
    found = [100 * np.mean(fit(train, test)(X[test]) == y[test]) for train, test in FOLDS]
    return f"{np.mean(found):.1f} ± {np.std(found):.1f}"


def half(model: Any) -> str:
    """The training half with its labels."""
    return accuracy(lambda train, test: model.fit(X[train], y[train]).predict)


def both(model: Any) -> str:
    """The training half with its labels and the other half without."""

    def fit(train: np.ndarray, test: np.ndarray) -> Any:
        known = y.copy()
        known[test] = -1
        return model.fit(X, known).predict

    return accuracy(fit)


def flattened(model: Any) -> str:
    return accuracy(lambda train, test: lambda x: model.fit(flat(X[train]), y[train]).predict(flat(x)))


# %% [markdown]
# ## Components and ranks

# %%
if "ranks" in wanted:
    print("| components per class | cores | half labelled, alone | and the other half unlabelled |\n|---|---|---|---|")
    for components, rank in [(1, 4), (1, 6), (1, 8), (1, 10), (1, 12), (2, 4), (2, 6), (2, 8), (3, 4), (3, 6), (10, 2)]:
        row = [half(ours(components, rank)), both(ours(components, rank))]
        print(f"| {components} | {rank}×{rank} | {row[0]} | {row[1]} |", flush=True)

# %% [markdown]
# ## Beside scikit-learn's

# %%
if "peers" in wanted:
    print("\n| | accuracy, % |\n|---|---|")
    print(f"| MixtureClassifier(1, rank=8) | {half(ours(1, 8))} |", flush=True)
    print(f"| the same, the other half without labels | {both(ours(1, 8))} |", flush=True)
    peers = {
        "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(),
        "LinearDiscriminantAnalysis(solver='lsqr', shrinkage='auto')": LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage="auto"
        ),
        "QuadraticDiscriminantAnalysis(reg_param=0.1)": QuadraticDiscriminantAnalysis(reg_param=0.1),
        "KNeighborsClassifier(1)": KNeighborsClassifier(1),
    }
    for name, model in peers.items():
        print(f"| {name} | {flattened(model)} |", flush=True)

# %% [markdown]
# ## 30 % of the cells missing, in both halves

# %%
if "holes" in wanted:
    whole = X
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    print("\n| 30 % of the cells missing | accuracy, % |\n|---|---|")
    print(f"| MixtureClassifier(1, rank=8, missing='nan') | {half(ours(1, 8, missing='nan'))} |", flush=True)
    imputed = make_pipeline(KNNImputer(), KNeighborsClassifier(1))
    print(f"| KNNImputer, then KNeighborsClassifier(1) | {flattened(imputed)} |", flush=True)
    shrunken = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    print(f"| KNNImputer, then LDA with shrinkage | {flattened(make_pipeline(KNNImputer(), shrunken))} |", flush=True)
    X = whole

# %% [markdown]
# ## 5 % of the training samples are bad: noise, too bright or inverted, with the labels of digits

# %%
if "bad" in wanted:

    def spoilt(model: Any) -> str:
        rng = np.random.default_rng(1)

        def fit(train: np.ndarray, test: np.ndarray) -> Any:
            samples = X[train].copy()
            for kind, n in enumerate(rng.permutation(len(train))[: len(train) // 20]):
                x = samples[n]
                samples[n] = [rng.random(x.shape), 3 * x, 1 - x][kind % 3]
            return model.fit(samples, y[train]).predict

        return accuracy(fit)

    print("\n| 5 % bad training samples | accuracy, % |\n|---|---|")
    print(f"| MixtureClassifier(1, rank=8) | {spoilt(ours(1, 8))} |", flush=True)
    print(f"| MixtureClassifier(1, rank=8, noise='t') | {spoilt(ours(1, 8, noise='t'))} |", flush=True)
