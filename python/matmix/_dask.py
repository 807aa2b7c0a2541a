"""Samples in a Dask array: passes run where the blocks are, and only their sums come back.

Nothing here is imported until a Dask array arrives.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array
import numpy as np

from . import _matmix
from ._asking import Asked
from ._blocks import Blocks, LeftOut, Pass
from ._elements import check_block, element_type

RETRIES = 3
"""How many times a pass that failed for no fault of the data is run again before the fit gives up."""

PATIENCE = 0.5
"""How many seconds a second Ctrl-C may go unnoticed by a pass that does not end."""

INLINE_BYTES = 64 << 10
"""Parameters up to this size travel with every block's task; larger ones are one entry of the graph, and shared."""


class DaskBlocks(Blocks):
    """A Dask array, cut along its first axis."""

    def __init__(self, array: Any, scale: float = 1.0) -> None:
        if not isinstance(array, dask.array.Array):
            raise TypeError(
                f"{type(array).__name__} is not a Dask array; a data frame becomes one by .to_dask_array(lengths=True)"
            )
        if any(math.isnan(side) for side in array.shape):
            raise ValueError(
                f"the Dask array has blocks of unknown size, shape {array.shape}; call X.compute_chunk_sizes() first"
            )
        if array.ndim > 1 and any(count > 1 for count in array.numblocks[1:]):
            # A sample has to be whole.
            array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        self.array = array
        self.shape = tuple(int(side) for side in array.shape)
        self.dtype = element_type(array.dtype, what="X")
        self.scale = scale
        self._pieces: list[tuple[Any, int, int]] | None = None

    def run(self, task: bytes, common: Pass, abandoned: Callable[[], bool]) -> bytes:
        """Runs a pass where the blocks are; again, if workers were lost in a way that Dask could not make good."""
        client = _client()
        for attempt in range(RETRIES + 1):
            root = self._graph(task, common)
            if client is None:
                return bytes(root.compute())
            try:
                return bytes(_result(client.compute(root), abandoned))
            except _losses() as error:
                if _gone(client):
                    raise RuntimeError(
                        "the connection to the Dask scheduler was lost during the fit. Start a new client and fit "
                        "again; with checkpoint=... the fit goes on from the last state that was kept"
                    ) from error
                if attempt == RETRIES:
                    raise RuntimeError(_given_up(error)) from error
                warnings.warn(
                    f"a pass over the Dask array failed and is run again ({attempt + 1} of {RETRIES}): {error!r}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        raise AssertionError("the last attempt returns or raises")

    def pieces(self) -> list[tuple[Any, int, int]]:
        """The blocks that are not empty: delayed values, the number of their first sample, and how many there are."""
        if self._pieces is None:
            # Optimised once, not in every pass.
            values = self.array.to_delayed(optimize_graph=True).ravel()
            lengths = [int(n) for n in self.array.chunks[0]]
            firsts = np.cumsum([0, *lengths]).tolist()
            self._pieces = [(v, f, n) for v, f, n in zip(values, firsts, lengths, strict=False) if n > 0]
        return self._pieces

    def _graph(self, task: bytes, common: Pass) -> Any:
        """One task per block and the tree that adds their sums."""
        pieces = self.pieces()
        chosen, skipped = common.chosen(task, [first for _, first, _ in pieces], len(self))
        parameters = task if len(task) <= INLINE_BYTES else dask.delayed(task, pure=False, traverse=False)
        light = common._replace(weights=None, classes=None, threads=None)
        run = dask.delayed(_run_block, pure=False, traverse=False)
        merge = dask.delayed(_merge, pure=False)
        sums = []
        for value, first, n in (pieces[b] for b in chosen):
            sums.append(
                run(parameters, value, light, common.about(first, n), (n, *self.shape[1:]), self.dtype.name, first)
            )
        for level in _matmix.tree_levels(len(sums)):
            sums = [merge(sums[start:end]) for start, end in level]
        return dask.delayed(_count, pure=False)(sums[0], light, skipped) if skipped else sums[0]

    def without(self, cells: LeftOut) -> DaskBlocks:
        """The same samples with NaN in these cells, which are found where the blocks are."""
        nothing = np.empty((0,) * len(self.shape), cells.element(self.dtype))
        return DaskBlocks(self.array.map_blocks(cells, dtype=nothing.dtype, meta=nothing), self.scale)

    def ask(self, asked: Asked) -> Any:
        """What a model answers about every sample, as a lazy Dask array."""
        nothing = asked.nothing()
        return self.array.map_blocks(
            partial(_answer_block, nothing=nothing, dtype=self.dtype.name),
            dask.delayed(asked, pure=False, traverse=False),
            dtype=nothing.dtype,
            drop_axis=list(range(1, len(self.shape))),
            new_axis=list(range(1, nothing.ndim)),
            chunks=(self.array.chunks[0], *((side,) for side in nothing.shape[1:])),
            meta=nothing,
        )


def _run_block(
    task: bytes, block: Any, common: Pass, about: Any, shape: tuple[int, ...], dtype: str, first: int
) -> bytes:
    """On a worker: the sums of one block."""
    samples = _checked(block, shape, dtype, first)
    # What comes from the network need not be aligned.
    weights, classes = (
        None if numbers is None else np.require(numbers, kind, ["C", "A"])
        for numbers, kind in zip(about, (np.float64, np.int64), strict=True)
    )
    return common._replace(threads=_threads_here()).over_labelled(task, samples, weights, classes, first)


def _merge(sums: list[bytes]) -> bytes:
    return _matmix.merge_sums(sums)


def _count(sums: bytes, common: Pass, skipped: int) -> bytes:
    return common.counted(sums, skipped)


def _answer_block(block: Any, asked: Asked, nothing: np.ndarray, dtype: str, block_info: Any = None) -> np.ndarray:
    """On a worker: the answers about one block."""
    place = block_info[0]["array-location"]
    shape = tuple(stop - start for start, stop in place)
    if not shape[0]:
        return nothing
    first = place[0][0]
    return asked.about(_checked(block, shape, dtype, first), first, _threads_here())


def _checked(block: Any, shape: tuple[int, ...], dtype: str, first: int) -> np.ndarray:
    """A block as the native part takes it, if it is what the Dask array says it is."""
    if np.shape(block) != shape:
        found = np.shape(block)
        raise ValueError(f"the block from sample {first} on has shape {found}, but the Dask array says {shape}")
    return check_block(block, np.dtype(dtype), first)


def _threads_here() -> int | None:
    """As many threads as the worker has, which all blocks on it share; all of this process outside of workers."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return None


def _client() -> Any:
    """The client of a distributed cluster, if there is one and no other scheduler was asked for."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _result(future: Any, abandoned: Callable[[], bool]) -> Any:
    """The result of a future, unless nobody waits for it any longer: a cluster without workers would never answer."""
    from distributed import TimeoutError, wait

    while not future.done():
        try:
            wait(future, timeout=PATIENCE)
        except TimeoutError:
            # The answer may have come since; if not, somebody may have stopped waiting for it.
            if not future.done() and abandoned():
                future.cancel()
                raise KeyboardInterrupt from None
    return future.result()


def _losses() -> tuple[type[BaseException], ...]:
    """What says that workers, and not the samples, are the reason why a pass failed."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    return (KilledWorker, CommClosedError, CancelledError)


def _given_up(error: BaseException) -> str:
    from concurrent.futures import CancelledError

    failed = f"a pass over the Dask array failed {RETRIES + 1} times"
    if isinstance(error, CancelledError):
        return (
            f"{failed}: some of its blocks were only in the memory of a worker (scattered, or made from futures), and "
            "that worker is gone. Load them again, best from files that every worker can read: a block of a file can "
            "be read again"
        )
    return f"{failed}, because workers died: {error}. If they ran out of memory, use smaller chunks"


def _gone(client: Any) -> bool:
    return client.status not in ("running", "connecting")
