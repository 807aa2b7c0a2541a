"""The model's parameters as arrays and the M-step on them: equations 13 to 18 of docs/maths.md, for all components at
once, in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Parameters:
    """A mixture of order 1 or 2 in canonical form."""

    weights: np.ndarray  # (K,)
    means: np.ndarray  # (K, P)
    loadings: list[np.ndarray]  # one (K, p_d, r_d) per mode
    noise: np.ndarray  # (K,)

    @classmethod
    def of(cls, mixture: Any) -> Parameters:
        """The parameters of a fitted `matmix.Mixture`."""
        k = len(mixture.weights_)
        return cls(
            mixture.weights_.copy(),
            mixture.means_.reshape(k, -1).copy(),
            [u.copy() for u in mixture.loadings_],
            mixture.noise_variances_.copy(),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(u.shape[1] for u in self.loadings)

    @property
    def rank(self) -> tuple[int, ...]:
        return tuple(u.shape[2] for u in self.loadings)

    def core_variances(self) -> np.ndarray:
        """s, (K, r_1, …)."""
        lambdas = [(u * u).sum(1) for u in self.loadings]
        return lambdas[0] if len(lambdas) == 1 else lambdas[0][:, :, None] * lambdas[1][:, None, :]

    def other_variances(self, mode: int) -> np.ndarray:
        """W, (K, ρ/r_d)."""
        if len(self.loadings) == 1:
            return np.ones((len(self.weights), 1))
        u = self.loadings[1 - mode]
        return (u * u).sum(1)


@dataclass
class Sums:
    """What one pass adds up, for the mode it updates."""

    weight: np.ndarray  # N_k
    shift: np.ndarray  # ΔM, (K, P)
    square: np.ndarray  # s_x, (K,)
    cross: np.ndarray  # A, (K, p_d, r_d)
    weighted_gram: np.ndarray  # H, (K, r_d, r_d)
    gram: np.ndarray  # S, (K, r_d, r_d)
    log_likelihood: float  # the sum over the samples

    @classmethod
    def zero(cls, model: Parameters, mode: int) -> Sums:
        k, p, r = model.loadings[mode].shape
        return cls(
            np.zeros(k),
            np.zeros_like(model.means),
            np.zeros(k),
            np.zeros((k, p, r)),
            np.zeros((k, r, r)),
            np.zeros((k, r, r)),
            0.0,
        )

    def add(self, other: Sums) -> Sums:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def maximize(model: Parameters, sums: Sums, mode: int, noise_floor: float) -> Parameters:
    """The parameters that the sums of a pass over `mode` lead to."""
    shape, rank = model.shape, model.rank
    size, rho = int(np.prod(shape)), int(np.prod(rank))
    # Too few samples leave a component as it is, but for its mean.
    alive = sums.weight >= 1 + max(rank) ** 2 / rho
    weight = np.maximum(sums.weight, 1e-300)
    n = weight[:, None, None]
    delta = np.where(sums.weight[:, None] > 1e-6, sums.shift / weight[:, None], 0.0)
    precision = 1.0 / (model.core_variances() + _column(model.noise, len(rank)))
    zeta, core = project(delta, model, mode)
    q = _unfold(core * precision, mode)
    w = model.other_variances(mode)[:, None, :]
    transposed = q.transpose(0, 2, 1)
    a = sums.cross - n * (zeta @ transposed)
    h = sums.weighted_gram - n * ((q * w) @ transposed)
    s = sums.gram - n * (q @ transposed)
    square = sums.square - sums.weight * (delta * delta).sum(1)
    v = _unfold(precision * _column(model.noise, len(rank)), mode)
    eye = np.eye(rank[mode])
    h = h + n * (v * w).sum(2)[:, :, None] * eye
    s = s + n * v.sum(2)[:, :, None] * eye
    kept = ~alive[:, None, None]
    h = np.where(kept, eye, h)
    u = np.linalg.solve(h, a.transpose(0, 2, 1)).transpose(0, 2, 1)
    noise = np.maximum((square - (u * a).sum((1, 2))) / (size * weight), noise_floor)
    u = u @ np.linalg.cholesky(np.where(kept, eye, s * (rank[mode] / (n * rho))))
    noise = np.where(alive, noise, model.noise)
    loadings = list(model.loadings)
    loadings[mode] = np.where(kept, model.loadings[mode], u)
    return Parameters(weight / weight.sum(), model.means + delta, canonical(loadings), noise)


def project(x: np.ndarray, model: Parameters, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """x (K, P), one for each component, contracted over all modes but one (unfolded), and over all."""
    if len(model.loadings) == 1:
        return x[:, :, None], (x[:, None, :] @ model.loadings[0])[:, 0]
    left, right = model.loadings
    x = x.reshape(len(x), *model.shape)
    if mode == 0:
        z = x @ right
        return z, left.transpose(0, 2, 1) @ z
    z = left.transpose(0, 2, 1) @ x
    return z.transpose(0, 2, 1), z @ right


def _unfold(x: np.ndarray, mode: int) -> np.ndarray:
    """(K, r_d, ρ/r_d) from (K, r_1, …)."""
    if x.ndim == 2:
        return x[:, :, None]
    return x if mode == 0 else x.transpose(0, 2, 1)


def _column(x: np.ndarray, order: int) -> np.ndarray:
    return x.reshape(-1, *[1] * order)


def canonical(loadings: list[np.ndarray]) -> list[np.ndarray]:
    """Orthogonal columns, descending; the same scale in every mode."""
    out = []
    for u in loadings:
        w, sigma, _ = np.linalg.svd(u, full_matrices=False)
        out.append(w * sigma[:, None, :])
    logs = [np.log((u * u).sum((1, 2))) for u in out]
    level = sum(logs) / len(logs)
    return [u * np.exp(0.5 * (level - t))[:, None, None] for u, t in zip(out, logs, strict=True)]
