"""A set larger than the memory it may use: many `.npy` files, fitted by the program with --memory.

Makes the set in a temporary folder (6 GB by default: mind the disk), fits it in four ways, and removes it:

- the program, reading piece by piece within --memory, from the page cache;
- the program, every file mapped;
- this package, every file mapped;
- this package, everything loaded into memory first.

All make the same passes over the same parts, and end with the same bits. Each runs in a process of its own; the peak of
its resident memory is what the kernel says about that process. An iteration's time is what twice as many take longer.

    python python/benchmarks/large.py [--gigabytes 6] [--memory 1GB] [--program matmix]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

SIDE, COMPONENTS, RANK = 64, 5, 4


def make(folder: str, per_file: int, files: int) -> None:
    """Samples of a few planted patterns and noise, in bytes."""
    rng = np.random.default_rng(0)
    patterns = rng.uniform(40, 200, (COMPONENTS, SIDE, SIDE))
    for number in range(files):
        part = np.lib.format.open_memmap(Path(folder, f"part{number:04}.npy"), "w+", np.uint8, (per_file, SIDE, SIDE))
        for start in range(0, per_file, 4096):
            size = min(4096, per_file - start)
            rows = rng.normal(size=(size, SIDE, 2)) @ rng.normal(size=(2, SIDE)) * 6
            noise = rng.normal(0, 4, (size, SIDE, SIDE))
            part[start : start + size] = np.clip(patterns[rng.integers(COMPONENTS, size=size)] + rows + noise, 0, 255)
        part.flush()


def program(arguments: argparse.Namespace, folder: str) -> list[str]:
    """The command of the program, but for how many iterations it makes."""
    options = ["-k", str(COMPONENTS), "-r", str(RANK), "--seed", "0", "--tol", "0", "--quiet", "--json"]
    return [arguments.program, "fit", str(Path(folder, "*.npy")), "-o", str(Path(folder, "model.mm")), *options]


def fit_here(pattern: str, iterations: int, loaded: bool, path: str) -> dict[str, float]:
    """What a child of this script does: the fit, and how long it took once the samples were there."""
    import matmix

    parts = matmix.Parts(pattern)
    if loaded:
        parts = matmix.Parts([np.array(samples) for _, samples in parts.read()])
    warnings.simplefilter("ignore")
    model = matmix.MixB2DPPCA(COMPONENTS, rank=RANK, random_state=0, max_iter=iterations, tol=0).fit(parts)
    model.save(path)
    return {"seconds": model.history_.seconds}


def parameters(path: Path) -> bytes:
    """The numbers of a model file: whatever follows its header."""
    file = path.read_bytes()
    return file[8 + int.from_bytes(file[:8], "little") :]


def measured(command: list[str]) -> tuple[str, float, float]:
    """Runs a command: its output, its seconds, and the peak of its resident memory in GB."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    output = child.stdout.read()
    # wait4 tells about this child alone; what the kernel calls ru_maxrss is in units of 1,024 bytes.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return output, time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--program", default=os.environ.get("MATMIX_BIN", "matmix"))
    parser.add_argument("--folder", help="where the set is made for the time being; the system's folder by default")
    parser.add_argument("--child", nargs=2, metavar=("PATTERN", "KIND"), help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        pattern, kind = arguments.child
        print(json.dumps(fit_here(pattern, arguments.iterations, kind == "loaded", arguments.model)))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        per_file = max(1, int(arguments.gigabytes * 1e9 / arguments.files / SIDE**2))
        count = per_file * arguments.files
        # In a process of its own: the kernel counts what a parent held before its child began.
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, per_file, arguments.files))
        maker.start()
        maker.join()
        if maker.exitcode != 0:
            raise SystemExit("the set could not be made")
        pattern = str(Path(folder, "*.npy"))
        size = count * SIDE**2 / 1e9
        print(f"{count:,} × {SIDE}×{SIDE} bytes, {size:.1f} GB in {arguments.files} files; K = {COMPONENTS}, cores")
        print(f"{RANK}×{RANK}, {arguments.iterations} iterations\n")
        print("| how | seconds per iteration | whole run, s | peak resident memory, GB |")
        print("|---|---|---|---|")
        bits = set()
        script = [sys.executable, __file__, "--child", pattern]
        for name, command in [
            (f"the program, --memory {arguments.memory}", [*program(arguments, folder), "--memory", arguments.memory]),
            ("the program, mapped", program(arguments, folder)),
            ("Python, mapped", [*script, "mapped", "--model", str(Path(folder, "model.mm"))]),
            ("Python, loaded into memory", [*script, "loaded", "--model", str(Path(folder, "model.mm"))]),
        ]:
            flag = "--iterations" if command[0] == sys.executable else "--max-iter"
            once = measured([*command, flag, str(arguments.iterations)])
            twice = measured([*command, flag, str(2 * arguments.iterations)])
            seconds = [json.loads(output)["seconds"] for output, _, _ in (once, twice)]
            each = (seconds[1] - seconds[0]) / arguments.iterations
            bits.add(parameters(Path(folder, "model.mm")))
            print(f"| {name} | {each:.2f} | {once[1]:.1f} | {max(once[2], twice[2]):.2f} |", flush=True)
        assert len(bits) == 1, "the same parts must give the same bits"


if __name__ == "__main__":
    main()
