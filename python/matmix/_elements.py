"""The element types the native part works on, and how arrays come to have one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array as sklearn_check_array

NATIVE = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))


def element_type(dtype: Any, *, what: str) -> np.dtype:
    """The type that elements of `dtype` are worked on as: that of the program, however they arrive."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is {dtype}")
    if dtype.kind not in "biufO":
        raise TypeError(f"{what} is {dtype}; an array of numbers is needed")
    if dtype.kind in "bu" and dtype.itemsize == 1:
        return np.dtype(np.uint8)
    # Single precision holds integers of two bytes, and half precision, exactly.
    single = dtype.kind in "iuf" and dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if single else np.float64)


def check_array(X: Any, *, what: str = "X", missing: str = "error") -> np.ndarray:
    """An array of u8, f32 or f64, C-contiguous and aligned; not copied if it is one already."""
    array = sklearn_check_array(
        plain_array(X, what, missing),
        dtype="numeric",
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=what,
    )
    return native(array, what)


def check_block(block: Any, dtype: np.dtype, first: int) -> np.ndarray:
    """Samples `first` and on of a larger set as an array of its `dtype`, NaN where they are masked or None.

    Whether NaN is a mistake is known to those who use the samples.
    """
    array = check_array(block if isinstance(block, np.ma.MaskedArray) else np.asarray(block), missing="nan")
    if dtype == np.uint8 and np.isnan(array).any():
        raise ValueError(f"cells of samples {first} and on are masked or NaN, which uint8 cannot hold; use float32")
    return array.astype(dtype, copy=False)


def stored_type(array: Any, *, what: str) -> np.dtype:
    """The type of an array's elements; masked bytes become single precision for its NaN."""
    dtype = element_type(array.dtype, what=what)
    is_masked = isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array)
    return np.dtype(np.float32) if is_masked and dtype == np.uint8 else dtype


def native(array: np.ndarray, what: str) -> np.ndarray:
    """An array of numbers as the native part borrows it."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        _check_exact(array, what)
    return np.require(array, element_type(array.dtype, what=what), ["C", "A"])


def _check_exact(array: np.ndarray, what: str) -> None:
    """Refuses integers that double precision rounds, as files of them are refused."""
    most = 2**53
    if not array.size or (array.max() <= most and array.min() >= -most):
        return
    for value in array[(array > most) | (array < -most)].tolist():
        if int(float(value)) != value:
            raise ValueError(
                f"{what} holds {value}, which double precision rounds to {float(value):.0f}; subtract an offset, or "
                "convert it to float64 where rounding does no harm"
            )


def plain_array(X: Any, what: str, missing: str = "error") -> Any:
    """X as an array, unless cells are numbers only in a manner of speaking, or missing where that is not asked for.

    Frames know the names of their columns and stay what they are; so do sparse matrices, which others refuse.
    """
    if issparse(X):
        return X
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        if missing != "nan":
            raise ValueError(f"{what} is a masked array that leaves cells out; {ALLOWED}")
        return _filled(X, what)
    array = np.asarray(X)
    if array.dtype.kind == "O":
        absent = []
        for place, value in np.ndenumerate(array):
            if isinstance(value, complex):
                raise ValueError(f"Complex data not supported: {what} holds complex numbers")
            if isinstance(value, (str, bytes)):
                raise ValueError(f"{what} holds the string {value!r} at {list(place)}; an array of numbers is needed")
            if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
                if missing != "nan":
                    raise ValueError(f"{what} has no number at {list(place)}; {ALLOWED}")
                absent.append(place)
        if absent and not hasattr(X, "iloc"):
            array = array.copy()
            for place in absent:
                array[place] = np.nan
    return X if hasattr(X, "iloc") else array


ALLOWED = 'missing cells are for a Mixture with missing="nan" only'


def _filled(X: np.ma.MaskedArray, what: str) -> np.ndarray:
    """A masked array with NaN where its cells are left out."""
    numbers: Any = X.astype(stored_type(X, what=what))
    return numbers.filled(np.nan)
