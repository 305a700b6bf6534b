"""A correct solution whose baseline cannot be timed, from the record through every figure to the gate."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from warm_kb import KB

EXAMPLE = Path(__file__).parents[3] / "examples" / "pytorch" / "causal_attention.py"


def kb(*arguments, **environment):
    command = [*KB, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def untimed(tmp_path_factory):
    """A run with the compiled baseline only, on a machine without a C++ compiler."""
    folder = tmp_path_factory.mktemp("untimed")
    done = kb("eval", EXAMPLE, "--device", "cpu", "--baseline", "compile", "-o", folder / "run", "--json", CXX="/none")
    assert done.returncode == 0, done.stderr
    return folder / "run", json.loads(done.stdout)


@pytest.mark.slow
def test_it_is_solved_and_faster_than_nothing(untimed):
    _, data = untimed
    assert data["solved"] == 1 and data["settled_fast_p"]["0"] == data["fast_p"]["0"] == 1.0
    assert data["settled_fast_p"]["0.5"] == 0.0 and data["geometric_mean_speedup"] is None
    (row,) = data["results"]
    assert row["status"] == "ok" and row["speedup"] is None and row["verdict"] is None
    assert "no baseline could be timed: compile: " in row["no_speedup"]


@pytest.mark.slow
def test_every_view_of_it_opens(untimed, tmp_path):
    run, _ = untimed
    for command in (
        ["leaderboard", run], ["compare", run, run], ["report", run, "-o", tmp_path / "r.html"],
        ["export", run, "--to", "csv", "-o", tmp_path / "r.csv"], ["time", "--from", run, "3/43"],
    ):  # fmt: skip
        done = kb(*command)
        assert done.returncode == 0, (command, done.stderr)
    assert "no baseline could be timed" in (tmp_path / "r.csv").read_text()


def test_the_gate_cannot_decide_on_a_speedup_that_is_not_known(untimed, tmp_path):
    run, _ = untimed
    common = ["check", "--solutions", EXAMPLE.parent, "--problems", "3/43", "--device", "cpu", "--baseline", "compile",
              "-o", run, "--resume", "--allow-unmapped"]  # fmt: skip
    assert kb(*common).returncode == 0
    done = kb(*common, "--min-speedup", "1")
    assert done.returncode == 3 and "no baseline could be timed" in done.stdout
