"""The documentation site in a real browser, from disk: it fits a telephone, typesets its equations and fetches nothing.

Left out where `make docs` has not built it.
"""

import os
from pathlib import Path

import pytest
from conftest import ROOT

SITE = Path(os.environ.get("MATMIX_SITE", ROOT / "out" / "site")).resolve()
PAGES = [
    "index.html",
    "guide.html",
    "guide/fit.html",
    "maths.html",
    "benchmarks.html",
    "paper.html",
    "gallery/index.html",
    "gallery/04_eeg.html",
    "api.html",
    "api/matmix.Mixture.html",
]

pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the site's browser tests were LEFT OUT: make docs has not built it"
)
TYPESET = "const done = arguments[0]; (window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => done())"


def visit(browser, page, width):
    browser.width(width)
    browser.logs()
    browser.requests()
    browser.driver.get((SITE / page).as_uri())
    browser.driver.execute_async_script(TYPESET)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_telephone(browser, page):
    visit(browser, page, 390)
    window, content, room = browser.js(
        "const e = document.documentElement; return [innerWidth, e.scrollWidth, e.clientWidth]"
    )
    assert window == 390 and content <= room
    # Nothing is cut off either: what is wider than the page is inside something that scrolls by itself.
    cut = browser.js(
        """
        const itself = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
        const scrolls = (e) => e && (itself(e) || scrolls(e.parentElement));
        return [...document.querySelectorAll("article *")].filter((e) => {
          const box = e.getBoundingClientRect();
          return box.width > 0 && box.right > innerWidth + 1 && !scrolls(e) && !e.closest("mjx-assistive-mml");
        }).map((e) => e.outerHTML.slice(0, 100));
        """
    )
    assert cut == []


@pytest.mark.parametrize("page", PAGES)
def test_every_page_loads_from_disk_alone(browser, page):
    visit(browser, page, 1280)
    # The theme tells the console what it does.
    assert [line for line in browser.logs() if "[PST]" not in line] == []
    assert [url for url, _ in browser.requests() if not url.startswith(("file:", "data:", "blob:"))] == []


def test_equations_are_typeset(browser):
    visit(browser, "maths.html", 1280)
    blocks, typeset, wrong = browser.js(
        "const of = (s) => document.querySelectorAll(s).length;"
        "return [of('div.math'), of('div.math mjx-container'), of('mjx-merror, [data-mjx-error]')]"
    )
    assert blocks >= 16 and typeset == blocks and wrong == 0
