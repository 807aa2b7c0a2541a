"""The tables of docs/choosing.md: written from figures, and compared with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from .tasks import BILATERAL, PPCA

Settings = dict[str, dict[str, list[float]]]
"""setting → figure → its values over the splits."""
Figures = dict[str, dict[str, dict[str, Settings]]]
"""job → set → model → settings."""

TABLE = re.compile(r"<!-- table: ([\w ]+) -->\n(.*?)<!-- end -->", re.DOTALL)
VALUE = re.compile(r"(−?[\d,.]+)(?: ± ([\d.]+))?")
QUOTED = re.compile(r"(?<![\w.×,/-])(−?\d[\d,]*\.\d+|−?\d{1,3}(?:,\d{3})+|\d+(?= %)|−?\d{3,})(?![\w×]|[.,]\d)")


class Unit(NamedTuple):
    """How a figure is judged and written."""

    figure: str
    larger: bool
    factor: float
    digits: int
    words: str


UNITS = {
    "density": Unit("held-out", True, 1, 0, "mean log-likelihood of unseen samples"),
    "few samples": Unit("lost", False, 100, 1, "percent of the variance lost, 64 numbers kept"),
    "16 numbers": Unit("lost", False, 100, 1, "percent of the variance lost, 16 numbers kept"),
    "64 numbers": Unit("lost", False, 100, 1, "percent of the variance lost, 64 numbers kept"),
    "weak noise": Unit("left", False, 100, 0, "percent of the noise left"),
    "strong noise": Unit("left", False, 100, 0, "percent of the noise left"),
    "clustering": Unit("adjusted Rand", True, 1, 2, "adjusted Rand index"),
    "an unseen class": Unit("area", True, 1, 2, "area under the curve"),
}


class Entry(NamedTuple):
    model: str
    setting: str
    mean: float
    spread: float

    def text(self, unit: Unit) -> str:
        return f"{written(self.mean, unit.digits)} ± {written(self.spread, unit.digits)} ({self.setting})"


def written(x: float, digits: int) -> str:
    return f"{x:,.{digits}f}".replace("-", "−")


def entries(models: dict[str, Settings], unit: Unit) -> list[Entry]:
    """Every model in the setting that does best over the splits, best model first."""
    found = []
    for model, settings in models.items():
        all_of_it = []
        for setting, figures in settings.items():
            values = [unit.factor * x for x in figures[unit.figure]]
            all_of_it.append(Entry(model, setting, mean(values), stdev(values)))
        found.append(best(all_of_it, unit)[0])
    return best(found, unit)


def best(some: list[Entry], unit: Unit) -> list[Entry]:
    return sorted(some, key=lambda entry: entry.mean, reverse=unit.larger)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def overview(figures: Figures) -> str:
    """job × set: the best bilateral mixture, the best mixture of PPCA, the best of the others; the winner in bold."""
    rows = []
    for job, sets in figures.items():
        unit = UNITS[job]
        for data, models in sets.items():
            order = entries(models, unit)
            cells = []
            for mine in ((BILATERAL,), (PPCA,), set(models) - {BILATERAL, PPCA}):
                entry = next(entry for entry in order if entry.model in mine)
                named = entry if len(mine) == 1 else entry._replace(setting=f"{entry.model}, {entry.setting}")
                text = named.text(unit)
                cells.append(f"**{text}**" if entry == order[0] else text)
            rows.append([job, data, unit.words, *cells])
    return table(["job", "data", "measured by", BILATERAL, PPCA, "the best of the others"], rows)


def by_set(job: str, sets: dict[str, dict[str, Settings]]) -> str:
    """model × set, each in its best setting, the winner in bold."""
    unit = UNITS[job]
    columns = {data: {entry.model: entry for entry in entries(models, unit)} for data, models in sets.items()}
    names = list(next(iter(sets.values())))
    rows = []
    for model in names:
        cells = []
        for found in columns.values():
            text = found[model].text(unit)
            cells.append(f"**{text}**" if found[model] == best(list(found.values()), unit)[0] else text)
        rows.append([model, *cells])
    return table([unit.words, *columns], rows)


def densities(sets: dict[str, dict[str, Settings]]) -> str:
    """Every setting of the density job, with its parameters and the gap between seen and unseen samples."""
    unit = UNITS["density"]
    rows = []
    for data, models in sets.items():
        winner = entries(models, unit)[0]
        for model, settings in models.items():
            for setting, figures in settings.items():
                held_out = figures[unit.figure]
                text = f"{written(mean(held_out), 0)} ± {written(stdev(held_out), 0)}"
                text = f"**{text}**" if (model, setting) == winner[:2] else text
                gap = f"{written(mean(figures['gap']), 0)} ± {written(stdev(figures['gap']), 0)}"
                rows.append([data, model, setting, f"{int(mean(figures['parameters'])):,}", text, gap])
    return table(["data", "model", "rank", "parameters", "unseen", "seen − unseen"], rows)


def tables(figures: Figures) -> dict[str, str]:
    made = {job: by_set(job, sets) for job, sets in figures.items() if job != "density"}
    if "density" in figures:
        made["density"] = densities(figures["density"])
    if set(figures) == set(UNITS):
        made["overview"] = overview({job: figures[job] for job in UNITS})
    return made


def as_json(figures: Figures) -> str:
    """A line per setting, so that one can read it and see what has changed."""
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([^\]]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text) + "\n"


def write(page: Path, figures: Figures) -> None:
    """Replaces the tables of the page."""
    made = tables(figures)

    def renewed(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- table: {name} -->\n{made.get(name, found[2])}<!-- end -->"

    page.write_text(TABLE.sub(renewed, page.read_text()))


def numbers(text: str) -> Iterator[tuple[float, float]]:
    """The figures of a row with their spreads, at least a unit of the last digit. What is in brackets is a setting."""
    for value, spread in VALUE.findall(re.sub(r"\([^)]*\)", "", text)):
        if not any(c.isdigit() for c in value):
            continue
        plain = value.replace("−", "-").replace(",", "").rstrip(".")
        digits = len(plain.partition(".")[2])
        yield float(plain), max(float(spread or 0), 10.0**-digits)


def differences(page: str, figures: Figures) -> list[str]:
    """A line for every figure of the page that is further from what was measured than its spread."""
    wrong: list[str] = []
    made: dict[str, Any] = tables(figures)
    for name, old in TABLE.findall(page):
        if name not in made:
            continue
        before, now = old.splitlines(), made[name].splitlines()
        if len(before) != len(now):
            wrong.append(f"{name}: {len(before)} lines, and {len(now)} are measured")
        for line, fresh in zip(before, now, strict=False):
            pairs = zip(numbers(line), numbers(fresh), strict=False)
            if any(abs(a - b) > spread * (1 + 1e-9) for (a, spread), (b, _) in pairs):
                wrong.append(f"{name}: {line}\n  measured: {fresh}")
    return wrong


def unfounded(text: str, page: str) -> list[str]:
    """Figures that a text quotes and no table of the page has."""
    known = {value for _, body in TABLE.findall(page) for value in re.findall(r"−?\d[\d,]*(?:\.\d+)?", body)}
    # Neither code nor how many samples there are.
    prose = re.sub(r"```.*?```|`[^`]*`|<!-- data -->.*?<!-- end -->", "", TABLE.sub("", text), flags=re.DOTALL)
    return [f"{number} stands in no table" for number in QUOTED.findall(prose) if number not in known]
