"""A stand-in for the model, and a browser."""

import importlib.util
import sys
from pathlib import Path

import pytest
from browser import chromium, colours, resize

_SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="session")
def stand_in():
    """The module of the stand-in endpoint."""
    spec = importlib.util.spec_from_file_location("stand_in", _SCRIPTS / "stand_in.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chrome():
    with chromium() as opened:
        yield opened


@pytest.fixture
def browser(chrome):
    """A light desktop; what a page complains about in the console fails the test."""
    chrome.get("about:blank")
    resize(chrome, 1400, 900)
    colours(chrome, "light")
    yield chrome
    errors = [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
