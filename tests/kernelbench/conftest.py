"""A stand-in for the model."""

import importlib.util
import sys
from pathlib import Path

import pytest

_SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="session")
def stand_in():
    """The module of the stand-in endpoint."""
    spec = importlib.util.spec_from_file_location("stand_in", _SCRIPTS / "stand_in.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
