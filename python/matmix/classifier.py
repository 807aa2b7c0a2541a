"""A mixture that keeps to known labels, as a classifier: `matmix.MixtureClassifier`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from . import _matmix
from ._base import History, is_plain
from ._fitting import takes_those_of
from ._labels import described_labels, label_names, labels_of, read_labels, typed_labels
from ._validation import AT_LEAST_ONE, OF_EVERY_FIT, Data, Sides, check_samples, check_weights
from .mixture import Mixture

if TYPE_CHECKING:
    from typing_extensions import Self


def _never(_: Any) -> bool:
    return False


class MixtureClassifier(ClassifierMixin, Mixture):
    """A generative classifier: every class is a mixture of its own, and all of them are fitted together.

    Components belong to classes. A sample whose label is known belongs to the components of its class, one whose label
    is not known to any of them, so that samples without labels help to find the shape of the classes. A new sample is
    of the class whose components are most probable together. Cells may be missing (``missing="nan"``), and outliers
    and wrong samples may be among those of the fit (``noise="t"``), as for `Mixture`.

    Parameters
    ----------
    components_per_class : int, default=1
        How many components each class has.
    rank : int, sequence of int or None, default=None
        The shape of the cores, as of `Mixture`.
    unlabeled : object, default=None
        The label of samples whose class is not known: −1, say, as in scikit-learn's `sklearn.semi_supervised`. NaN,
        None, pandas' NA and the empty string always mean that.
    noise, dof, missing, sample_shape, scale, init_params, n_init, max_iter, tol, stop, accelerate, stages, \
random_state, warm_start, verbose, n_threads, precision, noise_floor, callback, checkpoint, checkpoint_every
        As of `Mixture`. A start is made class by class, by k-means or at random among its labelled samples.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels. Read from a model file of the program or of Rust, which have names only, they are integers if all
        of them are written like integers, else strings.
    component_classes_ : ndarray of shape (K,)
        The place in `classes_` of every component's class.
    weights_, means_, loadings_, noise_variances_, degrees_of_freedom_, n_iter_, lower_bound_, history_, model_, ...
        As of `Mixture`, of all components; `lower_bound_` is the mean of ln p(X, label), or of ln p(X) without a label.

    Notes
    -----
    `score` is the accuracy, as of every classifier; `score_samples` is the log-likelihood of samples without labels.

    Examples
    --------
    >>> import matmix, numpy as np
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> some = np.where(np.arange(1000) % 2, -1, y)
    >>> model = matmix.MixtureClassifier(rank=4, unlabeled=-1, scale=1 / 255, max_iter=20, tol=1e-4).fit(X, some)
    >>> model.predict_proba(X[:5]).shape, model.component_classes_.shape
    ((5, 10), (10,))
    >>> bool(model.score(X[1::2], y[1::2]) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Mixture._parameter_constraints,
        "components_per_class": [AT_LEAST_ONE],
        "unlabeled": "no_validation",
        # A choice of ranks knows no labels.
        "rank": OF_EVERY_FIT["rank"],
    }
    # What a fit that keeps to labels has no choice about.
    _components = "components_per_class"
    algorithm = "exact"
    search = "none"
    prune = False
    device = "cpu"

    @takes_those_of(Mixture, without=("n_components", "algorithm", "search", "prune", "device", "output"))
    def __init__(
        self, components_per_class: int = 1, rank: Sides = None, *, unlabeled: Any = None, **others: Any
    ) -> None: ...

    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fits the classes.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D) or (N, P)
            As of `Mixture.fit`: also lazily read arrays, `Parts` and Dask arrays.
        y : array of shape (N,)
            The label of each sample; NaN, None, "" or what `unlabeled` says where it is not known. Of every class at
            least `components_per_class` labels have to be known.
        sample_weight : array of shape (N,), optional
            How many times each sample counts.

        Returns
        -------
        self
        """
        self._validate_params()
        samples = check_samples(self, X, reset=True)
        known = read_labels(self, y, samples.n, self.unlabeled)
        weights = check_weights(sample_weight, samples.n)
        self._fit_to(samples, weights, names=label_names(known.classes), classes=known.places)
        self.classes_ = known.classes
        return self

    @available_if(_never)
    def partial_fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Not there: labels are known to whole fits only."""
        raise NotImplementedError

    @available_if(_never)
    def fit_predict(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Not there: what is predicted was given."""
        raise NotImplementedError

    def predict_proba(self, X: Data) -> np.ndarray:
        """How probable each class is for each sample, shape (N, C): the responsibilities of its components together."""
        gamma = super().predict_proba(X)
        member = np.equal.outer(self.component_classes_, np.arange(len(self.classes_)))
        return gamma @ member.astype(gamma.dtype)

    def predict_log_proba(self, X: Data) -> np.ndarray:
        """The logarithms of `predict_proba`; those of classes that are out of the question are −inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Data) -> np.ndarray:
        """The most probable class of every sample, shape (N,); lazy for samples that Dask has."""
        probabilities = self.predict_proba(X)
        if isinstance(probabilities, np.ndarray):
            return _most_probable(probabilities, self.classes_)
        return probabilities.map_blocks(
            partial(_most_probable, classes=self.classes_), drop_axis=1, dtype=self.classes_.dtype
        )

    def _chooses(self, start: Any) -> bool:
        return False

    def _adopt(self, model: _matmix.MixtureModel, history: History) -> None:
        if model.classes is None:
            raise ValueError("this model was fitted without labels and knows no classes; read it as a Mixture")
        super()._adopt(model, history)
        names, self.component_classes_ = model.classes
        self.classes_ = labels_of(names)

    def _told(self) -> dict[str, Any]:
        labels = described_labels(self.classes_)
        return {**super()._told(), **(labels if is_plain(labels) else {})}

    def _adopt_told(self, told: dict[str, Any]) -> None:
        labels, classes = typed_labels(told), self.model_.classes
        if labels is not None and classes is not None and label_names(labels) == classes[0]:
            self.classes_ = labels

    def _facts(self) -> Iterable[tuple[str, str]]:
        names = [str(name) for name in self.classes_[:12]]
        yield "classes", ", ".join(names) + (", …" if len(self.classes_) > 12 else "")
        yield from super()._facts()


def _most_probable(probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return classes[probabilities.argmax(axis=1)]
