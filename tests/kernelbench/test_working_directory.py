"""Commands that start processes take no code from the working directory, which may be an archive of others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelbench import working_directory

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.rand(64)]
def get_init_inputs(): return []
"""
# 16 runs are enough for several processes
PLAN = """
name = "own"
budget = 1
seeds = [0, 1, 2, 3]
repeats = 4
[landscape]
problems = 1
[[variant]]
name = "a"
solver = "refine"
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("problems", "audit", "1/1", "--problem-dir", "problems", "--device", "cpu", "--jobs", "1"),
        ("experiment", "plan.toml", "-o", "out"),
        pytest.param(
            ("baseline", "1/1", "--problem-dir", "problems", "--device", "cpu", "--configs", "compile", "-o", "b"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["audit", "experiment", "torch.compile"],
)
def test_a_module_in_the_working_directory_is_not_run(tmp_path, arguments):
    """The command is a script, as when it is installed: `python -m` looks there itself."""
    (tmp_path / "kb").write_text("from kernelbench.cli import main\nif __name__ == '__main__': main()\n")
    here = tmp_path / "archive"
    (here / "problems" / "level1").mkdir(parents=True)
    (here / "problems" / "level1" / "001_own.py").write_text(PROBLEM)
    (here / "plan.toml").write_text(PLAN)
    for module in ("multiprocessing", "ctypes"):
        (here / f"{module}.py").write_text(f"open({str(here / 'taken')!r}, 'w').close()\nraise SystemExit(1)\n")
    command = [sys.executable, tmp_path / "kb", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERNELBENCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=200)
    assert not (here / "taken").exists() and done.returncode in (0, 1), done.stderr
    assert "1/1" in done.stdout or "16 of 16 runs are finished" in (here / "out" / "report.md").read_text()


def test_the_working_directory_is_left_for_a_while_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError), working_directory.left():
        assert Path.cwd() == Path("/")
        raise ZeroDivisionError
    assert Path.cwd() == tmp_path
