"""What `Mixture` and `LowRank` have in common: shapes, files, tags and how they show themselves."""

from __future__ import annotations

import base64
import html
import json
import os
import struct
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _matmix
from ._asking import Asked
from ._blocks import Blocks
from ._validation import Samples, check_samples, takes_nan

if TYPE_CHECKING:
    from typing_extensions import Self


OF_A_FIT = ("callback", "checkpoint", "checkpoint_every")
"""Parameters that no model file keeps or sets: a file must not choose where a later fit writes."""


@dataclass
class History:
    """What happened during a fit. Entry 0 of a series is the start.

    Attributes
    ----------
    log_likelihood : list of float
        The mean log-likelihood per sample; empty for models without a noise model.
    reconstruction_error : list of float
        The paper's e = sqrt(Σ‖X − X̂‖²/N).
    early : list of dict
        The iterations before those of the two series, over parts of the samples: the `share` of the samples, and the
        series of each part.
    search : dict or None
        What was done to find the start, if it was searched for: how many `samples` it ran on, how many `passes` it
        cost, and its `steps`.
    choice : dict or None
        What components and ranks were chosen from, if they were; `Mixture.choice_` has it as an object.
    samples : int
        How many samples a pass over the whole set reads.
    passes : float
        Passes over the whole set, those of a search and of all restarts included: one over a part counts as its share.
    events : list of dict
        What a user should know: components begun anew or starved, noise variances at their floor, redundant columns of
        a mode (counted from 0).
    stop : str
        Why the fit ended: ``"converged"``, ``"max_iterations"`` or ``"stopped"``.
    restart : int
        Which of the `n_init` restarts was kept, counted from 0.
    seconds : float
        How long all restarts took, and what came before the fit was interrupted and gone on with.
    """

    log_likelihood: list[float] = field(default_factory=list)
    reconstruction_error: list[float] = field(default_factory=list)
    early: list[dict[str, Any]] = field(default_factory=list)
    search: dict[str, Any] | None = None
    choice: dict[str, Any] | None = None
    samples: int = 0
    passes: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    stop: str | None = None
    restart: int = 0
    seconds: float = 0.0

    @classmethod
    def from_json(cls, text: str) -> History:
        """The history in the words of the library; empty if there is none."""
        known = json.loads(text) if text else {}
        return cls(**{key: value for key, value in known.items() if key in cls.__dataclass_fields__})

    @property
    def n_iterations(self) -> int:
        """The number of iterations, those over parts of the samples included."""
        series = [*(stage["log_likelihood"] for stage in self.early), self.log_likelihood]
        return sum(max(len(one) - 1, 0) for one in series)

    @property
    def samples_per_second(self) -> float:
        """How many samples were read per second; not a number if nobody has looked at the clock."""
        return self.samples * self.passes / self.seconds if self.seconds > 0 else float("nan")

    def to_json(self) -> str:
        """The way back."""
        return json.dumps(asdict(self))


def warn_of_fit(history: History, tol: float, *, stacklevel: int) -> None:
    """Warn of an unreliable fit, in the words of the command line and the report."""
    kept = [event for event in history.events if event["event"] == "not_kept"]
    others = [event for event in history.events if event not in kept]
    stop = history.stop or "converged"
    unconverged, unreliable = _matmix.fit_warnings(stop, json.dumps(others))
    # tol=0 asks for all iterations; a stopped fit is reported where it is stopped.
    if unconverged is not None and stop == "max_iterations" and tol > 0:
        unreliable = [unconverged, *unreliable]
    for message in unreliable:
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
    for message in _matmix.fit_warnings("converged", json.dumps(kept))[1]:
        warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)


class ModelEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator around a native model, `model_`."""

    _preset: ClassVar[str | None] = None
    sample_shape: Any
    scale: float | None
    sample_shape_: Any
    input_: _matmix.Input | None
    _scale_of_fit: float | None
    _flat: bool = False
    """Whether the samples of the fit had one row of numbers each."""
    _of_recognizer: Any = None
    """The model, if it was read from the file of a recogniser over patches."""
    _described: dict[str, Any]
    """The options of the fit in the words of the library."""

    @property
    def _takes_vectors(self) -> bool:
        return self._preset is None or _matmix.PRESETS[self._preset].takes_vectors

    @property
    def _flattens(self) -> bool:
        return self._preset is not None and _matmix.PRESETS[self._preset].flattens

    def _check(self, X: Any) -> Samples:
        check_is_fitted(self)
        return check_samples(self, X, reset=False)

    def _known_input(self, *, fitting: bool) -> _matmix.Input | None:
        """The input of the model that samples are for: none for a fit, unless it begins from a model."""
        return None if fitting else getattr(self, "input_", None)

    def _factor(self, samples: Samples, *, fitting: bool) -> float:
        """What the values of X are multiplied with: what the user says, or whatever makes them what the model knows."""
        blocks = samples.array
        if isinstance(blocks, Blocks) and blocks.scale != 1.0:
            return blocks.scale
        known = self._known_input(fitting=fitting)
        # The factor of the fit is part of what the model knows; another one was asked for since.
        if self.scale is not None and (fitting or known is None or self.scale != self._scale_of_fit):
            return float(self.scale)
        # Windows of like contrast are the same whatever their images were multiplied with.
        if known is None or known.like_contrast:
            return 1.0
        return known.factor(samples.held(None, None, None), samples.shape)

    def _remember(self, samples: Samples, input: _matmix.Input, described: dict[str, Any]) -> None:
        """Keeps what the samples of a fit were, for those that come later, and its options for the model file."""
        self.sample_shape_ = samples.shape
        self.input_ = input
        self._scale_of_fit = self.scale
        self._flat = samples.flat
        self._described = described

    def _ask(
        self,
        samples: Samples,
        *questions: str,
        each: tuple[int, ...],
        dtype: Any = None,
        total: bool = False,
        then: Callable[[np.ndarray], np.ndarray] | None = None,
        model: Any = None,
    ) -> Any:
        """What the model, or `model` in its place, answers about every sample, shape (N, *each); lazy for Dask.

        `then` makes something else of the answers about a block, where the block is.
        """
        question = (self.model_ if model is None else model).question(questions)
        dtype = samples.precision if dtype is None else np.dtype(dtype)
        asked = Asked(
            question,
            samples.shape,
            self._preset,
            samples.scale,
            each,
            dtype,
            total,
            samples.missing,
            str(getattr(self, "device", "cpu")),
            then,
        )
        return samples.array.ask(asked) if isinstance(samples.array, Blocks) else asked.about(samples.array)

    def _answer(self, samples: Samples, *questions: str, **form: Any) -> Any:
        """The same for whoever asked: NumPy's, or arrays of the kind that the samples are."""
        return samples.answered(self._ask(samples, *questions, **form))

    def _rows_of(self, samples: Samples) -> tuple[int, ...]:
        """The axes of a result that stand for the parts of a sample which are samples to the model; mostly none."""
        return ()

    @property
    def rank_(self) -> tuple[int, ...]:
        """The shape of the cores: one rank per mode."""
        check_is_fitted(self)
        return tuple(self.model_.rank)

    @property
    def _n_features_out(self) -> int:
        return int(np.prod(self.rank_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = takes_nan(self)
        tags.input_tags.two_d_array = self._takes_vectors or self.sample_shape is not None
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file that Rust and the program `matmix` read, too.

        Parameters
        ----------
        path : str or path
            The file; by custom its name ends in ``.safetensors``. It appears whole or not at all.
        """
        check_is_fitted(self)
        if self._of_recognizer is self.model_:
            raise ValueError(
                f"the model is from the file of a recogniser, and a {type(self).__name__} does not know the images in "
                "it: PatchRecognizer.load and PatchFisher.load read all of the file, and write it again"
            )
        params = self._told()
        known = getattr(self, "input_", None)
        if known is not None:
            params["scale"] = self._scale_of_fit
        if (known is None or known.patches is not None) and self.sample_shape_ is not None:
            params["sample_shape_"] = list(self.sample_shape_)
        if self._flat:
            params["flat_"] = True
        if hasattr(self, "n_batches_"):
            params["n_batches_"] = self.n_batches_
        options = json.dumps({**self._described, "python": params}, default=plain)
        self.model_.save(os.fspath(path), self._preset, known, options, self.history_.to_json())

    def _told(self) -> dict[str, Any]:
        """The parameters of the estimator that a model file keeps."""
        params = self.get_params(deep=False).items()
        return {key: value for key, value in params if key not in OF_A_FIT and is_plain(value)}

    def _adopt_told(self, told: dict[str, Any]) -> None:
        """Takes over what `_told` said beside the parameters."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, scale: float | None = None) -> Self:
        """Reads a model file, whoever wrote it, as an estimator of this class.

        Parameters
        ----------
        path : str or path
            The file.
        scale : float, optional
            As of `matmix.load`.

        Returns
        -------
        estimator
            Fitted. See `matmix.load` for one of the class the file was written by.
        """
        from ._files import load

        return load(path, cls, scale=scale)

    def _adopt(self, model: Any, history: History) -> None:
        raise NotImplementedError

    # -- notebooks -------------------------------------------------------------------------------------------------

    def _facts(self) -> Iterable[tuple[str, str]]:
        raise NotImplementedError

    def _pictures(self) -> np.ndarray:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """The model at a glance: what it is, how well it fits and, for matrices, its means as pictures."""
        if not hasattr(self, "model_"):
            return f"<pre>{html.escape(repr(self))}</pre>"
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        means = self._pictures()
        pictures = ""
        if means.ndim == 3:
            low, high = float(means.min()), float(means.max())
            scaled = (255 * (means[:32] - low) / ((high - low) or 1.0)).astype(np.uint8)
            pictures = "".join(
                f"<img src='{_png(picture)}' alt='mean {k}' title='mean {k}' "
                "style='display:inline-block;margin:2px;height:56px;image-rendering:pixelated'>"
                for k, picture in enumerate(scaled)
            )
        title = f"<b>{html.escape(type(self).__name__)}</b>"
        return f"<div>{title}<table>{rows}</table><div>{pictures}</div></div>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def is_plain(value: Any) -> bool:
    """Whether a value has a place in a model file."""
    try:
        json.dumps(value, default=plain)
    except TypeError:
        return False
    return True


def plain(value: Any) -> Any:
    """NumPy's numbers as JSON writes numbers."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"{type(value)} has no place in a model file")


def _png(grey: np.ndarray) -> str:
    """A grey picture as a data address: small enough to be written without a library for images."""
    height, width = grey.shape

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = np.hstack([np.zeros((height, 1), np.uint8), grey]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
