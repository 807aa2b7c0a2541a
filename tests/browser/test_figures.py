"""The figures: what the page computes is what the library computes, and every chart answers the pointer and the keys."""

import base64
import re
import struct
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import PAGES
from selenium.webdriver import ActionChains, Keys


def colour_table(browser, name):
    """The 256 colours of one of the page's tables."""
    flat = browser.js("return matmixReport.colours(arguments[0])", name)
    return [tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]


def lightness(colour):
    """L* of CIELAB: what the eye takes for more and less."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
    y = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def shade(value, view):
    share = (value - view["low"]) / (view["high"] - view["low"])
    return 255 * min(1, max(0, share))


def expected_pixels(matrix, view, slice_number, table):
    """The picture of a row-major array, drawn again here."""
    shape = view["shape"]
    rows, columns = shape[view["row_mode"]], shape[view["column_mode"]]
    depth = shape[2] if len(shape) == 3 else 1
    picture = []
    for i in range(rows * columns):
        if view["kind"] == "colour":
            picture.append(tuple(shade(v, view) for v in matrix[3 * i : 3 * i + 3]))
        else:
            at = shade(matrix[i * depth + slice_number], view)
            low = table[int(at)]
            high = table[min(255, int(at) + 1)]
            picture.append(tuple(a + (at - int(at)) * (b - a) for a, b in zip(low, high)))
    return [picture[row * columns : (row + 1) * columns] for row in range(rows)]


def averaged(matrix, shape, block):
    """Means of blocks, as a page with large pictures holds them."""
    (p, q), (b, c) = shape, block
    out = []
    for i in range(0, p, b):
        for j in range(0, q, c):
            cells = [matrix[u * q + v] for u in range(i, min(p, i + b)) for v in range(j, min(q, j + c))]
            out.append(sum(cells) / len(cells))
    return out


def move(browser, slider, value):
    browser.js("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", slider, value)


def choose(browser, selector, value):
    browser.js(
        "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
        selector, value,
    )


@pytest.mark.parametrize("page", PAGES)
def test_moving_sliders_shows_what_the_library_computes(browser, page):
    browser.open(page)
    data = browser.data()
    view = data["view"]
    for case in browser.cases(page):
        choose(browser, "#explorer-component", case["component"])
        while browser.one("#explorer-more").is_displayed():
            browser.js("document.querySelector('#explorer-more').click()")
        sliders = browser.all("#explorer-sliders input")
        assert len(sliders) == len(case["core"])
        for slider in sliders:
            move(browser, slider, case["core"][int(slider.get_attribute("data-entry"))])
        assert browser.js("return matmixReport.currentCore()") == pytest.approx(case["core"])
        truth = case["matrix"]
        if max(view["block"]) > 1:
            truth = averaged(truth, data["summary"]["shape"], view["block"])
        found = browser.js("return matmixReport.currentMatrix()")
        assert len(found) == len(truth)
        room = 1e-5 * (view["high"] - view["low"])
        assert max(abs(a - b) for a, b in zip(found, truth)) < room
        if view["kind"] == "curve":
            continue
        drawn = browser.pixels("#explorer-picture canvas")
        table = colour_table(browser, view["colours"])
        wanted = expected_pixels(truth, view, browser.js("return matmixReport.slice()"), table)
        # A colour step is at most a few counts of a channel; half a step is what rounding may cost.
        off = max(abs(a - b) for x, y in zip(drawn, wanted) for u, v in zip(x, y) for a, b in zip(u, v))
        assert off <= (1 if view["colours"] == "grey" else 3), off


def test_colours_tell_more_from_less_by_their_lightness(browser):
    browser.open("images")
    assert colour_table(browser, "grey") == [(i, i, i) for i in range(256)]
    light = [lightness(colour) for colour in colour_table(browser, "sequential")]
    assert len(light) == 256 and light[-1] - light[0] > 60
    assert all(after > before - 0.1 for before, after in zip(light, light[1:]))
    # Zero is nearly white, what is above it red, what is below it blue, and as far from zero as light as each other.
    colours = colour_table(browser, "diverging")
    light = [lightness(colour) for colour in colours]
    assert len(light) == 256 and min(light[127:129]) > 94
    assert all(after > before for before, after in zip(light[:128], light[1:128]))
    assert all(colour[2] > colour[0] for colour in colours[:112])
    assert all(colour[0] > colour[2] for colour in colours[144:])
    assert max(abs(a - b) for a, b in zip(light, reversed(light))) < 6


def test_the_explorer_works_from_the_keyboard(browser):
    browser.open("images")
    mean = browser.js("return matmixReport.currentMatrix()")
    slider = browser.all("#explorer-sliders input")[0]
    entry = int(slider.get_attribute("data-entry"))
    slider.send_keys(Keys.ARROW_RIGHT * 4)
    assert browser.js("return matmixReport.currentCore()")[entry] == pytest.approx(0.2)
    assert browser.js("return matmixReport.currentMatrix()") != mean
    slider.send_keys("0")
    assert browser.js("return matmixReport.currentMatrix()") == mean


def test_a_real_sample_can_be_the_start_and_reset_returns_to_the_mean(browser):
    browser.open("images")
    mean = browser.js("return matmixReport.currentMatrix()")
    position = int(browser.one("#explorer-sample").get_attribute("value"))
    browser.one("#explorer-load").click()
    core = browser.js("return matmixReport.currentCore()")
    stored = floats(browser.data()["samples"]["core"])
    assert core == pytest.approx(stored[position * 16 : (position + 1) * 16])
    index = browser.data()["samples"]["index"][position]
    assert f"sample {index}" in browser.one("#explorer-status").text
    # The reconstruction is nearer to the sample than the mean is.
    pixels = [b / 255 for b in base64.b64decode(browser.data()["samples"]["pixels"])[position * 784 : (position + 1) * 784]]
    shown = browser.js("return matmixReport.currentMatrix()")
    distance = lambda a: sum((x - y) ** 2 for x, y in zip(a, pixels))
    error = floats(browser.data()["samples"]["error"])[position]
    assert distance(shown) < distance(mean)
    assert distance(shown) ** 0.5 == pytest.approx(error, rel=1e-3)
    browser.one("#explorer-reset").click()
    assert browser.js("return matmixReport.currentMatrix()") == mean


def floats(text):
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def test_hover_on_the_map_shows_the_right_sample(browser):
    browser.open("images")
    samples = browser.data()["samples"]
    places = browser.js("return matmixReport.data.samples.index.map((_, i) => matmixReport.mapPlace(i))")
    alone = [
        i for i, a in enumerate(places)
        if all(i == j or (a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2 > 9 for j, b in enumerate(places))
    ]
    host = browser.one(".map-host")
    browser.js("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", host)
    size = host.size
    for position in alone[:: max(1, len(alone) // 5)][:5]:
        x = places[position]["x"] - size["width"] / 2
        y = places[position]["y"] - size["height"] / 2
        ActionChains(browser.driver).move_to_element_with_offset(host, round(x), round(y)).perform()
        index = samples["index"][position]
        assert browser.js("return matmixReport.mapSample()") == index
        label = samples["label_names"][samples["label"][position]]
        assert browser.one("#map-side .status").text == f"Sample {index}, label {label}"
        assert f"{samples['component'][position]} (" in browser.one("#map-side .small-facts").text
        pixels = base64.b64decode(samples["pixels"])[position * 784 : (position + 1) * 784]
        drawn = browser.pixels("#map-side .picture:first-child canvas")
        assert [dot[0] for row in drawn for dot in row] == list(pixels)


def test_the_map_works_from_the_keyboard_and_by_label(browser):
    browser.open("images")
    choose(browser, "#map-colours", "label")
    assert len(browser.all(".legend .key")) == 10
    place = "const m = matmixReport; return m.mapPlace(m.data.samples.index.indexOf(m.mapSample()))"
    for key, axis, way in [("RIGHT", "x", 1), ("UP", "y", -1), ("LEFT", "x", -1), ("DOWN", "y", 1)]:
        before = browser.js(place)
        browser.one(".map-host").send_keys(getattr(Keys, f"ARROW_{key}"))
        assert way * (browser.js(place)[axis] - before[axis]) > 0, key
    key = browser.all(".legend .key")[0]
    browser.js("arguments[0].click()", key)
    assert key.get_attribute("aria-pressed") == "false"
    assert browser.js("return document.querySelector('[data-group=\"0\"]').style.display") == "none"


def test_charts_tell_their_values(browser):
    browser.open("images")
    history = browser.data()["history"]
    chart = browser.one("#chart-likelihood .chart-host")
    browser.js("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", chart)
    chart.send_keys(Keys.END)
    tip = browser.one("#chart-likelihood .tip")
    assert tip.text.startswith(f"Iteration {history[-1]['iteration']}: ")
    value = float(tip.text.split(": ")[1].replace("\u2212", "-").replace("\u202f", ""))
    assert value == pytest.approx(history[-1]["log_likelihood"], rel=1e-4)
    ActionChains(browser.driver).move_to_element(chart).perform()
    assert tip.is_displayed()
    middle = history[len(history) // 2]["iteration"]
    assert abs(int(tip.text.split()[1].rstrip(":")) - middle) <= len(history) // 4 + 1


def test_the_slice_slider_redraws_every_picture(browser):
    browser.open("slices")
    before = browser.pixels("#explorer-picture canvas")
    mean = browser.pixels("article canvas")
    move(browser, browser.one("#slice"), 0)
    assert browser.js("return matmixReport.slice()") == 0
    assert browser.pixels("#explorer-picture canvas") != before
    assert browser.pixels("article canvas") != mean
    assert browser.one("#slice-control output").text == "time 0 s"


def test_each_kind_of_data_has_its_kind_of_picture(browser):
    kinds = {"images": ("matrix", "grey"), "signed": ("matrix", "diverging"), "colour": ("colour", "grey"),
             "slices": ("slices", "sequential"), "curves": ("curve", "diverging")}
    for page, (kind, colours) in kinds.items():
        browser.open(page)
        view = browser.data()["view"]
        assert (view["kind"], view["colours"]) == (kind, colours)
        art = "svg.curve" if kind == "curve" else "canvas"
        assert browser.all(f"article [data-role=mean] {art}")
    browser.open("signed")
    text = browser.one("#explorer").text
    assert "channel" in text and "time (s)" in text and "potential (µV)" in text
    browser.open("curves")
    assert "wavelength (nm)" in browser.one("#explorer-picture").get_attribute("textContent")


def test_the_lens_opens_reads_values_and_closes(browser):
    browser.open("signed")
    button = browser.one("article [data-role=mean] button")
    button.send_keys(Keys.ENTER)
    assert browser.one("#lens").is_displayed()
    ActionChains(browser.driver).move_to_element(browser.one("#lens canvas")).perform()
    assert re.search(r"channel \d+, time [\d.]+ s: ", browser.one("#lens .status").text)
    browser.one("#lens").send_keys(Keys.ESCAPE)
    assert not browser.one("#lens").is_displayed()


def saved(browser, button, ending):
    before = set(browser.downloads.iterdir())
    browser.js("arguments[0].click()", button)
    for _ in range(100):
        new = [f for f in set(browser.downloads.iterdir()) - before if f.suffix == ending]
        if new and new[0].stat().st_size:
            return Path(new[0])
        time.sleep(0.05)
    raise AssertionError(f"nothing was saved as {ending}")


@pytest.mark.parametrize("place", ["#chart-error", "#outlier-chart", "#map-chart", "#explorer", "#labels"])
def test_charts_can_be_saved_as_svg_png_and_csv(browser, place):
    browser.open("images")
    svg, png, csv = browser.all(f"{place} .savers:first-of-type button")[:3]
    root = ElementTree.parse(saved(browser, svg, ".svg")).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and len(root) > 0
    assert saved(browser, png, ".png").read_bytes().startswith(b"\x89PNG")
    rows = saved(browser, csv, ".csv").read_text().splitlines()
    assert len(rows) > 5 and rows[0].count(",") >= 1
    assert browser.logs() == []


def test_each_mode_shows_its_loadings_over_its_coordinates(browser):
    browser.open("signed")
    data = browser.data()
    assert len(browser.all("#modes [data-mode]")) == 2
    for k in (0, 2):
        choose(browser, "#modes-component", k)
        loading = floats(data["components"][k]["loadings"][1])
        columns = sorted(([*loading[j::4]] for j in range(4)), key=lambda c: -sum(v * v for v in c))
        host = browser.one("#modes [data-mode='1'] .chart-host")
        browser.js("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", host)
        host.send_keys(Keys.END)
        text = browser.one("#modes [data-mode='1'] .tip").text
        # 128 instants of 1/128 s.
        assert text.startswith("time (s) 0.9922: ")
        shown = [float(v.replace("\u2212", "-")) for v in text.split(": ")[1].split(", ")]
        assert shown == pytest.approx([column[-1] for column in columns], rel=0.02, abs=1e-4)
        spectrum = data["components"][k]["spectra"][0]
        assert len(spectrum) == 16 and sum(spectrum) == pytest.approx(1)
        kept = len(browser.all("#modes [data-mode='0'] .column.kept"))
        assert kept == 3
        assert f"{100 * sum(spectrum[:3]):.1f} %" in browser.one("#modes [data-mode='0']").text


def test_the_map_zooms_and_finds(browser):
    browser.open("people")
    samples = browser.data()["samples"]
    find = browser.one("#map-find")
    find.send_keys("017/2.png" + Keys.ENTER)
    position = samples["name"].index("017/2.png")
    assert browser.js("return matmixReport.mapSample()") == samples["index"][position]
    assert "017/2.png" in browser.one("#map-side .status").text
    host = browser.one(".map-host")
    before = browser.js("return matmixReport.mapPlace(0)")
    other = browser.js("return matmixReport.mapPlace(1)")
    host.send_keys("+")
    zoom = browser.js("return matmixReport.mapZoom()")
    assert zoom > 1
    after, further = browser.js("return matmixReport.mapPlace(0)"), browser.js("return matmixReport.mapPlace(1)")
    assert further["x"] - after["x"] == pytest.approx(zoom * (other["x"] - before["x"]), abs=1e-6)
    # Whoever is looked for is brought to the middle.
    find.clear()
    find.send_keys("person 033" + Keys.ENTER)
    place = browser.js("const m = matmixReport; return m.mapPlace(m.data.samples.index.indexOf(m.mapSample()))")
    assert place["x"] == pytest.approx(host.size["width"] / 2, abs=1)
    host.send_keys("0")
    assert browser.js("return matmixReport.mapZoom()") == 1
    find.clear()
    find.send_keys("nobody" + Keys.ENTER)
    assert "No sample" in browser.one("#map-side .status").text


def test_a_large_table_is_a_picture_and_mistakes_are_shown(browser):
    browser.open("people")
    data = browser.data()
    confusion = data["recognition"]
    assert not browser.all("table#confusion")
    canvas = browser.one("#confusion canvas")
    assert (canvas.get_attribute("width"), canvas.get_attribute("height")) == ("120", "120")
    browser.js(
        "const c = arguments[0], a = c.getBoundingClientRect();"
        "c.dispatchEvent(new PointerEvent('pointermove', {clientX: a.left + 1, clientY: a.top + 1}))",
        canvas,
    )
    assert browser.one("#confusion .status").text == f"person 000, person 000: {confusion['counts'][0][0]}"
    worst = max(n for r, row in enumerate(confusion["counts"]) for c, n in enumerate(row) if r != c)
    first = confusion["strongest"][0]
    assert first["count"] == worst
    named = f"{confusion['labels'][first['row']]} taken for {confusion['labels'][first['column']]}: {worst}"
    assert named in browser.one("#labels").text
    shown = browser.all("#mistakes .triple")
    assert len(shown) == len(confusion["mistakes"]) > 0
    label = lambda position: data["samples"]["label_names"][data["samples"]["label"][position]]
    for figure, mistake in zip(shown, confusion["mistakes"]):
        assert f"{label(mistake['sample'])} taken for {label(mistake['nearest'])}" in figure.text
        assert label(mistake["sample"]) != label(mistake["nearest"])


def test_held_out_samples_are_told(browser):
    browser.open("people")
    held_out = browser.data()["summary"]["held_out"]
    assert held_out["samples"] == 60
    assert f"log-likelihood {held_out['log_likelihood']:.1f} per sample" in browser.one("#summary").text


def test_missing_cells_are_marked_counted_and_filled_in(browser):
    browser.open("missing")
    data = browser.data()
    missing, samples = data["missing"], data["samples"]
    text = browser.one("#missing").text
    assert f"{100 * missing['cells'] / missing['of']:.1f} % of the cells" in text
    assert "Cells that no sample has\n1: (15, 15)" in text and "250 of 250" in text
    assert f"Sample {missing['lacking'][0]['index']} ({missing['lacking'][0]['name']}): 784 of 784 cells" in text
    # The darkest and the lightest of the heat map are what is missing least and most.
    share = floats(missing["share"])
    drawn = browser.pixels("#missing-share canvas")
    table = colour_table(browser, "sequential")
    at = max(range(784), key=lambda i: share[i])
    assert at == 15 * 28 + 15 and drawn[15][15] == tuple(round(v) for v in table[255])
    # Holes of the first strip have a colour that is no grey; what was filled in has none of it.
    strips = browser.all("#missing-list .strip")
    assert len(strips) == len(missing["filled"]) == 12
    holes = base64.b64decode(samples["holes"])
    for number in (1, 12):
        position = missing["filled"][number - 1]["sample"]
        canvas = f"#missing-list .triple:nth-child({number}) figure:nth-child(%d) canvas"
        observed, filled, deviation = (browser.pixels(canvas % i) for i in (1, 2, 3))
        values, deviations = (floats(missing["filled"][number - 1][name]) for name in ("values", "deviations"))
        count = 0
        for i in range(784):
            bit = position * 784 + i
            hole = holes[bit // 8] >> (bit % 8) & 1
            count += hole
            dot = observed[i // 28][i % 28]
            assert (len(set(dot)) > 1) == bool(hole)
            assert (deviations[i] > 0) == bool(hole)
            assert abs(filled[i // 28][i % 28][0] - 255 * min(1, max(0, values[i]))) <= 1
            if not hole:
                assert deviation[i // 28][i % 28] == tuple(round(v) for v in table[0])
                assert abs(dot[0] - 255 * values[i]) <= 1.5
        assert count == samples["missing"][position]
    assert "not observed" in browser.one("#missing-bars").text and "not observed" in browser.one("#reconstruction-bars").text
    assert browser.logs() == []


def test_outliers_of_partial_samples_are_ranked_by_score(browser):
    browser.open("missing")
    samples, outliers = browser.data()["samples"], browser.data()["outliers"]
    standing = floats(samples["score"])
    shown = float(browser.one("#outlier-list figcaption b").text.replace("\u2212", "-"))
    assert shown == pytest.approx(min(standing), rel=1e-3)
    assert "complete sample" in browser.one("#outlier-chart").get_attribute("innerHTML")
    assert samples["missing"][outliers[0]] < 784


def test_the_lens_tells_what_was_not_observed(browser):
    browser.open("missing")
    strip = browser.all("#missing-list .strip")[-1]
    frame = strip.find_elements("css selector", "button.frame")[0]
    browser.js("arguments[0].click()", frame)
    drawn = browser.pixels("#lens canvas")
    row, column = next((r, c) for r in range(28) for c in range(28) if len(set(drawn[r][c])) > 1)
    browser.js(
        "const c = document.querySelector('#lens canvas'), a = c.getBoundingClientRect();"
        "c.dispatchEvent(new PointerEvent('pointermove', {clientX: a.left + (arguments[1] + 0.5) * a.width / 28,"
        " clientY: a.top + (arguments[0] + 0.5) * a.height / 28}))",
        row, column,
    )
    assert browser.one("#lens .status").text.endswith(": not observed")
    csv = saved(browser, browser.all("#lens .savers button")[2], ".csv").read_text().splitlines()
    assert csv[row].split(",")[column] == "" and "NaN" not in "".join(csv)
    browser.js("document.querySelector('#lens').close()")


def test_curves_have_gaps_where_nothing_was_observed(browser):
    browser.open("gaps")
    missing = browser.data()["missing"]
    last = browser.all("#missing-list .triple")[-1]
    count = lambda i, what: len(last.find_elements("css selector", f"figure:nth-child({i}) svg {what}"))
    assert (count(1, "rect.hole"), count(2, "rect.hole")) == (1, 0)
    assert count(1, "polyline") in (1, 2) and count(2, "polyline") == 1
    assert missing["samples"] == 80 and missing["empty"] == missing["never"] == 0
    assert "m" in browser.one("#missing-bars").text and browser.logs() == []
