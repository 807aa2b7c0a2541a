"""The command. Without arguments it measures everything, keeps the figures in docs/benchmarks/choosing.json and writes
the tables of docs/choosing.md; `--check` measures and compares instead. It needs what benchmarks/requirements.txt lists
and several minutes of two quiet cores; the figures do not depend on the machine."""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before anything starts a thread pool: threads of BLAS that wait for work take it from everybody else.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import page, sets, tasks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "choosing.md"
FIGURES = ROOT / "docs" / "benchmarks" / "choosing.json"

Job = Callable[[sets.Set, int], Iterator[tasks.Figure]]
Figures = dict[str, dict[str, dict[str, dict[str, dict[str, list[float]]]]]]
"""job → set → model → setting → figure → its values over the splits."""


def jobs() -> dict[str, tuple[Job, int, tuple[Callable[[], sets.Set], ...]]]:
    """What is done, over how many splits, on which sets."""
    digits, small, photographs, windows = sets.ALL
    few = functools.partial(tasks.rebuilding, numbers=64, samples=tasks.FEW)
    pictures = (digits, photographs, windows)
    return {
        "density": (tasks.density, 3, sets.ALL),
        "few samples": (few, 3, pictures),
        "16 numbers": (functools.partial(tasks.rebuilding, numbers=16, samples=None), 3, sets.ALL),
        "64 numbers": (functools.partial(tasks.rebuilding, numbers=64, samples=None), 3, pictures),
        "weak noise": (functools.partial(tasks.denoising, strength=0.5), 3, pictures),
        "strong noise": (functools.partial(tasks.denoising, strength=1.0), 3, pictures),
        "clustering": (tasks.clustering, 3, (small, windows)),
        "an unseen class": (tasks.novelty, 5, (small, digits)),
    }


def measure(only: list[str]) -> Iterator[tuple[str, str, Any]]:
    """A job on a set, and what was found, one after the other."""
    made = functools.cache(lambda make: make())
    for name, (job, splits, on) in jobs().items():
        if only and name not in only:
            continue
        for data in map(made, on):
            begun = time.monotonic()
            found: dict[str, dict[str, dict[str, list[float]]]] = {}
            for split in range(splits):
                for model, setting, values in job(data, split):
                    for figure, value in values.items():
                        kept = found.setdefault(model, {}).setdefault(setting, {}).setdefault(figure, [])
                        kept.append(round(float(value), 4))
            print(f"{name}, {data.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            yield name, data.name, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guide", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare docs/choosing.md with what is measured now")
    parser.add_argument("--tables", action="store_true", help="write the tables from the figures that are kept")
    parser.add_argument("--only", action="append", metavar="JOB", default=[], help="a job; may be repeated")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    kept: Figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if arguments.tables:
        page.write(PAGE, kept)
        return 0
    figures: Figures = {}
    for job, data, found in measure(arguments.only):
        figures.setdefault(job, {})[data] = found
        if not arguments.check:
            # As they come: whatever ends the run, what was measured stays.
            kept.setdefault(job, {})[data] = found
            FIGURES.write_text(page.as_json(kept))
    if arguments.check:
        wrong = page.differences(PAGE.read_text(), figures)
        print("\n".join(wrong) or "every figure of docs/choosing.md is what was measured, within its spread")
        return 1 if wrong else 0
    page.write(PAGE, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
