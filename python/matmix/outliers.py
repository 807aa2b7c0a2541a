"""Samples that a model finds unlikely: `matmix.OutlierDetector`."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from ._blocks import in_memory
from ._validation import Data, Samples, check_samples, check_weights, takes_nan
from .mixture import Mixture

if TYPE_CHECKING:
    from typing_extensions import Self


class OutlierDetector(OutlierMixin, BaseEstimator):
    """Finds the samples that a mixture thinks least likely, with scikit-learn's interface for outliers.

    Parameters
    ----------
    estimator : Mixture, optional
        The model whose log-likelihood is the score; ``Mixture(noise="t")`` by default, whose heavy tails keep the
        outliers among the samples from deciding the fit. It is cloned and fitted to the samples.
    contamination : float in (0, 0.5], default=0.1
        The share of the samples of `fit` that are called outliers.

    Attributes
    ----------
    estimator_ : Mixture
        The fitted model.
    offset_ : float
        The log-likelihood below which a sample is an outlier.
    n_features_in_ : int

    Notes
    -----
    A bilateral model explains unusual combinations of usual rows and columns well; on images of a class it has not
    seen a mixture of PPCA (``OutlierDetector(matmix.MixPPCA(10, rank=16))``) is the better detector.

    Examples
    --------
    >>> import matmix, numpy as np
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> X = X.copy()
    >>> X[:5] = np.random.default_rng(0).integers(0, 256, X[:5].shape)
    >>> model = matmix.OutlierDetector(matmix.Mixture(2, rank=4, random_state=0), contamination=0.01).fit(X)
    >>> model.predict(X[:5]).tolist()
    [-1, -1, -1, -1, -1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "score_samples"]), None],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
    }

    def __init__(self, estimator: Any = None, *, contamination: float = 0.1) -> None:
        self.estimator = estimator
        self.contamination = contamination

    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fits the model and finds the threshold.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D) or (N, P)
        y : ignored
        sample_weight : array of shape (N,), optional
            How many times each sample counts.

        Returns
        -------
        self
        """
        in_memory(X, "OutlierDetector scores the samples it is fitted to; it")
        self._validate_params()
        model = Mixture(noise="t") if self.estimator is None else clone(self.estimator)
        samples = check_samples(model, X, reset=True, owner=self, owner_reset=True)
        self.estimator_ = model.fit(samples.for_another, sample_weight=sample_weight)
        scores = _comparable(self.estimator_.score_samples(samples.array), samples)
        self.offset_ = _threshold(scores, check_weights(sample_weight, samples.n), self.contamination)
        return self

    def score_samples(self, X: Data) -> np.ndarray:
        """ln p(X_n) of every sample, shape (N,): the lower, the more of an outlier.

        Of a sample with missing cells it is that of the observed ones times P/o, as if all P were like those o; of one
        without a number it is infinite: nothing speaks against it.
        """
        check_is_fitted(self)
        samples = check_samples(self.estimator_, X, reset=False, owner=self)
        if samples.missing == "nan":
            in_memory(X, "an OutlierDetector that allows for missing cells")
        return _comparable(self.estimator_.score_samples(samples.array), samples)

    def decision_function(self, X: Data) -> np.ndarray:
        """By how much every sample is more likely than the threshold, shape (N,); below 0 for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Data) -> np.ndarray:
        """1 for samples that belong, -1 for outliers, shape (N,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_nan(self.estimator)
        return tags


def _comparable(scores: np.ndarray, samples: Samples) -> np.ndarray:
    """Log-likelihoods of samples with different numbers of observed cells, for each cell as much."""
    if samples.missing != "nan" or samples.array.dtype.kind != "f":
        return scores
    share = 1 - np.isnan(samples.array).reshape(len(scores), -1).mean(axis=1)
    return np.divide(scores, share, out=np.full(len(scores), np.inf), where=share > 0)


def _threshold(scores: np.ndarray, weights: np.ndarray | None, share: float) -> float:
    """The score of the first sample that belongs, if those of lower score have this share of the weight."""
    order = np.argsort(scores, kind="stable")
    weights = np.ones(len(scores)) if weights is None else weights
    below = np.cumsum(weights[order])
    # Just above the share, or rounding would decide about shares such as 0.1.
    at = np.searchsorted(below, share * below[-1] * (1 + 1e-12), side="right")
    return float(scores[order[min(at, len(scores) - 1)]])
