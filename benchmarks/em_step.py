"""One EM iteration of the mixture as a user of NumPy or PyTorch would write it well.

Exact posterior in canonical form, all sums, both modes, the same M-step: the same algorithm as the library's, so the
log-likelihood after an iteration is the same up to rounding. The samples are walked over in blocks that stay in cache;
sums are made only for pairs of sample and component with a responsibility above 1e-12; the largest products are single
calls of the BLAS. Three ways to project are offered, because which one is fastest depends on the sizes:

``dense``
    all components at once: X (n × P) times the Kronecker products of the loadings (P × K·ρ). More flops than needed, in
    one product of a shape BLAS likes.
``wide``
    mode 2 of all components at once: X (n·p × q) times all R (q × K·c), then L.
``batched``
    mode 1 of all components at once, sample by sample: all Lᵀ (K·r × p) times X_n (p × q), then R.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .maximize import Parameters, Sums, maximize

SKIPPED = 1e-12


class Step:
    """The iteration in one of its formulations, on samples X of shape (N, p) or (N, p, q)."""

    def __init__(self, backend: Any, formulation: str, block: int, threads: int, over_blocks: bool) -> None:
        self.backend = backend
        self.formulation = formulation
        self.block = block
        self.threads = threads
        # Threads either inside the products or over the blocks, each with a product of one thread.
        self.over_blocks = over_blocks and threads > 1

    @property
    def name(self) -> str:
        how = "threads over blocks" if self.over_blocks else "threads in the products"
        return f"{self.formulation}, blocks of {self.block}, {how}"

    def iterate(self, X: np.ndarray, model: Parameters, noise_floor: float = 0.0) -> Parameters:
        """One cycle over the modes."""
        for mode in range(X.ndim - 1):
            model = maximize(model, self.sums(X, model, mode), mode, noise_floor)
        return model

    def log_likelihood(self, X: np.ndarray, model: Parameters) -> float:
        """The mean per sample."""
        return self.sums(X, model, 0).log_likelihood / len(X)

    def sums(self, X: np.ndarray, model: Parameters, mode: int) -> Sums:
        """One pass: the E-step and the sums that update `mode`."""
        plan = Plan(self.backend, X, model, mode, self.formulation)
        starts = range(0, len(X), self.block)
        total = Sums.zero(model, mode)

        def run(start: int) -> Sums:
            return plan.block(X[start : start + self.block])

        if self.over_blocks:
            with self.backend.one_thread(), ThreadPoolExecutor(self.threads) as pool:
                for part in pool.map(run, starts):
                    total.add(part)
        else:
            for start in starts:
                total.add(run(start))
        return total


class Plan:
    """A model made ready for one pass."""

    def __init__(self, backend: Any, X: np.ndarray, model: Parameters, mode: int, formulation: str) -> None:
        self.backend, self.model, self.mode, self.formulation = backend, model, mode, formulation
        self.order = X.ndim - 1
        like = backend.array(X[:1])
        working = lambda x: backend.array(x, like)  # noqa: E731
        k, rho, size = len(model.weights), int(np.prod(model.rank)), int(np.prod(model.shape))
        self.k, self.rho, self.size = k, rho, size
        # As the library does: what differs between samples deserves the digits of single precision.
        reference = model.weights @ model.means
        offset = model.means - reference
        self.reference = working(reference)
        self.loadings = [working(u) for u in model.loadings]
        self.mean_norms = (offset * offset).sum(1)
        self.offsets = working(offset)
        self.mean_columns = working(offset.T)
        self.y0 = project_all(offset, model)
        self.variances = model.core_variances().reshape(k, rho)
        self.precision = 1.0 / (self.variances + model.noise[:, None])
        self.working_precision = working(self.precision[:, :, None])
        log_det = (size - rho) * np.log(model.noise) - np.log(self.precision).sum(1)
        self.constant = np.log(model.weights) - 0.5 * (size * np.log(2 * np.pi) + log_det)
        self.other = working(model.other_variances(mode))
        left = model.loadings[0]
        if self.order == 1:
            self.first = working(left.transpose(1, 0, 2).reshape(size, k * rho))
        else:
            right = model.loadings[1]
            if formulation == "dense":
                both = np.einsum("kpr,kqc->pqkrc", left, right)
                self.first = working(both.reshape(size, k * rho))
            elif formulation == "wide":
                self.first = working(right.transpose(1, 0, 2).reshape(right.shape[1], -1))
                self.second = working(left.transpose(0, 2, 1))
            else:
                self.first = working(left.transpose(0, 2, 1).reshape(-1, left.shape[1]))
                self.second = working(right)
        self.core_offset = working(self.y0.reshape(1, k, rho))

    def cores(self, x: Any) -> Any:
        """Y of every sample of the block under every component, (n, K, ρ)."""
        n, k, backend = len(x), self.k, self.backend
        if self.order == 1 or self.formulation == "dense":
            y = (x.reshape(n, -1) @ self.first).reshape(n, k, self.rho)
        else:
            p, q = self.model.shape
            r, c = self.model.rank
            if self.formulation == "wide":
                z = (x.reshape(n * p, q) @ self.first).reshape(n, p, k, c)
                z = backend.permute(z, (2, 1, 0, 3)).reshape(k, p, n * c)
                y = (self.second @ z).reshape(k, r, n, c)
                y = backend.permute(y, (2, 0, 1, 3)).reshape(n, k, self.rho)
            else:
                z = (self.first @ x.reshape(n, p, q)).reshape(n, k, r, q)
                y = (z @ self.second).reshape(n, k, self.rho)
        return y - self.core_offset

    def block(self, stored: np.ndarray) -> Sums:
        """The sums of one block of samples."""
        backend, model, mode = self.backend, self.model, self.mode
        n = len(stored)
        x = backend.array(stored).reshape(n, -1) - self.reference
        y = self.cores(x)
        # ln p(X|k), in double precision from here on: (n, K) numbers.
        norms = backend.square_sums(x, model.shape[-1])
        inner = backend.numpy(x @ self.mean_columns).astype(np.float64)
        distance = norms[:, None] - 2 * inner + self.mean_norms
        explained = backend.numpy(backend.permute(y * y, (1, 0, 2)) @ self.working_precision)
        explained = explained[:, :, 0].T.astype(np.float64)
        density = self.constant - 0.5 * (distance - explained) / model.noise
        top = density.max(1, keepdims=True)
        gamma = np.exp(density - top)
        total = gamma.sum(1, keepdims=True)
        gamma /= total
        sums = Sums.zero(model, mode)
        sums.log_likelihood = float((top + np.log(total)).sum())
        sums.weight = gamma.sum(0)
        sums.square = (gamma * distance).sum(0)
        for k in range(self.k):
            chosen = np.flatnonzero(gamma[:, k] > SKIPPED)
            if len(chosen):
                self.add(sums, k, x, y, gamma[chosen, k], None if len(chosen) == n else chosen)
        return sums

    def add(self, sums: Sums, k: int, x: Any, y: Any, gamma: np.ndarray, chosen: np.ndarray | None) -> None:
        """Component k's share of the block."""
        backend, mode = self.backend, self.mode
        n = len(gamma)
        if chosen is not None:
            index = backend.array(chosen)
            x, y = x[index], y[index, k]
        else:
            y = y[:, k]
        weight = backend.array(gamma, y)
        # The reference of a single component is its mean.
        centred = x if self.k == 1 else x - self.offsets[k]
        q = y * backend.array(self.precision[k], y)
        weighted = q * weight[:, None]
        sums.shift[k] = backend.numpy(weight @ centred)
        if self.order == 1:
            sums.cross[k] = backend.numpy(centred.T @ weighted)
            sums.gram[k] = sums.weighted_gram[k] = backend.numpy(q.T @ weighted)
            return
        (p, s), (r, c) = self.model.shape, self.model.rank
        q, weighted = q.reshape(n, r, c), weighted.reshape(n, r, c)
        if mode == 0:
            z = (centred.reshape(n * p, s) @ self.loadings[1][k]).reshape(n, p, c)
            z = backend.permute(z, (1, 0, 2)).reshape(p, n * c)
            q = backend.permute(q, (1, 0, 2)).reshape(r, n * c)
            weighted = backend.permute(weighted, (0, 2, 1)).reshape(n * c, r)
            other = self.other[k][None, None, :]
            sums.cross[k] = backend.numpy(z @ weighted)
            scaled = (q.reshape(r, n, c) * other).reshape(r, n * c)
        else:
            z = (backend.permute(self.loadings[0][k], (1, 0)) @ centred.reshape(n, p, s)).reshape(n * r, s)
            weighted = weighted.reshape(n * r, c)
            other = self.other[k][None, :, None]
            sums.cross[k] = backend.numpy(z.T @ weighted)
            scaled = (q * other).reshape(n * r, c).T
            q = q.reshape(n * r, c).T
        sums.gram[k] = backend.numpy(q @ weighted)
        sums.weighted_gram[k] = backend.numpy(scaled @ weighted)


def project_all(x: np.ndarray, model: Parameters) -> np.ndarray:
    """The core of x (K, P) under its own component, (K, ρ)."""
    if len(model.loadings) == 1:
        return (x[:, None, :] @ model.loadings[0])[:, 0]
    left, right = model.loadings
    return (left.transpose(0, 2, 1) @ x.reshape(len(x), *model.shape) @ right).reshape(len(x), -1)


# The name of a formulation that was found to be the fastest before, in another process.
chosen_before: str | None = None


def fastest(backend: Any, X: np.ndarray, model: Parameters, threads: int, budget: float = 20.0) -> Step:
    """The fastest formulation on a part of the samples; trying ends after `budget` seconds."""
    size, k, rho = X[0].size, len(model.weights), int(np.prod(model.rank))
    part = X[: max(64, (8 << 20) // size // (4 if k > 50 else 1))]
    names = ["dense"] if X.ndim == 2 else ["dense", "wide", "batched"]
    # The matrix of the dense formulation has P × K·ρ numbers: where that is more than a block of samples, it loses.
    names = [name for name in names if X.ndim == 2 or name != "dense" or size * k * rho <= 1 << 26]
    best: tuple[float, Step] | None = None
    begun = time.perf_counter()
    for elements in (1 << 21, 1 << 23, 1 << 18):
        for over_blocks in (True, False) if threads > 1 else (False,):
            for name in names:
                step = Step(backend, name, min(len(X), max(16, elements // size)), threads, over_blocks)
                if chosen_before is not None:
                    if step.name == chosen_before:
                        return step
                    continue
                if best is not None and time.perf_counter() - begun > budget:
                    return best[1]
                step.sums(part[: step.block], model, 0)
                started = time.perf_counter()
                step.iterate(part, model)
                taken = time.perf_counter() - started
                if best is None or taken < best[0]:
                    best = (taken, step)
    assert best is not None
    return best[1]
