"""What all tests share: a build cache of their own, a warm fork server, one evaluation as a function."""

import os
import signal
from pathlib import Path

import pytest
import torch
import warm_kb
from quick import QUICK_CV

from harness import device as devices
from harness.compile import BuildContext, build
from harness.judge.conditions import Conditions
from harness.judge.evaluate import evaluate
from harness.judge.record import failed_result
from harness.problem.module import ProblemFile, ProblemId, load_problem
from harness.process.fork_server import ForkServer
from harness.process.spawn import start_server
from harness.result import CandidateFailure
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.evaluation import judge_process
from kernelbench.evaluator import client

GIB = 1 << 30
LONGEST = ("test_ray_cluster.py", "test_redteam.py")


def pytest_configure():
    _take_cores()
    # tests that run in the background may have been told to ignore SIGINT, which the processes they start inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_cores():
    """Share the cores with the other processes that run tests, for evaluations on other cores do not wait."""
    process, count = os.environ.get("PYTEST_XDIST_WORKER"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    cores = sorted(os.sched_getaffinity(0))
    if process and count <= len(cores):
        share = cores[int(process.removeprefix("gw")) :: count]
        os.sched_setaffinity(0, share)
        torch.set_num_threads(len(share))


def pytest_collection_modifyitems(items):
    # first, so that in the end nobody waits for the one worker that has them
    items.sort(key=lambda item: item.path.name not in LONGEST)
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU, and PyTorch sees none"))


@pytest.fixture(scope="session", autouse=True)
def build_cache(tmp_path_factory):
    """Builds of the tests, apart from the user's."""
    path = tmp_path_factory.mktemp("cache")
    os.environ["KERNELBENCH_CACHE"] = str(path)
    return path


@pytest.fixture(autouse=True)
def same_numbers():
    """Draw the same numbers in each run, so that a test passes in all runs or in none."""
    torch.manual_seed(26)


@pytest.fixture(scope="session", autouse=True)
def warm():
    """`kb`, and judges, without an import of PyTorch for each."""
    with warm_kb.serving(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_process, "start_server", warm_kb.start_server)
        yield


@pytest.fixture
def cold_starts(monkeypatch):
    """Start judges as `kb` does where nobody serves."""
    monkeypatch.setattr(judge_process, "start_server", start_server)


@pytest.fixture
def warm_evaluator(monkeypatch):
    """Start evaluators of this process without an import of PyTorch for each; they are no children of it then."""
    monkeypatch.setattr(client, "start_server", warm_kb.start_server)


@pytest.fixture(scope="session")
def server():
    with ForkServer() as server:
        yield server


@pytest.fixture(scope="session")
def problem():
    """The problem of the suite with the given id."""
    return lambda problem_id: load_problem(suite.find(problem_id)[0])


@pytest.fixture
def write_problem(tmp_path):
    """Write the source of a problem module and load it."""

    def write(source, name="001_own.py"):
        path = tmp_path / "level1" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return load_problem(ProblemFile(ProblemId(1, 1), "own", path))

    return write


@pytest.fixture
def judged(server, tmp_path):
    """Build, check and time a solution given as source: the whole way of a candidate."""

    def judged(problem, source, suffix=".py", *, device="cpu", workload=None, precision="fp32",
               timeout_s=60.0, memory_bytes=4 * GIB, cv_target=QUICK_CV, **options):  # fmt: skip
        path = tmp_path / f"candidate{suffix}"
        path.write_text(source)
        solution = read_solution(path, problem=problem.id)
        limits = {"timeout_s": timeout_s, "memory_bytes": memory_bytes, "cv_target": cv_target}
        conditions = Conditions(devices.select(device), precision, **limits, **options)
        chosen = problem.workload_for(workload, conditions.device.type)
        arch = devices.architecture(conditions.device)
        try:
            artefact = build(solution, BuildContext(server, arch, torch.__version__, 300, memory_bytes, jobs=2))
        except CandidateFailure as failure:
            return failed_result(chosen, solution, conditions, failure)
        return evaluate(chosen, solution, artefact, conditions, server)

    return judged


@pytest.fixture(scope="session")
def examples():
    return Path(__file__).parent.parent / "examples"
