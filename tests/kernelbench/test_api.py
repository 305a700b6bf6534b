"""The main job as a Python function: the command's result, and a caller that stays as it was."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import victims
from warm_kb import KB

import kernelbench
from harness.problem.module import ProblemError
from harness.process.procfs import descendants
from harness.result import Result
from harness.solution.discover import SolutionError
from kernelbench.metrics import settled
from kernelbench.run import Run
from kernelbench.suite import SelectorError

RELU = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return torch.relu(x)\n"
CPP = (
    "#include <cstddef>\n"
    'extern "C" void solution(const float* x, float* y, size_t b, size_t d) {\n'
    "    for (size_t i = 0; i < b * d; i++) y[i] = x[i] > 0 ? x[i] : 0;\n}\n"
)
WRONG = RELU.replace("torch.relu(x)", "x")
SLOW = "1_19_s1.py"
PAIRS = {
    "1_19_s0.py": RELU,
    SLOW: RELU.replace("return torch.relu(x)", "[torch.relu(x) for _ in range(40)]; return torch.relu(x)"),
    "1_19_s2.py": WRONG,
    "1_19_s3.cpp": CPP.replace("void", "nonsense"),
    "1_19_s4.cpp": CPP,
}
# A caller that has changed all that evaluating could depend on, or could change.
CALLER = """
import json, os, signal, sys, threading
import torch, kernelbench

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.set_float32_matmul_precision("medium")
torch.use_deterministic_algorithms(True, warn_only=True)
torch.manual_seed(3)
signal.signal(signal.SIGTERM, lambda *_: None)
os.chdir(sys.argv[1])

def state():
    return [
        str(torch.get_default_dtype()), torch.get_num_threads(), torch.get_float32_matmul_precision(),
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(), torch.get_rng_state().tolist(), dict(os.environ), os.getcwd(),
        threading.active_count(), [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    ]

before = state()
records = {name: kernelbench.evaluate("1/19", name, device="cpu").to_json() for name in sys.argv[2:]}
print(json.dumps({"records": records, "changed": [pair for pair in zip(before, state()) if pair[0] != pair[1]]}))
"""


@pytest.fixture
def write(tmp_path):
    def write(source, name="mine.py"):
        path = tmp_path / name
        path.write_text(source)
        return path

    return write


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for name, source in PAIRS.items():
        (folder / name).write_text(source)
    return folder


@pytest.fixture(scope="module")
def called(pairs):
    command = [sys.executable, "-c", CALLER, str(pairs), *PAIRS]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def evaluate(path, problem="1/19", **conditions):
    return kernelbench.evaluate(problem, path, device="cpu", **conditions)


def started(module, parent):
    """The child of ``parent`` in which ``module`` serves."""
    found = lambda: [pid for pid in victims.children(parent) if module in read(f"/proc/{pid}/cmdline")]  # noqa: E731
    wait_until(lambda: len(found()) == 1)  # one that was replaced ends in the background
    return int(found()[0])


def evaluator():
    return started("kernelbench.evaluator.process", os.getpid())


def judge():
    return started("harness.judge.main", evaluator())


def read(path):
    with contextlib.suppress(OSError), open(path) as file:
        return file.read()
    return ""


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not come to that"
        time.sleep(0.05)


def keys(record):
    """Keys of a record and of its parts; what lies below, and what is measured again, depends on what clocks saw."""
    kept = {name: value for name, value in record.items() if name != "confirms"}
    return {name: sorted(value) if isinstance(value, dict) else None for name, value in kept.items()}


@pytest.mark.slow
def test_the_function_and_the_command_agree(pairs, called, tmp_path):
    out = tmp_path / "run"
    command = [*KB, "eval", "--solutions", pairs, "--device", "cpu", "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    recorded = {result.solution["name"]: result for result in Run.load(out).results}
    assert sorted(recorded) == sorted(called["records"]) == sorted(PAIRS)
    for name, record in called["records"].items():
        ours, theirs = Result.from_json(record), recorded[name]
        assert ours.status is theirs.status, name
        assert keys(record) == keys(theirs.to_json()), name
        assert ours.device == theirs.device, name  # with the threads that it uses: the caller has only one
        assert ours.conditions.get("matmul_fp32") == theirs.conditions.get("matmul_fp32"), name
        verdicts = {settled.verdict(ours), settled.verdict(theirs)}
        if ours.correct:  # which verdict it is depends on the machine's other work, except for one so slow
            assert verdicts <= ({"slower", "unstable"} if name == SLOW else {"faster", "slower", "tie", "unstable"})
        else:
            assert verdicts == {None}


@pytest.mark.slow
def test_the_caller_stays_as_it_was(called):
    assert called["changed"] == []


@pytest.mark.slow
def test_the_caller_needs_no_torch(write):
    code = "import sys, kernelbench; r = kernelbench.evaluate('1/19', sys.argv[1], device='cpu')\n"
    code += "assert r.status == 'wrong_value', r.status; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, write(WRONG)], check=True)


@pytest.mark.slow
def test_evaluate_a_file_against_a_problem(write):
    path = write(CPP, "mine.cpp")
    result = evaluate(path)
    assert result.correct and result.speedup > 0 and result.workload["name"] == "small"
    path.write_text("nonsense")
    assert evaluate(path).status.value == "build_error"


@pytest.mark.slow
def test_calls_share_one_judge_whichever_thread_they_come_from(write):
    """A judge ends with the thread that started it, so a call's thread must not be that."""
    path = write(WRONG)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(evaluate, path).result()
    first = judge()
    with ThreadPoolExecutor(3) as pool:
        statuses = [result.status.value for result in pool.map(evaluate, [path] * 3)]
    assert statuses == ["wrong_value"] * 3
    assert judge() == first


@pytest.mark.slow
def test_conditions_change_from_call_to_call(write):
    path = write(WRONG)
    assert evaluate(path, precision="bf16").precision == "bf16"
    first = judge()
    assert evaluate(path, precision="fp32").precision == "fp32"
    assert judge() != first  # the first is gone, or there were two


@pytest.mark.slow
def test_a_problem_that_has_changed_is_evaluated_as_it_is_now(write, tmp_path):
    folder = tmp_path / "problems" / "level1"
    folder.mkdir(parents=True)
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return {}\n"
    source += "def get_inputs(): return [torch.rand(64, 64)]\ndef get_init_inputs(): return []\n"
    file = folder / "001_own.py"
    file.write_text(source.format("torch.relu(-x)"))
    os.utime(file, (0, 0))
    problem = kernelbench.load_problem("1/1", folder.parent)
    path = write(RELU.replace("relu(", "relu(-"))
    assert evaluate(path, problem).correct
    file.write_text(source.format("torch.relu(+x)"))
    os.utime(file, (0, 0))  # as an archive may have it
    assert evaluate(path, problem).status.value == "wrong_value"


@pytest.mark.slow
def test_an_evaluator_that_is_killed_is_replaced_within_the_call(write):
    path = write(victims.SOURCE)
    assert evaluate(path).status.value == "wrong_value"
    killed = evaluator()

    def kill():
        wait_until(lambda: victims.below(killed))
        os.kill(killed, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert evaluate(path).status.value == "wrong_value"
    killer.join()
    assert evaluator() != killed


@pytest.mark.slow
def test_an_interrupted_call_ends_its_evaluation(write):
    """And whoever interrupts it can go on: in a notebook, with the next cell."""
    path = write(victims.SOURCE.replace("time.sleep(1)", "time.sleep(50)"))

    def interrupt():
        wait_until(lambda: victims.below(os.getpid()))
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        evaluate(path)
    wait_until(lambda: not victims.below(os.getpid()))
    assert evaluate(write(WRONG)).status.value == "wrong_value"


@pytest.mark.slow
def test_the_evaluator_ends_with_its_caller_even_if_a_fork_goes_on(write):
    code = "import os, sys, time, kernelbench; kernelbench.evaluate('1/19', sys.argv[1], device='cpu')\n"
    code += "child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(100)"
    with subprocess.Popen([sys.executable, "-c", code, write(WRONG)], stdout=subprocess.PIPE, text=True) as caller:
        child = int(caller.stdout.readline())
        try:
            below = set(descendants(caller.pid)) - {caller.pid, child}
            assert len(below) >= 2
            caller.kill()
            caller.wait()
            wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in below))
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_machine_without_a_gpu_is_not_the_candidates_fault(write):
    path = write('extern "C" void solution(const float* x, float* y, size_t b, size_t d) {}', "mine.cu")
    with pytest.raises(kernelbench.EvaluationError, match="mine.cu: cuda solution, needs a GPU"):
        evaluate(path)


def test_load_problem():
    problem = kernelbench.load_problem("1/19")
    assert problem.name == "relu" and "full" in problem.workloads


def test_errors_of_the_caller_are_exceptions(write, tmp_path):
    path = write(RELU)
    with pytest.raises(SelectorError):
        kernelbench.load_problem("1/999")
    with pytest.raises(ValueError):
        kernelbench.load_problem("relu")
    with pytest.raises(SolutionError, match="no such file"):
        evaluate(tmp_path / "nowhere.py")
    with pytest.raises(SolutionError, match="ending in .py, .cu, .cpp"):
        evaluate(write(RELU, "mine.txt"))
    with pytest.raises(SolutionError, match="sample=x is not a number"):
        evaluate(write("# kb: sample=x\n" + RELU, "other.py"))
    with pytest.raises(ProblemError, match="no workload 'huge'"):
        evaluate(path, workload="huge")
    wrong = {"precision": "fp8", "cv_target": 0, "track": "b", "timeout_s": 0, "baselines": "eager"}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            evaluate(path, **{name: value})
