"""No cycles between the folders of the library: names one there is, with the files that make it.

    python3 scripts/folders.py

A folder, or a file beside the folders, knows another one if its code names something there: `crate::data::Samples`, or
`crate::Samples`, which lib.rs takes from there. Tests may know everything.
"""

import re
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "crates/matmix/src"
# Comments, strings (raw ones, too) and characters; a lifetime does not begin one.
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|r(#+)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\.[^'\n]*|[^'\\\n])'", re.DOTALL)
TEST = re.compile(r"#\[cfg\((?:test|all\(test\b[^]]*)\)\]")
TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*mod (\w+);")
ITEM = re.compile(r"\b(?:fn|mod|impl|struct|enum|trait|use|const|static|type)\b")
PATH = re.compile(r"\b(crate|super(?:\s*::\s*super)*)\s*::\s*(\w+|\{)")
PUBLIC = re.compile(r"\bpub use (\w+)::([^;]+);")


def end(text: str, at: int) -> int:
    """Where what begins here ends: at a semicolon or the brace that closes; a variant or an arm at its comma."""
    depth = 0
    for place in range(at, len(text)):
        letter = text[place]
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and (letter in ";}" or (letter == "," and not ITEM.search(text, at, place))):
            return place + 1
    return len(text)


def code(text: str) -> str:
    """The text without comments, strings and what is compiled for tests alone."""
    text = NO_CODE.sub(" ", text)
    while test := TEST.search(text):
        text = text[: test.start()] + text[end(text, test.end()) :]
    return text


def first_names(text: str, at: int) -> list[str]:
    """What a path goes on with: one name, or the first of each path in a group."""
    if text[at] != "{":
        return [re.compile(r"\w+").match(text, at)[0]]
    group = text[at + 1 : end(text, at) - 1]
    while (flat := re.sub(r"\{[^{}]*\}", "", group)) != group:
        group = flat
    return re.findall(r"(?:^|,)\s*(\w+)", group)


def known(text: str, depth: int) -> set[str]:
    """What the code of a module, so deep below the root of the crate, names in the root."""
    paths = (path for path in PATH.finditer(text) if path[1] == "crate" or path[1].count("super") == depth)
    return {name for path in paths for name in first_names(text, path.start(2))}


def edges(sources: Path) -> dict[str, dict[str, list[str]]]:
    """For every folder (and file beside them), what it knows, and in which files."""
    files = {path: path.read_text("utf-8") for path in sorted(sources.rglob("*.rs"))}
    tests = set()
    for path, text in files.items():
        below = path.parent if path.name in ("mod.rs", "lib.rs") else path.with_suffix("")
        tests |= {below / f"{name}.rs" for name in TEST_FILE.findall(text)}
    root = code(files.pop(sources / "lib.rs"))
    home = {name: folder for folder, public in PUBLIC.findall(root) for name in re.findall(r"\w+", public)}
    found = defaultdict(lambda: defaultdict(list))
    for path, text in files.items():
        module = path.relative_to(sources).with_suffix("").parts
        depth = len(module) - (module[-1] == "mod")
        names = known(code(text), depth) if path not in tests else set()
        for other in {home.get(name, name) for name in names} - {module[0]}:
            found[module[0]][other].append(path.relative_to(sources).as_posix())
    return found


def cycle(sources: Path) -> str | None:
    found = edges(sources)
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        # Each is known by the next one.
        around = error.args[1]
        steps = [f"{one} knows {other}: {', '.join(found[one][other])}" for other, one in pairwise(around)]
        return "\n  ".join(["a cycle between folders of the library:", *steps])
    return None if found else f"{sources}: nothing there knows anything"


if __name__ == "__main__":
    sys.exit(cycle(SOURCES))
