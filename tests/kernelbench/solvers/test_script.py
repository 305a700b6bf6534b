"""Solver scripts: those that come with the package have names, and a person's own has a path."""

import subprocess

import pytest
import warm_kb
from candidates import STRATEGIES

from kernelbench.solvers import script
from kernelbench.solvers.orchestrator import SolverError

KB = [*warm_kb.KB, "solve"]


def test_every_strategy_has_a_name_and_says_what_it_does():
    names = {path.stem for path in STRATEGIES.glob("*.py")}
    assert set(script.shipped()) == names and {"one_shot", "refine", "template"} <= names
    shown = subprocess.run([*KB, "--list"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    for name, path in script.shipped().items():
        assert name in shown.stdout and script.summary(path).strip() in shown.stdout


def test_a_name_is_a_strategy_and_a_path_is_ones_own(tmp_path, monkeypatch):
    assert script.find("refine").samefile(STRATEGIES / "refine.py")
    assert script.find(str(STRATEGIES / "refine.py")).samefile(STRATEGIES / "refine.py")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refine").touch()
    assert script.find("./refine").samefile(tmp_path / "refine")


@pytest.mark.parametrize("name", ["refined", "scripts/refine.py", "."])
def test_what_is_neither_is_wrong_usage_with_the_names_that_there_are(name, tmp_path):
    with pytest.raises(SolverError, match=f"no solver {name}: .*best_of_n.*refine"):
        script.find(name)
    done = subprocess.run(
        [*KB, "--solver", name, "--problems", "1/19", "-o", "run"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and "best_of_n" in done.stderr and not (tmp_path / "run").exists()
