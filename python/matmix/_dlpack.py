"""Arrays in the memory of a GPU that offer DLPack and nothing else: told in the words of `__cuda_array_interface__`."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

GPU_MEMORY = (2, 13)
"""What `__dlpack_device__` says of the memory of a CUDA device, and of memory it shares with the host."""

TENSOR = struct.Struct("PiiiBBHPPQ")
"""`DLTensor`, with which begins what a capsule named `dltensor` points at: address, kind and number of the device,
axes, code, bits and lanes of the elements, address of the sides, address of the strides, bytes to skip."""

KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""The kinds of numbers that NumPy has a letter for, by the code of DLPack."""


def is_on_gpu(X: Any) -> bool:
    """Whether X says of itself by DLPack that it is in the memory of a GPU."""
    where = getattr(X, "__dlpack_device__", None)
    return callable(where) and int(where()[0]) in GPU_MEMORY


def interface(X: Any) -> tuple[dict[str, Any], Any]:
    """What `__cuda_array_interface__` would say, and who owns the memory: it is freed with that.

    The capsule is looked into and not taken over, so that it frees what it holds by itself.
    """
    capsule = X.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
    tensor = ctypes.string_at(pointer_of(capsule, b"dltensor"), TENSOR.size)
    address, _, _, ndim, code, bits, lanes, sides, strides, skipped = TENSOR.unpack(tensor)
    kind = KINDS.get(code)
    if kind is None or bits % 8 or lanes != 1:
        raise TypeError(
            "an array on a GPU must be of uint8, float32 or float64, and this is of a type that NumPy does not have "
            f"(DLPack: code {code}, {bits} bits, {lanes} lanes)"
        )
    size = bits // 8
    numbers = ctypes.c_int64 * ndim
    told = {
        "shape": tuple(numbers.from_address(sides)),
        "typestr": np.dtype(f"{kind}{size}").str,
        "data": (address + skipped, False),
        # DLPack counts in elements, and leaves the strides out where there is nothing to say.
        "strides": tuple(size * stride for stride in numbers.from_address(strides)) if strides else None,
        "version": 3,
    }
    return told, capsule
