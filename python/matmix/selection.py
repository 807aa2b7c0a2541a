"""How many components, of what rank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _matmix
from ._base import History, plain
from ._validation import Data, Sides, check_samples, check_weights
from .mixture import Mixture


@dataclass
class Selection:
    """The candidates of a selection, and the chosen one fitted.

    Attributes
    ----------
    best_estimator_ : Mixture
        The chosen one, fitted to all samples.
    best_params_ : dict
        Its `n_components` and `rank`.
    best_index_ : int
        Its row of `cv_results_`.
    cv_results_ : dict of lists
        A row for each candidate: `n_components`, `rank`, `n_parameters`, `log_likelihood` of the samples it was
        fitted to, `held_out` with the `standard_error` of its difference from the best, or `bic`, `aic` and `icl`.
    criterion_ : str
    advice_ : str
        What the table says.
    passes_ : float
        Passes of the largest candidate over the samples that all candidates together cost.
    """

    best_estimator_: Mixture
    best_params_: dict[str, Any]
    best_index_: int
    cv_results_: dict[str, list[Any]]
    criterion_: str
    advice_: str
    passes_: float = field(default=0.0)

    def to_frame(self) -> Any:
        """`cv_results_` as a data frame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.cv_results_)

    def __str__(self) -> str:
        return self.advice_


def select(
    X: Data,
    n_components: int | Sequence[int] = range(1, 11),
    rank: Sides | str = None,
    *,
    criterion: str = "held-out",
    folds: int = 3,
    one_standard_error: bool = True,
    sample_weight: ArrayLike | None = None,
    estimator: Mixture | None = None,
) -> Selection:
    """Chooses the number of components, and ranks if they are asked for, and fits the mixture.

    Candidates are not fitted one by one: the path over `n_components` splits and merges components, the path over ranks
    adds columns along what a mode has left over, or drops them.

    Parameters
    ----------
    X : array of shape (N, p_1, ..., p_D) or (N, P), or anything else `Mixture.fit` takes
        Of more than 16,384 samples so many, drawn at random, decide; the chosen one is fitted to all of them.
    n_components : int or sequence of int, default=range(1, 11)
        The number of components, or those to choose from: all between the least and the largest.
    rank : int, sequence of int, None or "auto", default=None
        The ranks of all candidates; "auto" chooses them, too.
    criterion : {"held-out", "bic", "aic", "icl"}, default="held-out"
        What decides: the likelihood of samples held out, or a criterion on all of them.
    folds : int, default=3
        In how many parts samples are held out, one after the other; 1 holds out a fifth, once.
    one_standard_error : bool, default=True
        Whether the model with the fewest parameters is chosen of those that are worse than the best held out by less
        than the standard error of the difference.
    sample_weight : array of shape (N,), optional
        How many times each sample counts.
    estimator : Mixture, optional
        Whatever else matters: noise, precision, random_state, sample_shape, scale, … It is not changed.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import matmix, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4, 3)) + 6 * rng.integers(0, 3, size=300)[:, None, None]
    >>> chosen = matmix.select(X, range(1, 6), rank=1, estimator=matmix.Mixture(random_state=0))
    >>> chosen.best_params_["n_components"]
    3
    >>> chosen.best_estimator_.predict(X).shape
    (300,)
    """
    counts = [int(k) for k in np.atleast_1d(np.asarray(n_components))]
    if not counts:
        raise ValueError("n_components is empty; it must be a number or some to choose from, such as range(1, 11)")
    if criterion not in _matmix.CHOICES["criterion"]:
        known = ", ".join(repr(name) for name in _matmix.CHOICES["criterion"])
        raise ValueError(f"criterion is {criterion!r}; it must be one of {known}")
    auto = isinstance(rank, str)
    if auto and rank != "auto":
        raise ValueError(f"rank is {rank!r}; it must be numbers, None or 'auto'")
    parameters = {} if estimator is None else estimator.get_params(deep=False)
    kind = Mixture if estimator is None else type(estimator)
    best = kind(**parameters)
    best.rank = None if auto else rank
    best._validate_params()
    samples = check_samples(best, X, reset=True)
    weights = check_weights(sample_weight, samples.n)
    options = best._options(best._start())
    input = samples.described()
    selection = {
        "least_components": min(counts),
        "most_components": max(counts),
        "choose_rank": auto,
        "criterion": criterion,
        "folds": folds,
        "one_standard_error": one_standard_error,
    }
    model, history, table, _ = _matmix.select_mixture(
        samples.held(best._preset, weights, options["threads"]),
        samples.shape,
        preset=best._preset,
        weights=weights,
        scale=samples.scale,
        options=json.dumps(options, default=plain),
        selection=json.dumps(selection, default=plain),
    )
    found = json.loads(table)
    rows, index = found["candidates"], found["chosen"]
    names = {"components": "n_components", "parameters": "n_parameters"}
    results = {names.get(key, key): [row[key] for row in rows] for key in rows[0]}
    results = {key: values for key, values in results.items() if any(value is not None for value in values)}
    results["rank"] = [tuple(one) for one in results["rank"]]
    chosen = {"n_components": results["n_components"][index], "rank": results["rank"][index]}
    for name, value in chosen.items():
        if name in best.get_params(deep=False):
            setattr(best, name, value)
    best.n_batches_ = 1
    best._remember(samples, input)
    best._adopt(model, History.from_json(history))
    return Selection(best, chosen, index, results, criterion, found["advice"], found["passes"])
