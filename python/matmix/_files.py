"""Model files: the same in Python, Rust and the shell."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from . import _matmix
from ._base import OF_A_FIT, History


def load(path: str | os.PathLike[str], cls: type | None = None, *, scale: float | None = None) -> Any:
    """Reads a model file, whoever wrote it: Python, Rust or the program.

    Parameters
    ----------
    path : str or path
        The file.
    cls : class, optional
        The class of the estimator. By default the one the file names (`MixB2DPPCA`, say), else `Mixture` or
        `LowRank`; `MixtureClassifier` for a mixture that was fitted with labels.
    scale : float, optional
        What to multiply the values of new samples with, if they are not those of the fit: 1 for values that are
        already multiplied, say. By default the factor of the fit, which the file knows.

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
    from ._fitting import parameters_of
    from .classifier import MixtureClassifier
    from .low_rank import LowRank
    from .mixture import Mixture
    from .published import BY_PRESET

    model, name, input, options, history, has_gallery = _matmix.load_model(os.fspath(path))
    family: type = Mixture if isinstance(model, _matmix.MixtureModel) else LowRank
    if cls is None:
        classes = isinstance(model, _matmix.MixtureModel) and model.classes is not None
        cls = MixtureClassifier if classes else BY_PRESET.get(name or "", family)
    if not issubclass(cls, family):
        raise ValueError(f"{os.fspath(path)} holds a {family.__name__}, which cannot be read as {cls.__name__}")
    known = json.loads(options) if options else {}
    described = dict(known) if isinstance(known, dict) else {}
    told = described.pop("python", None)
    params = dict(told) if isinstance(told, dict) else {}
    shape, batches = params.pop("sample_shape_", None), params.pop("n_batches_", None)
    if not (isinstance(shape, list) and shape and all(type(side) is int and side > 0 for side in shape)):
        shape = _sample_shape(model, input, cls._preset)  # type: ignore[attr-defined]
    flat = params.pop("flat_", False)
    accepted = set(cls._get_param_names()) - set(OF_A_FIT)  # type: ignore[attr-defined]
    own = params
    params = {key: tuple(v) if isinstance(v, list) else v for key, v in own.items() if key in accepted}
    if not params:
        params["rank"] = tuple(model.rank)
        if isinstance(model, _matmix.MixtureModel) and "n_components" in accepted:
            params["n_components"] = len(model.weights)
        if isinstance(model, _matmix.MixtureModel) and "components_per_class" in accepted and model.classes is not None:
            params["components_per_class"] = len(model.weights) // len(model.classes[0])
        if shape is not None and len(shape) > 1:
            params["sample_shape"] = tuple(shape)
        if input is not None and input.scale != 1.0 and not input.like_contrast:
            params["scale"] = input.scale
        fitted_with = {name: value for name, value in parameters_of(described, cls).items() if name in accepted}
        if cls._preset != name:  # type: ignore[attr-defined]
            # The ranks of a preset may be those of other views of the samples.
            fitted_with.pop("rank", None)
        params.update(fitted_with)
    if params.get("init_params", "") not in _matmix.CHOICES["start"]:
        # The model that the fit began from is not in the file, nor may a file choose another one for a later fit.
        params.pop("init_params", None)
    if input is not None and not (input.missing is None and input.mask is None) and "missing" in accepted:
        params["missing"] = "nan"
    estimator: Any = cls(**params)
    estimator.sample_shape_ = None if shape is None else tuple(shape)
    if shape is not None:
        estimator.n_features_in_ = math.prod(shape)
    estimator.input_, estimator._scale_of_fit, estimator._flat = input, estimator.scale, bool(flat)
    estimator._described = described
    if scale is not None:
        estimator.scale = scale
    if type(batches) is int and 0 < batches < 2**63:
        estimator.n_batches_ = batches
    estimator._adopt(model, History.from_json(history))
    estimator._adopt_told(own)
    estimator._of_recognizer = model if has_gallery else None
    return estimator


def _sample_shape(model: Any, input: _matmix.Input | None, preset: str | None) -> Any:
    """The shape of one sample, as a model of this preset sees samples."""
    # A model of windows takes those, such as `Patches`; `PatchFisher.load` takes images.
    if input is not None and preset is not None and input.patches is None:
        return input.shape
    # A mixture over rows knows the columns of a sample only.
    return None if preset == "mp2dpca" else model.shape
