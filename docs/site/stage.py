"""Lays out the folder that Sphinx reads: the pages of docs/ and of the top folder, and the glue of docs/site/.

    python docs/site/stage.py FOLDER RUSTDOC

Pages stay plain Markdown, so that they read well on a code host; what a site wants differently is changed here, on the
way. A file that has not changed is left alone, so that Sphinx builds again only what has.
"""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
# Made inside the folder by others.
GENERATED = ("gallery/", "api/", "extra/")


def page(text: str) -> str:
    """A page as the site wants it: no lines that only rustdoc hides, and links that stay inside."""
    text = re.sub(r"^```rust,\w+\n(.*?)^```", shown, text, flags=re.MULTILINE | re.DOTALL)
    # One folder holds what were docs/ and the top folder; an example has a page where its source is.
    text = re.sub(r"\]\((?:docs/|\.\./(?=[A-Z]+\.md))", "](", text)
    return re.sub(r"\]\(((?:\.\./)?gallery/\w+)\.py\)", r"](\1.rst)", text)


def indices(text: str) -> str:
    """γ_nk and U^(d) with their indices below and above, outside of code and equations."""
    pieces = re.split(r"(^```.*?^```|`[^`\n]*`|\]\([^)]*\))", text, flags=re.MULTILINE | re.DOTALL)
    for at in range(0, len(pieces), 2):
        below = re.sub(r"(?<=[^\W\d_]|[×‖)])_(?:\{([^}]*)\}|([A-Za-z0-9]+))", r"<sub>\1\2</sub>", pieces[at])
        pieces[at] = re.sub(r"(?<=\S)\^(\(\w\))", r"<sup>\1</sup>", below)
    return "".join(pieces)


def shown(block: re.Match[str]) -> str:
    lines = [line for line in block[1].splitlines(keepends=True) if not re.match(r"# |#$", line)]
    return f"```rust\n{''.join(lines)}```"


def wanted() -> dict[str, Path]:
    """Where every file of the folder comes from."""
    files = {name: ROOT / name for name in TOP}
    for folder in ("", "guide", "figures", "benchmarks"):
        found = (path for path in (ROOT / "docs" / folder).iterdir() if path.is_file())
        files |= {f"{folder}/{path.name}".lstrip("/"): path for path in found}
    glue = ROOT / "docs" / "site"
    files |= {path.name: path for path in glue.iterdir() if path.suffix in (".md", ".rst")}
    files.pop("requirements.txt")
    return files


def stage(folder: Path) -> None:
    files = wanted()
    for name, source in files.items():
        content = source.read_bytes()
        if source.suffix == ".md":
            text = page(content.decode())
            content = (indices(text) if name == "maths.md" else text).encode()
        target = folder / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in files and not name.startswith(GENERATED):
            path.unlink()


def forget(folder: Path) -> None:
    """What extensions do not see by themselves: a package with other names or docstrings, an example that is gone."""
    shutil.rmtree(folder / "api", ignore_errors=True)
    (folder / "api.rst").touch()
    examples = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.py")} | {"index"}
    for page in (folder / "gallery").glob("*.rst"):
        if page.stem not in examples:
            page.unlink()


def stage_extra(extra: Path, rustdoc: Path) -> None:
    """What goes into the site as it is: rustdoc, and the part of MathJax that typesets TeX."""
    shutil.rmtree(extra, ignore_errors=True)
    shutil.copytree(rustdoc, extra / "rust", ignore=shutil.ignore_patterns(".lock"))
    # Pages of rustdoc link to a list of crates, which it does not write for one.
    (extra / "rust" / "index.html").write_text(
        '<!DOCTYPE html><meta http-equiv="refresh" content="0; url=matmix/index.html">'
        '<title>matmix</title><a href="matmix/index.html">matmix</a>\n'
    )
    [package] = find_spec("sphinx-mathjax-offline").submodule_search_locations
    mathjax = Path(package) / "static" / "mathjax"
    fonts = Path("output", "chtml", "fonts", "woff-v2")
    shutil.copytree(mathjax / fonts, extra / "mathjax" / fonts)
    shutil.copy(mathjax / "tex-chtml.js", extra / "mathjax")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    rust = Path(sys.argv[2])
    if not (rust / "matmix" / "index.html").exists():
        sys.exit(f"{rust} holds no documentation of matmix: run `cargo doc --no-deps -p matmix` first")
    out.mkdir(parents=True, exist_ok=True)
    stage(out)
    forget(out)
    stage_extra(out / "extra", rust)
