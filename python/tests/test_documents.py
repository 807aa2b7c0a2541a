"""What the documents name is there: files, folders, what is in a file, tests, pages that are linked to."""

import fnmatch
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
# Where a path may begin: the library is what is mostly spoken of.
FOLDERS = [
    ROOT / folder
    for folder in ("", "crates/matmix", "crates/matmix/src", "crates/matmix-cli", "python", "python/matmix")
]
QUOTED = re.compile(r"`([^`\n]+)`")
# Whatever ends like this is ours, and no data of somebody who reads.
ENDING = r"\.(?:rs|py|pyi|md|rst|sh|js|cu|css|j2|toml|yml|lock|cff|txt)"
PATH = re.compile(rf"(?:[\w.*-]+/)+(?:[\w.*-]+{ENDING})?")
IN_A_FILE = re.compile(rf"([\w./-]+{ENDING}): ([\w:., ]+)")
TEST = re.compile(r"[a-z0-9]+(_[a-z0-9]+){3,}")
FILE = re.compile(rf"[\w*][\w.*-]*{ENDING}")
# In a drawing nothing is quoted: a name is what has the form of a path, of a file, or of two words (`EmPass`).
DRAWN = re.compile(r"[\w*-][\w.*/:-]*")
TWO_WORDS = re.compile(r"[A-Z][a-z]+(?:::\w+|[A-Z][a-z]\w*)")
# A type, something of a type (`Density::posterior_variance()`), or a function (`core_len()`, of whatever is called).
TYPE = re.compile(r"([A-Z][a-z]\w*)(?:::(\w+))?(?:\(\w*\))?(?:\[\w\])?")
FUNCTION = re.compile(r"(?:\w+\.)?([a-z]\w*)\(\w*\)")
# Where all that looks like a name of ours is one.
OF_THE_SOURCES = ("ARCHITECTURE.md", "docs/maths.md", "docs/performance.md")
LINK = re.compile(r"\]\(([^)#:\s]+\.(?:md|py))(#[^)]*)?\)")


def found(path):
    """The first file or folder of this name, or pattern of names."""
    return next((file for folder in FOLDERS for file in folder.glob(path)), None)


class Names:
    """What the sources declare."""

    def __init__(self, root):
        rust, ours = [*(root / "crates").rglob("*.rs")], [*(root / "python").rglob("*.py")]
        self.texts = [path.read_text(encoding="utf-8") for path in [*rust, *(root / "python/src").glob("*.rs"), *ours]]
        folders = (root / name for name in (".github", "benchmarks", "crates", "docs", "python", "scripts", "tests"))
        self.files = {
            path.name for path in [*root.iterdir(), *(path for folder in folders for path in folder.rglob("*"))]
        }

    def function(self, name):
        return any(re.search(rf"\b(fn|def) {name}\b", text) for text in self.texts)

    def of_type(self, name, member):
        """Whether there is such a type, and something of that name where it is declared or given methods."""
        declared = re.compile(rf"\b(struct|enum|trait|type|class) {name}\b")
        extended = re.compile(rf"\bimpl\b[^{{;]*\b{name}\b")
        there = [text for text in self.texts if declared.search(text)]
        if member is None or not there:
            return bool(there)
        there += [text for text in self.texts if extended.search(text)]
        return any(re.search(rf"(\bfn {member}\b|^ +(pub )?{member}\b)", text, re.MULTILINE) for text in there)

    def missing(self, quoted):
        """What of a quoted name is not there, if it is a name."""
        if FILE.fullmatch(quoted):
            return None if fnmatch.filter(self.files, quoted) else f"file {quoted}"
        if kind := TYPE.fullmatch(quoted):
            return None if self.of_type(*kind.groups()) else f"type or member {quoted}"
        if called := FUNCTION.fullmatch(quoted):
            return None if self.function(called[1]) else f"function {quoted}"
        return None


def drawn(line):
    """What a line of a drawing, or of the tree of files, names."""
    for name in (word.rstrip(".:-") for word in DRAWN.findall(line)):
        if any(form.fullmatch(name) for form in (PATH, FILE, TWO_WORDS)):
            yield name


def missing(document, sources):
    """A line for everything that a document names and that is not there."""
    fence = None
    ours = document.relative_to(ROOT).as_posix() in OF_THE_SOURCES
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        at = f"{document.relative_to(ROOT)}:{number}"
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
            continue
        if fence is not None:
            for name in drawn(line) if ours and fence == "text" else ():
                absent = name if PATH.fullmatch(name) and found(name) is None else sources.missing(name)
                if absent:
                    yield f"{at}: there is no {absent}"
            continue
        for target, _ in LINK.findall(line):
            if not (document.parent / target).exists():
                yield f"{at}: there is no page {target}"
        for quoted in QUOTED.findall(line):
            inside = IN_A_FILE.fullmatch(quoted)
            path = inside[1] if inside else quoted
            if inside or PATH.fullmatch(path):
                file = found(path)
                if file is None:
                    yield f"{at}: there is no {path}"
                elif inside:
                    text = file.read_text(encoding="utf-8")
                    names = re.findall(r"\w+", inside[2])
                    yield from (f"{at}: {path} has no {n}" for n in names if not re.search(rf"\b{n}\b", text))
            elif FILE.fullmatch(quoted):
                if absent := sources.missing(quoted):
                    yield f"{at}: there is no {absent}"
            elif TEST.fullmatch(quoted):
                if not sources.function(quoted):
                    yield f"{at}: there is no function {quoted}"
            elif ours and (absent := sources.missing(quoted)):
                yield f"{at}: there is no {absent}"


@pytest.fixture(scope="module")
def sources():
    return Names(ROOT)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.relative_to(ROOT).as_posix())
def test_what_a_document_names_is_there(document, sources):
    assert not list(missing(document, sources))


def test_what_is_not_there_is_found(tmp_path, monkeypatch):
    """The test itself: a document with one mistake of each kind, and one of none."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "ARCHITECTURE.md"
    page.write_text(
        "`fit/engine.rs`, `fit/maximize.rs`, `fit/`, `pass/stack/`\n"
        "`fit/maximize.rs: maximize`, `pass/em.rs: EmSums, Nobody`\n"
        "[a page](nowhere.md), [here](ARCHITECTURE.md#place) and `no_such_test_is_there`, `random_state`\n"
        "`Shape`, `Shape::area()`, `Shape::Round`, `side()`, `shape.rs`, `make lint`, `K`\n"
        "`Form`, `Shape::volume()`, `Shape::Square`, `height()`, `form.rs`\n"
        "`cuda/kernels.cu`, `cuda/cores.cu`, `kernels.cu`, `python/nothing.toml`\n"
        "```text\nfit/loop.rs: the one loop ──▶ ShapePass\n  │ Shape::area  Shape::edge, shape.rs sh*e.rs, or form.rs\n"
        "fit/  fit/max*.rs fit/min*.rs; Shape and/or `walls/` docs/choosing.md.\n```\n"
        "```sh\nmatmix fit/nothing.rs\n```\n"
    )
    (tmp_path / "crates").mkdir()
    (tmp_path / "crates/kernels.cu").touch()
    (tmp_path / "crates/shape.rs").write_text(
        "enum Shape {\n    Round,\n}\nimpl Shape {\n    fn area(&self) {}\n}\nfn side() {}\n"
    )
    assert [line.removeprefix("ARCHITECTURE.md:") for line in missing(page, Names(tmp_path))] == [
        "1: there is no fit/engine.rs",
        "1: there is no pass/stack/",
        "2: pass/em.rs has no Nobody",
        "3: there is no page nowhere.md",
        "3: there is no function no_such_test_is_there",
        "5: there is no type or member Form",
        "5: there is no type or member Shape::volume()",
        "5: there is no type or member Shape::Square",
        "5: there is no function height()",
        "5: there is no file form.rs",
        "6: there is no cuda/cores.cu",
        "6: there is no python/nothing.toml",
        "8: there is no fit/loop.rs",
        "8: there is no type or member ShapePass",
        "9: there is no type or member Shape::edge",
        "9: there is no file form.rs",
        "10: there is no fit/min*.rs",
        "10: there is no walls/",
    ]


def test_the_tree_of_the_architecture_is_there():
    """Lines of the first block: what is indented lies in the library."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = text.split("```text\n", 1)[1].split("```", 1)[0].splitlines()
    places = [(ROOT / "crates/matmix" if line.startswith(" ") else ROOT) / line.split()[0] for line in lines]
    assert len(places) > 20 and not [str(place.relative_to(ROOT)) for place in places if not place.exists()]


# A table says in the first cell of a row what is there, and may speak of more in the second.
PARTS = (lambda row: row.split("|")[1], lambda row: row)


def out_of_step(module):
    """What the table of contents of a folder names and is not there, and what is there and not named."""
    folder = module.parent
    files = {path.stem if path.suffix == ".rs" else path.name for path in folder.iterdir() if path.is_file()} - {"mod"}
    files |= {path.parent.name for path in folder.glob("*/mod.rs")}
    rows = [line for line in module.read_text(encoding="utf-8").splitlines() if line.startswith("//! | ")]
    first, named = ({name.removeprefix("mod@") for row in rows for name in QUOTED.findall(part(row))} for part in PARTS)
    at = module.relative_to(ROOT)
    gone = {name for name in first - files if not (folder / name).exists()}
    yield from (f"{at}: there is no {name}" for name in sorted(gone))
    yield from (f"{at}: {name} is not in its table" for name in sorted(files - named))


MODULES = sorted((ROOT / "crates").glob("*/src/**/mod.rs"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.parent.relative_to(ROOT).as_posix())
def test_a_table_of_contents_lists_every_file(module):
    assert not list(out_of_step(module))


def test_a_file_that_is_not_listed_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "inner").mkdir()
    for name in ("mod.rs", "there.rs", "beside.rs", "page.html", "forgotten.rs", "kernels.cu", "inner/mod.rs"):
        (tmp_path / name).touch()
    (tmp_path / "mod.rs").write_text(
        "//! | file | what |\n//! |---|---|\n//! | [`there`], `page.html`, `gone` | these, with `beside` |\n"
    )
    assert list(out_of_step(tmp_path / "mod.rs")) == [
        "mod.rs: there is no gone",
        "mod.rs: forgotten is not in its table",
        "mod.rs: inner is not in its table",
        "mod.rs: kernels.cu is not in its table",
    ]


def test_figures_of_the_guide_are_those_that_were_measured(monkeypatch):
    """The tables of docs/choosing.md come from the figures that are kept, and what is quoted stands there."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.guide import page

    guide = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    kept = json.loads((ROOT / "docs" / "benchmarks" / "choosing.json").read_text(encoding="utf-8"))
    made = page.tables(kept)
    found = dict(page.TABLE.findall(guide))
    assert found == made and len(made) == len(kept) + 1
    assert not page.unfounded(guide, guide)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quoted = re.search(r"<!-- figures of docs/choosing.md -->(.*?)<!-- end -->", readme, re.DOTALL)
    assert quoted and page.QUOTED.search(quoted[1]) and not page.unfounded(quoted[1], guide)


def test_a_figure_that_is_not_measured_is_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.guide import page

    guide = "<!-- table: density -->\n| a | **1,234 ± 5 (4×4)** | 17.5 ± 0.3 |\n<!-- end -->\n"
    assert not page.unfounded("1,234 and 17.5 for 60 images of 28×28, as `x = 99.9` says", guide)
    assert page.unfounded("12.5 of 345, or 46 %", guide) == [f"{x} stands in no table" for x in ("12.5", "345", "46")]
    figures = {"clustering": {"set": {"k-means": {"10 starts": {"adjusted Rand": [0.5, 0.52]}}}}}
    for value, right in (("0.51 ± 0.01", True), ("0.52 ± 0.01", True), ("0.55 ± 0.01", False)):
        row = f"| adjusted Rand index | set |\n| --- | --- |\n| k-means | {value} (10 starts) |\n"
        assert (not page.differences(f"<!-- table: clustering -->\n{row}<!-- end -->", figures)) == right
