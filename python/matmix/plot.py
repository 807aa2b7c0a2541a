"""Pictures of models, with matplotlib (imported on use). Every function returns its Axes.

Those that draw one picture take `ax`; those that draw several take `fig` and return an array of Axes. Colour is kept
for what has a sign: means and samples are grey, loadings and walks around the mean use a diverging scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._base import History
from ._choosing import Choice
from ._validation import Data, check_integer
from .datasets import DataSet

COLOURS = (
    "#3b6fb6",
    "#d1603d",
    "#4a9c6d",
    "#8c6bb1",
    "#c9a227",
    "#5b5b5b",
    "#c65b8f",
    "#3aa6a6",
    "#8a5a3b",
    "#99a637",
)

# Past ten groups the marker tells them apart as well.
MARKERS = ("o", "s", "^", "D", "P", "X")

MISSING = "#ec60b0"
"""The colour of missing cells, as in the report."""


def means(model: Any, *, columns: int | None = None, cmap: str = "gray", fig: Any = None) -> np.ndarray:
    """The means of the components as pictures, with their weights.

    Parameters
    ----------
    model : Mixture or LowRank
        Fitted to matrices (or to colour images of three channels).
    columns : int, optional
        How many pictures stand side by side.
    cmap : str, default="gray"
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.plot.means(matmix.Mixture(3, random_state=0).fit(X)).shape
    (3,)
    """
    check_is_fitted(model)
    pictures = model.means_ if hasattr(model, "means_") else model.mean_[None]
    axes = _grid(len(pictures), columns, fig, pictures.shape[1:])
    low, high = float(pictures.min()), float(pictures.max())
    for k, (ax, picture) in enumerate(zip(axes, pictures, strict=True)):
        ax.imshow(_picture(picture, low, high), cmap=cmap, vmin=low, vmax=high)
        if hasattr(model, "weights_"):
            ax.set_title(f"{100 * model.weights_[k]:.0f} %", fontsize=9, pad=3)
    return axes


def reconstructions(model: Any, X: Data, *, count: int = 8, cmap: str = "gray", fig: Any = None) -> np.ndarray:
    """Samples above, what the model makes of them in the middle, and the difference below.

    Missing cells are pink in the samples and the differences.

    Parameters
    ----------
    model : Mixture or LowRank
    X : array of samples
        The first `count` are shown.
    count : int, default=8
    cmap : str, default="gray"
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes of shape (3, count)
    """
    check_is_fitted(model)
    X = np.asanyarray(X.data if isinstance(X, DataSet) else X)[: check_integer("count", count, 1)]
    shape = model.sample_shape_
    samples = model._check(X)
    before = samples.array.reshape(len(X), *shape).astype(float) * samples.scale
    after = np.asarray(model.reconstruct(X), dtype=float).reshape(before.shape)
    axes = _grid(3 * len(X), len(X), fig, shape).reshape(3, len(X))
    rest = before - after
    seen = before[np.isfinite(before)]
    shown = seen if seen.size else after
    low, high = float(shown.min()), float(shown.max())
    most = float(np.abs(rest[np.isfinite(rest)]).max(initial=0.0)) or 1.0
    for i in range(len(X)):
        axes[0, i].imshow(_picture(before[i], low, high), cmap=cmap, vmin=low, vmax=high)
        axes[1, i].imshow(_picture(after[i], low, high), cmap=cmap, vmin=low, vmax=high)
        for ax in axes[::2, i]:
            # Seen where a picture is transparent.
            ax.set_facecolor(MISSING)
        difference = rest[i] if rest[i].ndim == 2 else rest[i].mean(axis=-1)
        axes[2, i].imshow(difference, cmap="RdBu_r", vmin=-most, vmax=most)
    for row, name in enumerate(("sample", "model", "difference")):
        axes[row, 0].set_ylabel(name, fontsize=9)
    return axes


def convergence(model: Any, *, start: int = 0, ax: Any = None) -> Any:
    """Log-likelihood (and reconstruction error, on the right) over the iterations.

    Parameters
    ----------
    model : Mixture, LowRank or History
    start : int, default=0
        The first iteration to show. The first step is often so large that the others look flat beside it.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes
        The one of the log-likelihood; of the reconstruction error where there is no likelihood.
    """
    from matplotlib.ticker import MaxNLocator

    if isinstance(model, History):
        history = model
    else:
        check_is_fitted(model)
        history = model.history_
    if ax is None:
        ax = _new_axes((5.6, 3.4))
    series = [
        ("mean log-likelihood", history.log_likelihood, COLOURS[0], "-"),
        ("reconstruction error", history.reconstruction_error, COLOURS[1], "--"),
    ]
    start = check_integer("start", start, 0)
    current = ax
    drawn = 0
    for name, values, colour, style in series:
        if len(values) <= start:
            continue
        if drawn:
            current = ax.twinx()
            current.spines["top"].set_visible(False)
        current.plot(range(start, len(values)), values[start:], style, color=colour, linewidth=1.8)
        current.set_ylabel(name, color=colour)
        current.tick_params(axis="y", colors=colour)
        current.ticklabel_format(axis="y", useOffset=False)
        drawn += 1
    ax.set_xlabel("iteration")
    ax.spines["top"].set_visible(False)
    ax.grid(axis="y", alpha=0.2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def loadings(model: Any, *, component: int = 0, count: Sequence[int] | None = None, fig: Any = None) -> np.ndarray:
    """What the entries of the core add to a sample.

    For matrices the outer products l_i r_jᵀ of row and column loadings, one picture per entry (i, j) of the core; for
    samples of any other order the loadings of each mode as curves (see `modes`).

    Parameters
    ----------
    model : Mixture or LowRank
    component : int, default=0
    count : (int, int), optional
        How many row and column loadings to show; at most 6 × 6 by default.
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes of shape (rows, columns), or (modes,)
    """
    shape, factors = _factors(model, component)
    if len(factors) == 2:
        r, c = count or (min(6, factors[0].shape[1]), min(6, factors[1].shape[1]))
        r, c = min(r, factors[0].shape[1]), min(c, factors[1].shape[1])
        products = np.einsum("pi,qj->ijpq", factors[0][:, :r], factors[1][:, :c])
    elif len(factors) == 1 and len(shape) == 2 and factors[0].shape[0] == shape[0] * shape[1]:
        n = min(factors[0].shape[1], (count or (1, 12))[-1])
        r, c = 1, n
        products = factors[0][:, :n].T.reshape(1, n, *shape)
    else:
        return modes(model, component=component, fig=fig)
    axes = _grid(r * c, c, fig, shape).reshape(r, c)
    for i in range(r):
        for j in range(c):
            # Each with its own scale: the first products would drown the others.
            most = float(np.abs(products[i, j]).max()) or 1.0
            axes[i, j].imshow(products[i, j], cmap="RdBu_r", vmin=-most, vmax=most)
    for j in range(c):
        axes[0, j].set_title(f"$r_{{{j + 1}}}$" if len(factors) == 2 else f"$u_{{{j + 1}}}$", fontsize=9, pad=3)
    if len(factors) == 2:
        for i in range(r):
            axes[i, 0].set_ylabel(f"$l_{{{i + 1}}}$", fontsize=9, rotation=0, labelpad=9, va="center")
    return axes


def modes(
    model: Any,
    *,
    component: int = 0,
    count: int = 4,
    coordinates: Sequence[ArrayLike | None] | None = None,
    names: Sequence[str] | None = None,
    fig: Any = None,
) -> np.ndarray:
    """The loadings of each mode on their own, as curves: the pattern over channels, the course in time.

    Parameters
    ----------
    model : Mixture or LowRank
    component : int, default=0
    count : int, default=4
        How many loadings of each mode to show, the strongest first.
    coordinates : sequence of array or None, optional
        For each mode where its entries lie: instants, frequencies.
    names : sequence of str, optional
        What the modes are: ``["channel", "time (s)"]``.
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes of shape (modes,)

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> matmix.plot.modes(matmix.Mixture(2, random_state=0).fit(X), names=["row", "column"]).shape
    (2,)
    """
    import matplotlib.pyplot as plt

    _, factors = _factors(model, component)
    count = check_integer("count", count, 1)
    for option, given in (("coordinates", coordinates), ("names", names)):
        if given is not None and len(given) != len(factors):
            raise ValueError(f"option `{option}` has {len(given)} entries; the model has {len(factors)} modes")
    if fig is None:
        fig = plt.figure(figsize=(6.2, 1.9 * len(factors) + 0.3), layout="constrained")
    axes = np.asarray(fig.subplots(len(factors), 1, squeeze=False)).ravel()
    for mode, (ax, loading) in enumerate(zip(axes, factors, strict=True)):
        where = None if coordinates is None else coordinates[mode]
        places = np.arange(len(loading)) if where is None else np.asarray(where)
        if places.shape != (len(loading),):
            raise ValueError(f"the coordinates of mode {mode} have shape {places.shape}, not ({len(loading)},)")
        strongest = np.argsort(-(loading**2).sum(axis=0), kind="stable")[:count]
        for place, j in enumerate(strongest):
            ax.plot(places, loading[:, j], color=COLOURS[place % len(COLOURS)], linewidth=1.6, label=str(place + 1))
        ax.axhline(0.0, color="#999999", linewidth=0.8, zorder=0)
        ax.set_xlabel(f"mode {mode}" if names is None else names[mode])
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.margins(x=0.01)
    axes[0].legend(title="loading", loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
    return axes


def _factors(model: Any, component: int) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The shape of a sample and the loadings of one component, mode by mode."""
    check_is_fitted(model)
    k = check_integer("component", component, 0)
    if hasattr(model, "weights_") and k >= len(model.weights_):
        raise ValueError(f"option `component` is {k}; it must be less than {len(model.weights_)}")
    return tuple(model.sample_shape_), [u[k] if u.ndim == 3 else u for u in model.loadings_]


def latent_walk(
    model: Any,
    *,
    component: int = 0,
    entries: Sequence[Sequence[int]] | None = None,
    reach: float = 3.0,
    steps: int = 7,
    cmap: str = "gray",
    fig: Any = None,
) -> np.ndarray:
    """Walks along single entries of the core: one row of pictures per entry, the mean in the middle.

    Parameters
    ----------
    model : Mixture
    component : int, default=0
    entries : sequence of (i, j), optional
        Which entries of the core; by default the four that add the most variance.
    reach : float, default=3.0
        How far to go, in standard deviations of the core.
    steps : int, default=7
    cmap : str, default="gray"
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes of shape (entries, steps)
    """
    check_is_fitted(model)
    if not hasattr(model, "weights_"):
        raise ValueError("a walk needs the scale of the cores, which a model without noise does not have")
    k, steps = check_integer("component", component, 0), check_integer("steps", steps, 2)
    rank = model.rank_
    if entries is None:
        variance = np.ones(())
        for u in model.loadings_:
            variance = np.multiply.outer(variance, (u[k] ** 2).sum(axis=0))
        best = np.argsort(variance, axis=None)[::-1][:4]
        entries = [tuple(int(i) for i in np.unravel_index(b, rank)) for b in best]
    places = np.linspace(-reach, reach, steps)
    cores = np.zeros((len(entries), steps, *rank))
    for row, entry in enumerate(entries):
        cores[row][(slice(None), *tuple(entry))] = places
    walked = model.rebuild(cores.reshape(-1, *rank), np.full(len(entries) * steps, k))
    shape = tuple(model.sample_shape_)
    walked = walked.reshape(len(entries), steps, *shape)
    axes = _grid(len(entries) * steps, steps, fig, shape).reshape(len(entries), steps)
    low, high = float(model.means_[k].min()), float(model.means_[k].max())
    for row, entry in enumerate(entries):
        for step in range(steps):
            axes[row, step].imshow(_picture(walked[row, step], low, high), cmap=cmap, vmin=low, vmax=high)
        label = ", ".join(str(i + 1) for i in entry)
        axes[row, 0].set_ylabel(f"$b_{{{label}}}$", fontsize=9, rotation=0, labelpad=13, va="center")
    for step, place in enumerate(places):
        axes[0, step].set_title("mean" if abs(place) < 1e-12 else f"{place:+.1f}", fontsize=9, pad=3)
    return axes


def embedding(model: Any, X: Data, y: ArrayLike | None = None, *, ax: Any = None, size: float = 9.0) -> Any:
    """Samples as points: the two directions in which their cores vary most.

    The cores of all components, one after the other, are reduced to two numbers by PCA; they are the features the
    recogniser compares, too.

    Parameters
    ----------
    model : Mixture or LowRank
    X : array of samples
    y : array of shape (N,), optional
        Classes, shown in colour; by default the most probable components of a mixture.
    ax : matplotlib Axes, optional
    size : float, default=9.0
        The area of a point.

    Returns
    -------
    Axes
    """
    check_is_fitted(model)
    X = np.asarray(X)
    features = np.asarray(model.transform(X), dtype=float).reshape(len(X), -1)
    features -= features.mean(axis=0)
    _, _, directions = np.linalg.svd(features, full_matrices=False)
    points = features @ directions[:2].T
    if points.shape[1] == 1:
        points = np.column_stack([points[:, 0], np.zeros(len(points))])
    of_components = y is None and hasattr(model, "predict")
    if of_components:
        y = np.asarray(model.predict(X))
        y = y if y.ndim == 1 else None
    if ax is None:
        ax = _new_axes((5.6, 4.6))
    if y is None:
        ax.scatter(points[:, 0], points[:, 1], s=size, color=COLOURS[0], alpha=0.7, linewidths=0)
    else:
        y = np.asarray(y)
        classes = np.unique(y)
        title = "component" if of_components else "class"
        if len(classes) <= len(COLOURS) * len(MARKERS):
            for i, name in enumerate(classes):
                at = y == name
                ax.scatter(
                    *points[at].T,
                    s=size,
                    color=COLOURS[i % len(COLOURS)],
                    marker=MARKERS[i // len(COLOURS)],
                    alpha=0.75,
                    linewidths=0,
                    label=str(name),
                )
            ax.legend(
                title=title,
                ncols=math.ceil(len(classes) / 20),
                loc="upper left",
                bbox_to_anchor=(1.01, 1.0),
                frameon=False,
                markerscale=2.0,
                handletextpad=0.2,
                borderaxespad=0.0,
            )
        else:
            _, colour = np.unique(y, return_inverse=True)
            drawn = ax.scatter(*points.T, c=colour, s=size, cmap="viridis", alpha=0.75, linewidths=0)
            # Too many to be told apart: their order is all that can be shown.
            bar = ax.figure.colorbar(drawn, ax=ax, label=f"{title}, in order")
            ends = [0, len(classes) - 1]
            bar.set_ticks(ends, labels=[str(classes[i]) for i in ends])
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("first direction of the cores")
    ax.set_ylabel("second direction")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def choice(choice: Any, *, fig: Any = None) -> np.ndarray:
    """What a selection tried: what decided, over the number of components, and the scree of every mode.

    Parameters
    ----------
    choice : Choice, Selection or a mixture whose components or ranks were chosen
    fig : matplotlib Figure, optional

    Returns
    -------
    ndarray of Axes
        The curve, a line for each rank with the chosen candidate ringed, and one for each mode.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matmix
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> chosen = matmix.select(X[:200], range(1, 4), rank=2, folds=1, estimator=matmix.Mixture(random_state=0))
    >>> chosen.plot().shape
    (3,)
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    chosen = choice if isinstance(choice, Choice) else choice.choice_
    if chosen is None:
        raise ValueError("nothing was chosen: n_components and rank were given")
    names = {"held-out": "held_out", "error": "error"}
    column = names.get(chosen.criterion_, chosen.criterion_)
    table = chosen.cv_results_
    screes = [(mode, scree) for mode, scree in enumerate(chosen.scree_) if len(scree)]
    if fig is None:
        fig = plt.figure(figsize=(4.6 + 2.8 * len(screes), 3.6), layout="constrained")
    widths = [1.7] + [1.0] * len(screes)
    axes = np.asarray(fig.subplots(1, len(widths), squeeze=False, width_ratios=widths)).ravel()
    best = chosen.best_params_
    ranks = sorted(set(table["rank"]), key=lambda rank: (rank != best["rank"], rank))
    for i, rank in enumerate(ranks):
        at = [j for j, one in enumerate(table["rank"]) if one == rank]
        x, y = [table["n_components"][j] for j in at], [table[column][j] for j in at]
        errors = [table["standard_error"][j] or 0.0 for j in at] if "standard_error" in table else None
        name = "×".join(map(str, rank))
        axes[0].errorbar(
            x, y, errors, fmt="o-", color=COLOURS[i % len(COLOURS)], markersize=4, linewidth=1.6, label=name
        )
    value = table[column][chosen.best_index_]
    axes[0].plot(best["n_components"], value, "o", markersize=13, fillstyle="none", color="black", label="chosen")
    axes[0].set_xlabel("number of components")
    axes[0].set_ylabel({"held_out": "log-likelihood held out", "error": "error held out"}.get(column, column.upper()))
    axes[0].legend(title="cores", fontsize=8)
    for ax, (mode, scree) in zip(axes[1:], screes, strict=True):
        ax.plot(np.arange(1, len(scree) + 1), 100 * scree, "o-", color=COLOURS[0], markersize=3, linewidth=1.4)
        rank = best["rank"][mode]
        ax.plot(rank, 100 * scree[rank - 1], "o", markersize=11, fillstyle="none", color="black")
        ax.set_xlabel("column")
        ax.set_ylabel(f"% of the variance, mode {mode}")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.2)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return axes


def _new_axes(size: tuple[float, float]) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _grid(count: int, columns: int | None, fig: Any, shape: Sequence[int]) -> np.ndarray:
    """A flat array of `count` Axes without ticks, each with room for a picture of this shape."""
    if len(shape) != 2 and not (len(shape) == 3 and shape[2] in (3, 4)):
        raise ValueError(
            f"pictures are drawn of matrices and of colour images; these samples have shape {tuple(shape)}. "
            "Give a sample_shape to the estimator if they are flattened pictures."
        )
    import matplotlib.pyplot as plt

    columns = min(count, 10) if columns is None else check_integer("columns", columns, 1)
    rows = math.ceil(count / columns)
    side = 0.95 if count > 12 else 1.25
    if fig is None:
        fig = plt.figure(figsize=(side * columns + 0.4, side * rows * min(shape[0] / shape[1], 3) + 0.3))
        fig.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)
    axes = np.asarray(fig.subplots(rows, columns, squeeze=False)).ravel()
    for i, ax in enumerate(axes):
        ax.set_xticks([])
        ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set_visible(False)
        if i >= count:
            ax.set_visible(False)
    return axes[:count]


def _picture(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Colour images between 0 and 1, with missing cells transparent; grey ones are scaled by their limits."""
    if x.ndim == 2:
        return x
    missing = np.isnan(x).any(axis=-1)
    colours = np.clip((x - low) / ((high - low) or 1.0), 0, 1)
    if not missing.any():
        return colours
    colours[missing] = 0.0
    return np.dstack([colours[..., :3], np.where(missing, 0.0, 1.0 if x.shape[-1] == 3 else colours[..., -1])])
