"""A tool that watches a candidate: what it prints, how long it may take, and what it is told of its user."""

import os

import pytest

from harness.problem.module import ProblemId
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.machine import under_tool
from kernelbench.machine.under_tool import ToolError


@pytest.fixture
def run(tmp_path, examples):
    """A run of a shell script in the place of a tool."""
    path = tmp_path / "1_19.cpp"
    path.write_text((examples / "cpp" / "relu.cpp").read_text())
    solution = read_solution(path, problem=ProblemId(1, 19))

    def run(script):
        tool = tmp_path / "tool"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return under_tool.run([str(tool)], suite.find("1/19")[0], solution, "small", "fp32", "cpu")

    return run


def test_what_a_program_prints_may_be_no_text(run):
    """It was a UnicodeDecodeError, and all other figures of the command were lost."""
    done = run("printf '\\377 bytes'; exit 4")
    assert (done.stdout, done.returncode) == ("\\xff bytes", 4)


def test_no_key_of_its_user_is_told_to_a_candidate(run, monkeypatch):
    """It was given the whole environment."""
    monkeypatch.setenv("SERVICE_API_KEY", "hunter2")
    printed = run("env").stdout
    assert "PATH=" in printed and "hunter2" not in printed


def test_what_takes_too_long_leaves_no_process(run, tmp_path, monkeypatch):
    """The tool was killed, and what it had started went on."""
    os.mkfifo(tmp_path / "held")
    reader = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr(under_tool, "_TIMEOUT_S", 0.5)
    with pytest.raises(ToolError, match="tool was not done within 0.5 s"):
        run(f"exec 9>{tmp_path / 'held'}\nsleep 1000 &\nsleep 1000")
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # nobody has it open
    os.close(reader)
