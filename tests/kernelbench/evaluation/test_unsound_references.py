"""A reference that no candidate can be held to: its candidates are not evaluated, and those beside them are."""

import subprocess

from warm_kb import KB

from kernelbench.run import Run

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return {}
def get_inputs(): return [torch.rand(256)]
def get_init_inputs(): return []
"""
CANDIDATE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
RETURNED = {1: "None", 2: "x * 2", 3: "x.mul_(2)"}


def test_only_its_own_candidates_are_not_evaluated_and_the_reason_is_told(tmp_path):
    problems, solutions, out = tmp_path / "problems" / "level1", tmp_path / "solutions", tmp_path / "run"
    problems.mkdir(parents=True)
    solutions.mkdir()
    for number, returned in RETURNED.items():
        (problems / f"{number}_own.py").write_text(REFERENCE.format(returned))
        (solutions / f"1_{number}.py").write_text(CANDIDATE)
    command = [*KB, "eval", "--solutions", solutions, "--problem-dir", problems.parent,
               "--device", "cpu", "--allow-library", "--out", out]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    (result,) = Run.load(out).latest()
    assert result.problem == "1/2" and result.correct, done.stdout + done.stderr
    told = done.stdout + done.stderr
    assert "the reference of 1/1 (full) cannot be judged against: it returns no tensor" in told
    assert "the reference of 1/3 (full) cannot be judged against: it overwrites its input 'x'" in told
    assert "please report this" not in told and "Traceback" not in told
