"""One picture: how many times faster, for every peer, on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .harness import OURS

# Colours with enough contrast on GitHub's white and on its dark grey.
INK = "#7d8590"
BARS = {
    "iteration": "#3b82f6",
    "likelihood": "#8b5cf6",
    "low_rank": "#10a37f",
    "mixture_ppca": "#e07b39",
    "recognition": "#d6457f",
}
LABELS = {
    "iteration": "EM iteration",
    "likelihood": "time to a log-likelihood",
    "low_rank": "GLRAM, PCA",
    "mixture_ppca": "mixture of PPCA",
    "recognition": "recognition",
}
SHORT = {
    "iteration": "28×28, K = 10",
    "iteration-f64": "28×28, K = 10, f64",
    "iteration-64": "64×64, K = 8",
    "iteration-512": "512×512, K = 4",
    "iteration-k1": "28×28, K = 1",
    "iteration-k200": "28×28, K = 200",
    "likelihood-digits": "digits",
    "likelihood-planted": "planted",
    "glram": "GLRAM",
    "pca": "PCA(16)",
    "mixture-ppca": "K = 5, rank 16",
    "recognition": "Euclidean",
    "recognition-mixture": "paper's distance",
}


def draw(results: dict[str, Any], path: Path) -> None:
    """Horizontal bars; the line at 1 is where a peer is as fast as we are."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    rows = []
    for case in results["cases"]:
        if case["family"] not in BARS or "seconds" not in case["contestants"][OURS]:
            continue
        ours = case["contestants"][OURS]["seconds"]
        for name, measured in case["contestants"].items():
            if name != OURS and "seconds" in measured:
                rows.append((case["family"], f"{SHORT[case['name']]} — {name}", measured["seconds"] / ours))
    if not rows:
        return
    plt.rcParams.update({"svg.hashsalt": "matmix", "font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    figure, axes = plt.subplots(figsize=(9, 0.8 + 0.27 * len(rows)), layout="constrained")
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    places = range(len(rows))[::-1]
    # Bars from 1 to the ratio: to the left where a peer is faster.
    axes.barh(
        list(places),
        [ratio - 1 for _, _, ratio in rows],
        left=1,
        height=0.72,
        color=[BARS[family] for family, _, _ in rows],
    )
    for place, (_, _, ratio) in zip(places, rows, strict=True):
        text = f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×" if ratio >= 1 else f"{ratio:.2f}×"
        axes.annotate(
            text, (max(ratio, 1), place), xytext=(4, 0), textcoords="offset points", va="center", color=INK, fontsize=9
        )
    axes.set_xscale("log")
    largest = max(ratio for _, _, ratio in rows)
    axes.set_xlim(min(0.5, min(ratio for _, _, ratio in rows) / 1.3), 2.5 * largest)
    axes.set_yticks(list(places), [label for _, label, _ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_xlabel("times faster than the peer (logarithmic)")
    axes.tick_params(which="both", colors=INK, length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.grid(axis="x", color=INK, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    used = [family for family in BARS if any(family == row[0] for row in rows)]
    axes.legend(
        handles=[Patch(color=BARS[family], label=LABELS[family]) for family in used],
        loc="lower left",
        bbox_to_anchor=(-0.45, 1),
        ncols=len(used),
        frameon=False,
        labelcolor=INK,
        fontsize=9,
    )
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)
