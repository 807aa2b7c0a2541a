"""Samples that are not one array in memory: in parts, in files read block by block, on a cluster."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _matmix
from ._asking import Asked
from ._elements import NATIVE, check_array, check_block, stored_type
from ._on_gpu import INTERFACE

BLOCK_BYTES = 32 << 20
"""A block of a lazily read array holds about so many bytes: enough to be worth a read, few enough to hold two."""


class Pass(NamedTuple):
    """What all passes of one fit have in common."""

    shape: tuple[int, ...]
    preset: str | None
    weights: np.ndarray | None
    scale: float
    threads: int | None
    missing: str = "error"
    classes: np.ndarray | None = None
    device: str = "cpu"
    """What computes, where the blocks are: a worker's own GPU is the first that it sees."""

    def over(self, task: bytes, block: np.ndarray, first: int) -> bytes:
        """The sums of a task over one block, whose first sample has the number `first` in the whole set."""
        weights, classes = self.about(first, len(block))
        return self.over_labelled(task, block, weights, classes, first)

    def about(self, first: int, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The weights and the classes of some samples."""
        part = slice(first, first + n)
        return (
            None if self.weights is None else self.weights[part],
            None if self.classes is None else self.classes[part],
        )

    def over_labelled(
        self, task: bytes, block: np.ndarray, weights: np.ndarray | None, classes: np.ndarray | None, first: int
    ) -> bytes:
        """The same with the weights and the classes of the block's own samples."""
        return _matmix.run_task(
            task,
            block,
            self.shape,
            preset=self.preset,
            weights=weights,
            scale=self.scale,
            first=first,
            threads=self.threads,
            missing=self.missing,
            classes=classes,
            device=self.device,
        )

    def chosen(self, task: bytes, firsts: Sequence[int], n: int) -> tuple[list[int], int]:
        """The blocks a task has to look at, by number, and how many samples are in the others."""
        wanted = _matmix.wanted_rows(task, self.shape, self.preset)
        if wanted is None:
            return list(range(len(firsts))), 0
        chosen = np.unique(np.searchsorted(firsts, wanted, side="right") - 1)
        ends = [*firsts[1:], n]
        return chosen.tolist(), n - sum(ends[b] - firsts[b] for b in chosen)

    def counted(self, sums: bytes, skipped: int) -> bytes:
        """The sums with the samples of the blocks that were not looked at."""
        return _matmix.count_skipped(sums, skipped, self.shape, self.preset) if skipped else sums


class Blocks:
    """Samples in blocks, with the attributes of an array that a fit looks at."""

    shape: tuple[int, ...]
    dtype: np.dtype
    """The element type of the blocks, one the native part works on."""
    scale: float = 1.0
    """What every value is multiplied with, whatever a model was fitted to; 1 leaves it to the model."""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def elsewhere(
        self,
        shape: tuple[int, ...],
        preset: str | None,
        weights: np.ndarray | None,
        threads: int | None,
        scale: float,
        missing: str = "error",
        classes: np.ndarray | None = None,
        device: str = "cpu",
    ) -> _matmix.Elsewhere:
        """The samples as the native fit takes them."""
        common = Pass(shape, preset, weights, scale, threads, missing, classes, device)
        abandoned = threading.Event()

        def run(task: bytes) -> bytes:
            return self.run(task, common, abandoned.is_set)

        return _matmix.Elsewhere(run, abandoned.set, len(self), self.dtype.name, scale, missing)

    def run(self, task: bytes, common: Pass, abandoned: Callable[[], bool]) -> bytes:
        """Runs a pass over all blocks, unless nobody waits for it any longer."""
        raise NotImplementedError

    def ask(self, asked: Asked) -> Any:
        """What a model answers about every sample, as one array."""
        raise NotImplementedError

    def without(self, cells: LeftOut) -> Blocks:
        """The same samples with NaN in these cells."""
        raise NotImplementedError


@dataclass(frozen=True)
class LeftOut:
    """What puts NaN in the cells of samples that the fit of a model did not see; it goes where the samples are."""

    known: _matmix.Input
    shape: tuple[int, ...]
    told: bool
    """Whether values that stand for such cells are NaN already."""

    def __call__(self, samples: Any) -> np.ndarray:
        samples = check_array(samples)
        if not len(samples):
            return samples.astype(self.element(samples.dtype))
        return self.known.observed(samples, self.shape, self.told).reshape(samples.shape)

    @staticmethod
    def element(dtype: np.dtype) -> np.dtype:
        """What elements become: bytes know no NaN."""
        return np.dtype(np.float64 if dtype == np.float64 else np.float32)


class Block(NamedTuple):
    """Samples `start` to `stop` of something; the first of them has the number `first` in the whole set."""

    source: Any
    start: int
    stop: int
    first: int
    left_out: LeftOut | None = None
    """Which of their cells were not observed, if something beside them says that."""

    def read(self, sides: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The samples, in memory or mapped."""
        piece = self.source[self.start : self.stop]
        wanted = (self.stop - self.start, *sides)
        if np.shape(piece) != wanted:
            raise ValueError(f"samples {self.first} and on have shape {np.shape(piece)} instead of {wanted}")
        if self.left_out is None:
            return check_block(piece, dtype, self.first)
        return self.left_out(check_array(piece, missing="nan")).astype(dtype, copy=False)


class NpyFile:
    """A `.npy` file, mapped when it is read: what travels to another process is its name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        mapped = self._mapped()
        self.shape, self.dtype = mapped.shape, mapped.dtype

    def __getitem__(self, piece: slice) -> np.ndarray:
        return self._mapped()[piece]

    def _mapped(self) -> np.ndarray:
        try:
            return np.load(self.path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{self.path}: not a readable .npy file: {error}") from error


class Parts(Blocks):
    """Samples in several arrays or files that are used as if they were one array, and never joined.

    Parts are read one after the other, the next one while a pass runs over the last; a pass reads each of them once.
    The same parts give the same bits in this process and on a cluster.

    Parameters
    ----------
    parts : sequence of arrays or paths, or a pattern
        Arrays of shape (n, p_1, ..., p_D) with the same sides; anything with `shape`, `dtype` and slices will do
        (`h5py.Dataset`, `zarr.Array`, `numpy.memmap`, ...). A path is a ``.npy`` file, which is memory-mapped; a
        pattern such as ``"data/*.npy"`` stands for all such files in the order of their names.

    Attributes
    ----------
    shape : tuple of int
        As of the one array.
    dtype : numpy.dtype
        What the elements become when they are read: uint8, float32 or float64.

    Examples
    --------
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> parts = matmix.Parts([X[:300], X[300:]])
    >>> parts.shape
    (1000, 28, 28)
    >>> matmix.Mixture(2, rank=3, random_state=0).fit(parts).predict(parts).shape
    (1000,)
    """

    def __init__(self, parts: Any) -> None:
        opened = _open_all(parts)
        self.shape = _joined_shape([part.shape for part in opened])
        self.dtype = _joined_type([stored_type(part, what="a part") for part in opened])
        self.blocks: list[Block] = []
        first = 0
        for part in opened:
            for start, stop in _cuts(part):
                self.blocks.append(Block(part, start, stop, first + start))
            first += part.shape[0]

    def __repr__(self) -> str:
        return f"Parts(shape={self.shape}, dtype={self.dtype.name}, blocks={len(self.blocks)})"

    def run(self, task: bytes, common: Pass, abandoned: Callable[[], bool]) -> bytes:
        """Runs a pass over all blocks in this process."""
        chosen, skipped = common.chosen(task, [block.first for block in self.blocks], len(self))
        tree = _matmix.SumTree()
        for block, samples in self.read(chosen):
            if abandoned():
                raise KeyboardInterrupt
            tree.push(common.over(task, samples, block.first))
        return common.counted(tree.finish(), skipped)

    def read(self, chosen: Iterable[int] | None = None) -> Iterator[tuple[Block, np.ndarray]]:
        """The blocks with these numbers (all of them by default), each read while the one before it is used."""
        blocks = self.blocks if chosen is None else [self.blocks[b] for b in chosen]
        with ThreadPoolExecutor(1, thread_name_prefix="matmix-read") as reader:
            coming = reader.submit(self._read, blocks[0]) if blocks else None
            for block, following in zip(blocks, [*blocks[1:], None], strict=True):
                assert coming is not None
                samples = coming.result()
                coming = None if following is None else reader.submit(self._read, following)
                yield block, samples

    def _read(self, block: Block) -> np.ndarray:
        return block.read(self.shape[1:], self.dtype)

    def to_dask(self) -> Any:
        """The samples as a Dask array with the same blocks, which the workers read themselves.

        The workers must find files under the same names. Arrays in memory travel with the tasks, so that they are good
        for a try only.
        """
        import dask
        import dask.array

        read = dask.delayed(Block.read, pure=False, traverse=False)
        sides = self.shape[1:]
        return dask.array.concatenate(
            [
                dask.array.from_delayed(read(block, sides, self.dtype), (block.stop - block.start, *sides), self.dtype)
                for block in self.blocks
            ]
        )

    def without(self, cells: LeftOut) -> Parts:
        """The same samples with NaN in these cells, which are found when a block is read."""
        others = copy(self)
        others.dtype = cells.element(self.dtype)
        others.blocks = [block._replace(left_out=cells) for block in self.blocks]
        return others

    def ask(self, asked: Asked) -> np.ndarray:
        """What a model answers about every sample, as one array in memory."""
        return np.concatenate([asked.about(samples, block.first) for block, samples in self.read()])


def as_blocks(X: Any) -> Blocks | None:
    """X in blocks if it is not an array in memory; None if it is one, or can become one as usual."""
    if isinstance(X, Blocks):
        return X
    package = type(X).__module__.partition(".")[0]
    if package in ("xarray", "h5py", "zarr") and not hasattr(X, "dtype"):
        raise TypeError(
            f"{type(X).__name__} holds arrays by name and is none itself; give one of them, such as X['name']"
        )
    if package == "xarray" and hasattr(X, "variable"):
        if getattr(X, "chunks", None) is not None:
            X, package = X.data, "dask"
        elif getattr(X.variable, "_in_memory", False):
            return None
    if package == "dask":
        from ._dask import DaskBlocks

        return DaskBlocks(X)
    return Parts([X]) if _is_lazy(X) else None


def _is_lazy(X: Any) -> bool:
    """Whether X is an array whose elements are elsewhere until a slice is taken."""
    if isinstance(X, np.memmap):
        # Those the native part can borrow stay on disk anyway.
        return X.ndim > 1 and not (X.dtype in NATIVE and X.flags.c_contiguous and X.flags.aligned)
    if any(hasattr(X, name) for name in ("__array_interface__", INTERFACE, "__dlpack__", "iloc", "toarray", "todense")):
        return False
    return (
        isinstance(getattr(X, "dtype", None), np.dtype)
        and isinstance(getattr(X, "shape", None), tuple)
        and hasattr(X, "__getitem__")
        and len(X.shape) > 1
    )


def in_memory(X: Any, what: str) -> None:
    """Raises if `what` would have to gather samples that are elsewhere."""
    if as_blocks(X) is not None:
        raise TypeError(
            f"{what} needs its samples in memory, and these are not: give it an array of some of them, "
            "such as X[:10000] (with .compute() if it is a Dask array)"
        )


def _open_all(parts: Any) -> list[Any]:
    """Arrays and opened files."""
    if isinstance(parts, (str, os.PathLike)):
        named = os.fspath(parts)
        # A name, a list of them or a pattern, as the program takes it.
        parts = _matmix.files_of(named)
        if not all(path.exists() for path in parts):
            raise FileNotFoundError(f"{named}: there is no such file")
    opened = [NpyFile(part) if isinstance(part, (str, os.PathLike)) else part for part in parts]
    if not opened:
        raise ValueError("there are no parts; at least one is needed")
    return [
        part if hasattr(part, "shape") and hasattr(part, "dtype") else check_array(part, missing="nan")
        for part in opened
    ]


def _joined_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    sides = shapes[0][1:]
    for number, shape in enumerate(shapes):
        if len(shape) < 2:
            raise ValueError(f"part {number} has shape {shape}; samples of shape (n, p, ...) are needed")
        if shape[1:] != sides:
            raise ValueError(f"part {number} has samples of shape {shape[1:]}, but part 0 of {sides}")
    return (sum(shape[0] for shape in shapes), *sides)


def _joined_type(types: Sequence[np.dtype]) -> np.dtype:
    """The one element type of all parts: their own if it is the same, double if it is not."""
    elements = set(types)
    return elements.pop() if len(elements) == 1 else np.dtype(np.float64)


def _cuts(part: Any) -> Iterator[tuple[int, int]]:
    """Where a part is cut: a file or an array in memory is one block, others are cut between their own chunks."""
    n = int(part.shape[0])
    if isinstance(part, NpyFile) or (isinstance(part, np.ndarray) and not _is_lazy(part)):
        return iter([(0, n)] if n else [])
    own = _own_chunk(part)
    sample_bytes = math.prod(part.shape[1:]) * max(np.dtype(part.dtype).itemsize, 1)
    step = own * max(1, BLOCK_BYTES // max(1, own * sample_bytes))
    return ((start, min(start + step, n)) for start in range(0, n, step))


def _own_chunk(part: Any) -> int:
    """How many samples one chunk of a chunked file holds; 1 where there are no chunks."""
    chunks = getattr(part, "chunks", None)
    if not chunks:
        encoding = getattr(part, "encoding", None) or {}
        chunks = encoding.get("chunksizes") or encoding.get("chunks")
    try:
        return max(1, int(chunks[0])) if chunks else 1
    except TypeError:
        return 1
