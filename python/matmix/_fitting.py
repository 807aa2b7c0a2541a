"""How a mixture is fitted: all at once, from where another fit ended, batch by batch."""

from __future__ import annotations

import functools
import inspect
import json
import os
import warnings
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from . import _matmix
from ._base import History, ModelEstimator, plain, warn_of_fit
from ._choosing import AUTO, COMPONENTS, Choice, choose, from_history
from ._output import OUTPUTS
from ._progress import ProgressLine
from ._validation import (
    AT_LEAST_ONE,
    DEFAULTS,
    OF_EVERY_FIT,
    Data,
    Samples,
    check_rank,
    check_samples,
    check_seed,
    check_weights,
    one_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self


OURS = {"components": "n_components", "seed": "random_state", "threads": "n_threads", "start": "init_params"}
"""The options of a fit that scikit-learn has another word for."""
OPTIONS = {name: OURS.get(name, name) for name in DEFAULTS["fit"]}
"""Every option of a fit by the library's name, with the parameter that it is here."""


def parameters_of(options: dict[str, Any], cls: Any) -> dict[str, Any]:
    """The parameters of an estimator that fits with these options of the library, as far as its class has them."""
    ours = {**OPTIONS, "components": getattr(cls, "_components", "n_components")}
    accepted = cls._get_param_names()
    known = {ours[name]: value for name, value in options.items() if value is not None and ours.get(name) in accepted}
    if "rank" in known:
        rank = known["rank"]
        known["rank"] = (rank[0] if len(rank) == 1 else tuple(rank)) if rank else None
    return known


Init = TypeVar("Init", bound=Callable[..., None])


def takes_those_of(base: type, *, without: Collection[str]) -> Callable[[Init], Init]:
    """Gives an ``__init__`` the parameters of that of `base`, but for some, in the place of its ``**`` ones.

    They are all kept as attributes, as scikit-learn has it: there is nothing left to do for the ``__init__`` itself.
    """

    def taking(init: Init) -> Init:
        every = inspect.signature(init).parameters.values()
        own = [parameter for parameter in every if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        known = {*without, *(parameter.name for parameter in own)}
        others = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in inspect.signature(base).parameters.values()
            if parameter.name not in known
        ]
        signature = inspect.Signature([*own, *others])

        @functools.wraps(init)
        def keep(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}() {error}") from None
            given.apply_defaults()
            for name, value in list(given.arguments.items())[1:]:
                setattr(self, name, value)

        keep.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Init, keep)

    return taking


class FitInterruptedWarning(UserWarning):
    """Ctrl-C ended a fit; the model so far is kept."""


class MixtureFitting(ModelEstimator):
    """The part of `Mixture` that fits."""

    n_components: Any
    _components: ClassVar[str] = "n_components"
    """The parameter that says how many components there are."""
    rank: Any
    init_params: Any
    max_iter: int
    tol: float
    random_state: Any
    warm_start: bool
    verbose: int
    device: str
    callback: Any
    checkpoint: Any
    checkpoint_every: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OF_EVERY_FIT,
        # The library knows what is one of a few, and what is on or off.
        **{ours: one_of(name) for name, ours in OPTIONS.items() if name in _matmix.CHOICES},
        **{ours: ["boolean"] for name, ours in OPTIONS.items() if isinstance(DEFAULTS["fit"][name], bool)},
        "n_components": [AT_LEAST_ONE, StrOptions({AUTO})],
        "rank": [*OF_EVERY_FIT["rank"], StrOptions({AUTO})],
        "dof": [*one_of("dof"), Interval(Real, 0, None, closed="neither")],
        # A name, a model or a file: `_start` tells them apart.
        "init_params": "no_validation",
        "n_init": [AT_LEAST_ONE],
        "random_state": [
            Interval(Integral, 0, 2**64 - 1, closed="both"),
            np.random.RandomState,
            np.random.Generator,
            None,
        ],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "device": one_of("device"),
        "output": [StrOptions(OUTPUTS)],
        "noise_floor": [Interval(Real, 0, 1, closed="neither")],
        "callback": [callable, None],
        "checkpoint": [str, os.PathLike, None],
        "checkpoint_every": [AT_LEAST_ONE],
    }

    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fits the mixture.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D), or (N, P) for vectors and for flattened samples
            u8, f32 and f64 are used as they are; C-contiguous arrays are not copied, memory maps stay on disk. Lazily
            read arrays (h5py, zarr, xarray), `Parts` and Dask arrays are used block by block and never gathered. With
            ``device="cuda"`` (or "auto"), C-contiguous arrays of CuPy and tensors of PyTorch on a GPU are used there.
        y : ignored
        sample_weight : array of shape (N,), optional
            How many times each sample counts.

        Returns
        -------
        self
        """
        self._validate_params()
        samples = check_samples(self, X, reset=True)
        return self._fit_to(samples, check_weights(sample_weight, samples.n))

    def _fit_to(
        self,
        samples: Samples,
        weights: np.ndarray | None,
        names: list[str] | None = None,
        classes: np.ndarray | None = None,
    ) -> Self:
        """Fits the mixture, or classes of these names, to samples whose class is −1 where it is not known."""
        start = self._start()
        options = {**self._options(start), "missing": samples.missing}
        if names is not None:
            options["classes"] = names
        # Before the fit: what cannot be read should not cost its model.
        input = samples.described()
        with ProgressLine(self.verbose, samples.n) as line:
            callback = line.before(self.callback)
            if self._chooses(start):
                model, history, interrupted = choose(
                    samples, self._preset, weights, options, self._selection(start), callback
                )
            else:
                model, told, interrupted = _matmix.fit_mixture(
                    samples.held(self._preset, weights, options["threads"], classes, self.device),
                    samples.shape,
                    preset=self._preset,
                    weights=weights,
                    scale=samples.scale,
                    options=json.dumps(options, default=plain),
                    start=start,
                    device=self.device,
                    callback=callback,
                    classes=classes,
                )
                history = History.from_json(told)
        self.n_batches_ = 1
        self._remember(samples, input, describe(options, start, history))
        self._adopt(model, history)
        if interrupted:
            warnings.warn(
                f"Ctrl-C ended the fit after {self.n_iter_} iterations; the model so far is kept.",
                FitInterruptedWarning,
                stacklevel=3,
            )
        warn_of_fit(history, self.tol, stacklevel=4)
        return self

    def partial_fit(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Takes one step on a batch: for samples that arrive over time, or for a quick first model.

        Stochastic EM (Cappé & Moulines 2009): what the batch says is blended with what the model says about the batches
        before it, with a weight of (t + 2)^−0.7 after t batches. The first batch begins the model the ordinary way;
        after `fit`, the batch goes on from that fit. Approximate: where it ends depends on the batches and their order.
        For the maximum of the likelihood, fit the whole set from there (``warm_start=True``).

        Parameters
        ----------
        X : array of shape (n, p_1, ..., p_D) or (n, P)
            The batch. Batches should be alike: of some hundreds of samples or more, in no particular order. Of a
            lazily read array or `Parts`, each block is a batch.
        y : ignored
        sample_weight : array of shape (n,), optional
            How many times each sample counts within its batch.

        Returns
        -------
        self
            `n_batches_` counts the batches; `lower_bounds_` has, for each, its mean log-likelihood under the model that
            had not seen it yet (for the first one, under the model it led to).

        Examples
        --------
        >>> import matmix
        >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
        >>> model = matmix.Mixture(2, rank=3, random_state=0, warm_start=True)
        >>> for start in range(0, 1000, 250):
        ...     model = model.partial_fit(X[start : start + 250])
        >>> model.n_batches_
        4
        >>> quick = model.score(X)
        >>> bool(model.fit(X).score(X) > quick)
        True
        """
        self._validate_params()
        begun = hasattr(self, "model_")
        samples = check_samples(self, X, reset=not begun)
        weights = check_weights(sample_weight, samples.n)
        start = self._start()
        if self._chooses(getattr(self, "model_", start)):
            raise ValueError(
                "a fit in batches cannot choose: give n_components and rank as numbers, or fit the first batch with fit"
            )
        options = {**self._options(getattr(self, "model_", start)), "missing": samples.missing, "checkpoint": None}
        if begun and len(self.weights_) != options["components"]:
            raise ValueError(
                f"the model so far has {len(self.weights_)} components, but n_components={self.n_components}; "
                "a fit in batches cannot change them"
            )
        if not begun:
            self._remember(samples, samples.described(), describe(options, start))
        # A model file of rows may not have said how many of them a sample has.
        self.sample_shape_ = samples.shape
        for batch, first in samples.batches():
            part = None if weights is None else weights[first : first + len(batch)]
            model, batches, log_likelihood = _matmix.fit_batch(
                batch,
                samples.shape,
                preset=self._preset,
                weights=part,
                scale=samples.scale,
                options=json.dumps(options, default=plain),
                start=start,
                device=self.device,
                model=getattr(self, "model_", None),
                batches=getattr(self, "n_batches_", 1),
            )
            series = self.history_.log_likelihood if hasattr(self, "history_") else []
            self._adopt(model, History(log_likelihood=[*series, log_likelihood]))
            self.n_batches_ = batches
        return self

    @property
    def choice_(self) -> Choice | None:
        """What components and ranks were chosen from: a `Choice`; None if they were given."""
        found = self.history_.choice
        return None if found is None else Choice(**from_history(found))

    def _chooses(self, start: Any) -> bool:
        """Whether something is to be chosen; a model to begin with has been already."""
        return isinstance(start, str) and (_is_auto(getattr(self, self._components)) or _is_auto(self.rank))

    def _selection(self, start: str) -> dict[str, Any]:
        """What is to be chosen, in the words of the library."""
        if start != DEFAULTS["fit"]["start"]:
            raise ValueError(
                f"init_params={start!r} cannot be used where something is chosen, which finds its own starts"
            )
        if self.device == "cuda":
            raise ValueError(
                "device='cuda' cannot choose: use matmix.select first, then fit what was chosen on the GPU"
            )
        components = getattr(self, self._components)
        least, most = COMPONENTS if _is_auto(components) else (components, components)
        return {"least_components": least, "most_components": most, "choose_rank": _is_auto(self.rank)}

    def _options(self, start: Any) -> dict[str, Any]:
        """The options of a fit in the words of the library; what is to be chosen is what a model to begin with has."""
        ours = {**OPTIONS, "components": self._components}
        options = {name: getattr(self, own) for name, own in ours.items() if name != "start"}
        model = start if isinstance(start, _matmix.MixtureModel) else None
        if _is_auto(options["components"]):
            options["components"] = 1 if model is None else len(model.weights)
        options["rank"] = check_rank(None if _is_auto(self.rank) else self.rank)
        if _is_auto(self.rank) and model is not None:
            options["rank"] = list(model.rank)
        options["seed"] = check_seed(self.random_state)
        if not isinstance(start, str):
            # Restarts from one and the same model would be one and the same fit.
            options["n_init"] = 1
        if self.checkpoint is not None:
            path = os.fspath(self.checkpoint)
            options["checkpoint"] = {"path": path, "every": self.checkpoint_every, "resume": True}
        return options

    def fit_predict(self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Fits the mixture and returns the most probable component of every sample, shape (N,)."""
        return self.fit(X, y, sample_weight).predict(X)

    def _known_input(self, *, fitting: bool) -> _matmix.Input | None:
        """The input of the model that samples are for; a fit from another model reads them as that one does."""
        if not fitting or (self.warm_start and hasattr(self, "model_")):
            return getattr(self, "input_", None)
        init = self.init_params
        if isinstance(init, MixtureFitting):
            return getattr(init, "input_", None)
        return _matmix.load_model(os.fspath(init))[2] if _is_file(init) else None

    def _start(self) -> Any:
        """The name of a start, or the model to begin with."""
        if self.warm_start and hasattr(self, "model_"):
            return self.model_
        init = self.init_params
        if isinstance(init, _matmix.MixtureModel):
            return init
        if isinstance(init, MixtureFitting):
            if not hasattr(init, "model_"):
                raise NotFittedError(
                    "init_params is a mixture that is not fitted; cloning an estimator forgets the fit of those it "
                    "holds: give init_params=mixture.model_ or the model's file instead"
                )
            return init.model_
        if _is_file(init):
            model = _matmix.load_model(os.fspath(init))[0]
            if not isinstance(model, _matmix.MixtureModel):
                raise ValueError(f"{os.fspath(init)} holds no mixture to begin with")
            return model
        if not isinstance(init, str):
            names = ", ".join(map(repr, _matmix.CHOICES["start"]))
            raise TypeError(f"option `init_params` is {init!r}; it must be {names}, a fitted mixture or a model file")
        return init

    def _adopt(self, model: _matmix.MixtureModel, history: History) -> None:
        self.model_ = model
        self.history_ = history
        self.weights_ = model.weights
        for name, values in model.parameters.items():
            setattr(self, f"{name}_", values)
        self.converged_ = history.stop == "converged"
        self.lower_bounds_ = list(history.log_likelihood)
        self.lower_bound_ = self.lower_bounds_[-1] if self.lower_bounds_ else float("nan")
        self.n_iter_ = history.n_iterations
        self.passes_ = history.passes


def describe(options: dict[str, Any], start: Any, history: History | None = None) -> dict[str, Any]:
    """The options of a fit as a model file keeps them, with the components and ranks that were chosen."""
    choice = None if history is None else history.choice
    if choice is not None:
        chosen = choice["candidates"][choice["chosen"]]
        options = {**options, "components": chosen["components"], "rank": chosen["rank"]}
    return json.loads(_matmix.described(json.dumps(options, default=plain), start))


def _is_file(init: Any) -> bool:
    """Whether a fit is to begin from a model file."""
    return isinstance(init, os.PathLike) or (isinstance(init, str) and os.path.exists(init))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO
