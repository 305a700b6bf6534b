"""Profiles inside the sandbox: what a CPU says, what a GPU says, and candidates that spoil it."""

import pytest
import torch

from harness import device as devices
from harness.compile import BuildContext, build
from harness.judge.conditions import Conditions
from harness.judge.profiles.one_call import profile
from harness.result import CandidateFailure, Status
from harness.solution.discover import read_solution

MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"


@pytest.fixture
def profiled(server, problem, tmp_path):
    """Build and profile a solution, by default of 1/19."""

    def profiled(source, suffix=".py", device="cpu", ncu=None, problem_id="1/19"):
        path = tmp_path / f"candidate{suffix}"
        path.write_text(source)
        chosen = problem(problem_id)
        solution = read_solution(path, problem=chosen.id)
        conditions = Conditions(devices.select(device), "fp32", 20.0, 4 << 30)
        arch = devices.architecture(conditions.device)
        artefact = build(solution, BuildContext(server, arch, torch.__version__, 300, 4 << 30, jobs=1))
        workload = chosen.workload_for("small", conditions.device.type)
        return profile(workload, solution, artefact, conditions, server, ncu=ncu)

    return profiled


def test_a_cpu_counts_time_and_faults(profiled):
    record = profiled(MODEL.format(body="return x.clamp(min=0)"))
    assert record["tool"] == "cpu" and record["facts"]["wall_s"] > 0 and record["facts"]["cores_used"] >= 0
    assert {"minor_faults", "voluntary_switches"} < set(record["facts"])


def test_a_problem_that_is_timed_with_other_weights_than_its_own_has_a_profile(profiled, problem):
    """The model had its initial weights only: recurrent and attention problems had a KeyError and no profile."""
    source = problem("3/36").path.read_text().replace("class Model(", "class ModelNew(")
    assert profiled(source.replace("super(Model,", "super(ModelNew,"), problem_id="3/36")["tool"] == "cpu"


def test_a_candidate_that_forges_its_counters_has_none(profiled):
    forged = (
        "import resource, types\n"
        "resource.getrusage = lambda who: types.SimpleNamespace(ru_utime=float('nan'), ru_stime=0, ru_minflt=0,"
        " ru_majflt=0, ru_nvcsw=0, ru_nivcsw=0)\n"
    )
    record = profiled(forged + MODEL.format(body="return x.clamp(min=0)"))
    assert record["tool"] == "none" and "no counters" in record["note"]


def test_a_candidate_that_fails_is_a_failure(profiled):
    with pytest.raises(CandidateFailure) as failed:
        profiled(MODEL.format(body="raise ValueError('no')"))
    assert failed.value.status is Status.RUNTIME_ERROR


CUDA = (
    "#include <cstddef>\n__global__ void own_relu(const float *x, float *out, size_t n) {\n"
    "    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = x[i] > 0 ? x[i] : 0;\n}\n"
    'extern "C" void solution(const float *x, float *out, size_t b, size_t d) {\n'
    "    own_relu<<<(b * d + 255) / 256, 256>>>(x, out, b * d);\n}\n"
)


@pytest.mark.gpu
def test_a_gpu_names_kernels_with_their_launch_parameters(profiled):
    record = profiled(CUDA, ".cu", "cuda")
    (kernel,) = [kernel for kernel in record["kernels"] if "own_relu" in kernel["name"]]
    assert record["tool"] == "cupti" and kernel["block"] == [256, 1, 1] and kernel["registers"] > 0


@pytest.mark.gpu
def test_ncu_is_tried_inside_the_sandbox_and_says_something(profiled):
    ncu = pytest.importorskip("kernelbench.machine.ncu")
    try:
        command = ncu.command()
    except ncu.NsightError as missing:
        pytest.skip(str(missing))
    assert profiled(CUDA, ".cu", "cuda", command)["ncu_output"]
