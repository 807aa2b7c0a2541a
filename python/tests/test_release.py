"""A release can be made: its parts agree, and its workflows are what their linter wants."""

import subprocess
import sys
from pathlib import Path

import matmix

ROOT = Path(__file__).resolve().parents[2]


def version(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts/version.py", *arguments], capture_output=True, text=True)


def test_version_changelog_and_citation_agree():
    done = version()
    assert done.returncode == 0, done.stderr
    assert f'version = "{matmix.__version__}"' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")


def test_a_tag_that_is_not_the_version_is_refused():
    done = version("v999.0.0")
    assert done.returncode == 1 and ("999.0.0" in done.stderr or "Unreleased" in done.stderr)


def test_the_workflows_are_clean():
    linter = Path(sys.executable).with_name("zizmor")
    done = subprocess.run(
        [linter, "--offline", "--no-progress", ROOT / ".github/workflows"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
