"""Windows of images: as samples of any model, as Fisher vectors, and to recognise with."""

from __future__ import annotations

import json
import math
import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from . import _matmix
from ._base import plain
from ._blocks import Parts, in_memory
from ._elements import check_array
from ._fitting import describe
from ._labels import described_labels, typed_labels
from ._validation import (
    AT_LEAST_ONE,
    DEFAULTS,
    Samples,
    Seed,
    Sides,
    check_integer,
    check_rank,
    check_samples,
    check_seed,
)

if TYPE_CHECKING:
    from typing_extensions import Self

ABOVE_ZERO = Interval(Real, 0, math.inf, closed="neither")
OF_EVERY_PATCH_MODEL: dict[str, Any] = {
    "n_components": [AT_LEAST_ONE],
    "rank": [AT_LEAST_ONE, "array-like", None],
    "size": [AT_LEAST_ONE, "array-like"],
    "max_patches": [AT_LEAST_ONE],
    "iterations": [Interval(Integral, 0, None, closed="left")],
    "random_state": [
        Interval(Integral, 0, 2**64 - 1, closed="both"),
        np.random.RandomState,
        np.random.Generator,
        None,
    ],
}
"""What the parameters that all mixtures over patches have may be."""
OF_THE_MIXTURE = {"components": "n_components", "rank": "rank", "max_iter": "iterations", "seed": "random_state"}
"""The options of the fit that can be chosen, with the parameters that they are here."""


def check_sides(name: str, sides: Any) -> list[int]:
    """One side for all modes, or one per mode."""
    given = (sides,) if isinstance(sides, Integral) else tuple(sides)
    if not given:
        raise ValueError(f"{name} is empty; it must be an integer or one integer per mode")
    return [check_integer(name, side, 1) for side in given]


def here(X: Any, what: str) -> Any:
    """X, if it can be looked at as a whole; maps of files can, whatever order their elements are in."""
    if isinstance(X, np.memmap):
        return np.asarray(X)
    in_memory(X, what)
    return X


class Patches(Parts):
    """All windows of images as samples, cut out when they are read: for every model.

    Parameters
    ----------
    X : array of shape (N, p_1, ..., p_D)
        The images.
    size : int or sequence of int, default=6
        The sides of a window: one for all modes, cut to those that are shorter, or one per mode.
    stride : int or sequence of int, default=1
        How far one window is from the next.
    contrast : float, "kept" or None, default=0.1
        Every window minus its mean, divided by ``sqrt(variance + c)``, where c is this share of the mean variance of
        all windows. ``"kept"`` takes nothing but the means off, None leaves windows as they are.
    n_patches : int, optional
        So many of them, drawn at random, in the order of the images.
    random_state : int, RandomState, Generator or None
        Draws the windows, and those that are looked at for their mean variance.

    Attributes
    ----------
    shape : tuple of int
        As of the one array of all windows.
    dtype : numpy.dtype
        Single precision unless windows are as they are.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> patches = matmix.Patches(X[:50], size=6, stride=2)
    >>> patches.shape
    (7200, 6, 6)
    >>> matmix.Mixture(3, rank=3, max_iter=50, tol=1e-3, random_state=0).fit(patches).means_.shape
    (3, 6, 6)
    """

    def __init__(
        self,
        X: ArrayLike,
        size: Any = 6,
        stride: Any = 1,
        *,
        contrast: float | str | None = 0.1,
        n_patches: int | None = None,
        random_state: Seed = 0,
    ) -> None:
        images = check_array(here(X, "Patches"))
        if images.ndim < 2:
            raise ValueError(f"X has shape {images.shape}; images of shape (N, p, ...) are needed")
        self.windows = _matmix.PatchWindows(
            images,
            images.shape[1:],
            size=check_sides("size", size),
            stride=check_sides("stride", stride),
            contrast="none" if contrast is None else str(contrast),
            count=None if n_patches is None else check_integer("n_patches", n_patches, 1),
            seed=check_seed(random_state),
        )
        super().__init__([_Windows(images, self.windows)])

    def __repr__(self) -> str:
        return f"Patches(shape={self.shape}, dtype={self.dtype.name})"

    def __getitem__(self, piece: slice) -> np.ndarray:
        return self.blocks[0].source[piece]


class _Windows:
    """The windows of images as an array of which slices are read."""

    def __init__(self, images: np.ndarray, windows: _matmix.PatchWindows) -> None:
        self.images, self.windows = images, windows
        shape, dtype = windows.shape_of(images, images.shape[1:])
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def __getitem__(self, piece: slice) -> np.ndarray:
        start, stop, step = piece.indices(self.shape[0])
        return self.windows.cut(self.images, self.images.shape[1:], start, max(start, stop))[:: max(step, 1)]


class PatchModel(BaseEstimator):
    """The part that all estimators around a mixture over the patches of images have in common."""

    sample_shape: ClassVar[None] = None
    _flattens: ClassVar[bool] = False
    _kind: ClassVar[str]
    """What the library's defaults are under."""
    n_components: int
    rank: Any
    size: Any
    max_patches: int
    iterations: int
    random_state: Any
    sample_shape_: tuple[int, ...]
    input_: _matmix.Input | None
    model_: Any
    _described: dict[str, Any]
    """What the file says beside the model: the options of the fit, and what a recogniser knows."""

    def _known_input(self, *, fitting: bool) -> _matmix.Input | None:
        """The input of the model that samples are for; a fit begins without one."""
        return None if fitting else getattr(self, "input_", None)

    def _factor(self, samples: Samples, *, fitting: bool) -> float:
        """What the values of X are multiplied with: whatever makes them what the model knows."""
        known = self._known_input(fitting=fitting)
        return 1.0 if known is None else known.factor(samples.array, samples.shape)

    def _fitting(self, X: Any) -> tuple[Samples, str]:
        """Images to fit to, and the options of the fit in the words of the library."""
        self._validate_params()
        samples = check_samples(self, here(X, type(self).__name__), reset=True)
        self.sample_shape_, self.input_ = samples.shape, samples.described()
        options = self._options()
        self._described = describe(options["fit"], options["fit"]["start"])
        return samples, json.dumps(options, default=plain)

    def _options(self) -> dict[str, Any]:
        """The options of the fit in the words of the library."""
        known = DEFAULTS[self._kind]
        ours = {name: getattr(self, parameter) for name, parameter in OF_THE_MIXTURE.items()}
        ours.update(rank=check_rank(self.rank), seed=check_seed(self.random_state))
        own = {name: getattr(self, name) for name in known if name != "fit"}
        own.update((name, check_sides(name, own[name])) for name in ("size", "stride") if name in own)
        return {**own, "fit": {**known["fit"], **ours}}

    def _check(self, X: Any) -> Samples:
        check_is_fitted(self)
        return check_samples(self, here(X, type(self).__name__), reset=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file of the mixture over patches, which Rust and the program `matmix` read, too.

        Parameters
        ----------
        path : str or path
            The file. It appears whole or not at all.
        """
        check_is_fitted(self)
        self.model_.save(os.fspath(path), self.input_, json.dumps(self._told(), default=plain))

    def _told(self) -> dict[str, Any]:
        """What a model file says about the fit."""
        return {**self._described, "python": self._plain_params()}

    def _plain_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if name != "random_state" or isinstance(value, Integral)}

    def _adopt_file(self, model: Any, input: _matmix.Input | None, options: str) -> None:
        """Becomes what a model file holds."""
        known = json.loads(options) if options else {}
        self._described = dict(known) if isinstance(known, dict) else {}
        told = self._described.pop("python", None)
        params = (
            told
            if isinstance(told, dict) and told
            else {
                OF_THE_MIXTURE[name]: value for name, value in self._described.items() if name in ("max_iter", "seed")
            }
        )
        accepted = self.get_params(deep=False)
        mixture = model.mixture
        found = {"n_components": len(mixture.weights), "rank": tuple(mixture.rank), "size": tuple(mixture.shape)}
        kept = {key: tuple(v) if isinstance(v, list) else v for key, v in params.items() if key in accepted}
        self.set_params(**{**found, **kept})
        self.model_, self.input_ = model, input
        if input is not None:
            self.sample_shape_ = tuple(input.shape)
            self.n_features_in_ = math.prod(input.shape)

    @property
    def mixture_(self) -> _matmix.MixtureModel:
        """The mixture over the patches."""
        check_is_fitted(self)
        return self.model_.mixture

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class PatchFisher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PatchModel):
    """Images as Fisher vectors: what a mixture over their patches says about those, summed up over a grid.

    For each cell of a grid of overlapping triangular windows and for each component, the derivatives of the likelihood
    by the mean and the variance of the cores, each as ``sign(x) sqrt(|x|)``, every cell scaled to unit length.

    Parameters
    ----------
    n_components : int, default=16
        K of the mixture.
    rank : int or sequence of int, optional
        The sides of its cores; 4 per mode by default.
    size : int or sequence of int, default=6
        The sides of the patches.
    stride : int or sequence of int, default=1
        How far one patch is from the next.
    contrast : float, default=0.1
        Patches are divided by ``sqrt(variance + c)``, where c is this share of their mean variance.
    grid : int, default=5
        The cells along each mode.
    max_patches : int, default=20000
        The mixture is fitted to so many patches, drawn at random.
    iterations : int, default=20
        The largest number of iterations of the fit.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    mixture_ : the mixture over the patches
    n_features_in_ : int

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> fisher = matmix.PatchFisher(4, grid=3, random_state=0).fit(X[:100])
    >>> fisher.transform(X[100:103]).shape
    (3, 1152)
    """

    _kind = "patch_fisher"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OF_EVERY_PATCH_MODEL,
        "stride": [AT_LEAST_ONE, "array-like"],
        "contrast": [ABOVE_ZERO],
        "grid": [Interval(Integral, 1, 64, closed="both")],
    }

    def __init__(
        self,
        n_components: int = 16,
        rank: Sides = None,
        *,
        size: Any = 6,
        stride: Any = 1,
        contrast: float = 0.1,
        grid: int = 5,
        max_patches: int = 20_000,
        iterations: int = 20,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.size = size
        self.stride = stride
        self.contrast = contrast
        self.grid = grid
        self.max_patches = max_patches
        self.iterations = iterations
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fits the mixture to patches of images.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D)
        y : ignored

        Returns
        -------
        self
        """
        samples, options = self._fitting(X)
        self.model_ = _matmix.fit_patch_fisher(
            samples.array,
            samples.shape,
            scale=samples.scale,
            options=options,
        )
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The Fisher vectors of images, shape (N, cells · K · 2 · ρ), in single precision."""
        samples = self._check(X)
        return self.model_.features(samples.array, samples.shape, samples.scale)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, grid: int = 5) -> Self:
        """Reads the file of a model of patches, whoever wrote it.

        Parameters
        ----------
        path : str or path
        grid : int, default=5
            The cells along each mode, where the file does not say.

        Returns
        -------
        fisher
            Fitted.
        """
        model, input, options = _matmix.PatchFisherModel.load(os.fspath(path), check_integer("grid", grid, 1))
        size, stride = model.patches
        fisher = cls(size=tuple(size), stride=tuple(stride), grid=grid)
        fisher._adopt_file(model, input, options)
        if fisher.grid != grid:
            fisher.model_ = _matmix.PatchFisherModel.load(os.fspath(path), fisher.grid)[0]
        return fisher

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.width(self.sample_shape_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class PatchRecognizer(ClassifierMixin, BaseEstimator):
    """Classifies images by their patches: Fisher vectors, ridge regression on the classes, the nearest by the cosine.

    Parameters
    ----------
    fisher : PatchFisher, optional
        What turns images into vectors; ``PatchFisher(random_state=0)`` by default. It is cloned and fitted.
    ridge : float, default=0.1
        How strongly the regression is held back, relative to the mean square of the vectors.
    prefit : bool, default=False
        Use `fisher` as it is, already fitted (to other images, or read by ``PatchFisher.load``).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fisher_ : PatchFisher
        Fitted.
    n_features_in_ : int

    Examples
    --------
    >>> import matmix
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> model = matmix.PatchRecognizer().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fisher": [HasMethods(["fit", "transform"]), None],
        "ridge": [ABOVE_ZERO],
        "prefit": ["boolean"],
    }

    model_: Any

    def __init__(self, fisher: PatchFisher | None = None, *, ridge: float = 0.1, prefit: bool = False) -> None:
        self.fisher = fisher
        self.ridge = ridge
        self.prefit = prefit

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fits the mixture to patches of the images and keeps what is predicted for them as the gallery.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D)
        y : array of shape (N,)
            The class of each image.

        Returns
        -------
        self
        """
        X = here(X, "PatchRecognizer")
        self._validate_params()
        fisher = PatchFisher(random_state=0) if self.fisher is None else self.fisher
        if self.prefit:
            check_is_fitted(fisher)
        else:
            fisher = clone(fisher)
        samples = check_samples(fisher, X, reset=not self.prefit, owner=self, owner_reset=True)
        y = validate_data(self, y=y)
        check_consistent_length(samples.array, y)
        check_classification_targets(y)
        if math.prod(samples.shape) == 1:
            raise ValueError("images of one pixel (n_features=1) have no patches to tell them apart by")
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class only; a classifier needs at least two")
        self.fisher_ = fisher if self.prefit else fisher.fit(samples.for_another)
        self.model_ = _matmix.PatchGallery(
            self.fisher_.model_,
            samples.array,
            self.fisher_.sample_shape_,
            samples.scale,
            np.ascontiguousarray(index, np.int64),
            [str(name) for name in self.classes_],
            float(self.ridge),
        )
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, the gallery included, which Rust and the program `matmix` read, too.

        Parameters
        ----------
        path : str or path
            The file. It appears whole or not at all. There is no pixel of the known images in it, but what was
            predicted for each.
        """
        check_is_fitted(self)
        known = {**self.fisher_._told(), "ridge": self.ridge, **described_labels(self.classes_)}
        self.model_.save(os.fspath(path), self.fisher_.input_, json.dumps(known, default=plain))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the file of a recogniser, whoever wrote it.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        recognizer
            Fitted. Classes are what they were if Python wrote the file; the program knows their names only.
        """
        model, fisher_model, names, input, options = _matmix.PatchGallery.load(os.fspath(path))
        size, stride = fisher_model.patches
        fisher = PatchFisher(size=tuple(size), stride=tuple(stride), grid=fisher_model.grid)
        fisher._adopt_file(fisher_model, input, options)
        known = json.loads(options) if options else {}
        known = known if isinstance(known, dict) else {}
        recognizer = cls(fisher, ridge=known.get("ridge", 0.1), prefit=True)
        labels, classes = typed_labels(known), known.get("classes")
        if labels is None and isinstance(classes, list):
            # Files of before have no type.
            labels = np.asarray(classes)
        if labels is None or [str(name) for name in labels.tolist()] != names:
            labels = np.asarray(names)
        recognizer.classes_ = labels
        recognizer.fisher_, recognizer.model_ = fisher, model
        recognizer.n_features_in_ = fisher.n_features_in_
        return recognizer

    def _check(self, X: Any) -> Samples:
        check_is_fitted(self)
        return check_samples(self.fisher_, here(X, "PatchRecognizer"), reset=False, owner=self)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the nearest known image, shape (N,)."""
        samples = self._check(X)
        return self.classes_[self.model_.predict(samples.array, samples.shape, samples.scale)]

    def scores(self, X: ArrayLike) -> np.ndarray:
        """What is predicted for images, one unit vector each, shape (N, n_classes)."""
        samples = self._check(X)
        return self.model_.scores(samples.array, samples.shape, samples.scale)

    def kneighbors(
        self, X: ArrayLike, n_neighbors: int = 1, return_distance: bool = True
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """The nearest known images, nearest first; the distance is 1 − cosine.

        Returns
        -------
        distances : ndarray of shape (N, n_neighbors)
            Left out if `return_distance` is false.
        indices : ndarray of shape (N, n_neighbors)
            Places in the X that was given to `fit`.
        """
        samples = self._check(X)
        count = check_integer("n_neighbors", n_neighbors, 1)
        found = self.model_.neighbours(samples.array, samples.shape, samples.scale, count)
        return found if return_distance else found[1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        if tags.classifier_tags is not None:
            # The patches of two numbers in a row, which the checks have for samples, are a sign.
            tags.classifier_tags.poor_score = True
        return tags
