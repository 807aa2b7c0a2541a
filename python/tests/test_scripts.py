"""What `make lint` asks beside the compilers finds what it is there for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")


def library(root, **files):
    """A library of two folders, and of what is given; where these have the same name, of that."""
    written = {
        "lib.rs": "mod above;\nmod below;\nmod beside;\npub use above::{Roof, walls::Wall};\npub use below::Floor;\n",
        "below/mod.rs": "pub mod cellar;\npub struct Floor;\n",
        "below/cellar.rs": "use super::Floor;\n",
        "above/mod.rs": "use crate::Floor;\nuse crate::{below::cellar, error::{Roof, Error}};\n",
    }
    for name, text in (written | {name.replace("_", "/") + ".rs": text for name, text in files.items()}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def test_folders_that_know_each_other_in_one_direction_are_fine(tmp_path):
    import folders

    beside = r"""
// use crate::Roof;
const A: &str = "use crate::Roof; //";
fn f<'a>(c: &'a char) -> bool { *c == '"' || *c == '\'' }
#[cfg(test)]
mod tests {
    use crate::Roof;
    fn f() { g("}") }
}
enum E {
    #[cfg(test)]
    A(crate::Roof),
    B,
}
"""
    above = "use crate::beside;\nuse crate::{below::cellar, error::{Roof, Error}};\n"
    assert folders.cycle(library(tmp_path, beside=beside, above_mod=above)) is None
    assert folders.edges(tmp_path) == {
        "above": {"beside": ["above/mod.rs"], "below": ["above/mod.rs"], "error": ["above/mod.rs"]}
    }


@pytest.mark.parametrize(
    "knows",
    [
        "use crate::above::Roof;",
        "use crate::Roof;",
        "use crate::{Floor, Wall};",
        "use super::super::above;",
        "fn f() -> bool { 'x' == crate::above::LETTER }",
        "#[cfg(test)]\nconst A: bool = true;\nuse crate::Roof;",
    ],
)
def test_folders_that_know_each_other_are_named(tmp_path, knows):
    import folders

    assert folders.cycle(library(tmp_path, below_cellar=knows)).splitlines()[1:] in (
        ["  above knows below: above/mod.rs", "  below knows above: below/cellar.rs"],
        ["  below knows above: below/cellar.rs", "  above knows below: above/mod.rs"],
    )


def test_crates_with_other_features_are_named():
    import features

    one = {"a v1": {"std"}, "b v1": {"std", ""}, "c v1": {"std"}, "d v1": {""}}
    other = {"a v1": {"std"}, "b v1": {"std"}, "c v1": {"default,std"}, "e v1": {""}}
    assert features.differences(one, other) == ["b v1: none and std; std", "c v1: std; default,std"]


def test_no_script_writes_the_folder_out_that_cargo_builds_into():
    folders = ("scripts", "python/scripts", "benchmarks", "docs/site", "tests")
    scripts = [path for folder in folders for ending in ("py", "sh") for path in (ROOT / folder).rglob(f"*.{ending}")]
    written_out = re.compile(r"(?<![$\w])target/\w|\"target\"")
    found = [path for path in (ROOT / "Makefile", *scripts) if written_out.search(path.read_text("utf-8"))]
    assert len(scripts) > 20 and not found, "scripts/target.sh prints where Cargo builds"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Cargo")
def test_the_folder_that_cargo_builds_into_is_found(tmp_path):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}
    command = ["sh", str(ROOT / "scripts" / "target.sh")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert found.stdout == f"{tmp_path}\n"
