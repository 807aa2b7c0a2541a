"""The reports in a real browser: Chromium through its driver, headless and offline.

Without a browser these tests are left out, and the summary says so; on CI (the variable CI is set) that is a failure.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["images", "markup", "signed", "colour", "slices", "curves", "people", "missing", "gaps", "large"]


def first_of(*names):
    return next((found for name in names if (found := shutil.which(name))), None)


CHROMIUM = first_of("chromium", "chromium-browser", "google-chrome", "chrome")
DRIVER = first_of("chromedriver", "chromium.chromedriver")
LEFT_OUT = (
    "the report's browser tests were LEFT OUT: no Chromium with its driver here "
    "(Debian: apt-get install chromium chromium-driver)"
)


def pytest_collection_modifyitems(items):
    if not (CHROMIUM and DRIVER) and not os.environ.get("CI"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT))


def pytest_terminal_summary(terminalreporter):
    if not (CHROMIUM and DRIVER):
        terminalreporter.write_line(LEFT_OUT, yellow=True, bold=True)


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """A folder with one report for every kind of data; MATMIX_GALLERY names one that is there already."""
    if ready := os.environ.get("MATMIX_GALLERY"):
        return Path(ready)
    folder = tmp_path_factory.mktemp("gallery")
    # The features of `make test-rust`, whose build is then used again.
    command = ["cargo", "run", "--quiet", "--features", "matmix/ndarray", "--example", "report_gallery", "--", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


class Browser:
    """A driver with the few things these tests do over and over."""

    def __init__(self, driver, gallery, downloads):
        self.driver, self.gallery, self.downloads = driver, gallery, downloads
        self.js = driver.execute_script
        self.width(1280)

    def width(self, pixels, height=900):
        size = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def media(self, scheme="light", media=""):
        # Without smooth scrolling an element stays where the driver found it.
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def open(self, page):
        self.logs()
        self.requests()
        address = (self.gallery / f"{page}.html").as_uri()
        self.driver.get(address)
        assert self.js("return document.documentElement.dataset.ready") == "true", self.logs()
        return address

    def logs(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses asked for since the last call, each with what stopped it (None: nothing did)."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        of = lambda method: [e["params"] for e in events if e["method"] == f"Network.{method}"]
        stopped = {e["requestId"]: e.get("blockedReason") for e in of("loadingFailed")}
        return [(e["request"]["url"], stopped.get(e["requestId"])) for e in of("requestWillBeSent")]

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def data(self):
        return self.js("return window.matmixReport.data")

    def cases(self, page):
        return json.loads((self.gallery / f"{page}.json").read_text())

    def pixels(self, selector):
        """Rows of (red, green, blue) of a canvas."""
        width, height, flat = self.js(
            "const c = document.querySelector(arguments[0]);"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return [c.width, c.height, Array.from(d)];",
            selector,
        )
        dots = [tuple(flat[i : i + 3]) for i in range(0, len(flat), 4)]
        return [dots[row * width : (row + 1) * width] for row in range(height)]


@pytest.fixture(scope="session")
def session(gallery):
    assert CHROMIUM and DRIVER, LEFT_OUT
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryDirectory() as downloads:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
        ]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": downloads})
        try:
            yield Browser(driver, gallery, Path(downloads))
        finally:
            driver.quit()


@pytest.fixture
def browser(session):
    """The one browser of the run, set back to a light desktop window."""
    session.width(1280)
    session.media("light")
    return session
