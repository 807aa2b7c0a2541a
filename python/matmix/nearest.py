"""The nearest known sample by its cores: `matmix.NearestCore`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from . import _matmix
from ._blocks import in_memory
from ._validation import Data, Samples, check_integer, check_samples, one_of, takes_nan
from .mixture import Mixture
from .published import MP2DPCA

if TYPE_CHECKING:
    from typing_extensions import Self


class NearestCore(ClassifierMixin, BaseEstimator):
    """Classifies a sample by the nearest known one in the space of the cores (1-NN).

    Parameters
    ----------
    estimator : Mixture or LowRank, optional
        The model whose cores are compared; ``Mixture()`` by default. It is cloned and fitted to the samples.
    distance : {"auto", "data", "paper", "weighted", "fisher"}, default="auto"
        - ``"auto"``: ``"fisher"`` where there are two or more samples of every class, at least two classes and at most
          4,096 samples; ``"data"`` otherwise;
        - ``"data"``: cores in units of the data, the sum over the components of ``‖L (B_a − B_b) Rᵀ‖_F``;
        - ``"paper"``: the published sum of ``‖B_a − B_b‖_F``, cores in units of their prior, which is better for very
          small cores;
        - ``"weighted"``: the paper's footnote, each term weighted by both responsibilities;
        - ``"fisher"``: beyond the paper, a shrunken linear discriminant on the cores, then the cosine.
    prefit : bool, default=False
        Use `estimator` as it is, already fitted (to other samples, say).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : Mixture or LowRank
        The fitted model.
    distance_ : str
        What samples are compared by: what ``"auto"`` came to.
    n_features_in_ : int

    Examples
    --------
    >>> import matmix
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> model = matmix.NearestCore(matmix.Mixture(3, rank=6, random_state=0)).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.8
    True
    >>> distances, indices = model.kneighbors(X[:5], n_neighbors=3)
    >>> indices.shape
    (5, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "transform"]), None],
        "distance": one_of("distance"),
        "prefit": ["boolean"],
    }

    def __init__(self, estimator: Any = None, *, distance: str = "auto", prefit: bool = False) -> None:
        self.estimator = estimator
        self.distance = distance
        self.prefit = prefit

    def fit(self, X: Data, y: ArrayLike) -> Self:
        """Fits the model to the samples and keeps their cores as the gallery.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D) or (N, P)
        y : array of shape (N,)
            The class of each sample.

        Returns
        -------
        self
        """
        in_memory(X, "the gallery of NearestCore")
        self._validate_params()
        model = Mixture() if self.estimator is None else self.estimator
        if isinstance(model, MP2DPCA):
            raise ValueError("MP2DPCA has a core for every row of a sample; NearestCore needs one per sample")
        if self.prefit:
            check_is_fitted(model)
        else:
            model = clone(model)
        samples = check_samples(model, X, reset=not self.prefit, owner=self, owner_reset=True)
        y = validate_data(self, y=y)
        check_consistent_length(samples.array, y)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        self.estimator_ = model if self.prefit else model.fit(samples.for_another)
        answers = self._answers(samples)
        index = np.ascontiguousarray(index, np.int64)
        self.model_ = self.estimator_.model_.recognizer(answers, index, str(self.distance))
        return self

    @property
    def distance_(self) -> str:
        """What samples are compared by."""
        check_is_fitted(self)
        return self.model_.distance

    @property
    def _n_components(self) -> int | None:
        """How many components have responsibilities; None of a model without."""
        return len(self.estimator_.weights_) if isinstance(self.estimator_, Mixture) else None

    def _answers(
        self, samples: Samples, then: Callable[[np.ndarray], np.ndarray] | None = None, dtype: Any = np.float64
    ) -> Any:
        """What samples are compared by, a row for each, or what `then` makes of it, one of `dtype` for each."""
        k, size = self._n_components, int(np.prod(self.estimator_.rank_))
        questions, width = (("core",), size) if k is None else (("all_cores", "responsibilities"), k * size + k)
        return self.estimator_._ask(samples, *questions, each=(width,) if then is None else (), dtype=dtype, then=then)

    def _check(self, X: Data) -> Samples:
        check_is_fitted(self)
        return check_samples(self.estimator_, X, reset=False, owner=self)

    def predict(self, X: Data) -> np.ndarray:
        """The class of the nearest known sample, shape (N,); lazy for samples that Dask has."""
        samples = self._check(X)
        return self._answers(samples, _Nearest(self.model_, self.classes_), self.classes_.dtype)

    def kneighbors(
        self, X: Data, n_neighbors: int = 1, return_distance: bool = True
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """The nearest known samples, nearest first.

        Parameters
        ----------
        X : array of samples
        n_neighbors : int, default=1
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (N, n_neighbors)
            Left out if `return_distance` is false.
        indices : ndarray of shape (N, n_neighbors)
            Places in the X that was given to `fit`.
        """
        in_memory(X, "kneighbors")
        samples = self._check(X)
        count = check_integer("n_neighbors", n_neighbors, 1)
        distances, indices, _ = self.model_.neighbours(self._answers(samples), count)
        return (distances, indices) if return_distance else indices

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = takes_nan(self.estimator)
        return tags


@dataclass(frozen=True)
class _Nearest:
    """The class of the nearest of known samples, by what was answered about new ones: all of it that travels."""

    known: _matmix.Recognizer
    classes: np.ndarray

    def __call__(self, answers: np.ndarray) -> np.ndarray:
        return self.classes[self.known.neighbours(answers, 1)[2][:, 0]]
