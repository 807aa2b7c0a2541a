"""The program and the Python package are built of the same: names what is in both with other features.

    python3 scripts/features.py

A crate with other features is another one to Cargo, and so is everything that depends on it: the library would be
compiled once for `make demo` and once more for `pip install .`. What PyO3 or numpy turn on,
crates/matmix-cli/Cargo.toml turns on as well.
"""

import subprocess
import sys
from collections import defaultdict

BOTH = ("matmix-cli", "matmix-python")


def features(package: str) -> dict[str, set[str]]:
    """The features of every crate that a package is built of: of one, two sets if a macro needs others."""
    listing = ["cargo", "tree", "-p", package, "-e", "normal,build", "--prefix", "none", "-f", "{p}|{f}"]
    found = defaultdict(set)
    for line in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines():
        crate, _, turned_on = line.removesuffix(" (*)").partition("|")
        found[crate].add(turned_on)
    return found


def differences(one: dict[str, set[str]], other: dict[str, set[str]]) -> list[str]:
    """A line for each crate in both whose features are not the same."""

    def listed(sets: set[str]) -> str:
        return " and ".join(sorted(turned_on or "none" for turned_on in sets))

    shared = sorted(one.keys() & other.keys())
    return [f"{crate}: {listed(one[crate])}; {listed(other[crate])}" for crate in shared if one[crate] != other[crate]]


def main() -> str | None:
    one, other = (features(package) for package in BOTH)
    if "matmix" not in {crate.split()[0] for crate in one.keys() & other.keys()}:
        return "the library is not in both: has `cargo tree` another layout now?"
    found = differences(one, other)
    return "\n  ".join([f"features of {BOTH[0]} and of {BOTH[1]} that differ:", *found]) if found else None


if __name__ == "__main__":
    sys.exit(main())
