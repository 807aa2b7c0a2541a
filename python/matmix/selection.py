"""How many components, of what rank."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._base import warn_of_fit
from ._choosing import AUTO, Choice, choose, from_history
from ._fitting import FitInterruptedWarning, describe
from ._progress import ProgressLine
from ._validation import DEFAULTS, Data, Sides, check_choice, check_integer, check_rank, check_samples, check_weights
from .mixture import Mixture


@dataclass
class Selection(Choice):
    """The candidates of a selection, and the chosen one fitted: a `Choice` with an estimator.

    Attributes
    ----------
    best_estimator_ : Mixture
        The chosen one, fitted to all samples.
    """

    best_estimator_: Any = None


def select(
    X: Data,
    n_components: int | Sequence[int] = range(1, 11),
    rank: Sides | str = None,
    *,
    criterion: str | None = None,
    purpose: str | None = None,
    keep: int | None = None,
    explain: float | None = None,
    most_rank: Sides = None,
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
    criterion : {"held-out", "error", "bic", "aic", "icl"}, default="held-out"
        What decides: the likelihood of samples held out, their error, or a criterion on all samples.
    purpose : {"density", "compression", "clustering", "denoising"}, optional
        What the model is for, instead of a criterion: density and denoising are served by the likelihood of samples
        held out, compression by their error, clustering by ICL.
    keep : int, optional
        For compression: ranks are chosen, too, with at most so many values kept of each sample. As many as a core has
        by default if ranks are chosen and nothing is said.
    explain : float, optional
        The share of the variance that the ranks have to explain: the smallest such cores are taken.
    most_rank : int or sequence of int, optional
        The largest ranks that are tried with ``rank="auto"``, for all modes or one per mode.
    folds : int, default=3
        In how many parts samples are held out, one after the other; 1 holds out a fifth, once.
    one_standard_error : bool, default=True
        Whether the model with the fewest parameters is chosen of those that are worse than the best held out by less
        than the standard error of the difference.
    sample_weight : array of shape (N,), optional
        How many times each sample counts.
    estimator : Mixture, optional
        All other parameters: noise, missing, precision, random_state, sample_shape, scale, … It is not changed. Its
        `callback` hears of every step; if it says stop, or at Ctrl-C, the best of the candidates so far is kept.

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
    counts = [check_integer("n_components", k, 1) for k in np.atleast_1d(np.asarray(n_components, dtype=object))]
    if not counts:
        raise ValueError("n_components is empty; it must be a number or some to choose from, such as range(1, 11)")
    if criterion is not None and purpose is not None:
        raise ValueError(f"purpose={purpose!r} has a criterion of its own; leave out criterion={criterion!r}")
    if explain is not None and rank is not None:
        raise ValueError(f"explain={explain!r} chooses ranks; leave out rank={rank!r}")
    auto = isinstance(rank, str)
    if auto and rank != AUTO:
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
        "choose_rank": auto or (keep is not None and rank is None),
        "criterion": "held-out" if criterion is None else check_choice("criterion", criterion),
        "purpose": None if purpose is None else check_choice("purpose", purpose),
        "keep": None if keep is None else check_integer("keep", keep, 1),
        "explain": explain,
        "most_rank": check_rank(most_rank),
        "folds": folds,
        "one_standard_error": one_standard_error,
    }
    with ProgressLine(best.verbose, samples.n) as line:
        callback = line.before(best.callback)
        model, history, interrupted = choose(samples, best._preset, weights, options, selection, callback)
    assert history.choice is not None
    found = from_history(history.choice)
    for name, value in found["best_params_"].items():
        if name in best.get_params(deep=False):
            setattr(best, name, value)
    best.n_batches_ = 1
    best._remember(samples, input, describe(options, DEFAULTS["fit"]["start"], history))
    best._adopt(model, history)
    warn_of_fit(history, best.tol, stacklevel=3)
    if interrupted:
        judged = len(history.choice["candidates"])
        warnings.warn(
            f"Ctrl-C ended the selection after {judged} candidates; the best of them is kept.",
            FitInterruptedWarning,
            stacklevel=2,
        )
    return Selection(**found, best_estimator_=best)
