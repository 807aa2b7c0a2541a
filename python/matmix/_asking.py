"""Questions to a fitted model about samples, wherever those are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _matmix


@dataclass(frozen=True)
class Asked:
    """Questions about samples, and the form of the answers: all that travels to where the samples are."""

    question: _matmix.Question
    shape: tuple[int, ...]
    preset: str | None
    scale: float
    each: tuple[int, ...]
    """The shape of what is answered about one sample."""
    dtype: np.dtype
    total: bool = False
    """Whether the answers about the rows of a sample are added to one."""
    missing: str = "error"
    """What NaN is."""
    device: str = "cpu"
    """What answers, where the samples are."""
    then: Callable[[np.ndarray], np.ndarray] | None = None
    """What is made of the answers where they are found, if anything is; it travels, too."""

    def about(self, block: Any, first: int = 0, threads: int | None = None) -> np.ndarray:
        """The answers about the samples of one block, the first of which has the number `first` in the whole set."""
        found = self.question.answers(
            block,
            self.shape,
            preset=self.preset,
            scale=self.scale,
            first=first,
            threads=threads,
            missing=self.missing,
            device=self.device,
        )
        if self.then is not None:
            found = self.then(found)
        if self.total:
            found = found.reshape(len(block), -1).sum(axis=1)
        return found.reshape(len(block), *self.each).astype(self.dtype, copy=False)

    def nothing(self) -> np.ndarray:
        """The answers about no samples."""
        return np.empty((0, *self.each), self.dtype)
