"""The page `docs/benchmarks.md` from the JSON of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from . import figure
from .harness import OURS
from .targets import targets

FAMILIES = {
    "iteration": (
        "One EM iteration of mixB2DPPCA",
        "All modes once, from the same start model: a pass over the samples and an M-step for each, or, where it costs "
        "us less, one pass for all of them, which is not quite the same step. Ours is timed through the Python "
        "package: two fits of different length, the difference divided. NumPy and PyTorch run a pass for each mode "
        "(`benchmarks/em_step.py`) in the fastest of up to eighteen formulations, chosen on a part of the samples.",
    ),
    "likelihood": (
        "Time to a given log-likelihood",
        "Whole fits from the same start to a given distance from the mean log-likelihood ours ends at. "
        "Ours may guess where its iterations lead, as it does by default.",
    ),
    "low_rank": (
        "GLRAM and PCA",
        "To convergence. TensorLy's `partial_tucker` from both of its starts, NumPy with the alternation of GLRAM; "
        "PCA with each of scikit-learn's solvers.",
    ),
    "mixture_ppca": (
        "One iteration of the mixture of PPCA",
        "From the same start model. scikit-learn's GaussianMixture, with full covariances, is another model and stands "
        "here for orientation.",
    ),
    "recognition": (
        "Recognition",
        "The class of the nearest known sample. Ours includes the cores of the probes; the others are given theirs.",
    ),
}


def write(results: dict[str, Any], docs: Path, name: str | None = None) -> Path:
    """Writes the JSON (unless it is where the results came from), the page and the picture; returns the page."""
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    if name is not None:
        results["name"] = name
        text = json.dumps(results, indent=1, ensure_ascii=False)
        (docs / "benchmarks" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    figure.draw(results, docs / "figures" / "benchmarks.svg")
    path = docs / "benchmarks.md"
    path.write_text(page(results), encoding="utf-8")
    return path


def page(results: dict[str, Any]) -> str:
    about = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    yardstick = ", ".join(
        f"{'sgemm' if key.startswith('f32') else 'dgemm'} on {key.split(', ')[1]} thread{'s' * (key[-1] != '1')} "
        f"{value / 1e9:.0f} GFLOP/s"
        for key, value in sorted(results["yardstick"].items())
    )
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`, which sets up its own environment with the pinned peers and runs us and them on the "
        "same data, threads and precision in one run, in turns. Figures are medians, with the fastest and slowest in "
        "brackets; "
        f"the numbers behind them are in [{results['name']}.json](benchmarks/{results['name']}.json).",
        "",
        f"{about['cpu']}, {about['cores']} cores ({', '.join(about['instructions'])}), {about['memory_gb']} GB, "
        f"{about['system']}, Python {about['python']}; {packages}. "
        f"{about['threads']} threads where nothing else is said. {yardstick}: the best "
        f"square product through NumPy ({', '.join(about['blas'])}) before and after the run. "
        f"{results['date']}, {results['minutes']} minutes.",
        "",
    ]
    if results["quick"]:
        lines += ["**A quick run: small sizes, to see that everything works. The figures mean nothing.**", ""]
    lines += ["![How many times faster matmix is than each peer](figures/benchmarks.svg)", ""]
    lines += must_show(results)
    for family, (title, text) in FAMILIES.items():
        cases = [case for case in results["cases"] if case["family"] == family]
        if cases:
            lines += [f"## {title}", "", text, ""]
            for case in cases:
                lines += table(case, results)
    lines += grown(results)
    lines += kernels(results)
    return "\n".join(lines).rstrip() + "\n"


def must_show(results: dict[str, Any]) -> list[str]:
    lines = ["## What was to be shown", "", "| what | wanted | measured | |", "|---|---|---|---|"]
    for target in targets(results["machine"]["threads"]):
        bound = f"{'at most' if target.at_most else 'at least'} {number(target.bound)}{target.unit}"
        try:
            value = target.found(results)
        except (KeyError, StopIteration):
            lines.append(f"| {target.what} | {bound} | not measured | |")
            continue
        verdict = "reached" if target.reached(value) else "**not reached**"
        lines.append(f"| {target.what} | {bound} | {number(value)}{target.unit} | {verdict} |")
    return [*lines, ""]


def table(case: dict[str, Any], results: dict[str, Any]) -> list[str]:
    ours = case["contestants"][OURS]
    if "missing" in ours:
        return [f"**{case['title']}**: ours was {ours['missing']}.", ""]
    with_memory = any(measured.get("memory") is not None for measured in case["contestants"].values())
    lines = [f"**{case['title']}**", ""]
    lines.append("| | time | matmix is faster | result |" + (" memory beyond the data |" if with_memory else ""))
    lines.append("|---|---|---|---|" + ("---|" if with_memory else ""))
    for name, measured in case["contestants"].items():
        if "missing" in measured:
            lines.append(f"| {name} | {measured['missing']} | | |" + (" |" if with_memory else ""))
            continue
        ratio = "" if name == OURS else f"{number(measured['seconds'] / ours['seconds'])}×"
        label = name + (f" ({measured['note']})" if measured["note"] else "")
        memory = f" {size(measured.get('memory'))} |" if with_memory else ""
        lines.append(f"| {label} | {spread(measured)} | {ratio} | {outcome(case, name)} |{memory}")
    lines.append("")
    if case["useful_flops"]:
        rate = case["useful_flops"] / ours["seconds"]
        key = f"{case['precision']}, {case['threads']}"
        product = "sgemm" if case["precision"] == "f32" else "dgemm"
        lines += [
            f"Ours: {rate / 1e9:.1f} GFLOP/s of useful flops, 2·N·K·(p·q·c + p·r·c) for each mode, also where one "
            f"pass serves both, and nothing else counted: "
            f"{100 * rate / results['yardstick'][key]:.0f} % of {product}.",
            "",
        ]
    return lines


def outcome(case: dict[str, Any], name: str) -> str:
    """The quality reached; for a peer whether it is ours."""
    quality = case["contestants"][name]["quality"]
    ours = case["contestants"][OURS]["quality"]
    if not quality:
        return ""
    key, value = next(iter(quality.items()))
    rest = "".join(f", {number(other)} {label}" for label, other in list(quality.items())[1:])
    if name == OURS:
        return f"{key} {value:.7g}{rest}"
    if key not in ours:
        return f"{key} {value:.7g}{rest}"
    difference = abs(value - ours[key]) / max(abs(ours[key]), 1e-300)
    if difference <= case["tolerance"]:
        return f"the same to {difference:.0e}{rest}" if difference > 0 else f"the same{rest}"
    if case["better"] == 0:
        return f"**differs**: {value:.7g}{rest}"
    word = "better" if (value - ours[key]) * case["better"] > 0 else "worse"
    return f"{word}: {value:.7g}{rest}"


def grown(results: dict[str, Any]) -> list[str]:
    cases = {case["name"]: case for case in results["cases"] if case["family"] == "growth"}
    lines = [
        "## How the cost of an iteration grows",
        "",
        "| | from | to | factor | in proportion |",
        "|---|---|---|---|---|",
    ]
    measured = {name for name, case in cases.items() if "seconds" in case["contestants"][OURS]}
    rows = [case for name, case in cases.items() if case["grown"] and {name, case["base"]} <= measured]
    for case in rows:
        base, now = (cases[name]["contestants"][OURS] for name in (case["base"], case["name"]))
        factor = now["seconds"] / base["seconds"]
        lines.append(
            f"| {case['grown']} | {spread(base)} | {spread(now)} | {number(factor)}× | {number(case['ideal'])}× |"
        )
    base = cases.get("growth-base")
    note = f"From {base['title']}; the threads from ten times as many samples." if base else ""
    return [*lines, "", note, ""] if rows else []


def kernels(results: dict[str, Any]) -> list[str]:
    if not results["kernels"]:
        return []
    lines = [
        "## One pass in Rust",
        "",
        "`make bench-kernels` (criterion), for each of the two passes of an iteration.",
        "",
        "| | median | useful GFLOP/s |",
        "|---|---|---|",
    ]
    for kernel in results["kernels"]:
        flops = kernel["multiply_adds"]
        rate = f"{2 * flops / kernel['seconds'] / 1e9:.1f}" if flops else ""
        lines.append(f"| {kernel['name']} | {spread(kernel)} | {rate} |")
    return [*lines, ""]


def spread(measured: dict[str, Any]) -> str:
    """`12.3 ms (12.1–12.9)`."""
    value = measured["seconds"]
    unit, factor = next((u, f) for u, f, least in UNITS if value >= least)
    middle = number(value * factor)
    if measured.get("repeats") == 1:
        return f"{middle} {unit} (once)"
    return f"{middle} {unit} ({number(measured['fastest'] * factor)}–{number(measured['slowest'] * factor)})"


UNITS = (("s", 1.0, 1.0), ("ms", 1e3, 1e-3), ("µs", 1e6, 0.0))


def number(value: float) -> str:
    """Three digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count: int | None) -> str:
    if count is None:
        return ""
    if count < 2**20:
        return "under 1 MB"
    return f"{number(count / 2**30)} GB" if count >= 2**30 else f"{number(count / 2**20)} MB"
