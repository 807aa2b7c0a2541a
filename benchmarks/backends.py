"""NumPy and PyTorch with one vocabulary, so that both run the very same step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits


class NumPy:
    """Arrays of NumPy; products through its BLAS."""

    name = "NumPy"

    def array(self, x: np.ndarray, like: np.ndarray | None = None) -> Any:
        return np.ascontiguousarray(x, dtype=None if like is None else like.dtype)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Products of one thread, for whoever has threads of his own."""
        with threadpool_limits(1):
            yield

    def square_sums(self, x: Any, run: int) -> np.ndarray:
        """Σ x² of every row: over runs of this length in the precision of x, over the runs in double."""
        x = x.reshape(len(x), -1, run)
        return np.einsum("nij,nij->ni", x, x).sum(1, dtype=np.float64)


class Torch:
    """Tensors of PyTorch on the CPU."""

    name = "PyTorch"

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def array(self, x: np.ndarray, like: Any = None) -> Any:
        tensor = self.torch.from_numpy(np.ascontiguousarray(x))
        return tensor if like is None else tensor.to(like.dtype)

    def numpy(self, x: Any) -> np.ndarray:
        return x.numpy()

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(1)
        try:
            yield
        finally:
            self.torch.set_num_threads(before)

    def square_sums(self, x: Any, run: int) -> np.ndarray:
        x = x.reshape(len(x), -1, run)
        return self.torch.linalg.vecdot(x, x).sum(1, dtype=self.torch.float64).numpy()


def backends(threads: int, only: set[str] | None) -> Iterator[Any]:
    """Whatever is wanted and installed, ready to run on so many threads."""
    if only is None or NumPy.name in only:
        yield NumPy()
    if (only is None or Torch.name in only) and os.environ.get("MATMIX_BENCH_TORCH", "1") != "0":
        try:
            torch = Torch()
        # A wheel without the libraries it was built against is a ValueError.
        except (ImportError, OSError, ValueError):
            return
        torch.torch.set_num_threads(threads)
        yield torch
