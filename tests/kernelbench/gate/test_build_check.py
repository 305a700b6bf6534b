"""Builds of what a machine without a GPU cannot run."""

from harness.solution.discover import discover
from kernelbench.gate.build_check import build_only

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
