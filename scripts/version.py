"""Version, changelog and citation say the same; with a tag, the tag does, too.

    python3 scripts/version.py [v0.1.0]

While a version is being worked on the changelog begins with `Unreleased`; a release has its number and its day there.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def found(pattern: str, file: str) -> str:
    """What the pattern's group matches in a file of the repository."""
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        sys.exit(f"{file}: nothing looks like {pattern}")
    return match[1]


def problems(tag: str | None) -> list[str]:
    version = found(r'^version = "([^"]+)"', "Cargo.toml")
    said = {
        "CITATION.cff": found(r"^version: (\S+)$", "CITATION.cff"),
        "Cargo.toml (matmix)": found(r'^matmix = .*version = "([^"]+)"', "Cargo.toml"),
        "Cargo.toml (matmix-cli)": found(r'^matmix-cli = .*version = "([^"]+)"', "Cargo.toml"),
    }
    newest = found(r"^## (.+)$", "CHANGELOG.md")
    if tag is not None:
        said["the tag"] = tag.removeprefix("v")
        if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest):
            return [f"CHANGELOG.md begins with {newest!r}; a release needs '{version} (YYYY-MM-DD)'"]
    elif newest != "Unreleased" and not newest.startswith(f"{version} ("):
        return [f"CHANGELOG.md begins with {newest!r}; it should be 'Unreleased' or '{version} (YYYY-MM-DD)'"]
    return [f"{where} says {other}; the workspace has {version}" for where, other in said.items() if other != version]


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1] if len(sys.argv) > 1 else None)) or None)
