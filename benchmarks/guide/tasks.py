"""The jobs and who does them. A job takes a set and a split and yields what each model in each setting has achieved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import matmix
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture

from .sets import Set

BILATERAL, PPCA = "bilateral mixture", "mixture of PPCA"
FEW = 60
"""Training images where there are few."""
JUDGED = 200
"""Images that noise is taken out of."""


class Figure(NamedTuple):
    """What a model in one of its settings has achieved; the first value is what the job is judged by."""

    model: str
    setting: str
    values: dict[str, float]


def flat(X: np.ndarray) -> np.ndarray:
    return X.reshape(len(X), -1)


def square(rank: int) -> str:
    return f"{rank}×{rank}"


def bilateral(data: Set, rank: int, seed: int, components: int | None = None) -> matmix.Mixture:
    return matmix.Mixture(components or data.components, rank, random_state=seed)


def ppca(data: Set, factors: int, seed: int, components: int | None = None) -> matmix.MixPPCA:
    return matmix.MixPPCA(components or data.components, factors, random_state=seed)


class GaussiansOnPCA:
    """scikit-learn's GaussianMixture on principal components, as a density of pixels: what PCA leaves out is noise of
    one variance, as in its own probabilistic model."""

    def __init__(self, components: int, dimensions: int, seed: int) -> None:
        self.pca = PCA(dimensions, random_state=seed)
        self.mixture = GaussianMixture(components, random_state=seed, reg_covar=1e-6)

    def fit(self, X: np.ndarray) -> GaussiansOnPCA:
        cores = self.pca.fit_transform(flat(X))
        self.mixture.fit(cores)
        self.left = X[0].size - self.pca.n_components_
        self.noise = float(self.rest(X, cores).mean()) / self.left
        return self

    def rest(self, X: np.ndarray, cores: np.ndarray) -> np.ndarray:
        return ((flat(X) - self.pca.inverse_transform(cores)) ** 2).sum(1)

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        cores = self.pca.transform(flat(X))
        outside = self.rest(X, cores) / self.noise + self.left * np.log(2 * np.pi * self.noise)
        return self.mixture.score_samples(cores) - outside / 2

    def score(self, X: np.ndarray) -> float:
        return float(self.score_samples(X).mean())

    def n_parameters(self) -> int:
        """Those of the mixture, and PCA's mean, directions (orthonormal) and noise."""
        d, p = self.pca.components_.shape
        return self.mixture._n_parameters() + p + d * p - d * (d + 1) // 2 + 1


def density(data: Set, seed: int) -> Iterator[Figure]:
    """The mean log-likelihood of the samples that were held out."""
    seen, unseen = (data.X[part] for part in data.split(seed))

    def figure(name: str, setting: str, model: Any, parameters: int) -> Figure:
        held_out = model.score(unseen)
        values = {"held-out": held_out, "gap": model.score(seen) - held_out, "parameters": parameters}
        return Figure(name, setting, values)

    for rank in data.ranks:
        model = bilateral(data, rank, seed).fit(seen)
        yield figure(BILATERAL, square(rank), model, model.model_.n_parameters)
    for factors in data.factors:
        model = ppca(data, factors, seed).fit(seen)
        yield figure(PPCA, f"{factors} factors", model, model.model_.n_parameters)
    for d in data.dimensions:
        gaussians = GaussiansOnPCA(data.components, d, seed).fit(seen)
        yield figure("Gaussians on PCA", f"{d} dimensions", gaussians, gaussians.n_parameters())


def rebuilding(data: Set, seed: int, numbers: int, samples: int | None) -> Iterator[Figure]:
    """What is lost when every unseen sample is rebuilt from so many numbers: a share of the variance."""
    seen, unseen = (data.X[part] for part in data.split(seed))
    seen = seen[:samples]
    # A component needs samples to learn from.
    components = data.components if samples is None else 3
    variance = ((unseen - seen.mean(0)) ** 2).sum()
    rank = round(numbers**0.5)

    def figure(model: str, setting: str, rebuilt: np.ndarray) -> Figure:
        return Figure(model, setting, {"lost": float(((rebuilt - unseen) ** 2).sum() / variance)})

    for k in sorted({1, components}):
        yield figure(
            BILATERAL, f"{square(rank)}, K = {k}", bilateral(data, rank, seed, k).fit(seen).reconstruct(unseen)
        )
        factors = min(numbers, len(seen) - 1)
        yield figure(PPCA, f"{factors} factors, K = {k}", ppca(data, factors, seed, k).fit(seen).reconstruct(unseen))
    glram = matmix.GLRAM(rank).fit(seen)
    yield figure("GLRAM", square(rank), glram.reconstruct(unseen))
    pca = PCA(min(numbers, len(seen) - 1), random_state=seed).fit(flat(seen))
    back = pca.inverse_transform(pca.transform(flat(unseen))).reshape(unseen.shape)
    yield figure("PCA", f"{pca.n_components_} components", back)


def denoising(data: Set, seed: int, strength: float) -> Iterator[Figure]:
    """The share of the noise that is left, for models that have seen the noisy samples alone. The noise is so many
    standard deviations of the values; everybody is judged by the first samples."""
    from skimage.restoration import denoise_nl_means, denoise_tv_chambolle

    clean = data.X[data.split(seed)[0]]
    sigma = strength * clean.std()
    noisy = clean + np.random.default_rng(seed).normal(scale=sigma, size=clean.shape)
    judged, clean = noisy[:JUDGED], clean[:JUDGED]

    def figure(model: str, setting: str, rebuilt: np.ndarray) -> Figure:
        return Figure(model, setting, {"left": float(((rebuilt - clean) ** 2).sum() / ((judged - clean) ** 2).sum())})

    for rank in data.ranks:
        yield figure(BILATERAL, square(rank), bilateral(data, rank, seed).fit(noisy).denoise(judged))
    for factors in data.factors:
        yield figure(PPCA, f"{factors} factors", ppca(data, factors, seed).fit(noisy).denoise(judged))
    for d in (4, 8, *data.dimensions):
        pca = PCA(d, random_state=seed).fit(flat(noisy))
        back = pca.inverse_transform(pca.transform(flat(judged))).reshape(clean.shape)
        yield figure("PCA", f"{d} components", back)
    for share in (0.3, 0.6, 0.9, 1.2):
        rebuilt = np.array([denoise_tv_chambolle(x, weight=share * sigma) for x in judged])
        yield figure("total variation", f"weight {share} σ", rebuilt)
        nearby = {"patch_size": 3, "patch_distance": 5, "h": share * sigma, "sigma": sigma, "fast_mode": True}
        yield figure("non-local means", f"h = {share} σ", np.array([denoise_nl_means(x, **nearby) for x in judged]))


def clustering(data: Set, seed: int) -> Iterator[Figure]:
    """How well the components are the classes: the adjusted Rand index, over all samples."""

    def figure(model: str, setting: str, found: np.ndarray) -> Figure:
        return Figure(model, setting, {"adjusted Rand": adjusted_rand_score(data.y, found)})

    for rank in data.ranks[:2]:
        model = bilateral(data, rank, seed)
        yield figure(BILATERAL, square(rank), model.fit_predict(data.X))
    for factors in data.factors[:2]:
        model = ppca(data, factors, seed)
        yield figure(PPCA, f"{factors} factors", model.fit_predict(data.X))
    yield figure(
        "k-means", "10 starts", KMeans(data.components, n_init=10, random_state=seed).fit_predict(flat(data.X))
    )
    for d in data.dimensions[:2]:
        gaussians = GaussiansOnPCA(data.components, d, seed).fit(data.X)
        found = gaussians.mixture.predict(gaussians.pca.transform(flat(data.X)))
        yield figure("Gaussians on PCA", f"{d} dimensions", found)


def novelty(data: Set, seed: int) -> Iterator[Figure]:
    """How well a class that was left out of the fit is told from unseen samples of the others: the area under the
    curve, one class after the other (the split's number is the class)."""
    assert data.y is not None
    train, test = data.split(seed)
    seen = data.X[train[data.y[train] != seed]]
    unseen, new = data.X[test], data.y[test] == seed

    def figure(model: str, setting: str, likely: np.ndarray) -> Figure:
        return Figure(model, setting, {"area": float(roc_auc_score(new, -likely))})

    for rank in data.ranks:
        yield figure(BILATERAL, square(rank), bilateral(data, rank, seed).fit(seen).score_samples(unseen))
    for factors in data.factors[:2]:
        yield figure(PPCA, f"{factors} factors", ppca(data, factors, seed).fit(seen).score_samples(unseen))
    forest = IsolationForest(n_estimators=200, random_state=seed).fit(flat(seen))
    yield figure("isolation forest", "200 trees", forest.score_samples(flat(unseen)))
    for d in data.dimensions:
        pca = PCA(d, random_state=seed).fit(flat(seen))
        rest = ((flat(unseen) - pca.inverse_transform(pca.transform(flat(unseen)))) ** 2).sum(1)
        yield figure("what PCA leaves over", f"{d} components", -rest)
    gaussians = GaussiansOnPCA(data.components, d := data.dimensions[1], seed).fit(seen)
    yield figure("Gaussians on PCA", f"{d} dimensions", gaussians.score_samples(unseen))
