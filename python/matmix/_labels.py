"""Labels of which some are not known."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data


class KnownLabels(NamedTuple):
    """The classes there are, and the class of every sample."""

    classes: np.ndarray
    """The labels that are known, each once and sorted, shape (C,)."""
    places: np.ndarray
    """The place of each sample's label in `classes`; −1 where it is not known. Shape (N,)."""


def read_labels(estimator: Any, y: Any, n: int, unlabeled: Any) -> KnownLabels:
    """The labels of `n` samples; `unlabeled`, NaN, None, pandas' NA and "" are not known."""
    if y is None:
        validate_data(estimator, y=None)
    y = column_or_1d(y, warn=True)
    if len(y) != n:
        raise ValueError(f"X has {n} samples, but y has {len(y)} labels; there must be one per sample")
    unknown = np.fromiter((_is_unknown(label, unlabeled) for label in y.tolist()), bool, n)
    if unknown.all():
        raise ValueError(
            "no label is known; at least one of every class is needed (unlabeled= names a label that means none)"
        )
    labels = validate_data(estimator, y=y[~unknown])
    check_classification_targets(labels)
    classes, known = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        warnings.warn(
            f"y has one class, {classes.tolist()[0]!r}; every sample will be predicted to be of it",
            UserWarning,
            stacklevel=3,
        )
    places = np.full(n, -1, np.int64)
    places[~unknown] = known
    return KnownLabels(classes, places)


def _is_unknown(label: Any, unlabeled: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, float) and label != label:
        return True
    if isinstance(label, str) and label == "":
        return True
    # True is not 1 here.
    return unlabeled is not None and isinstance(label, bool) == isinstance(unlabeled, bool) and bool(label == unlabeled)


def label_names(classes: np.ndarray) -> list[str]:
    """What the classes are called in a model file: 3.0 is 3, as in the shell."""
    return [str(int(c)) if isinstance(c, float) and c.is_integer() else str(c) for c in classes.tolist()]


def described_labels(classes: np.ndarray) -> dict[str, Any]:
    """The labels with their type, as a model file keeps them beside their names."""
    return {"classes": classes.tolist(), "classes_dtype": str(classes.dtype)}


def typed_labels(described: dict[str, Any]) -> np.ndarray | None:
    """What `described_labels` wrote; None of a file without it, or where it is not as it was written."""
    values = described.get("classes")
    try:
        dtype = np.dtype(str(described["classes_dtype"]))
        # The length of strings follows from the labels; a file could name any.
        labels = np.array(values, np.str_ if dtype.kind == "U" else dtype) if dtype.kind in "biufUO" else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return labels if labels is not None and labels.ndim == 1 and labels.tolist() == values else None


def labels_of(names: list[str]) -> np.ndarray:
    """The labels that a model file has the names of: integers if all of them are."""
    try:
        numbers = [int(name) for name in names]
    except ValueError:
        return np.array(names)
    return np.array(numbers) if [str(number) for number in numbers] == names else np.array(names)
