"""A quick share of `scripts/fuzz_protocol.py`: no malformed message and no damaged log is more than a clear failure."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz_protocol.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_protocol", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_messages(fuzz):
    endings = fuzz.fuzz_messages(500, seed=7)
    assert endings["the candidate fails: crashed"] > 50 and endings["an answer"] > 50


def test_evaluations(fuzz):
    assert sum(fuzz.fuzz_evaluations(6, seed=7).values()) == 6


def test_results_logs(fuzz):
    endings = fuzz.fuzz_logs(300, seed=7)
    assert endings["log: a clear error"] > 50 and endings["log: results"] > 5
