"""A headless Chromium for tests of pages; skips where there is none."""

import contextlib
import shutil
import tempfile

import pytest

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
