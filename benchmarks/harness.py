"""Timing in turns, medians and spreads, and the peak memory of one contestant in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits

OURS = "matmix"


@dataclass
class Contestant:
    """One who is measured. `sample` runs the work once and returns the seconds that count."""

    name: str
    sample: Callable[[], float]
    # What came out of it, asked for once and after the timing: {"log-likelihood": …}.
    quality: Callable[[], dict[str, float]] = dict
    note: str = ""
    # Too slow to warm up: the first run counts.
    slow: bool = False


@dataclass
class Case:
    """One row of a table: contestants on the same data."""

    name: str
    title: str
    # Makes the data and the contestants; given the names it needs, or None for all.
    build: Callable[[set[str] | None], list[Contestant]]
    contestants: list[str]
    # Flops that the definition of the work needs, if it is a row about flops.
    useful_flops: float | None = None
    precision: str = "f32"
    threads: int | None = None
    # How far the first quality of a peer may be from ours, relative to it, and still count as the same.
    tolerance: float = 1e-5
    # Which way is better, for results that may differ: +1 larger, −1 smaller, 0 must agree.
    better: int = 0
    memory: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


def timed(work: Callable[[], Any]) -> float:
    """The seconds one run takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def per_iteration(run: Callable[[int], Any], few: int, many: int) -> float:
    """What one iteration takes: the difference of two runs, so that whatever is done once does not count. It can be
    negative where an iteration is shorter than the noise of the machine."""
    short = timed(lambda: run(few))
    return (timed(lambda: run(many)) - short) / (many - few)


@contextmanager
def threads(count: int) -> Any:
    """BLAS and PyTorch on so many threads; matmix and ppca_rs are told by argument and environment."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else None
    if torch is not None:
        torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)


def measure(case: Case, all_threads: int, repeats: int, budget: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Times the contestants of a case in turns, the order reversed every time; a slow one has fewer turns."""
    count = case.threads or all_threads
    result: dict[str, Any] = {
        "name": case.name,
        "title": case.title,
        "precision": case.precision,
        "threads": count,
        "useful_flops": case.useful_flops,
        "better": case.better,
        "tolerance": case.tolerance,
        **case.facts,
        "contestants": {},
    }
    with threads(count):
        contestants = case.build(None)
        seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
        spent = dict.fromkeys(seconds, 0.0)
        for contestant in contestants:
            if not contestant.slow:
                contestant.sample()
        for turn in range(repeats):
            for contestant in contestants if turn % 2 == 0 else contestants[::-1]:
                if turn > 0 and spent[contestant.name] > budget:
                    continue
                gc.collect()
                begun = time.perf_counter()
                seconds[contestant.name].append(contestant.sample())
                spent[contestant.name] += time.perf_counter() - begun
        for contestant in contestants:
            times = seconds[contestant.name]
            if statistics.median(times) <= 0:
                result["contestants"][contestant.name] = {"missing": "too short to be measured"}
                continue
            result["contestants"][contestant.name] = {
                "seconds": statistics.median(times),
                "fastest": min(times),
                "slowest": max(times),
                "repeats": len(times),
                "quality": contestant.quality(),
                "note": contestant.note,
            }
            say(f"    {contestant.name}: {statistics.median(times):.4g} s ({len(times)} times)")
    for name in case.contestants:
        if name not in result["contestants"]:
            result["contestants"][name] = {"missing": "did not install"}
    del contestants
    gc.collect()
    return result


def peak_memory(arguments: list[str], case: str, contestant: str, note: str) -> int | None:
    """The bytes a contestant needs beyond the data, measured in a process of its own; None if it cannot be said."""
    command = [sys.executable, "-m", "benchmarks", *arguments, "--memory-of", case, contestant, note]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1])["bytes"] if done.returncode == 0 and lines else None


def memory_of(case: Case, contestant: str, all_threads: int) -> int:
    """Runs one contestant once and returns how much the process grew at its largest."""
    with threads(case.threads or all_threads):
        chosen = [c for c in case.build({contestant}) if c.name == contestant]
        if not chosen:
            raise SystemExit(f"{contestant} is not there")
        gc.collect()
        before = _reset_peak()
        chosen[0].sample()
        return max(_status("VmHWM") - before, 0)


def _reset_peak() -> int:
    """Gives back what is free, forgets the largest size so far (Linux) and returns the size now."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _status(key: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)
