"""Something real to try everything on, and readers for whatever the program reads."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _matmix


class DataSet(dict[str, Any]):
    """Samples and what is known about them; keys are attributes, too.

    Estimators take it where they take an array. A model that is fitted to it remembers how images were read, and its
    file tells that to the program.

    Attributes
    ----------
    data : ndarray of shape (N, p_1, ..., p_D)
        u8, f32 or f64, as they are stored.
    target : ndarray of shape (N,) or None
        The class of each sample: the number itself where all class names are integers, else the name.
    target_names : list of str or None
        The class names, sorted.
    name : str
        What was opened.
    format : str
        The format it was found in.
    resize : (rows, columns) or None
        What images were brought to.
    colour : bool
        Whether images kept their channels as a third mode.
    missing : str or None
        What told that a cell was not observed.
    mask : ndarray of bool of shape (p_1, ..., p_D) or None
        Whether each cell was observed, if a mask said it for all samples.
    """

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.data, dtype=dtype) if copy else np.asarray(self.data, dtype=dtype)

    def __dir__(self) -> list[str]:
        return [*self.keys(), *super().__dir__()]

    def __repr__(self) -> str:
        sides = "×".join(map(str, self.data.shape[1:]))
        classes = f", {len(self.target_names)} classes" if self.target_names is not None else ""
        return f"DataSet({self.name!r}: {len(self.data)} samples of {sides}, {self.data.dtype}{classes})"


def load_digits28(*, return_X_y: bool = False) -> Any:
    """The embedded digits: the first 100 of each of MNIST's training set, sorted by digit.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `DataSet`.

    Returns
    -------
    DataSet
        `data` of shape (1000, 28, 28), u8, and `target` of shape (1000,).

    Notes
    -----
    MNIST is by LeCun, Cortes and Burges, CC BY-SA 3.0.

    Examples
    --------
    >>> import matmix
    >>> matmix.datasets.load_digits28()
    DataSet('demo:mnist': 1000 samples of 28×28, uint8, 10 classes)
    """
    digits = _data_set(_matmix.digits())
    return (digits.data, digits.target) if return_X_y else digits


def open(
    spec: str | os.PathLike[str],
    *,
    shape: Sequence[int] | None = None,
    labels: str | os.PathLike[str] | None = None,
    colour: bool = False,
    resize: tuple[int, int] | None = None,
    scale: float | None = None,
    take: slice | tuple[int, int] | None = None,
    exclude: Sequence[Any] = (),
    limit: int | None = None,
    missing: float | str | None = None,
    mask: str | os.PathLike[str] | None = None,
    like: Any = None,
) -> DataSet:
    """Opens whatever the program opens: `.npy`, `.npz`, IDX, MATLAB, folders of images, ``demo:mnist``.

    Parameters
    ----------
    spec : str or path
        A file or folder; ``file.npz:array`` and ``file.mat:variable`` choose one of several arrays.
    shape : sequence of int, optional
        The shape of one sample, where the data does not say it or says another one of the same size.
    labels : path, optional
        A file with one label per sample: text, `.npy` or IDX.
    colour : bool, default=False
        Keep the three channels of colour images as a third mode.
    resize : (rows, columns), optional
        Bring images to this size.
    scale : float, optional
        Multiply every value; u8 and f32 become f32.
    take : slice or (start, end), optional
        Take these samples only.
    exclude : sequence, default=()
        Of those, leave out the samples with one of these labels.
    limit : int, optional
        Of those, keep the first so many.
    missing : {"error", "nan", "alpha", "alpha:0.5"} or float, optional
        What tells that a cell was not observed; such cells are NaN in what is returned, which a
        ``Mixture(missing="nan")`` takes. A number is a value as it is stored, ``"below:0"`` all values below one;
        ``"alpha"`` are transparent places of images, ``"alpha:0.5"`` those that are less than half opaque.
    mask : path, optional
        What says which cells were observed, those where it is not 0 (unlike the mask of a masked array): an image
        or array in the shape of a sample for all of them; a folder of images, called like the samples, a stack or an
        array with one for each. It is for the whole set, of which samples are taken afterwards.
    like : fitted model, optional
        Read images and missing cells the way those of the model's fit were: brought to the same size, with or
        without their colours.
        Values are left as they are stored; the model multiplies them itself.

    Returns
    -------
    DataSet

    Examples
    --------
    >>> import matmix
    >>> matmix.datasets.open("demo:mnist", exclude=["0"], limit=50, scale=1 / 255)
    DataSet('demo:mnist': 50 samples of 28×28, float32, 1 classes)
    """
    from ._base import plain

    if isinstance(take, slice):
        if take.step not in (None, 1):
            raise ValueError(f"option `take` is {take}; it must be a run of samples without a step")
        take = (take.start or 0, 2**63 - 1 if take.stop is None else take.stop)
    if take is not None and min(take) < 0:
        raise ValueError(f"option `take` is {take}; it must not be negative")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"option `scale` is {scale}; it must be a finite number")
    options = {
        "shape": None if shape is None else [int(side) for side in shape],
        "labels": None if labels is None else os.fspath(labels),
        "colour": bool(colour),
        "resize": resize,
        "scale": scale,
        "take": None if take is None else {"start": take[0], "end": take[1]},
        "exclude": [str(label) for label in exclude],
        "limit": limit,
        "missing": None if missing is None else str(missing),
        "mask": None if mask is None else os.fspath(mask),
    }
    text = json.dumps(options, default=plain)
    return _data_set(_matmix.open(os.fspath(spec), options=text, like=getattr(like, "input_", like)))


def _data_set(opened: tuple[Any, ...]) -> DataSet:
    data, labels, name, format, (resize, colour, missing, mask) = opened
    target = names = None
    if labels is not None:
        index, names = labels
        try:
            classes: np.ndarray = np.array([int(name) for name in names])
        except ValueError:
            classes = np.array(names)
        target = classes[index]
    return DataSet(
        data=data,
        target=target,
        target_names=names,
        name=name,
        format=format,
        resize=resize,
        colour=colour,
        missing=missing,
        mask=None if mask is None else mask.reshape(data.shape[1:]),
    )
