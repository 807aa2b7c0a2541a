"""Answers as arrays of whatever library the samples came from."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ._on_gpu import is_on_gpu

OUTPUTS = {"numpy", "input"}
"""What answers about samples may be: NumPy's arrays, or arrays of the kind that the samples are."""


def of_kind(given: Any, out: Any) -> Any:
    """An answer as an array of the library that `given` is of, on its device; as it is if there is none."""
    if given is None or not isinstance(out, np.ndarray):
        # Nobody asked for anything else, or Dask answers by itself.
        return out
    if _is_of(given, "torch"):
        return importlib.import_module("torch").as_tensor(out, device=given.device)
    if _is_of(given, "cupy"):
        with given.device:
            return importlib.import_module("cupy").asarray(out)
    if hasattr(given, "__array_namespace__"):
        return given.__array_namespace__().asarray(out, device=given.device)
    return out


def on_host(array: Any) -> Any:
    """An array in the memory of the host: cores that a model gave as an array of a GPU come back to it."""
    if not is_on_gpu(array):
        return array
    if _is_of(array, "torch"):
        return array.detach().cpu().numpy()
    if _is_of(array, "cupy"):
        return array.get()
    return np.asarray(array)


def _is_of(array: Any, library: str) -> bool:
    return type(array).__module__.partition(".")[0] == library
