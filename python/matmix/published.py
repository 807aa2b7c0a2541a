"""The published models by the names they were published under.

Each is `Mixture` or `LowRank` with a few options set; the library's presets say which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._fitting import takes_those_of
from ._output import of_kind, on_host
from ._validation import Samples, Seed, Sides, check_integer, given
from .low_rank import LowRank
from .mixture import Mixture


class MixB2DPPCA(Mixture):
    """Mixture of bilateral-projection 2DPPCA (Ju, Sun, Gao, Liu, Hu 2016): the paper's model.

    ``X = L_k B R_kᵀ + M_k + noise`` for matrices, and its generalisation to tensors. Parameters, attributes and
    methods are those of `Mixture`; samples must be of order 2 or more (X of shape (N, p, q), or `sample_shape`).
    `algorithm="paper"` with `init_params="random"` runs Algorithm 1 of the paper as printed.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.MixB2DPPCA(2, rank=(3, 2), random_state=0).fit(X[:200]).transform(X).shape
    (1000, 12)
    """

    _preset = "mixb2dppca"


class MixPPCA(Mixture):
    """Mixture of probabilistic PCA (Tipping, Bishop 1999) of vectors, or of the flattened samples.

    Parameters, attributes and methods are those of `Mixture`, with cores that are vectors: one number as `rank` is
    the number of factors; several, one per side of the samples, are multiplied; None means ``min(4, P)`` for vectors
    and as many as a core of ``min(4, side)`` has for matrices.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.MixPPCA(2, rank=6, random_state=0).fit(X[:200]).transform(X).shape
    (1000, 12)
    """

    _preset = "mixppca"


class _One(Mixture):
    """A mixture of one component: neither its number nor restarts are there to be chosen."""

    n_components = 1
    n_init = 1
    search = "auto"

    @takes_those_of(Mixture, without=("n_components", "n_init", "search"))
    def __init__(self, rank: Sides | str = None, **others: Any) -> None: ...


class PPCA(_One):
    """Probabilistic PCA (Tipping, Bishop 1999) of vectors, or of the flattened samples.

    Parameters, attributes and methods are those of `Mixture` without `n_components`, `n_init` and `search`; `rank` is
    the number of factors, as for `MixPPCA`.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.PPCA(rank=10).fit(X[:200].reshape(200, -1)).get_covariance().shape
    (784, 784)
    """

    _preset = "ppca"


class PSOPCA(_One):
    """Probabilistic second-order PCA (Yu, Bi, Ye 2011): ``X = L B Rᵀ + M + noise``, one component.

    Parameters, attributes and methods are those of `Mixture` without `n_components`, `n_init` and `search`; samples
    must be matrices.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.PSOPCA(rank=(5, 4)).fit(X[:200]).transform(X).shape
    (1000, 20)
    """

    _preset = "psopca"


class MP2DPCA(Mixture):
    """Mixture of probabilistic 2DPCA (Wang, Chen, Hu, Luo 2008): a mixture over the ROWS of the matrices.

    Each row of each p × q matrix is a sample of a mixture of PPCA, so that whatever `Mixture` says about a sample is
    said about a row here:

    - `transform` returns (N, p·K·c), the cores of one row after the other;
    - `cores` returns (N, p, c) and (N, p), the core of every row under its most probable component and that component;
    - `predict` returns (N, p), the component of every row; `predict_proba` (N, p, K); of `posterior` (N, p, K, c);
    - `means_` has shape (K, q), `loadings_` one array of shape (K, q, c);
    - `score_samples` is the log-likelihood of a matrix: the sum over its rows; `history_`, `lower_bound_`, `bic`,
      `aic` and `icl` count rows as samples.

    Parameters are those of `Mixture`; `rank` is the number of factors c of a row.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.MP2DPCA(2, rank=3, random_state=0).fit(X[:200]).transform(X).shape
    (1000, 168)
    """

    _preset = "mp2dpca"

    def _rows(self) -> int:
        check_is_fitted(self)
        if self.sample_shape_ is None:
            raise ValueError("the model file does not say how many rows a sample has; fit the model in Python")
        return int(self.sample_shape_[0])

    def _rows_of(self, samples: Samples) -> tuple[int, ...]:
        return samples.shape[:1]

    @property
    def _n_features_out(self) -> int:
        return self._rows() * super()._n_features_out

    def rebuild(self, cores: ArrayLike, components: ArrayLike | None = None) -> np.ndarray:
        """The matrices that the cores of their rows stand for.

        Parameters
        ----------
        cores : array of shape (N, p, c) or (N, p·c)
        components : array of int of shape (N, p), optional
            The component of each row; may be left out when there is only one.
        """
        kind, cores = given(self, cores), np.asarray(on_host(cores))
        flat = cores.ndim == 2
        rows = cores.reshape(-1, self.rank_[0])
        if components is not None:
            components = np.asarray(on_host(components)).ravel()
        out = super().rebuild(rows, components)
        out = out.reshape(len(cores), -1) if flat else out.reshape(len(cores), -1, out.shape[-1])
        return of_kind(kind, out)

    def sample(
        self, n_samples: int = 1, *, noise: bool = True, random_state: Seed = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws new matrices, row by row: shape (n_samples, p, q), and the component of each row, (n_samples, p)."""
        p = self._rows()
        rows = check_integer("n_samples", n_samples, 1) * p
        X, components = super().sample(rows, noise=noise, random_state=random_state)
        return X.reshape(n_samples, p, -1), components.reshape(n_samples, p)


class GLRAM(LowRank):
    """Generalized low rank approximations of matrices (Ye 2005): both modes reduced, not centred.

    Parameters, attributes and methods are those of `LowRank` without `center`.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.GLRAM(rank=6).fit(X).transform(X).shape
    (1000, 6, 6)
    """

    _preset = "glram"

    def __init__(
        self,
        rank: Sides = None,
        *,
        sample_shape: Sides = None,
        scale: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        self.rank = rank
        self.sample_shape = sample_shape
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads

    def _centred(self) -> bool:
        return False


class MPCA(GLRAM):
    """Multilinear PCA (Lu, Plataniotis, Venetsanopoulos 2008): every mode of matrices or tensors reduced, centred.

    Parameters, attributes and methods are those of `LowRank` without `center`.

    Examples
    --------
    >>> import numpy as np, matmix
    >>> X = np.random.default_rng(0).normal(size=(50, 8, 7, 6))
    >>> matmix.MPCA(rank=(4, 3, 2)).fit(X).transform(X).shape
    (50, 4, 3, 2)
    """

    _preset = "mpca"

    def _centred(self) -> bool:
        return True


class TwoDPCA(GLRAM):
    """Two-dimensional PCA (Yang, Zhang, Frangi, Yang 2004): the rows are kept whole, the columns reduced, centred.

    Parameters, attributes and methods are those of `LowRank` without `center`; `rank` is the number of columns of the
    cores (of two numbers, the second).

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.TwoDPCA(rank=4).fit(X).transform(X).shape
    (1000, 28, 4)
    """

    _preset = "2dpca"

    def _centred(self) -> bool:
        return True


class _PCA(LowRank):
    """What the program calls pca: samples are vectors, or flattened."""

    _preset = "pca"


BY_PRESET: dict[str, type] = {
    str(cls._preset): cls for cls in (MixB2DPPCA, MixPPCA, PPCA, PSOPCA, MP2DPCA, _PCA, GLRAM, MPCA, TwoDPCA)
}
