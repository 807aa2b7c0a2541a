"""The built site, read from disk: every link inside it leads somewhere, pictures are there, public names have pages.

`make docs` runs this at its end; `MATMIX_SITE` names another folder than out/site.
"""

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("MATMIX_SITE", ROOT / "out" / "site")).resolve()
# What leads out of a page: attribute by tag.
LEADS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """The links of a page, the places in it that can be linked to, and its pictures without words."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places, self.wordless = [], {"", "top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if given.get(LEADS.get(tag)):
            self.links.append(given[LEADS[tag]])
        for one in (given.get("srcset") or "").split(","):
            self.links += one.split()[:1]
        if tag == "img" and "alt" not in given:
            self.wordless.append(given.get("src"))


@cache
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def has_place(path, place):
    """Whether a page has a place; of the lines of a source file rustdoc's script marks any range."""
    if path.suffix != ".html":
        return True
    lines = re.fullmatch(r"(\d+)-(\d+)", place)
    wanted = lines.groups() if lines else (place,)
    return all(one in page(path).places or unquote(one) in page(path).places for one in wanted)


def dead(site, path):
    """A line for every link of a page that leads nowhere, or to another machine for something the page needs."""
    for link in page(path).links:
        parts = urlsplit(link)
        # Of traits and types that no other crate knows rustdoc names scripts that it does not write.
        if parts.scheme or parts.netloc or re.search(r"/(trait|type)\.impl/.*\.js$", parts.path):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        at = path.relative_to(site)
        if not target.is_relative_to(site):
            yield f"{at}: {link} leads out of the site"
        elif not target.is_file():
            yield f"{at}: there is no {link}"
        elif not has_place(target, parts.fragment):
            yield f"{at}: no place {link}"


def needs_another_machine(path):
    """What a page would fetch from elsewhere to be shown."""
    text = path.read_text(encoding="utf-8")
    sources = re.findall(r'<(?:script|img|source|iframe)[^>]*\ssrc="((?:https?:)?//[^"]+)', text)
    return sources + re.findall(r'<link[^>]*rel="stylesheet"[^>]*href="((?:https?:)?//[^"]+)', text)


@pytest.fixture(scope="module")
def pages():
    # What the theme keeps among its files are templates, not pages.
    found = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
    assert found, f"there is no site in {SITE}: make docs builds it"
    return found


def test_no_link_is_dead_and_no_picture_is_missing(pages):
    assert [line for path in pages for line in dead(SITE, path)] == []


def test_nothing_is_fetched_from_another_machine(pages):
    assert {str(path): found for path in pages if (found := needs_another_machine(path))} == {}


def test_pictures_have_words(pages):
    ours = [path for path in pages if "rust" not in path.relative_to(SITE).parts]
    assert {str(path): page(path).wordless for path in ours if page(path).wordless} == {}


def test_every_public_name_is_documented():
    matmix = pytest.importorskip("matmix")
    places = page(SITE / "api.html").links
    known = {unquote(link).rpartition("#")[2] for link in places}
    names = [name for name in matmix.__all__ if name not in ("__version__", "datasets", "plot")]
    names += [f"datasets.{name}" for name in ("DataSet", "load_digits28", "open")]
    names += [
        f"plot.{name}"
        for name, one in vars(matmix.plot).items()
        if callable(one) and one.__module__ == "matmix.plot" and name[0] != "_"
    ]
    assert [name for name in names if f"matmix.{name}" not in known] == []


def test_every_example_ran_and_drew():
    examples = sorted((ROOT / "docs" / "gallery").glob("*.py"))
    assert len(examples) >= 12
    for example in examples:
        text = (SITE / "gallery" / f"{example.stem}.html").read_text(encoding="utf-8")
        assert f"sphx_glr_{example.stem}_001" in text, f"{example.name} has no picture"
        # A few seconds each on two idle cores; the limit leaves room for machines that have other work to do.
        [minutes, seconds] = re.search(r"(\d+) minutes ([\d.]+) seconds", text).groups()
        assert 60 * int(minutes) + float(seconds) < 60 or not os.environ.get("CI"), f"{example.name} took too long"


def test_what_is_dead_is_found(tmp_path):
    """The test itself: a page with one mistake of each kind, and one of none."""
    (tmp_path / "a.html").write_text(
        '<a href="b.html">1</a><a href="b.html#here">2</a><a href="b.html#gone">3</a><a href="c.html">4</a>'
        '<img src="no.png" alt="x"><img src="b.html" srcset="no2.png 2x"><a href="../../out.html">5</a><a href="https://x.org">6</a>'
        '<a href="b.html#1-2">7</a><a href="b.html#1-9">8</a><script src="//cdn.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p><a id="1"></a><a id="2"></a>')
    assert list(dead(tmp_path, tmp_path / "a.html")) == [
        "a.html: no place b.html#gone",
        "a.html: there is no c.html",
        "a.html: there is no no.png",
        "a.html: there is no no2.png",
        "a.html: ../../out.html leads out of the site",
        "a.html: no place b.html#1-9",
    ]
    assert page(tmp_path / "a.html").wordless == ["b.html"]
    assert needs_another_machine(tmp_path / "a.html") == ["//cdn.org/x.js"]
