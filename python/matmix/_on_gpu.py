"""Arrays in the memory of a GPU (CuPy, PyTorch, JAX, Numba), which the native part uses where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dlpack

INTERFACE = "__cuda_array_interface__"


class OnGpu:
    """An array that offers `__cuda_array_interface__` or DLPack, with the attributes of an array that a fit looks at.

    It is used where it is and never brought to the host as a whole; whoever made it is kept for as long as this is.
    """

    def __init__(self, owner: Any) -> None:
        interface = getattr(owner, INTERFACE, None)
        if interface is None:
            interface, owner = _dlpack.interface(owner)
        self.owner = owner
        self.__cuda_array_interface__ = interface
        self.shape = tuple(int(side) for side in interface["shape"])
        self.dtype = np.dtype(interface["typestr"])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]


def is_on_gpu(X: Any) -> bool:
    """Whether X is an array in the memory of a GPU."""
    return hasattr(X, INTERFACE) or _dlpack.is_on_gpu(X)


def check_device(estimator: Any, X: Any) -> OnGpu:
    """X, if the estimator works on GPUs and was told to."""
    device = estimator.get_params(deep=False).get("device")
    name = type(estimator).__name__
    instead = "X.cpu().numpy() of PyTorch's, cupy.asnumpy(X) of CuPy's"
    if device is None:
        raise TypeError(
            f"X is in the memory of a GPU, and {name} works on the processor: give it as NumPy's, {instead}"
        )
    if device == "cpu":
        raise ValueError(
            f"X is in the memory of a GPU: {name}(device='cuda') works on it there; for the processor give it as "
            f"NumPy's, {instead}"
        )
    return OnGpu(X)
