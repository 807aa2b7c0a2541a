"""What criterion measured per pass in Rust (`cargo bench`), read from the files it leaves."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

# Older files are of another run, and perhaps of another version.
SECONDS_OLD = 3600


def read(root: Path) -> list[dict[str, Any]]:
    """Name, seconds with their confidence interval and multiply-adds of every benchmark of the kernels."""
    target = subprocess.run(
        ["sh", str(root / "scripts" / "target.sh")], capture_output=True, text=True, check=True
    ).stdout
    folder = Path(target.strip()) / "criterion"
    found = []
    for file in sorted(folder.glob("**/new/estimates.json")):
        if time.time() - file.stat().st_mtime > SECONDS_OLD:
            continue
        about = json.loads((file.parent / "benchmark.json").read_text())
        median = json.loads(file.read_text())["median"]
        throughput = about.get("throughput") or {}
        found.append(
            {
                "name": about["full_id"],
                "seconds": median["point_estimate"] * 1e-9,
                "fastest": median["confidence_interval"]["lower_bound"] * 1e-9,
                "slowest": median["confidence_interval"]["upper_bound"] * 1e-9,
                "multiply_adds": throughput.get("Elements"),
            }
        )
    return found
