"""What a mixture was chosen from, and how: `select` and ``n_components="auto"`` go through the same function."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _matmix
from ._base import History, plain
from ._validation import DEFAULTS, Samples

AUTO = "auto"
"""The word for whatever is to be chosen."""
COMPONENTS = (DEFAULTS["select"]["least_components"], DEFAULTS["select"]["most_components"])
"""The numbers of components that are tried if nobody says which."""


@dataclass
class Choice:
    """The candidates of a selection, which of them was chosen, by what and why.

    Attributes
    ----------
    best_params_ : dict
        The `n_components` and `rank` that were chosen.
    best_index_ : int
        Their row of `cv_results_`.
    cv_results_ : dict of lists
        A row for each candidate: `n_components`, `rank`, `n_parameters`, `log_likelihood` of the samples it was
        fitted to, `held_out` with the `standard_error` of the difference from the best, or `bic`, `aic` and `icl`;
        `error`, e = sqrt(Σ‖X − X̂‖²/N), and `explained`, the share of the variance, of the samples it is judged by.
    criterion_ : str
        What decided.
    purpose_ : str or None
        What the model is for, if that was said.
    advice_ : str
        What the table says.
    scree_ : list of ndarray
        For each mode the shares of the variance around the means of the chosen components along its directions.
    beyond_ : dict or None
        The chosen components with cores half as large again, where ranks were given: what more rank would gain.
    passes_ : float
        Passes of the largest candidate over the samples that all candidates together cost.
    """

    best_params_: dict[str, Any]
    best_index_: int
    cv_results_: dict[str, list[Any]]
    criterion_: str
    advice_: str
    purpose_: str | None = None
    scree_: list[np.ndarray] = field(default_factory=list)
    beyond_: dict[str, Any] | None = None
    passes_: float = 0.0

    def to_frame(self) -> Any:
        """`cv_results_` as a data frame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.cv_results_)

    def plot(self, *, fig: Any = None) -> np.ndarray:
        """What decided, over the number of components with a line for each rank, and the scree of every mode.

        See `matmix.plot.choice`; needs matplotlib.
        """
        from . import plot

        return plot.choice(self, fig=fig)

    def __str__(self) -> str:
        return self.advice_


def from_history(found: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a `Choice` from what the history of a fit says."""
    names = {"components": "n_components", "parameters": "n_parameters"}
    rows, index = found["candidates"], found["chosen"]
    results = {names.get(key, key): [row[key] for row in rows] for key in rows[0]}
    results = {key: values for key, values in results.items() if any(value is not None for value in values)}
    results["rank"] = [tuple(one) for one in results["rank"]]
    beyond = found["beyond"]
    if beyond is not None:
        beyond = {names.get(key, key): value for key, value in beyond.items() if value is not None}
        beyond["rank"] = tuple(beyond["rank"])
    return {
        "best_params_": {"n_components": results["n_components"][index], "rank": results["rank"][index]},
        "best_index_": index,
        "cv_results_": results,
        "criterion_": found["criterion"],
        "purpose_": found["purpose"],
        "advice_": found["advice"],
        "scree_": [np.asarray(mode) for mode in found["scree"]],
        "beyond_": beyond,
        "passes_": found["passes"],
    }


def choose(
    samples: Samples,
    preset: str | None,
    weights: np.ndarray | None,
    options: dict[str, Any],
    selection: dict[str, Any],
    callback: Any,
) -> tuple[_matmix.MixtureModel, History, bool]:
    """The chosen model, its history, and whether Ctrl-C ended the selection."""
    model, history, interrupted = _matmix.select_mixture(
        samples.held(preset, weights, options["threads"]),
        samples.shape,
        preset=preset,
        weights=weights,
        scale=samples.scale,
        options=json.dumps(options, default=plain),
        selection=json.dumps(selection, default=plain),
        callback=callback,
    )
    return model, History.from_json(history), interrupted
