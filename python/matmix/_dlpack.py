"""Arrays in the memory of a GPU that offer DLPack and nothing else: told in the words of `__cuda_array_interface__`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

GPU_MEMORY = (2, 13)
"""What `__dlpack_device__` says of the memory of a CUDA device, and of memory it shares with the host."""


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """`DLTensor`, which the managed tensor of a capsule named `dltensor` begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


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
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    kind, bits = KINDS.get(tensor.dtype.code), tensor.dtype.bits
    if kind is None or bits % 8 or tensor.dtype.lanes != 1:
        raise TypeError(
            "an array on a GPU must be of uint8, float32 or float64, and this is of a type that NumPy does not have "
            f"(DLPack: code {tensor.dtype.code}, {bits} bits, {tensor.dtype.lanes} lanes)"
        )
    size = bits // 8
    sides = range(tensor.ndim)
    # DLPack counts in elements, and leaves the strides out where there is nothing to say.
    strides = tuple(tensor.strides[i] * size for i in sides) if tensor.strides else None
    told = {
        "shape": tuple(tensor.shape[i] for i in sides),
        "typestr": np.dtype(f"{kind}{size}").str,
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
        "strides": strides,
        "version": 3,
    }
    return told, capsule
