"""A quick share of `scripts/fuzz_*.py`: no malformed message, log, directory or text is more than a clear failure."""

import importlib.util
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fuzz():
    return script("fuzz_protocol")


@pytest.fixture(scope="module")
def records():
    return script("fuzz_records")


@pytest.fixture(scope="module")
def inputs():
    return script("fuzz_inputs")


@pytest.mark.slow
def test_messages(fuzz):
    endings = fuzz.fuzz_messages(500, seed=7)
    assert endings["the candidate fails: crashed"] > 50 and endings["an answer"] > 50


@pytest.mark.slow
def test_evaluations(fuzz):
    assert sum(fuzz.fuzz_evaluations(6, seed=7).values()) == 6


def test_results_logs(fuzz):
    endings = fuzz.fuzz_logs(300, seed=7)
    assert endings["log: a clear error"] > 50 and endings["log: results"] > 5


def test_directories(inputs):
    endings = inputs.fuzz_trees(60, seed=7)
    assert endings["tree: refused"] > 3 and endings["tree: 1 solutions or more"] > 5


def test_sources(inputs):
    endings = inputs.fuzz_sources(100, seed=7)
    assert endings["source: unreadable"] > 10 and endings["source: findings"] > 3


def test_texts(inputs):
    assert inputs.fuzz_texts(300, seed=7)["text: shown"] == 300


def test_records(records):
    endings = records.fuzz_records(40, seed=7)
    assert endings["records: refused"] > 5 and sum(endings.values()) - endings["records: refused"] > 30


def test_honest_records_become_every_view(records, tmp_path):
    for number, files in enumerate(records._honest()):
        run = records.Run.load(records._written(tmp_path / str(number), files))
        assert all(view(run, run) for view in records._VIEWS.values())
