"""From whatever a user passes to arrays the native part borrows without a copy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _matmix
from ._blocks import Blocks, Parts, as_blocks
from ._elements import check_array
from ._sklearn import NotFittedError, check_feature_names


class Samples(NamedTuple):
    """Samples, the shape of one of them, and how the user wrote them down."""

    array: Any
    """A C-contiguous array, or `Blocks`."""
    shape: tuple[int, ...]
    flat: bool
    """Whether the user's array has one row of numbers per sample, so that results should have one, too."""

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.array.shape[0])

    def held(self, preset: str | None, weights: np.ndarray | None, threads: int | None) -> Any:
        """The samples as a native fit takes them: the array, or what runs passes over the blocks."""
        if isinstance(self.array, Blocks):
            return self.array.elsewhere(self.shape, preset, weights, threads)
        return self.array

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


def check_samples(estimator: Any, X: Any, *, reset: bool, owner: Any = None) -> Samples:
    """Samples for `estimator`; with `reset` (in `fit`) their size becomes `n_features_in_`.

    `owner` is the estimator the user talks to where that is another one: it knows the names of the columns.
    """
    owner = estimator if owner is None else owner
    name = type(owner).__name__
    blocks = as_blocks(X)
    check_feature_names(owner, X if blocks is None else blocks, reset=reset)
    array: np.ndarray | Blocks = check_array(X) if blocks is None else blocks
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {'scalar' if array.ndim == 0 else '1D'} array instead. Reshape your data: "
            "array.reshape(-1, 1) for one number per sample, array.reshape(1, -1) for one sample; "
            f"{name} takes vectors (N, P), matrices (N, p, q) and tensors (N, p, q, ...)."
        )
    n, sides = array.shape[0], array.shape[1:]
    size = math.prod(sides)
    if n == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required by {name}."
        )
    if size == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required by {name}."
        )
    if reset:
        shape = check_shape(estimator.sample_shape, size)
        estimator.n_features_in_ = size
        if shape is None:
            shape = sides
        elif math.prod(shape) != size:
            raise ValueError(
                f"X has samples of shape {sides} ({size} numbers); sample_shape={shape} needs {math.prod(shape)}"
            )
        return Samples(array, shape, array.ndim == 2)
    if estimator.sample_shape_ is None:
        # The file of a mixture over rows that does not say how many rows a sample has: any number will do.
        columns = estimator.model_.shape[0]
        if array.ndim != 3 or sides[1] != columns:
            raise ValueError(f"the samples have shape {sides}; {name} needs matrices of {columns} columns")
        return Samples(array, sides, False)
    if size != estimator.n_features_in_:
        raise ValueError(f"X has {size} features, but {name} is expecting {estimator.n_features_in_} features as input")
    shape = tuple(estimator.sample_shape_)
    if array.ndim > 2 and sides != shape and estimator.sample_shape is None and not estimator._flattens:
        raise ValueError(f"the samples have shape {sides}, but {name} was fitted to samples of shape {shape}")
    return Samples(array, shape, array.ndim == 2)


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
    if isinstance(rank, numbers.Integral):
        ranks: Sequence[Any] = (rank,)
    elif isinstance(rank, (str, bytes)) or not hasattr(rank, "__iter__"):
        raise TypeError(f"rank is {rank!r}; it must be an integer, one integer per mode, or None")
    else:
        ranks = tuple(rank)
    if not ranks:
        raise ValueError("rank is empty; it must be an integer, one integer per mode, or None")
    return [check_integer("rank", value, 1) for value in ranks]


def check_integer(name: str, value: Any, least: int) -> int:
    """An integer of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"option `{name}` is {value!r}; it must be an integer")
    if not least <= int(value) < 2**63:
        raise ValueError(f"option `{name}` is {value}; it must be at least {least} and less than 2**63")
    return int(value)


def check_number(name: str, value: Any) -> float:
    """A real number; its range is the library's business."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"option `{name}` is {value!r}; it must be a number")
    if not math.isfinite(value):
        raise ValueError(f"option `{name}` is {value}; it must be finite")
    return float(value)


def check_choice(name: str, value: Any) -> str:
    """One of the names that the library knows for an option."""
    known = _matmix.CHOICES[name]
    if value not in known:
        raise ValueError(f"option `{name}` is {value!r}; it must be one of {', '.join(map(repr, known))}")
    return str(value)


def check_flag(name: str, value: Any) -> bool:
    """True or false, and nothing that only counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"option `{name}` is {value!r}; it must be True or False")
    return bool(value)


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Sample weights as doubles, one per sample; a single number weighs all samples alike."""
    if sample_weight is None:
        return None
    weights = check_array(sample_weight, what="sample_weight").astype(np.float64, copy=False)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    return np.ascontiguousarray(weights)


def check_seed(random_state: Any) -> int:
    """A seed of 64 bits. An integer is the seed itself, the same as in Rust and in the shell."""
    if random_state is None:
        random_state = np.random.mtrand._rand  # type: ignore[attr-defined]
    if isinstance(random_state, numbers.Integral):
        if not 0 <= int(random_state) < 2**64:
            raise ValueError(f"option `random_state` is {random_state}; it must be between 0 and 2**64 - 1")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63 - 1, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**64, dtype=np.uint64))
    raise ValueError(
        f"{random_state!r} cannot be used to seed: it must be an integer, a RandomState, a Generator or None"
    )


def check_fitted(estimator: Any) -> None:
    """Raises `NotFittedError` before `fit`."""
    if not hasattr(estimator, "model_"):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments "
            "before using this estimator."
        )
