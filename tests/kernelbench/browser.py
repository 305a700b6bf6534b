"""A headless Chromium for tests of pages; skips where there is none."""

import contextlib
import shutil
import tempfile

import pytest
from logs import result, run

from harness.result import Status
from kernelbench.report import page

_FLAGS = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
    "disable-component-update", "disable-sync", "disable-dev-shm-usage",
)  # fmt: skip


@contextlib.contextmanager
def chromium():
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*_FLAGS, f"user-data-dir={profile}", "window-size=1400,900"):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            yield opened
        finally:
            opened.quit()


def wait(browser, script):
    """The value of the expression ``script`` once it is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda b: b.execute_script(f"return {script}"))


def texts(browser, selector):
    """What the elements that match ``selector`` say."""
    script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)"
    return browser.execute_script(script, selector)


def click(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def resize(browser, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def colours(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def press(browser, keys):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(keys).perform()


def opened(browser, folder, *runs):
    """The browser with the report of ``runs``, written into ``folder``."""
    (folder / "report.html").write_text(page.report(runs), encoding="utf-8")
    browser.get(f"file://{folder}/report.html")
    return browser


def some(folder, name="mine"):
    """Three problems: one faster, one slower and failed attempts at it, one that is rejected."""
    return run(
        folder / name,
        result("1/1", 0.5, seed=1),
        result("1/2", status=Status.BUILD_ERROR, message="relu.cpp:3: error: no semicolon", sample=0, seed=2),
        result("1/2", 2.0, sample=1, seed=3),
        result("2/1", 0.1, status=Status.REJECTED, rule="overwrites_inputs", message="changed its input", seed=4),
    )


def problems(browser):
    return texts(browser, "#table tbody .k-problem b")
