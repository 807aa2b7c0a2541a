"""Model files: the same in Python, Rust and the shell."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from . import _matmix
from ._base import History


def load(path: str | os.PathLike[str], cls: type | None = None) -> Any:
    """Reads a model file, whoever wrote it: Python, Rust or the program.

    Parameters
    ----------
    path : str or path
        The file.
    cls : class, optional
        The class of the estimator. By default the one the file names (`MixB2DPPCA`, say), else `Mixture` or
        `LowRank`.

    Returns
    -------
    estimator
        Fitted, with the parameters it was made with as far as the file knows them.

    Examples
    --------
    >>> import matmix, tempfile, os
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> model = matmix.MixB2DPPCA(2, rank=3, random_state=0).fit(X[:200])
    >>> path = os.path.join(tempfile.mkdtemp(), "digits.safetensors")
    >>> model.save(path)
    >>> again = matmix.load(path)
    >>> type(again).__name__, again.score(X) == model.score(X)
    ('MixB2DPPCA', True)
    """
    from .low_rank import LowRank
    from .mixture import Mixture
    from .published import BY_PRESET

    model, name, options, history = _matmix.load_model(os.fspath(path))
    family: type = Mixture if isinstance(model, _matmix.MixtureModel) else LowRank
    if cls is None:
        cls = BY_PRESET.get(name or "", family)
    if not issubclass(cls, family):
        raise ValueError(f"{os.fspath(path)} holds a {family.__name__}, which cannot be read as {cls.__name__}")
    known = json.loads(options) if options else {}
    params = dict(known.get("python") or {}) if isinstance(known, dict) else {}
    # A mixture over rows knows the columns of a sample only.
    unknown = None if cls._preset == "mp2dpca" else model.shape  # type: ignore[attr-defined]
    shape = params.pop("sample_shape_", unknown)
    batches = params.pop("n_batches_", None)
    accepted = cls._get_param_names()  # type: ignore[attr-defined]
    params = {key: tuple(v) if isinstance(v, list) else v for key, v in params.items() if key in accepted}
    if not params:
        params["rank"] = tuple(model.rank)
        if isinstance(model, _matmix.MixtureModel) and "n_components" in accepted:
            params["n_components"] = len(model.weights)
        if shape is not None and len(shape) > 1:
            params["sample_shape"] = tuple(shape)
    estimator: Any = cls(**params)
    estimator.sample_shape_ = None if shape is None else tuple(shape)
    if shape is not None:
        estimator.n_features_in_ = math.prod(shape)
    if batches is not None:
        estimator.n_batches_ = int(batches)
    estimator._adopt(model, History.from_json(history))
    return estimator
