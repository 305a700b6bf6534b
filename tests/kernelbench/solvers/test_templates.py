"""The templates compute what the references do: as C++ on the CPU, and as CUDA in an emulation of its threads."""

import ctypes
import itertools
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from candidates import STRATEGIES

from harness.problem.inputs import build_model, call, draw_inputs
from harness.problem.module import ProblemFile, ProblemId, load_problem
from harness.problem.signature import derive_signature
from harness.result import Status
from harness.sol.operators import trace
from kernelbench.solvers.templates.formula import Formula, Load
from kernelbench.solvers.templates.patterns import NoTemplate, merged
from kernelbench.solvers.templates.plans import fitting
from kernelbench.solvers.templates.recognition import recognise

EMULATION = (Path(__file__).parent / "emulated_cuda.h").read_text()
SCALARS = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "double": ctypes.c_double, "bool": ctypes.c_bool}
CPU = torch.device("cpu")


def task(problem, workload="small", multiprocessors=None):
    """What ``fitting`` reads of a task: on a CPU, or on a GPU of so many multiprocessors."""
    chosen = problem.workload(workload)
    return SimpleNamespace(
        id=str(problem.id), precision="fp32", workload=chosen, trace=trace(chosen), signature=derive_signature(chosen),
        device={"type": "cuda", "multiprocessors": multiprocessors} if multiprocessors else {"type": "cpu"},
    )  # fmt: skip


def emulated(source):
    """CUDA as C++: every launch becomes a call of the emulation."""
    launches = re.sub(r"(\w+)<<<(.+), (.+?)>>>\((.*)\);", r"emulate(\2, \3, [&] { \1(\4); });", source)
    return EMULATION + launches.replace("#include <math_constants.h>", "")


def largest_error(tmp_path, given, source, draw="shifted"):
    """Of any element of the output, over its value and the root mean square of all."""
    (tmp_path / "solution.cpp").write_text(source)
    library = tmp_path / f"solution{len(list(tmp_path.iterdir()))}.so"
    options = ["-std=c++17", "-O1", "-w", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "-o", library, tmp_path / "solution.cpp"], check=True)
    inputs = draw_inputs(given.workload, 7, CPU, torch.float32, draw)
    model = build_model(given.workload.problem.module.Model, given.workload, 7, CPU, torch.float32, "hardened")
    with torch.no_grad():
        expected = call(model, inputs)
    output = torch.full(expected.shape, -7).to(expected.dtype)
    tensors = [*inputs, *model.state_dict().values(), output]
    scalars = [SCALARS[scalar.c_type](scalar.value) for scalar in given.signature.scalars]
    ctypes.CDLL(str(library)).solution(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors), *scalars)
    if not expected.dtype.is_floating_point:
        return (output != expected).double().mean().item()
    return ((output - expected).abs() / (expected.abs() + expected.square().mean().sqrt())).max().item()


@pytest.mark.parametrize(
    "id, template, choices",
    [
        ("1/12", "map.cu", {}),  # a broadcast operand
        ("1/23", "rows.cu", {"cache": 0}),
        ("1/35", "rows.cu", {}),  # with weights for each channel
        ("1/99", "rows.cu", {"vec": 1}),  # two reductions at once, then the mean over all rows
        ("1/40", "split.cu", {}),
        ("1/98", "split.cu", {}),  # everything to one number
        ("1/36", "columns.cu", {}),
        ("1/51", "columns.cu", {}),
        ("1/16", "matmul.cu", {"high": 64, "rows": 4}),
        ("1/14", "matmul.cu", {}),  # half of it is zero
    ],
)
def test_cuda_templates_in_emulation(problem, tmp_path, id, template, choices):
    given = task(problem(id), multiprocessors=4)
    plan = next(plan for plan in fitting(given) if plan.template == template)
    assert largest_error(tmp_path, given, emulated(plan.source(plan.default | choices))) < 2e-5


@pytest.mark.parametrize("id", ["1/88", "1/24", "1/36", "1/40", "1/99", "1/53"])
def test_the_template_for_a_cpu(problem, tmp_path, id):
    given = task(problem(id))
    (plan,) = fitting(given)
    last = {name: values[-1] for name, values in plan.space.items()}
    for choice in (plan.default, last):
        assert largest_error(tmp_path, given, plan.source(choice)) < 2e-5


@pytest.mark.parametrize(
    "id, reason",
    [
        ("1/50", "convolution is no operator"), ("1/89", "cumsum is no operator"), ("1/97", "a matrix product with"),
        ("1/41", "max_pool2d_with_indices is no operator"), ("2/12", "no operator|matrix product"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_why(problem, id, reason):
    with pytest.raises(NoTemplate, match=reason):
        fitting(task(problem(id), multiprocessors=132))


MODULE = """import torch
class Model(torch.nn.Module):
    def forward(self, A, B):
        return {}
def get_inputs():
    return [torch.rand(64, 128), torch.rand(128, 1)]
def get_init_inputs():
    return []
"""


def problem_of(tmp_path, expression):
    """Return the problem that computes an expression of a matrix A and a column B."""
    (tmp_path / "one.py").write_text(MODULE.format(expression))
    return load_problem(ProblemFile(ProblemId(1, 1), "one", tmp_path / "one.py"))


def test_a_mean_over_some_of_the_rows_fits_no_template(tmp_path):
    """It was computed over all of them."""
    assert fitting(task(problem_of(tmp_path, "A.sum(1).mean()"), workload="full"))
    with pytest.raises(NoTemplate):
        fitting(task(problem_of(tmp_path, "A.sum(1)[:10].mean()"), workload="full"))


def test_a_matrix_times_a_vector_is_not_taken_for_the_triangle_of_it(tmp_path):
    found = [recognise(task(problem_of(tmp_path, text), workload="full").trace) for text in ("A @ B", "(A @ B).triu()")]
    assert isinstance(found[0], Formula) and found[1].keep == "column >= row"


def test_half_precision_is_not_for_the_templates(problem):
    given = task(problem("1/19"))
    given.precision = "fp16"
    with pytest.raises(NoTemplate, match="FP32"):
        fitting(given)


def test_a_solution_leaves_other_sizes_alone(problem):
    (plan,) = fitting(task(problem("1/19")))
    assert "if (batch_size != 64 || dim != 4096) return;" in plan.source(plan.default)


def test_offsets_follow_the_strides():
    assert Load("x", "float", merged((4, 5, 6), (30, 6, 1))).index() == "at"
    shape, strides = (4, 5, 6), (6, 0, 1)
    index = Load("x", "float", merged(shape, strides)).index()
    for at, place in enumerate(itertools.product(*map(range, shape))):
        offset = sum(p * s for p, s in zip(place, strides))
        assert eval(index.replace("/", "//"), {"at": at}) == offset


def test_neighbours_differ_in_one_parameter_and_fit_a_block(problem):
    (plan,) = fitting(task(problem("1/1"), workload="full", multiprocessors=132))
    neighbours = list(plan.neighbours(plan.default))
    assert len(neighbours) > 4 and all(plan.fits(choice) for choice in neighbours)
    for choice in neighbours:
        assert sum(choice[name] != plan.default[name] for name in choice) == 1


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("id", ["1/25", "1/23", "1/40", "1/36", "1/1"])
def test_cuda_templates_compile(problem, tmp_path, id):
    for plan in fitting(task(problem(id), workload="full", multiprocessors=132)):
        (tmp_path / plan.template).write_text(plan.source(plan.default))
        command = ["nvcc", "-arch=sm_90", "-c", "-o", tmp_path / "solution.o", tmp_path / plan.template]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_search_tries_the_default_then_its_neighbours(solved):
    outcome = solved(STRATEGIES / "template.py", selector="1/23,1/50", budget=2)
    assert [result.status for result in outcome.run.results] == [Status.OK] * 2 and not outcome.failures
    first, second = ((outcome.run.path / "solutions" / "level1" / f"23_s{n}.cpp").read_text() for n in (1, 2))
    assert "// loops.cpp: tile 1, chunks 1, unroll 1, grain 0, lanes 1, team 0\n" in first and "chunks 4" in second


@pytest.mark.gpu
@pytest.mark.parametrize("id", ["1/12", "1/16", "1/23", "1/30", "1/36", "1/38", "1/40", "1/51", "1/94", "1/99"])
def test_every_template_passes_the_harness_on_a_gpu(problem, judged, id):
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    for workload in problem(id).workloads:
        for plan in fitting(task(problem(id), workload=workload, multiprocessors=multiprocessors)):
            result = judged(problem(id), plan.source(plan.default), ".cu", device="cuda", workload=workload)
            assert result.status is Status.OK, f"{workload} {plan.template}: {result.message}"
