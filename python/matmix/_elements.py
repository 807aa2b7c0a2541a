"""The element types the native part works on, and how arrays come to have one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

NATIVE = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))


def element_type(dtype: Any, *, what: str) -> np.dtype:
    """The type that elements of `dtype` are worked on as."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is {dtype}")
    if dtype in NATIVE:
        return np.dtype(dtype.type)
    if dtype.kind in "SU":
        raise ValueError(f"{what} is an array of strings ({dtype}); an array of numbers is needed")
    if dtype.kind not in "biufO":
        raise TypeError(f"{what} is {dtype}; an array of numbers is needed")
    # Half precision and foreign byte orders of single become single; whatever else there is becomes double.
    single = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if single else np.float64)


def check_array(X: Any, *, what: str = "X") -> np.ndarray:
    """An array of u8, f32 or f64, C-contiguous and aligned; not copied if it is one already."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            f"Sparse data was passed for {what}, but dense data is required. Use '.toarray()' to convert it."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{what} is a masked array that leaves cells out; missing cells are not supported yet")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{what} is not an array of numbers of one shape: {error}") from error
    element = element_type(array.dtype, what=what)
    if array.dtype not in NATIVE:
        if array.dtype.kind == "O":
            _check_objects(array, what)
        array = array.astype(element)
    return np.require(array, requirements=["C", "A"])


def _check_objects(array: np.ndarray, what: str) -> None:
    """Raises if objects are numbers only in a manner of speaking; scikit-learn wants those that are to be taken."""
    for place, value in np.ndenumerate(array):
        if isinstance(value, complex):
            raise ValueError(f"Complex data not supported: {what} holds complex numbers")
        if isinstance(value, (str, bytes)):
            raise ValueError(f"{what} holds the string {value!r} at {list(place)}; an array of numbers is needed")
        if value is None or value is np.ma.masked:
            raise ValueError(f"{what} has no number at {list(place)}; missing cells are not supported yet")
