"""Builds of what a machine without a GPU cannot run."""

import pytest
from logs import run

from harness.compile.artefact import ToolchainError
from harness.faults import MachineFault
from harness.solution.discover import discover
from kernelbench.evaluation.directory import Outcome
from kernelbench.evaluation.executor import Skipped
from kernelbench.gate import build_check
from kernelbench.gate.build_check import build_only
from kernelbench.gate.thresholds import Limits, check_outcome, exit_status

NAMES_ALL = """# kb: problem=1/19 device=cuda
import os
import torch
from torch.utils import cpp_extension
names = " ".join(sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))))
cpp_extension.load_inline("named", f'#error "seen: {names}."', no_implicit_headers=True, is_python_module=False)
class ModelNew(torch.nn.Module): pass
"""


def test_a_build_sees_no_names_of_neighbours(tmp_path):
    """It was built where it lies, and listed that folder: an evaluation builds a copy."""
    (tmp_path / "1_19.py").write_text(NAMES_ALL)
    (tmp_path / "plans_of_others.txt").write_text("")
    solutions = discover(tmp_path).solutions
    ((built, message),) = build_only(solutions, "9.0", None, precision="fp32", timeout_s=60, memory_bytes=None)
    assert built is False and "seen: 1_19.py." in message


def test_what_changed_since_it_was_found_is_not_built(tmp_path):
    (tmp_path / "1_19.py").write_text(NAMES_ALL)
    solutions = discover(tmp_path).solutions
    (tmp_path / "1_19.py").write_text(NAMES_ALL + "# more\n")
    ((built, message),) = build_only(solutions, "9.0", None, precision="fp32", timeout_s=60, memory_bytes=None)
    assert built is None and message == "not built: one of its files changed meanwhile"


@pytest.mark.parametrize(
    "error, status",
    [(MachineFault("no room"), 3), (ToolchainError("no nvcc"), 0), (None, 0), ("changed", 3)],
    ids=["machine", "no tool", "built", "changed"],
)
def test_a_gate_does_not_hold_where_the_machine_failed_to_build(tmp_path, monkeypatch, error, status):
    """It did, beside another solution that was built: a source that does not compile passed while a disk was full."""
    for number in (1, 2):
        (tmp_path / f"1_{number}.cu").write_text("")
    solutions = discover(tmp_path).solutions
    if error == "changed":
        (tmp_path / "1_2.cu").write_text("int x;")

    def build(solution, *_):
        if solution.name == "1_2.cu" and isinstance(error, Exception):
            raise error

    monkeypatch.setattr(build_check, "build", build)  # there may be no nvcc here
    builds = build_only(solutions, "9.0", None, precision="fp32", timeout_s=60, memory_bytes=None)
    skipped = [Skipped(solution, "needs a GPU", elsewhere=True) for solution in solutions]
    outcome = Outcome(run(tmp_path / "run"), {"type": "cpu"}, 1, ["1/1", "1/2"], skipped=skipped)
    assert exit_status(check_outcome(outcome, Limits(), builds=builds)) == status
