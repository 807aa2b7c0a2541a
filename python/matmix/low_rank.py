"""Low rank without a noise model: `matmix.LowRank`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from . import _matmix
from ._base import History, ModelEstimator, plain, warn_of_fit
from ._elements import check_array
from ._validation import (
    OF_EVERY_FIT,
    Data,
    Samples,
    Sides,
    check_rank,
    check_samples,
    check_weights,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class LowRank(ModelEstimator):
    """Orthonormal loadings for every mode: PCA, GLRAM, 2DPCA and multilinear PCA in one.

    A matrix is approximated by ``X ≈ V₁ B V₂ᵀ + M`` with the core ``B = V₁ᵀ (X − M) V₂``; a vector by PCA; a tensor
    with one loading matrix per mode. A mode whose rank is its side is kept whole.

    Parameters
    ----------
    rank : int, sequence of int or None, default=None
        The shape of the cores: one number for every mode or one per mode. None means ``min(4, side)`` in every mode.
    center : bool, default=True
        Whether the mean is subtracted first (Ye's GLRAM does not).
    sample_shape : tuple of int, optional
        The shape of one sample, for arrays that hold flattened samples in their rows. By default ``X.shape[1:]``.
    scale : float, optional
        What every value is multiplied with when it is read (1/255 for bytes, say), without a copy. A fitted model
        multiplies new samples the same way; another number, set after the fit, is used as it is.
    max_iter : int, default=100
        The largest number of alternations over the modes. Vectors need only one.
    tol : float, default=1e-6
        The change of the squared error, relative to the variance, that ends them.
    n_threads : int, optional
        How many threads fit; all cores by default.

    Attributes
    ----------
    mean_ : ndarray of shape (p_1, ..., p_D)
        Zero where `center` is false.
    loadings_ : list of ndarray of shape (p_d, r_d), one per mode
        With orthonormal columns.
    explained_variance_ : list of ndarray of shape (r_d,), one per mode
        The variance along each loading (divided by N; scikit-learn's PCA divides by N − 1).
    explained_variance_ratio_ : list of ndarray of shape (r_d,), one per mode
        Its share of the total variance.
    reconstruction_error_ : float
        sqrt(Σ‖X − X̂‖²/N) at the end.
    converged_ : bool
    n_iter_ : int
    passes_ : float
        Passes over all samples: one over a part counts as its share.
    history_ : History
    n_features_in_ : int
        The number of numbers in a sample.
    sample_shape_ : tuple of int
    input_ : Input
        What the model takes for input: `shape`, `scale`, `dtype` and `range` of the values, and, for images that the
        library has read, `resize` and `colour`; `missing` and `mask` tell which cells were not observed. None if a
        model file does not say it.
    rank_ : tuple of int
    model_ : LowRankModel
        The native model.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> model = matmix.LowRank(rank=(8, 6)).fit(X)
    >>> model.transform(X).shape, [v.shape for v in model.loadings_]
    ((1000, 8, 6), [(28, 8), (28, 6)])
    >>> model.inverse_transform(model.transform(X)).shape
    (1000, 28, 28)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**OF_EVERY_FIT, "center": ["boolean"]}

    def __init__(
        self,
        rank: Sides = None,
        center: bool = True,
        *,
        sample_shape: Sides = None,
        scale: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        self.rank = rank
        self.center = center
        self.sample_shape = sample_shape
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads

    def _centred(self) -> bool:
        return bool(self.center)

    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fits the loadings.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D), or (N, P) for vectors and for flattened samples
        y : ignored
        sample_weight : array of shape (N,), optional
            How many times each sample counts.

        Returns
        -------
        self
        """
        self._validate_params()
        samples = check_samples(self, X, reset=True)
        weights = check_weights(sample_weight, samples.n)
        options = self._options()
        input = samples.described()
        begun = time.perf_counter()
        model, errors, passes, stop = _matmix.fit_low_rank(
            samples.held(self._preset, weights, options["threads"]),
            samples.shape,
            preset=self._preset,
            weights=weights,
            scale=samples.scale,
            options=json.dumps(options, default=plain),
        )
        # How many threads there were does not decide the model.
        self._remember(samples, input, {name: value for name, value in options.items() if name != "threads"})
        seconds = time.perf_counter() - begun
        history = History(reconstruction_error=errors, samples=samples.n, passes=passes, stop=stop, seconds=seconds)
        self._adopt(model, history)
        warn_of_fit(history, self.tol, stacklevel=3)
        return self

    def _options(self) -> dict[str, Any]:
        """The options of a fit in the words of the library."""
        return {
            "rank": check_rank(self.rank),
            "centred": self._centred(),
            "max_iter": self.max_iter,
            "tol": self.tol,
            "threads": self.n_threads,
        }

    def _adopt(self, model: _matmix.LowRankModel, history: History) -> None:
        self.model_ = model
        self.history_ = history
        self.mean_ = model.mean
        self.loadings_ = model.loadings
        self.explained_variance_ = model.explained_variance
        self.explained_variance_ratio_ = model.explained_variance_ratio
        self.converged_ = history.stop == "converged"
        self.n_iter_ = len(history.reconstruction_error)
        self.passes_ = history.passes
        self.reconstruction_error_ = history.reconstruction_error[-1] if self.n_iter_ else float("nan")

    def transform(self, X: Data) -> np.ndarray:
        """The core of every sample, shape (N, r_1, ..., r_D), or (N, r_1·…·r_D) for 2-D input."""
        samples = self._check(X)
        return self._ask(samples, "core", each=(self._n_features_out,) if samples.flat else self.rank_)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """The samples that cores stand for.

        Parameters
        ----------
        X : array of shape (N, r_1, ..., r_D) or (N, r_1·…·r_D)
            Cores, as `transform` returns them.

        Returns
        -------
        ndarray of shape (N, p_1, ..., p_D), or (N, P) if the cores are flattened
        """
        check_is_fitted(self)
        cores = check_array(X)
        rank, size = self.rank_, self._n_features_out
        if cores.ndim < 2 or cores.shape[1:] not in ((size,), rank):
            raise ValueError(
                f"cores of shape (N, {size}) or (N, {', '.join(map(str, rank))}) are needed, got {cores.shape}"
            )
        out = self.model_.inverse_transform(np.ascontiguousarray(cores, np.float64).ravel())
        return Samples(cores, tuple(out.shape[1:]), cores.ndim == 2).like(out)

    def reconstruct(self, X: Data) -> np.ndarray:
        """Every sample rebuilt from its core, in the shape of X."""
        samples = self._check(X)
        return self._ask(samples, "rebuilt", each=tuple(samples.array.shape[1:]))

    def reconstruction_error(self, X: Data) -> float:
        """The paper's e = sqrt(Σ‖X − X̂‖²/N)."""
        return float(np.sqrt(self.squared_errors(X).mean()))

    def squared_errors(self, X: Data) -> np.ndarray:
        """‖X_n − X̂_n‖² of every sample, shape (N,)."""
        return self._ask(self._check(X), "squared_error", each=(), dtype=np.float64)

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "samples", " × ".join(map(str, self.sample_shape_ or self.model_.shape))
        yield "cores", " × ".join(map(str, self.rank_))
        yield "reconstruction error", f"{self.reconstruction_error_:.6g}"
        yield "iterations", f"{self.n_iter_} ({self.history_.stop or 'unknown'})"
        if self.passes_:
            yield "passes", f"{self.passes_:.1f}"

    def _pictures(self) -> np.ndarray:
        return self.mean_[None]
