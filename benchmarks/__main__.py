"""The command: `python -m benchmarks`, or `make bench`, which sets everything up first."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--only", action="append", metavar="ROW", help="rows whose name begins so; may be repeated")
    parser.add_argument("--list", action="store_true", help="the names of the rows")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for everybody; all cores by default")
    parser.add_argument("--repeats", type=int, help="turns of each contestant")
    parser.add_argument("--name", help="the name of the JSON; by default that of the processor")
    parser.add_argument("--docs", type=Path, default=None, help="where the page, the JSON and the picture go")
    parser.add_argument("--page", metavar="JSON", type=Path, help="only writes the page and picture from a JSON")
    parser.add_argument("--memory-of", nargs=3, metavar=("ROW", "CONTESTANT", "NOTE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    # Before anything starts a thread pool.
    os.environ["RAYON_NUM_THREADS"] = str(arguments.threads)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    docs = arguments.docs or (ROOT / "out" / "bench-quick" if arguments.quick or arguments.only else ROOT / "docs")

    from . import report

    if arguments.page:
        report.write(json.loads(arguments.page.read_text()), docs)
        return

    from . import em_step, harness, iteration, kernels, likelihood, low_rank, machine, mixture_ppca, recognition

    quick, threads = arguments.quick, arguments.threads
    families = {
        "iteration": iteration.cases(quick, threads),
        "likelihood": likelihood.cases(quick, threads),
        "low_rank": low_rank.cases(quick, threads),
        "mixture_ppca": mixture_ppca.cases(quick, threads),
        "recognition": recognition.cases(quick, threads),
        "growth": iteration.growth(quick, threads),
    }
    cases = [case for family in families.values() for case in family]
    if arguments.only:
        cases = [case for case in cases if any(case.name.startswith(prefix) for prefix in arguments.only)]
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return
    if arguments.memory_of:
        name, contestant, note = arguments.memory_of
        em_step.chosen_before = note or None
        case = next(case for case in cases if case.name == name)
        print(json.dumps({"bytes": harness.memory_of(case, contestant, threads)}))
        return

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    begun = time.time()
    repeats = arguments.repeats or (2 if quick else 5)
    budget = 3.0 if quick else 15.0
    description = machine.describe(threads)
    results = {
        "quick": quick,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": description,
        "yardstick": machine.yardstick(threads, quick),
        "kernels": kernels.read(ROOT),
        "cases": [],
    }
    for family, members in families.items():
        for case in (case for case in members if case in cases):
            say(f"  {case.name}: {case.title}")
            result = {"family": family, **harness.measure(case, threads, repeats, budget, say)}
            if case.memory:
                options = ["--threads", str(threads), *(["--quick"] if quick else [])]
                for name, measured in result["contestants"].items():
                    if "seconds" in measured:
                        measured["memory"] = harness.peak_memory(options, case.name, name, measured["note"])
            results["cases"].append(result)
            # A run that is broken off has not been for nothing: --page makes a page of it.
            kept = ROOT / "out" / "benchmarks.json"
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(results))
    # Again at the end: the better of the two is what we are held against.
    for key, value in machine.yardstick(threads, quick).items():
        results["yardstick"][key] = max(results["yardstick"][key], value)
    results["minutes"] = round((time.time() - begun) / 60, 1)
    name = arguments.name or re.sub(r"[^a-z0-9]+", "-", f"{description['cpu']} {threads} threads".lower()).strip("-")
    path = report.write(results, docs, name)
    say(f"  {results['minutes']} minutes; {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
