"""The program `matmix`: `python -m matmix`, and what the command of that name runs."""

import os
import sys

from ._matmix import program


def main() -> int:
    """Runs the program with the arguments of this process and gives its exit code."""
    # What the program needs Python for, it asks of the one it came with.
    os.environ.setdefault("MATMIX_PYTHON", sys.executable)
    return program(["matmix", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
