"""Every public type has an example: reads what `cargo doc` has written and names those that have none.

    python3 scripts/examples.py "$(sh scripts/target.sh)/doc/matmix"

What rustdoc lists in `all.html` is public and not hidden. A type's own description, above its fields and methods,
has to hold a block of Rust, which `cargo test` runs; equations and other text in fences do not count.
"""

import re
import sys
from pathlib import Path

TYPES = ("struct", "enum", "union", "trait", "type")


def types(docs: Path) -> list[str]:
    """The pages of all public types."""
    listed = re.findall(r'href="([^"]+\.html)"', (docs / "all.html").read_text("utf-8"))
    return sorted({page for page in listed if page.rsplit("/", 1)[-1].split(".")[0] in TYPES})


def has_example(page: str) -> bool:
    """Whether the description of the type itself holds one."""
    described = page.partition('class="toggle top-doc"')[2].partition("</details>")[0]
    return "rust-example-rendered" in described


def main(docs: Path) -> str | None:
    pages = types(docs)
    if not pages:
        return f"{docs}: no types are listed there; has `cargo doc` another layout now?"
    bare = [page for page in pages if not has_example((docs / page).read_text("utf-8"))]
    names = [re.sub(r"(\w+)\.(\w+)\.html", r"\2 (\1)", page).replace("/", "::") for page in bare]
    return "public types without an example:\n  " + "\n  ".join(names) if names else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
