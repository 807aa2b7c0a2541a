"""The nearest known sample by its cores: `matmix.NearestCore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from . import _matmix
from ._blocks import Blocks, Call, in_memory
from ._elements import check_array
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
    distance : {"auto", "paper", "weighted", "fisher"}, default="auto"
        - ``"auto"``: ``"fisher"`` where there are two or more samples of every class, at least two classes and at most
          4,096 samples; ``"paper"`` otherwise;
        - ``"paper"``: the sum over the components of ``‖B_a − B_b‖_F``;
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
        """Fits the model to the samples and keeps them as the gallery.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D) or (N, P)
        y : array of shape (N,)
            The class of each sample.

        Returns
        -------
        self
        """
        in_memory(X, "NearestCore keeps the samples it is fitted to; it")
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
        self.estimator_ = model if self.prefit else model.fit(samples.array)
        self._gallery, self._scale = samples.array, samples.scale
        self._index = np.ascontiguousarray(index, np.int64)
        self._learn()
        return self

    @property
    def distance_(self) -> str:
        """What samples are compared by."""
        check_is_fitted(self)
        return self.model_.distance

    def _learn(self) -> None:
        model = self.estimator_
        self.model_ = _matmix.Recognizer(
            model.model_,
            self._gallery,
            model.sample_shape_,
            model._preset,
            self._scale,
            self._index,
            str(self.distance),
            self._missing,
        )

    @property
    def _missing(self) -> str:
        """What NaN is to the model."""
        return str(getattr(self.estimator_, "missing", "error"))

    def _check(self, X: Data) -> Samples:
        check_is_fitted(self)
        return check_samples(self.estimator_, X, reset=False, owner=self)

    def predict(self, X: Data) -> np.ndarray:
        """The class of the nearest known sample, shape (N,); lazy for samples that Dask has."""
        samples = self._check(X)
        if isinstance(samples.array, Blocks):
            return samples.array.map(Call(self, "_classes_of", (samples.shape, samples.scale)))
        return self._classes_of(samples.array, samples.shape, samples.scale)

    def _classes_of(self, block: np.ndarray, shape: tuple[int, ...], scale: float) -> np.ndarray:
        found = self.model_.predict(check_array(block), shape, self.estimator_._preset, scale, self._missing)
        return self.classes_[found]

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
        preset = self.estimator_._preset
        found = self.model_.neighbours(samples.array, samples.shape, preset, samples.scale, count, samples.missing)
        return found if return_distance else found[1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = takes_nan(self.estimator)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("model_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_gallery"):
            self._learn()
