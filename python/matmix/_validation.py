"""From whatever a user passes to arrays the native part borrows without a copy."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from . import _matmix
from ._blocks import Blocks, LeftOut, Parts, as_blocks
from ._elements import native, plain_array
from ._on_gpu import OnGpu, check_device, is_on_gpu
from ._output import of_kind
from .datasets import DataSet

Data: TypeAlias = ArrayLike | Blocks | DataSet
"""Samples as a user gives them: whatever becomes an array, blocks, what was opened.

Dask and lazily read arrays have no types.
"""
Sides: TypeAlias = int | Sequence[int] | None
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None

AT_LEAST_ONE = Interval(numbers.Integral, 1, None, closed="left")
OF_EVERY_FIT: dict[str, Any] = {
    "rank": [AT_LEAST_ONE, "array-like", None],
    "sample_shape": [numbers.Integral, "array-like", None],
    "scale": [numbers.Real, None],
    "max_iter": [Interval(numbers.Integral, 0, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, math.inf, closed="left")],
    "n_threads": [AT_LEAST_ONE, None],
}
"""What the parameters that all models have may be."""


DEFAULTS: dict[str, dict[str, Any]] = json.loads(_matmix.DEFAULTS)
"""The options that the library has for a fit, for patches, for what is opened, with their defaults."""


def one_of(option: str) -> list[Any]:
    """The names that the library knows for an option."""
    return [StrOptions(set(_matmix.CHOICES[option]))]


class Samples(NamedTuple):
    """Samples, the shape of one of them, and how the user wrote them down."""

    array: Any
    """A C-contiguous array, of the host or `OnGpu`, or `Blocks`."""
    shape: tuple[int, ...]
    flat: bool
    """Whether the user's array has one row of numbers per sample, so that results should have one, too."""
    scale: float = 1.0
    """What every value is multiplied with."""
    missing: str = "error"
    """What NaN is."""
    given: Any = None
    """What the user gave, if answers are to be arrays of its kind."""
    opened: DataSet | None = None
    """What they were opened as, if that is known."""
    known: _matmix.Input | None = None
    """The input of the model whose unobserved cells were left out here, too."""

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.array.shape[0])

    def held(
        self,
        preset: str | None,
        weights: np.ndarray | None,
        threads: int | None,
        classes: np.ndarray | None = None,
        device: str = "cpu",
    ) -> Any:
        """The samples as a native fit takes them: the array, or what runs passes over the blocks."""
        if isinstance(self.array, Blocks):
            return self.array.elsewhere(self.shape, preset, weights, threads, self.scale, self.missing, classes, device)
        return self.array

    def described(self) -> _matmix.Input:
        """What a model that is fitted to these samples takes for input; of blocks, those with some samples are read."""
        opened = DataSet() if self.opened is None else self.opened
        missing, mask = opened.get("missing"), opened.get("mask")
        mask = None if mask is None else np.ascontiguousarray(mask, bool).ravel()
        if self.known is not None and self.missing != "error":
            missing = self.known.missing if missing is None else missing
            before = self.known.mask
            if before is not None and before.size == math.prod(self.shape):
                mask = before if mask is None else mask & before
        return _matmix.Input.of(
            self.held(None, None, None),
            self.shape,
            self.scale,
            resize=opened.get("resize"),
            colour=opened.get("colour", False),
            missing=self.missing if missing in (None, "error") else missing,
            mask=mask,
        )

    @property
    def for_another(self) -> Any:
        """The samples as another estimator takes them, with what is known about how they were opened."""
        return self.array if self.opened is None else DataSet({**self.opened, "data": self.array})

    def batches(self) -> Iterator[tuple[np.ndarray, int]]:
        """The array, or block after block, each with the number of its first sample."""
        if isinstance(self.array, Parts):
            yield from ((samples, block.first) for block, samples in self.array.read())
        elif isinstance(self.array, Blocks):
            raise TypeError(
                "a step on a batch is taken in this process, and the blocks of a Dask array are elsewhere: use fit, or "
                "give one block after the other, such as X.blocks[0].compute()"
            )
        else:
            yield self.array, 0

    def answered(self, out: Any) -> Any:
        """A result as an array of the kind that was asked for."""
        return of_kind(self.given, out)

    def like(self, out: np.ndarray) -> np.ndarray:
        """A result (N, …) in the form and the precision of the input: flattened if that was, f32 if that was."""
        if self.flat and out.ndim > 2:
            out = out.reshape(out.shape[0], -1)
        return self.typed(out)

    def typed(self, out: np.ndarray) -> np.ndarray:
        """A result in the precision of the input."""
        return out.astype(self.precision, copy=False)

    @property
    def precision(self) -> np.dtype:
        """The type of results: single for single, double for everything else."""
        return np.dtype(np.float32 if self.array.dtype == np.float32 else np.float64)


def check_samples(
    estimator: Any, X: Any, *, reset: bool, owner: Any = None, owner_reset: bool | None = None
) -> Samples:
    """Samples for `estimator`; with `reset` (in `fit`) their shape is learnt.

    `owner` is the estimator the user talks to where that is another one: it knows the names of the columns, and
    learns them with `owner_reset`.
    """
    opened = X if isinstance(X, DataSet) else None
    if opened is not None:
        X = opened.data
    samples = _shaped(estimator, X, reset, owner, owner_reset)._replace(missing=_missing_of(estimator), opened=opened)
    samples = _observed(samples, estimator._known_input(fitting=reset))
    return samples._replace(scale=estimator._factor(samples, fitting=reset), given=given(estimator, X))


def _observed(samples: Samples, known: _matmix.Input | None) -> Samples:
    """The samples without the cells that the fit of a model with this input did not see."""
    told = None if samples.opened is None else samples.opened.get("missing")
    if known is None or told == "error":
        return samples
    samples = samples._replace(known=known)
    if not known.hides(samples.shape, told is not None):
        return samples
    if isinstance(samples.array, OnGpu):
        raise TypeError(
            "X is in the memory of a GPU, but a mask or a value says which cells of this model's samples were not "
            "observed, and those are found on the processor: give X as NumPy's"
        )
    cells = LeftOut(known, samples.shape, told is not None)
    array = samples.array.without(cells) if isinstance(samples.array, Blocks) else cells(samples.array)
    return samples._replace(array=array, missing="nan")


def given(estimator: Any, X: Any) -> Any:
    """X, if the estimator was told to answer by arrays of the kind that it is asked about."""
    return X if getattr(estimator, "output", "numpy") == "input" else None


def _missing_of(estimator: Any) -> str:
    """What NaN is to an estimator."""
    return str(getattr(estimator, "missing", "error"))


def takes_nan(estimator: Any) -> bool:
    """Whether NaN is a missing cell to an estimator, as scikit-learn's tag `allow_nan` says."""
    return _missing_of(estimator) == "nan"


def _shaped(estimator: Any, X: Any, reset: bool, owner: Any, owner_reset: bool | None) -> Samples:
    """Samples of a shape that the estimator takes."""
    owner, owner_reset = (estimator, reset) if owner is None else (owner, owner_reset or reset)
    blocks = as_blocks(X)
    if blocks is None and is_on_gpu(X):
        array: Any = check_device(estimator, X)
        _validated(owner, np.broadcast_to(np.uint8(0), array.shape), owner_reset)
    elif blocks is None:
        array = native(_validated(owner, X, owner_reset, _missing_of(estimator)), "X")
    else:
        # Zeros of the same shape, which take no memory, are all that can be looked at without reading.
        _validated(owner, np.broadcast_to(np.uint8(0), blocks.shape), owner_reset)
        array = blocks
    sides = array.shape[1:]
    size = math.prod(sides)
    name = type(owner).__name__
    if reset:
        shape = check_shape(estimator.sample_shape, size)
        if shape is None:
            shape = sides
        elif math.prod(shape) != size:
            raise ValueError(
                f"X has samples of shape {sides} ({size} numbers); sample_shape={shape} needs {math.prod(shape)}"
            )
        elif len(shape) > 1 and not _arranged(sides, shape):
            raise ValueError(
                f"X has samples of shape {sides}, another arrangement than sample_shape={shape}; that is for "
                "flattened samples: give X of shape (N, P), or leave sample_shape out"
            )
        return Samples(array, shape, array.ndim == 2)
    if estimator.sample_shape_ is None:
        # The file of a mixture over rows that does not say how many rows a sample has: any number will do.
        columns = estimator.model_.shape[0]
        if array.ndim != 3 or sides[1] != columns:
            raise ValueError(f"the samples have shape {sides}; {name} needs matrices of {columns} columns")
        return Samples(array, sides, False)
    shape = tuple(estimator.sample_shape_)
    if size != math.prod(shape):
        raise ValueError(f"X has {size} features, but {name} is expecting {math.prod(shape)} features as input")
    is_flattened = len(shape) == 1 and (estimator.sample_shape is not None or estimator._flattens)
    if not (is_flattened or _arranged(sides, shape)):
        raise ValueError(f"the samples have shape {sides}, but {name} was fitted to samples of shape {shape}")
    return Samples(array, shape, array.ndim == 2)


def _arranged(sides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether samples of these sides can be looked at in this shape: flat ones, or but for sides of 1 the same."""
    return len(sides) == 1 or [side for side in sides if side > 1] == [side for side in shape if side > 1]


def _validated(owner: Any, X: Any, reset: bool, missing: str = "error") -> np.ndarray:
    """X as an array of numbers, as scikit-learn sees to it; the features are all numbers of a sample."""
    X = plain_array(X, "X", missing)
    shape = X.shape
    if len(shape) > 2:
        X = X.reshape(shape[0], math.prod(shape[1:]))
    checked = validate_data(owner, X, reset=reset, dtype="numeric", ensure_all_finite=False)
    return checked.reshape(shape)


def check_shape(shape: Any, size: int) -> tuple[int, ...] | None:
    """A sample shape as a tuple of positive integers; one of them may be −1, as in `numpy.reshape`."""
    if shape is None:
        return None
    sides = (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)
    if not sides or not all(isinstance(side, numbers.Integral) and (side == -1 or int(side) > 0) for side in sides):
        raise ValueError(f"sample_shape is {shape!r}; it must be positive integers such as (28, 28)")
    known = math.prod(int(side) for side in sides if side != -1)
    if sides.count(-1) > 1 or (-1 in sides and size % known):
        raise ValueError(f"sample_shape is {shape!r}, which leaves open how {size} numbers are arranged")
    return tuple(size // known if side == -1 else int(side) for side in sides)


def check_rank(rank: Any) -> list[int]:
    """Ranks as a list: empty for the default, one for all modes, or one per mode."""
    if rank is None:
        return []
    ranks = (rank,) if isinstance(rank, numbers.Integral) else tuple(rank)
    if not ranks:
        raise ValueError("rank is empty; it must be an integer, one integer per mode, or None")
    return [check_integer("rank", value, 1) for value in ranks]


def check_integer(name: str, value: Any, least: int) -> int:
    """An integer of at least `least` that the native part can count to."""
    return int(check_scalar(value, name, numbers.Integral, min_val=least, max_val=2**63 - 1))


def check_choice(name: str, value: Any) -> str:
    """One of the names that the library knows for an option."""
    known = _matmix.CHOICES[name]
    if value not in known:
        raise ValueError(f"option `{name}` is {value!r}; it must be one of {', '.join(map(repr, known))}")
    return str(value)


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Sample weights as doubles, one per sample; a single number weighs all samples alike."""
    if sample_weight is None:
        return None
    weights = plain_array(sample_weight, "sample_weight")
    return _check_sample_weight(weights, np.broadcast_to(np.uint8(0), (n, 1)), dtype=np.float64)


def check_seed(random_state: Any) -> int:
    """A seed of 64 bits. An integer is the seed itself, the same as in Rust and in the shell."""
    if random_state is None:
        random_state = np.random.mtrand._rand  # type: ignore[attr-defined]
    if isinstance(random_state, numbers.Integral):
        return int(check_scalar(random_state, "random_state", numbers.Integral, min_val=0, max_val=2**64 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63 - 1, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**64, dtype=np.uint64))
    raise ValueError(
        f"{random_state!r} cannot be used to seed: it must be an integer, a RandomState, a Generator or None"
    )
