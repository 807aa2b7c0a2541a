"""The page as a page: it loads alone, fits the window, reads aloud, prints, and user text stays text."""

import time

import pytest
from conftest import PAGES

WIDTHS = [1280, 390]
SCHEMES = ["light", "dark"]


@pytest.mark.parametrize("page", PAGES)
def test_it_loads_from_disk_without_errors_and_asks_nothing_of_the_network(browser, page):
    address = browser.open(page)
    browser.js("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.logs() == []
    outside = [url for url, _ in browser.requests() if not url.startswith(("data:", "blob:"))]
    assert set(outside) == {address}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_it_never_scrolls_sideways(browser, page, width, scheme):
    browser.width(width)
    browser.media(scheme)
    browser.open(page)
    browser.js("document.querySelector('#explorer-load').click()")
    window, content, room = browser.js(
        "const e = document.documentElement; return [innerWidth, e.scrollWidth, e.clientWidth]"
    )
    assert window == width and content <= room
    assert browser.js("return ['html', 'body'].every((s) => getComputedStyle(document.querySelector(s)).overflowX === 'visible')")


def luminance(colour):
    numbers = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in numbers]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_stands_out_in_both_colour_schemes(browser, scheme):
    browser.media(scheme)
    browser.open("images")
    back, *inks = browser.js(
        "const of = (s, p) => getComputedStyle(document.querySelector(s))[p];"
        "return [of('body', 'backgroundColor'), of('body', 'color'), of('.about', 'color'), of('.eyebrow', 'color')]"
    )
    assert (luminance(back) < 0.2) == (scheme == "dark")
    for ink in inks:
        light, dark = sorted([luminance(back), luminance(ink)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (back, ink)


def test_the_chosen_candidate_has_a_frame_and_the_best_ones_are_darkest(browser):
    browser.open("signed")
    frames = browser.js(
        "return [...document.querySelectorAll('#candidates td')].map((td) => "
        "[td.classList.contains('chosen'), getComputedStyle(td).outlineStyle, getComputedStyle(td).backgroundColor])"
    )
    assert len(frames) == 4 and sum(chosen for chosen, _, _ in frames) == 1
    assert [style == "solid" for _, style, _ in frames] == [chosen for chosen, _, _ in frames]
    assert len({colour for _, _, colour in frames}) > 1
    assert browser.js("return document.querySelector('nav a[href=\"#choice\"]') !== null")
    browser.open("images")
    assert browser.js("return document.querySelector('#choice') === null")


def test_the_button_changes_the_scheme(browser):
    browser.open("images")
    before = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.one("#theme").click()
    after = browser.js("return getComputedStyle(document.body).backgroundColor")
    assert luminance(before) > 0.5 > 0.1 > luminance(after)


def test_markup_in_names_labels_and_metadata_is_text(browser):
    browser.open("markup")
    browser.js("document.querySelector('#map-colours').value = 'label';"
               "document.querySelector('#map-colours').dispatchEvent(new Event('change'))")
    browser.js("document.querySelector('#explorer-load').click(); document.querySelector('#outlier-list button').click()")
    assert browser.js("return window.broken === undefined")
    assert browser.driver.title == "</title><script>window.broken = 4</script>"
    headings = [cell.text for cell in browser.all("#contingency thead th")]
    assert "<script>window.broken = 1</script>" in headings
    assert "{{ 7 * 7 }}{% raw %}" in headings
    assert browser.js("return document.querySelectorAll('main img, main b[onmouseover], main u, main script').length") == 0
    assert browser.js("return document.querySelectorAll('script').length") == 2
    legend = [key.text for key in browser.all(".legend .key")]
    assert "<script>window.broken = 1</script>" in legend
    assert browser.logs() == []


def test_the_policy_stops_whatever_would_leave_the_page(browser):
    browser.open("images")
    policy = browser.one("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    stopped = browser.driver.execute_async_script(
        """
        const done = arguments[0], stopped = [];
        document.addEventListener("securitypolicyviolation", (e) => stopped.push(e.effectiveDirective));
        new Image().src = "https://matmix.invalid/a.png";
        fetch("https://matmix.invalid/b").catch(() => {});
        const script = document.createElement("script");
        script.textContent = "window.broken = true";
        document.body.append(script);
        setTimeout(() => done([stopped.sort(), window.broken]), 300);
        """
    )
    assert stopped == [["connect-src", "img-src", "script-src-elem"], None]
    assert all(reason == "csp" for url, reason in browser.requests() if "matmix.invalid" in url)


def test_figures_have_alternative_text_and_controls_have_names(browser):
    for page in PAGES:
        browser.open(page)
        bare = browser.js(
            """
            const named = (e) => e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim();
            const hidden = (e) => e.closest("[aria-hidden=true]");
            return [
              ...[...document.querySelectorAll("canvas, svg.chart")].filter((e) => !hidden(e) && !(e.getAttribute("role") === "img" && named(e))),
              ...[...document.querySelectorAll("button, input, select")].filter((e) => !named(e)),
              ...[...document.querySelectorAll("section")].filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))),
            ].map((e) => e.outerHTML.slice(0, 120));
            """
        )
        assert bare == []
        levels = browser.js("return [...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))")
        assert levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))


def test_the_size_and_the_speed_that_were_promised(browser):
    assert (browser.gallery / "images.html").stat().st_size < 5_000_000
    times = []
    for _ in range(3):
        browser.open("images")
        times.append(browser.js("return window.matmixReport.readyAfter"))
        time.sleep(0.1)
    assert min(times) < 1000, times


def test_paper_has_light_colours_and_no_controls(browser):
    browser.media("dark", "print")
    browser.open("images")
    assert luminance(browser.js("return getComputedStyle(document.body).backgroundColor")) > 0.9
    assert browser.js("return getComputedStyle(document.querySelector('.bar')).display") == "none"
    pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(pdf["data"]) > 50_000
