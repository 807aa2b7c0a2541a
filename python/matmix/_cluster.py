"""What ``matmix fit --dask ADDRESS DATA`` runs: a fit on a cluster, asked for in JSON and answered in JSON."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from . import _matmix
from ._base import History
from ._blocks import Parts
from ._fitting import parameters_of
from .published import BY_PRESET


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Fits what was asked for, writes the model file and says what came out."""
    import distributed

    from ._dask import DaskBlocks

    data = request["data"]
    array = Parts(data).to_dask()
    samples = DaskBlocks(array, scale=request["scale"])
    options = request["options"]
    preset = request["model"] or _matmix.default_preset(array.ndim - 1, options["components"])
    cls: Any = BY_PRESET[preset]
    params = parameters_of(options, cls)
    params.update(init_params=request["init"], verbose=request["verbose"], device=request["device"])
    if params["device"] != "cpu" and "device" not in cls._get_param_names():
        raise ValueError(f"{preset} is fitted by the processors of a cluster only")
    checkpoint = options["checkpoint"]
    if checkpoint is not None:
        params.update(checkpoint=checkpoint["path"], checkpoint_every=checkpoint["every"])
        if not checkpoint["resume"] and os.path.exists(checkpoint["path"]):
            # What a link points to, and not the link.
            os.remove(os.path.realpath(checkpoint["path"]))
    estimator = cls(**{name: params[name] for name in cls._get_param_names() if name in params})
    with distributed.Client(request["address"], timeout="30s"), warnings.catch_warnings():
        # The command line prints the warnings itself, from the history.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "no checkpoint", RuntimeWarning)
        estimator.fit(samples)
    history: History = estimator.history_
    # The same fit gives the same file: how long it took does not belong into it.
    history.seconds, seconds = 0.0, history.seconds
    shape = list(estimator.sample_shape_)
    described = json.dumps(request["describe"])
    estimator.model_.save(request["output"], preset, estimator.input_, described, history.to_json())
    return {"model": preset, "n_samples": len(samples), "shape": shape, "seconds": seconds}


def main(arguments: list[str]) -> int:
    """Answers on standard output: what came out, or what went wrong."""
    try:
        answer = fit(json.loads(arguments[0]))
    except KeyboardInterrupt:
        answer = {"error": "stopped before there was a model"}
    except Exception as error:
        answer = {"error": str(error) or repr(error)}
    print(json.dumps(answer))
    return 1 if "error" in answer else 0
