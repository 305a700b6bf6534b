"""Starters build as they are, and the Python one is a correct solution."""

import os
import subprocess

import pytest
import torch
from click.testing import CliRunner
from logs import short_files
from warm_kb import KB

from harness.result import Status
from harness.solution.discover import discover
from kernelbench import starter
from kernelbench.cli import main

pytestmark = pytest.mark.usefixtures("warm_evaluator")

TWELVE = ["1/1", "1/19", "1/23", "1/36", "1/40", "1/95", "2/63", "2/76", "2/86", "3/1", "3/43", "3/48"]


DECORATED = """'  '
import torch
def doubled(function):
    return lambda x: 2 * function(x)
@doubled
def twice(x):
    return 2 * x
class Model(torch.nn.Module):
    def forward(self, x):
        return twice(x)
def get_inputs():
    return [torch.rand(2)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("problem_id", TWELVE)
def test_cpp_starter_compiles(problem_id, tmp_path):
    (tmp_path / "s.cpp").write_text(starter.source(problem_id, "cpp"))
    subprocess.run(["c++", "-fsyntax-only", str(tmp_path / "s.cpp")], check=True)


@pytest.mark.parametrize("problem_id", ["1/36", "2/76", "3/48"])
def test_python_starter_is_the_reference_renamed_and_ok(problem_id, judged, problem):
    text = starter.source(problem_id, "py")
    assert "WORKLOADS" not in text and "def get_" not in text
    result = judged(problem(problem_id), text)
    assert result.status is Status.OK, result.message


def test_python_starter_of_another_problem_keeps_decorators_and_needs_no_docstring(tmp_path):
    """A decorator was left out, so the starter computed another function; a blank docstring was an IndexError."""
    level = tmp_path / "level1"
    level.mkdir()
    (level / "1_twice.py").write_text(DECORATED)
    text = starter.source("1/1", "py", root=tmp_path)
    assert text.startswith("# kb: problem=1/1\n# twice\n")
    names = {}
    exec(text, names)
    assert names["ModelNew"]()(torch.ones(2)).tolist() == [4, 4]


def test_cu_starter_of_half_precision_includes_its_header():
    text = starter.source("1/19", "cu", "fp16")
    assert "#include <cuda_fp16.h>" in text and "const __half* x" in text
    assert text.startswith("// kb: problem=1/19\n")


def test_host_code_has_no_half():
    with pytest.raises(ValueError, match="use --kind cu"):
        starter.source("1/19", "cpp", "bf16")


@pytest.mark.parametrize(
    "device, has, precision, kind",
    [
        ("cuda", {"nvcc", "c++"}, "fp32", "cu"),
        ("cuda", {"c++"}, "fp32", "py"),
        ("cpu", {"nvcc", "c++"}, "fp32", "cpp"),
        ("cpu", {"c++"}, "bf16", "py"),
        ("cpu", set(), "fp32", "py"),
    ],
)
def test_the_kind_is_one_that_builds_and_runs_here(monkeypatch, device, has, precision, kind):
    monkeypatch.setattr(starter, "nvcc", lambda: "nvcc" in has)
    monkeypatch.setattr(starter, "host_compiler", lambda: "c++" in has)
    assert starter.kind_for(device, precision)[0] == kind


def kb(*arguments, cwd):
    return subprocess.run(
        [*KB, "starter", *arguments], cwd=cwd, capture_output=True, text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip


@pytest.mark.slow
def test_a_folder_gets_a_file_that_maps_to_the_problem_and_no_work_is_overwritten(tmp_path):
    done = kb("1/19", "-o", "mine", cwd=tmp_path)
    assert done.stdout == "mine/level1/19_relu.cpp\n" and "kind: cpp, which runs here" in done.stderr
    (found,) = discover(tmp_path / "mine").solutions
    assert (str(found.problem), found.kind, found.device) == ("1/19", "cpp", "cpu")
    found.path.write_text("my work")
    again = kb("1/19", "-o", "mine", cwd=tmp_path)
    assert again.returncode == 2 and "may be your work" in again.stderr and found.path.read_text() == "my work"


def test_a_full_disk_is_told_with_the_files_name_and_leaves_none(tmp_path):
    """An empty file stayed, and the next try was refused for it."""
    out = tmp_path / "relu.py"
    with short_files(2):
        done = CliRunner().invoke(main, ["starter", "1/19", "-o", str(out)])
    assert done.exit_code == 3 and f"cannot write {out}: File too large" in done.output, done.output
    assert not [*tmp_path.iterdir()]
    assert CliRunner().invoke(main, ["starter", "1/19", "-o", str(out)]).exit_code == 0 and out.read_text()


def test_nothing_is_written_into_a_folder_that_a_link_leads_to(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine/level1").symlink_to(tmp_path / "elsewhere")
    done = kb("1/19", "--kind", "py", "-o", "mine", cwd=tmp_path)
    assert done.returncode == 2 and "mine/level1 is a link, which nobody named" in done.stderr
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_file_says_its_kind(tmp_path):
    assert kb("1/19", "-o", "relu_s1.cu", cwd=tmp_path).stdout == "relu_s1.cu\n"
    (found,) = discover(tmp_path).solutions
    assert (str(found.problem), found.sample, found.kind) == ("1/19", 1, "cu")
    wrong = kb("1/19", "--kind", "py", "-o", "x.cu", cwd=tmp_path)
    assert wrong.returncode == 2 and "does not end in .py" in wrong.stderr
    assert kb("1/19", "--kind", "py", cwd=tmp_path).stdout.startswith("# kb: problem=1/19\n")
