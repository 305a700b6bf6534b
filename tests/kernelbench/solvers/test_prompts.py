"""Prompts are files: ours hold together, the user's win; the kernels in them pass the harness."""

import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

from harness.problem.module import ProblemFile, ProblemId, load_problem
from harness.result import Result, Status
from harness.sol.clock import choose
from harness.sol.hardware import DEVICES, limits_of_device
from harness.sol.headroom import compare
from kernelbench import suite
from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.problem_facts import SuiteProblem, starting_point
from kernelbench.solvers.prompting import feedback
from kernelbench.solvers.prompting.prompts import FEW_SHOT, FOLDER, PromptError, Prompts
from kernelbench.solvers.task import Services, Settings, Task

H100 = {
    "type": "cuda", "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "multiprocessors": 132,
    "memory_bytes": 85017493504, "l2_bytes": 52428800,
}  # fmt: skip
EMULATION = Path(__file__).parent / "emulated_cuda.h"
EXAMPLES = ("add", *FEW_SHOT)


class OnDevice:
    """A backend that measures nothing."""

    def __init__(self, device):
        self.device = device


def task(device, clock_mhz=None, **options):
    facts = SuiteProblem(
        suite.find("1/25")[0], device, wanted="small", clock_mhz=clock_mhz, hardware=options.get("hardware", "")
    )
    return Task(facts, Settings(budget=1, options=options), Services(OnDevice(device), Journal(), submit=None))


def result(status=Status.OK, message="", speedup=2.0, verdict="faster"):
    """Twice as fast as the baseline, if it is a right one."""
    made = Result("1/1", "own", {"name": "small", "bytes": 2_000_000_000}, {"sample": 1}, status, message)
    if made.correct:
        baseline = {"median_ms": 1.0, "speedup": speedup, "verdict": verdict}
        baseline["interval"] = [0.99 * speedup, 1.01 * speedup]
        made.timing, made.baselines, made.speedup = {"median_ms": 1 / speedup}, {"eager": baseline}, speedup
    return made


def text(messages):
    (message,) = messages
    assert message["role"] == "user"
    return message["content"]


def test_the_prompt_for_a_gpu_with_everything_in_it():
    prompt = text(task(H100, context="few_shot,hardware,sol").prompt("Think of warps."))
    order = ["An example of a module", "bias_gelu_kernel", "132 streaming multiprocessors", "torch.sigmoid(x)"]
    order += ["# Speed of light: 1/25", "Think of warps.", "Answer with one code block"]
    assert [prompt.index(part) for part in order] == sorted(prompt.index(part) for part in order)
    assert "on an NVIDIA H100 80GB HBM3" in prompt and "3,350 GB/s" in prompt and "$" not in prompt


@pytest.mark.parametrize("name", DEVICES)
def test_the_hardware_prompt_has_facts_terms_and_practices_for_every_device(name):
    limits, prompt = DEVICES[name], task(H100, hardware=name).hardware
    for fact in (limits.title, f"{limits.gbps:,.0f} GB/s", f"{limits.multiprocessors} streaming", "65536 registers",
                 "may have 255 of them", "KB of shared memory", "blocks and", "- FP32: ", "- FP16: ", "- INT8: "):
        assert fact in prompt  # fmt: skip
    assert ("- TF32: " in prompt, "- BF16: " in prompt) == (name != "t4",) * 2
    assert ("- FP8: " in prompt) == (limits.fp8 is not None)
    for term in ("Thread", "Warp", "Thread block", "Shared memory", "Register", "Cache", "Occupancy"):
        assert f"- {term}: " in prompt
    assert "make a kernel fast" in prompt and "$" not in prompt


def test_the_facts_of_an_h100():
    prompt = task(H100).hardware
    for fact in ("Hopper, compute capability 9.0", "85 GB of HBM3 memory", "228 KB of shared memory", "may have 227 KB",
                 "room for 32 thread blocks and 2048 threads", "TF32: 494.7 TFLOP/s", "FP8: 1,979", "INT8: 1,979 TOP/s",
                 "`wgmma`"):
        assert fact in prompt  # fmt: skip
    assert "INT4" not in prompt


@pytest.mark.parametrize("device", [H100, {"type": "cpu", "name": "a CPU"}], ids=["on another GPU", "on a CPU"])
def test_a_prompt_for_a_gpu_that_is_not_at_hand(device):
    asked = task(device, hardware="a100-sxm", context="sol")
    prompt = text(asked.prompt())
    assert "make it on an NVIDIA A100 SXM 80 GB" in prompt and "80 GB of HBM2e memory" in prompt
    assert "H100" not in prompt and "a CPU" not in prompt
    assert "on NVIDIA A100 SXM 80 GB" in prompt and "1410 MHz, because none was observed: this GPU is not" in prompt


def test_hardware_that_is_in_no_table_is_an_error_that_names_the_others():
    with pytest.raises(ValueError, match="'a100'; there are: .*a100-sxm"):
        task(H100, hardware="a100").prompt()


def observed(sm_mhz):
    made = result()
    made.conditions = {"sm_clock_mhz": {"median": sm_mhz}, "memory_clock_mhz": {"median": 2619}}
    return made


def test_a_prompt_has_the_bound_of_the_record_of_the_latest_attempt():
    asked = task(H100, context="sol")
    asked.results = [observed(1980), observed(1500), result(Status.TIMEOUT)]
    clock = choose(asked.limits, asked.results[1].conditions)
    record = compare(asked.facts.analyses[0], limits_of_device(H100), 1.0, clock)
    prompt = text(asked.prompt())
    assert f"t_SOL = max = {record['t_sol_ms']:.4f} ms" in prompt
    assert "observed while the latest attempt was timed, 1500 MHz" in prompt and "1500 of 1980 MHz (observed)" in prompt


def test_before_the_first_attempt_a_prompt_says_that_its_clock_is_the_rated_one():
    prompt = text(task(H100, context="sol").prompt())
    assert "rated SM clock, 1980 MHz, because none was observed: no attempt was timed yet" in prompt


def test_a_clock_that_is_given_is_that_of_the_prompt_whatever_was_observed():
    asked = task(H100, clock_mhz=1500.0, context="sol")
    asked.results = [observed(1980)]
    assert "SM clock of 1500 MHz, as asked for" in text(asked.prompt())


def test_a_prompt_for_a_cpu_speaks_of_no_gpu_kernels():
    prompt = text(task({"type": "cpu", "name": "a CPU"}).prompt())
    assert "a CPU. There is no GPU" in prompt and "__global__" not in prompt and "OpenMP" in prompt


def test_a_solver_does_not_learn_the_shortcuts():
    for file in suite.find("all"):
        shown = starting_point(file.path.read_text())
        assert "class Model(" in shown and "def get_inputs(" in shown
        assert not re.search(r"EXPLOITS|TOLERANCE|TRIVIAL|WORKLOADS|get_flops", shown), file.path
        compile(shown, str(file.path), "exec")


def test_files_of_the_user_win(tmp_path):
    (tmp_path / "form.md").write_text("\nOnly code about $thing, for $$5.\n")
    prompts = Prompts(tmp_path)
    assert prompts.render("form", thing="GELU") == "Only code about GELU, for $5."
    assert "latest generation" in prompts.render("generation", source="")
    with pytest.raises(PromptError, match=r"form.md cannot be filled in: 'thing'. It may use \$other"):
        prompts.render("form", other="")
    with pytest.raises(PromptError, match="there is no prompt nothing.md"):
        prompts.render("nothing")


def test_a_folder_of_others_leads_to_no_file_of_the_user_and_keeps_nobody_waiting(tmp_path):
    (tmp_path / "secret").write_text("sent to a model")
    (tmp_path / "prompts" / "examples").mkdir(parents=True)
    prompts = Prompts(tmp_path / "prompts")
    (tmp_path / "prompts" / "form.md").symlink_to(tmp_path / "secret")
    with pytest.raises(PromptError, match="form.md cannot be read: it became a link to another file"):
        prompts.render("form")
    (tmp_path / "prompts" / "examples" / "mine").symlink_to(tmp_path)
    with pytest.raises(PromptError, match="examples/mine/secret cannot be read: it became a link"):
        prompts.text("examples/mine/secret")
    os.mkfifo(tmp_path / "prompts" / "task.md")
    with pytest.raises(PromptError, match="task.md cannot be read: it is not a plain file"):
        prompts.render("task")
    (tmp_path / "prompts" / "form.md").unlink()
    (tmp_path / "prompts" / "form.md").write_bytes(b"\xff")
    with pytest.raises(PromptError, match="form.md is no text in UTF-8"):
        prompts.render("form")
    (tmp_path / "link").symlink_to(tmp_path / "prompts")
    (tmp_path / "prompts" / "form.md").write_text("mine")
    assert Prompts(tmp_path / "link").render("form") == "mine"


def test_execution_feedback_is_the_message_or_the_times():
    failed = result(Status.TIMEOUT, "it ran past 20 s")
    assert "status: timeout\nit ran past 20 s" in feedback.execution(failed) and feedback.profile(failed) == ""
    right = feedback.execution(result())
    assert "status: ok" in right and "time: 0.5 ms" in right and "PyTorch (eager): 1 ms" in right


@pytest.mark.parametrize(
    "speedup, verdict, said",
    [(2.0, "faster", "speedup: faster; measured as 2x, 95 % interval 1.98 to 2.02"),
     (1.004, "tie", "speedup: tie; measured as 1x"),
     (3.0, "unstable", "speedup: unstable; measured as 3x")],
)  # fmt: skip
def test_execution_feedback_claims_no_more_than_the_verdict(speedup, verdict, said):
    assert said in feedback.execution(result(speedup=speedup, verdict=verdict))


def test_execution_feedback_without_a_speedup_says_why():
    untimed = result()
    untimed.speedup, untimed.baselines = None, {"compile": {"error": "no C++ compiler"}}
    assert "speedup: none, because no baseline could be timed: compile: no C++" in feedback.execution(untimed)


def test_profile_feedback_has_rates_headroom_launches_and_kernels():
    timed = result()
    timed.gflops, timed.gbps = 100.0, 2000.0
    timed.sol = {
        "t_sol_ms": 0.6, "percent_of_sol": 60.0, "bottleneck": "memory", "peak_type": "TF32",
        "compute_share": 0.01, "bandwidth_share": 0.6,
    }  # fmt: skip
    kernel = {"launches": 2, "ms": 0.75, "registers": 32, "shared_bytes": 128, "grid": [64, 1, 1], "block": [256, 1, 1]}
    timed.timing |= {
        "launch_bound_ms": 3.0,
        "profile": {"kernels": [{"name": "first", **kernel}, {"name": "second", **kernel, "ms": 0.25}]},
    }
    shown = feedback.profile(timed)
    for part in ("100 GFLOP/s", "2,000 GB/s", "0.6 ms, which is 60 %", "memory; reached: 1.0%", "launch fewer kernels"):
        assert part in shown
    assert re.search(r"first +\| 2 +\| 0.75 +\| 75% +\| 64x1x1 +\| 256x1x1 +\| 32 +\| 128", shown)
    timed.timing |= {"launch_bound_ms": 0.6}
    assert "launch fewer" not in feedback.profile(timed)
    timed.timing = None  # of a size that tells no time
    assert "launch" not in feedback.profile(timed)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_pairs_that_a_person_can_run(example):
    problem = load_problem(ProblemFile(ProblemId(1, 1), example, FOLDER / "examples" / example / "reference.py"))
    assert problem.workload("full").get_inputs()
    source = (FOLDER / "examples" / example / "solution.py").read_text()
    compile(source, example, "exec")
    assert "class ModelNew(nn.Module)" in source and len(source.splitlines()) < 90


@pytest.mark.slow
def test_the_example_for_a_cpu_passes_the_harness(judged):
    folder = FOLDER / "examples" / "add"
    problem = load_problem(ProblemFile(ProblemId(1, 1), "add", folder / "reference.py"))
    result = judged(problem, (folder / "solution_cpu.py").read_text())
    assert result.status is Status.OK, result.message


@pytest.mark.gpu
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_pass_the_harness(judged, example):
    folder = FOLDER / "examples" / example
    problem = load_problem(ProblemFile(ProblemId(1, 1), example, folder / "reference.py"))
    result = judged(problem, (folder / "solution.py").read_text(), device="cuda")
    assert result.status is Status.OK, result.message


def cuda_of(example):
    """The CUDA source inside of an example."""
    source = (FOLDER / "examples" / example / "solution.py").read_text()
    (cuda,) = re.findall(r'CUDA = r"""\n(.*?)"""', source, re.DOTALL)
    return cuda


def kernels_of(example):
    """The kernels alone, without what needs PyTorch's headers."""
    kernels = re.sub(r"\ntorch::Tensor .*", "", cuda_of(example), flags=re.DOTALL)
    return kernels.replace("#include <torch/extension.h>", "#include <cstdint>")


# How each example launches its kernel, on inputs of a size that an emulation can do.
EMULATED = {
    "add": ([(70, 10)] * 2, (70, 10), "emulate(2, 256, [&] { add_kernel(x, y, out, 700); });"),
    "fused_gelu": (
        [(30, 16), (16,)], (30, 16),
        "emulate(1, 256, [&] { bias_gelu_kernel((float4*)x, (float4*)y, (float4*)out, 120, 4); });",
    ),
    "tiled_matmul": (
        [(100, 37), (37, 70)], (100, 70), "emulate(dim3(2, 2), 256, [&] { matmul_kernel(x, y, out, 100, 70, 37); });"
    ),
    "flash_attention": (
        [(1, 2, 70, 64)] * 3, (1, 2, 70, 64),
        "emulate(dim3(2, 2), 64, [&] { attention_kernel(x, y, z, out, 70, 0.125f); });",
    ),
}  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_kernels_of_the_examples_compute_what_their_references_do(tmp_path, example):
    shapes, shape, launch = EMULATED[example]
    torch.manual_seed(1)
    inputs = [torch.randn(s) for s in shapes]
    module = load_problem(ProblemFile(ProblemId(1, 1), example, FOLDER / "examples" / example / "reference.py")).module
    model = module.Model(16) if example == "fused_gelu" else module.Model()
    arguments = inputs
    if example == "fused_gelu":
        model.bias.data, arguments = inputs[1], inputs[:1]
    entry = f'extern "C" void run(float* x, float* y, float* z, float* out) {{ {launch} }}\n'
    (tmp_path / "kernels.cpp").write_text(EMULATION.read_text() + kernels_of(example) + entry)
    options = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", tmp_path / "kernels.so"]
    subprocess.run(["g++", *options, tmp_path / "kernels.cpp"], check=True)
    out = torch.full(shape, float("nan"))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, *inputs[:1] * (3 - len(inputs)), out)]
    ctypes.CDLL(str(tmp_path / "kernels.so")).run(*pointers)
    assert torch.allclose(out, model(*arguments), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_kernels_of_the_examples_compile(tmp_path, example):
    try:
        subprocess.run(["nvcc", "--version"], capture_output=True, check=True)
    except OSError:
        pytest.skip("needs nvcc")
    (tmp_path / "kernels.cu").write_text(kernels_of(example))
    command = ["nvcc", "-arch=sm_90", "-c", "-o", str(tmp_path / "kernels.o"), str(tmp_path / "kernels.cu")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
