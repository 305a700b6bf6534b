"""A file is imported by its text: bytecode beside it may be of another text, or of others."""

import os
import py_compile

import pytest

from harness.problem.import_source import import_source
from harness.problem.module import load_problem
from kernelbench import suite
from kernelbench.solvers.script import Script

MODE = py_compile.PycInvalidationMode
PROBLEM = """
import torch
class Model(torch.nn.Module):
    factor = 2
    def forward(self, x): return x * self.factor
def get_inputs(): return [torch.rand(4)]
def get_init_inputs(): return []
"""
SOLVER = "factor = 2\ndef solve(task): yield ''\n"


def with_other_bytecode(path, text, mode):
    """Write ``text`` to ``path``, with bytecode of it that has another factor and passes for that of the text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("factor = 2", "factor = 3"))
    os.utime(path, (10**9, 10**9))
    py_compile.compile(str(path), doraise=True, invalidation_mode=mode)
    path.write_text(text)
    os.utime(path, (10**9, 10**9))
    return path


@pytest.mark.parametrize("mode", [MODE.TIMESTAMP, MODE.UNCHECKED_HASH])
def test_a_problem_is_what_its_text_says(tmp_path, mode):
    with_other_bytecode(tmp_path / "level1" / "001_double.py", PROBLEM, mode)
    (file,) = suite.find("1/1", tmp_path)
    assert load_problem(file).module.Model.factor == 2


def test_a_solver_is_what_its_text_says(tmp_path):
    script = Script(with_other_bytecode(tmp_path / "own.py", SOLVER, MODE.UNCHECKED_HASH))
    assert script._solve.__globals__["factor"] == 2


def test_nothing_is_kept_beside_the_text(tmp_path):
    path = tmp_path / "own.py"
    path.write_text("x = 1\n")
    assert import_source(path, "own_of_a_test", path.read_bytes()).x == 1
    assert [file.name for file in tmp_path.iterdir()] == ["own.py"]
