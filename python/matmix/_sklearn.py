"""scikit-learn's base classes where it is installed, and the little of them that is needed where it is not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        DensityMixin,
        TransformerMixin,
        clone,
    )
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.utils.validation import _check_feature_names as check_feature_names

    HAVE_SKLEARN = True
except ImportError:
    HAVE_SKLEARN = False

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """The estimator was used before it was fitted."""

    class ConvergenceWarning(UserWarning):  # type: ignore[no-redef]
        """A fit ended before it had converged; the model is kept."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name: what `clone`, `repr` and grids live on."""

        @classmethod
        def _get_param_names(cls) -> list[str]:
            names = inspect.signature(cls.__init__).parameters
            return sorted(name for name in names if name != "self")

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters of this estimator and, if `deep`, of those it holds."""
            out: dict[str, Any] = {}
            for name in self._get_param_names():
                value = getattr(self, name)
                if deep and hasattr(value, "get_params") and not isinstance(value, type):
                    out.update((f"{name}__{key}", inner) for key, inner in value.get_params().items())
                out[name] = value
            return out

        def set_params(self, **params: Any) -> BaseEstimator:
            """Sets parameters; `name__inner` sets those of an estimator held as `name`."""
            known = self._get_param_names()
            for name, value in params.items():
                name, _, inner = name.partition("__")
                if name not in known:
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known}.")
                if inner:
                    getattr(self, name).set_params(**{inner: value})
                else:
                    setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            defaults = inspect.signature(type(self).__init__).parameters
            changed = (
                f"{name}={value!r}"
                for name, value in self.get_params(deep=False).items()
                if repr(value) != repr(defaults[name].default)
            )
            return f"{type(self).__name__}({', '.join(changed)})"

    class TransformerMixin:  # type: ignore[no-redef]
        """`fit_transform`."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
            """Fits to X and transforms it."""
            return self.fit(X, y, **fit_params).transform(X)  # type: ignore[attr-defined]

        def set_output(self, *, transform: str | None = None) -> TransformerMixin:
            """Data frames as output need scikit-learn."""
            if transform not in (None, "default"):
                raise ImportError("set_output needs scikit-learn")
            return self

    class ClassNamePrefixFeaturesOutMixin:  # type: ignore[no-redef]
        """Names of the output columns: the class and a number."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            """The names of the columns of `transform`'s output, shape (n_features_out,)."""
            prefix = type(self).__name__.lower()
            count = self._n_features_out  # type: ignore[attr-defined]
            return np.asarray([f"{prefix}{i}" for i in range(count)], dtype=object)

    class DensityMixin:  # type: ignore[no-redef]
        """Marks densities."""

    class ClusterMixin:  # type: ignore[no-redef]
        """Marks clusterings."""

    class ClassifierMixin:  # type: ignore[no-redef]
        """`score` by accuracy."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """The share of samples whose class was found."""
            right = np.asarray(self.predict(X)) == np.asarray(y)  # type: ignore[attr-defined]
            return float(np.average(right, weights=sample_weight))

    def clone(estimator: Any, *, safe: bool = True) -> Any:
        """A new estimator with the same parameters, not fitted."""
        return type(estimator)(**estimator.get_params(deep=False))

    def check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
        """Names of columns are kept where scikit-learn is there to compare them."""


__all__ = [
    "HAVE_SKLEARN",
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "ConvergenceWarning",
    "DensityMixin",
    "NotFittedError",
    "TransformerMixin",
    "check_feature_names",
    "clone",
]
