"""Samples that a model finds unlikely: `matmix.OutlierDetector`."""

from __future__ import annotations

import json
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from . import _matmix
from ._blocks import in_memory
from ._validation import Data, Samples, Seed, check_samples, check_seed, check_weights, one_of, takes_nan
from .published import MixPPCA

if TYPE_CHECKING:
    from typing_extensions import Self


class OutlierDetector(OutlierMixin, BaseEstimator):
    """Finds the samples that a mixture thinks least likely, with scikit-learn's interface for outliers.

    Parameters
    ----------
    estimator : Mixture, optional
        The model whose log-likelihood is the score. It is cloned and fitted to the samples. By default `MixPPCA` with 1
        to 3 components, of 200 samples or more each, and up to 32 factors: the likelihood of samples held out decides.
    contamination : float in (0, 0.5], default=0.1
        The share of the samples of `fit` that are called outliers.
    missing : {"error", "nan"}, default="error"
        What NaN is to the default model; that of `estimator` if one is given.
    random_state : int, RandomState, Generator or None
        Of the default model; that of `estimator` if one is given.

    Attributes
    ----------
    estimator_ : Mixture
        The fitted model.
    offset_ : float
        The score below which a sample is an outlier.
    n_features_in_ : int

    Notes
    -----
    A bilateral model explains unusual combinations of usual rows and columns well: on images of a class it has not seen
    a mixture of PPCA is the better detector, which is why it is the default.

    Components of one or two samples, or with noise at its floor, are left out of the score with a warning: an outlier
    that has a component of its own would be the most likely sample.

    Examples
    --------
    >>> import matmix, numpy as np
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> X = X.copy()
    >>> X[:5] = np.random.default_rng(0).integers(0, 256, X[:5].shape)
    >>> detector = matmix.OutlierDetector(contamination=0.01, random_state=0).fit(X)
    >>> detector.predict(X[:5]).tolist()
    [-1, -1, -1, -1, -1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "score_samples"]), None],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "missing": one_of("missing"),
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        contamination: float = 0.1,
        missing: str = "error",
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.missing = missing
        self.random_state = random_state

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
        default = self.estimator is None
        model = MixPPCA(missing=self.missing, random_state=self.random_state) if default else clone(self.estimator)
        samples = check_samples(model, X, reset=True, owner=self, owner_reset=True)
        weights = check_weights(sample_weight, samples.n)
        if default:
            model.set_params(**_size(model, samples, weights))
        self.estimator_ = model.fit(samples.for_another, sample_weight=sample_weight)
        _, problem = self.estimator_._supported()
        if problem is not None:
            warnings.warn(f"{problem[0].upper()}{problem[1:]}.", UserWarning, stacklevel=2)
        scores = self.estimator_._typicality(check_samples(self.estimator_, samples.array, reset=False))
        self.offset_ = _threshold(scores, weights, self.contamination)
        return self

    def score_samples(self, X: Data) -> np.ndarray:
        """Score of every sample, shape (N,): the lower, the more of an outlier.

        ln p(X_n) of complete samples. Of a sample with missing cells it is ln p of a complete sample that is as far
        from the components, given how distances over its number of cells vary. Neither the number of missing cells
        nor the unit of the values decides who comes first. A sample without an observed cell scores as typical.
        """
        check_is_fitted(self)
        return self.estimator_._typicality(check_samples(self.estimator_, X, reset=False, owner=self))

    def decision_function(self, X: Data) -> np.ndarray:
        """By how much every sample is more likely than the threshold, shape (N,); below 0 for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Data) -> np.ndarray:
        """1 for samples that belong, -1 for outliers, shape (N,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_nan(self if self.estimator is None else self.estimator)
        return tags


def _size(model: MixPPCA, samples: Samples, weights: np.ndarray | None) -> dict[str, Any]:
    """Components and factors of the default model, and the seed of their choice."""
    seed = check_seed(model.random_state)
    options = {"seed": seed, "missing": model.missing}
    components, factors, interrupted = _matmix.detector_size(
        samples.held(model._preset, weights, None),
        samples.shape,
        preset=str(model._preset),
        weights=weights,
        scale=samples.scale,
        options=json.dumps(options),
    )
    if interrupted:
        raise KeyboardInterrupt
    return {"n_components": components, "rank": factors, "random_state": seed}


def _threshold(scores: np.ndarray, weights: np.ndarray | None, share: float) -> float:
    """The score of the first sample that belongs, if those of lower score have this share of the weight."""
    order = np.argsort(scores, kind="stable")
    weights = np.ones(len(scores)) if weights is None else weights
    below = np.cumsum(weights[order])
    # Just above the share, or rounding would decide about shares such as 0.1.
    at = np.searchsorted(below, share * below[-1] * (1 + 1e-12), side="right")
    return float(scores[order[min(at, len(scores) - 1)]])
