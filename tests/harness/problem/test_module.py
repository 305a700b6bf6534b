"""Loading problems by the contract, and in KernelBench's own format."""

import contextlib
import os

import pytest
import torch
from linear_time import MEGABYTE, in_linear_time

from harness.problem.inputs import draw_inputs
from harness.problem.module import ProblemError, ProblemFile, ProblemId, find_problems, load_problem

CPU = torch.device("cpu")

KERNELBENCH_MODULE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, factor):
        super(Model, self).__init__()
        self.factor = factor

    def forward(self, x, mask):
        return x * self.factor * mask

batch_size = 16

def get_inputs():
    return [torch.rand(batch_size, 8), torch.randint(0, 2, (batch_size, 8)).bool()]

def get_init_inputs():
    return [3.0]
"""


def write(folder, name, source=KERNELBENCH_MODULE):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def test_problems_are_found_by_level_folder_and_number(tmp_path):
    write(tmp_path, "level2/7_Second_One_.py")
    write(tmp_path, "level1/019_relu.py")
    write(tmp_path, "level1/notes.py")
    write(tmp_path, "level1/1234567890_more_digits_than_an_id_has.py")
    write(tmp_path, "level\u0661/1_a_level_in_digits_of_others.py")
    assert [(str(p.id), p.name) for p in find_problems(tmp_path)] == [("1/19", "relu"), ("2/7", "Second_One")]


def test_two_files_for_one_id_are_an_error_that_names_both(tmp_path):
    write(tmp_path, "level1/19_a.py")
    write(tmp_path, "level1/019_b.py")
    with pytest.raises(ProblemError, match=r"019_b\.py.*19_a\.py|19_a\.py.*019_b\.py"):
        find_problems(tmp_path)


def test_a_folder_without_problems_is_an_error(tmp_path):
    with pytest.raises(ProblemError, match="no problems in"):
        find_problems(tmp_path)


def test_kernelbench_module_has_one_workload_and_no_flops(tmp_path):
    write(tmp_path, "level1/1_scale.py")
    problem = load_problem(find_problems(tmp_path)[0])
    assert list(problem.workloads) == ["full"]
    workload = problem.default_workload("cpu")
    assert workload.flops is None
    x, mask = draw_inputs(workload, 1, CPU, torch.float16)
    assert x.dtype == torch.float16 and mask.dtype == torch.bool


def test_default_workload_is_full_on_a_gpu_and_small_on_a_cpu(problem):
    relu = problem("1/19")
    assert relu.default_workload("cuda").name == "full"
    assert relu.default_workload("cpu").name == "small"


def test_unknown_workload_names_the_known_ones(problem):
    with pytest.raises(ProblemError, match="it has: full, small"):
        problem("1/19").workload("huge")


@pytest.mark.parametrize(
    "source, message",
    [
        ("class Model: pass", "defines no get_inputs"),
        ("import nothing_of_that_name", "does not load: ModuleNotFoundError"),
        ("def broken(:", "does not load: SyntaxError"),
        (KERNELBENCH_MODULE + "\nWORKLOADS = {'full': 3}", "WORKLOADS must map"),
    ],
)
def test_a_broken_module_is_an_error_with_its_path(tmp_path, source, message):
    path = write(tmp_path, "level1/1_broken.py", source)
    with pytest.raises(ProblemError, match=message) as error:
        load_problem(ProblemFile(ProblemId(1, 1), "broken", path))
    assert str(path) in str(error.value)


def test_sizes_that_a_function_does_not_take_are_an_error(write_problem):
    problem = write_problem(KERNELBENCH_MODULE + "\nWORKLOADS = {'full': dict(rows=2)}")
    with pytest.raises(ProblemError, match=r"get_inputs\(rows=2\) failed"):
        problem.workload("full").get_inputs()


def test_workload_names_and_summary_are_read_without_importing(tmp_path):
    source = '"""What it does.\n\nMore."""\nraise RuntimeError\nWORKLOADS = {"full": dict(n=1), "small": dict(n=2)}\n'
    file = ProblemFile(ProblemId(1, 1), "x", write(tmp_path, "level1/1_x.py", source))
    assert file.summary() == "What it does."
    assert file.workload_names() == ["full", "small"]


@pytest.mark.parametrize(
    "content",
    [
        None, b"\xff\xfe", b"x=" + b"-" * 200_000 + b"1", b"WORKLOADS = {}", b"WORKLOADS = {**a, 1: 2}",
        b"WORKLOADS = [1, 2]", 1 << 40,
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_module_of_a_problem_is_an_error_that_names_it(tmp_path, content):
    """Files of others are listed without running them."""
    path = tmp_path / "1_x.py"
    if content is None:
        os.mkfifo(path)
    elif isinstance(content, int):
        with path.open("wb") as file:
            file.truncate(content)
    else:
        path.write_bytes(b"\n" + content)
    with pytest.raises(ProblemError, match="1_x.py"):
        ProblemFile(ProblemId(1, 1), "x", path).workload_names()


@pytest.mark.parametrize("text", ["19", "1-19", "a/b", "1/19/2", ""])
def test_malformed_ids_are_refused(text):
    with pytest.raises(ValueError, match="LEVEL/NUMBER"):
        ProblemId.parse(text)


def test_a_long_text_that_is_no_problem_id_is_told_at_once():
    """Zeros of two megabytes each held the lock of the interpreter, and with it a service, for seconds."""
    zeros = "0" * (2 * MEGABYTE)
    with in_linear_time(), pytest.raises(ValueError, match="is not a problem id"):
        for _ in range(20):
            with contextlib.suppress(ValueError):
                ProblemId.parse(f"{zeros}/{zeros}x")
        ProblemId.parse(f"{zeros}/{zeros}x")
