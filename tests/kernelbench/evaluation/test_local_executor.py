"""One queue for all devices: work is spread, a device that is lost loses nothing, cheap builds come first."""

import contextlib
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
import victims

from harness.compile import Artefact, BuildContext, build
from harness.compile.cost import NOTHING, expected_cost
from harness.faults import MachineFault
from harness.problem.module import ProblemId
from harness.process.fork_server import ForkServer
from harness.result import CandidateFailure, Status
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.evaluation import local_executor
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Options, Skipped, open_executor
from kernelbench.evaluation.host_limits import MemoryBudget, TimingLock
from kernelbench.evaluation.judge_process import Judge, open_judges
from kernelbench.evaluation.local_executor import BuildQueue, Pipeline, builds_at_once
from kernelbench.run import Run

MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
# The worker's parent is the fork server of a judge.
SAYS_WHERE = MODEL.replace("return x", "raise ValueError(f'server {__import__(\"os\").getppid()}'); return x")
WRONG = MODEL.replace("x.clamp(min=0)", "x")  # ends at the first comparison, untimed


@pytest.fixture
def solutions(tmp_path):
    def write(*sources, suffix=".py"):
        file = suite.find("1/19")[0]
        pairs = []
        for number, source in enumerate(sources):
            path = tmp_path / f"{number}{suffix}"
            path.write_text(source)
            pairs.append((file, read_solution(path, problem=ProblemId(1, 19))))
        return pairs

    return write


@pytest.fixture
def killer():
    """Kills each of the judges that it is given while it has a victim."""
    stop = threading.Event()
    threads = []

    def watch(judge):
        while not stop.wait(0.05):
            with contextlib.suppress(OSError):
                if victims.below(judge.pid):
                    os.kill(judge.pid, signal.SIGKILL)

    def start(*judges):
        for judge in judges:
            threads.append(threading.Thread(target=watch, args=[judge]))
            threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("cores", "judges", "builds"), [(1, 1, 1), (2, 1, 1), (16, 1, 7), (64, 4, 30)])
def test_beside_gpus_builds_leave_a_core_for_each_judge_and_have_two(cores, judges, builds, monkeypatch):
    monkeypatch.setattr("kernelbench.evaluation.local_executor.usable_cores", lambda: cores)
    assert builds_at_once("cuda", judges) == builds
    assert builds_at_once("cpu", judges) == cores


@pytest.fixture
def two_judges():
    options = Options(device="cpu", timeout_s=20, jobs=2)
    judges = [Judge(options, "cpu") for _ in range(2)]
    for judge in judges:
        judge.wait_until_ready()
    pipeline = Pipeline(options, judges=judges)
    yield pipeline, judges
    pipeline.kill()


@pytest.mark.slow
def test_work_is_spread_over_the_judges_and_every_solution_ends_once(solutions, two_judges):
    pipeline, judges = two_judges
    pairs = solutions(*[f"# {number}\n{SAYS_WHERE}" for number in range(6)])
    ended = list(pipeline.evaluate(pairs))
    assert {item.solution for item in ended} == {solution for _, solution in pairs} and len(ended) == 6
    assert {item.result.status for item in ended} == {Status.RUNTIME_ERROR}
    used = [re.search(r"server (\d+)", item.result.message)[1] for item in ended]
    assert set(used) <= {server for judge in judges for server in victims.children(judge.pid)} and len(set(used)) == 2


@pytest.mark.slow
def test_a_candidate_with_whom_each_judge_dies_has_failed_and_the_judges_work_on(solutions, two_judges, killer):
    """It counted nowhere where it was not evaluated, and so had withdrawn itself."""
    pipeline, judges = two_judges
    before = {judge.pid for judge in judges}
    killer(*judges)
    ended = list(pipeline.evaluate(solutions(victims.SOURCE, WRONG, WRONG + "\n", WRONG + "\n\n")))
    assert all(isinstance(item, Evaluated) for item in ended)
    (failed,) = [item.result for item in ended if item.solution.name == "0.py"]
    assert failed.status is Status.CRASHED and "not with the reference in its place" in failed.message
    assert "the judge's process died (exit status -9)" in failed.message
    assert len({judge.pid for judge in judges} - before) == 1 and not any(judge.lost for judge in judges)


@pytest.mark.slow
def test_a_line_takes_solutions_as_they_come_and_from_several_threads(solutions, two_judges):
    pipeline, _ = two_judges
    pairs = solutions(*[f"# {number}\n{WRONG}" for number in range(4)])
    phases = []
    with pipeline.line(at_once=2) as line:
        (file, solution), *rest = pairs
        first = line.submit(file, solution, phases.append).result()
        with ThreadPoolExecutor(3) as pool:
            others = [future.result() for future in pool.map(lambda pair: line.submit(*pair), rest)]
        known = line.submit(file, solution, failure=CandidateFailure(Status.BUILD_ERROR, "no code")).result()
    assert first.result.status is Status.WRONG_VALUE
    assert phases[:3] == ["building", "built", "judging"] and phases[-1] == ""
    assert [other.solution for other in others] == [solution for _, solution in rest]
    assert (known.result.status, known.result.message) == (Status.BUILD_ERROR, "no code")


@pytest.mark.parametrize(
    ("lost", "pause_s", "answers"),
    [
        (None, 0.0, ["it hangs", "it hangs"]),  # what took one solution's time takes no other's
        (None, 0.3, ["it hangs", "done"]),  # but the machine may have been at fault
        ("gone", 0.0, ["done", "done"]),  # or the device, and there is another
    ],
)
def test_a_reference_that_failed_is_asked_again_later_or_on_another_device(
    solutions, monkeypatch, lost, pause_s, answers
):
    """It was done with for as long as the queue lasted, for all devices by the word of one that broke."""
    asked = []

    class Device:
        device, arch, torch_version, lost = {"type": "cuda"}, None, torch.__version__, None

    def answer(judge, order, *_):
        asked.append(order)
        if len(asked) > 1:
            return "done"
        judge.lost = lost
        return Skipped(order.solution, "it hangs", every=True)

    monkeypatch.setattr(local_executor, "_UNFIT_S", 0.2)
    monkeypatch.setattr(local_executor, "asked", answer)
    monkeypatch.setattr(local_executor, "build", lambda *_: Artefact())
    ((file, solution),) = solutions(WRONG)
    queue = BuildQueue(Options(jobs=1), [Device(), Device()] if lost else [Device()], ForkServer(), at_once=1)
    told = []
    for _ in range(2):
        told.append(queue.submit(file, solution).result(timeout=30))
        time.sleep(pause_s)
    queue.close()
    assert [getattr(one, "reason", one) for one in told] == answers


def test_a_slip_of_ours_ends_one_solution_and_no_thread(solutions, monkeypatch):
    """Whoever waited for that device waited for ever."""

    class Device:
        device, arch, torch_version, lost = {"type": "cuda"}, None, torch.__version__, None

    def phase(text):
        if text == "judging":
            raise NameError("a slip")

    monkeypatch.setattr(local_executor, "asked", lambda *_: "done")
    monkeypatch.setattr(local_executor, "build", lambda *_: Artefact())
    ((file, solution),) = solutions(WRONG)
    queue = BuildQueue(Options(jobs=1), [Device()], ForkServer(), at_once=1)
    slipped = queue.submit(file, solution, phase).result(timeout=30)
    assert "please report this" in slipped.reason and "a slip" in slipped.reason
    assert queue.submit(file, solution).result(timeout=30) == "done"
    queue.close()


@pytest.mark.parametrize("name", ["a#b", "a$b", "it's", "a(b", "a;b"])
def test_a_folder_of_temporary_files_that_compilers_misread_is_told_before_anything_is_built(
    tmp_path, monkeypatch, name
):
    """Each inline extension was a load_error of its candidate there, and each .cu a build_error."""
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with pytest.raises(EnvironmentUnfit, match="set TMPDIR to another folder"):
        open_executor(Options(device="cpu"), builds=True)


def test_a_folder_of_temporary_files_from_which_nothing_runs_is_told_before_anything_is_built(monkeypatch):
    """A correct library was `load_error` there: its segments could not be mapped."""
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(EnvironmentUnfit, match="is mounted noexec, .*set TMPDIR to another folder"):
        open_executor(Options(device="cpu"), builds=True)


@pytest.fixture
def timing_lock():
    """Return a function that makes locks, which count for others of this process until the test ends."""
    made = []

    def make(shared=False):
        made.append(TimingLock(shared))
        return made[-1]

    yield make
    for lock in made:
        lock.share()


@pytest.mark.parametrize("queues", [1, 2])
def test_on_a_cpu_nothing_is_timed_while_something_is_built(timing_lock, queues):
    """Not in another queue either: its builds were the load under which a candidate of this one was timed."""
    order, locks = [], [timing_lock() for _ in range(queues)]
    builds, times = locks[0], locks[-1]
    builds.announce(2)

    def time_it():
        with times.timing():
            order.append("timed")

    timing = threading.Thread(target=time_it)
    timing.start()
    for _ in range(2):
        with builds.building():
            order.append("built")
    timing.join(timeout=10)
    assert order == ["built", "built", "timed"]


@pytest.mark.parametrize("queues", [1, 2])
def test_on_a_cpu_nothing_is_built_while_something_is_timed(timing_lock, queues):
    order, locks = [], [timing_lock() for _ in range(queues)]
    builds, times = locks[0], locks[-1]

    def build_it():
        with builds.building():
            order.append("built")

    with times.timing():
        builds.announce(1)
        building = threading.Thread(target=build_it)
        building.start()
        building.join(timeout=0.2)
        order.append("timed")
    building.join(timeout=10)
    assert order == ["timed", "built"]


def test_beside_a_gpu_builds_go_on_and_a_queue_that_ended_holds_nobody_up(timing_lock):
    with_a_gpu, ended, other = timing_lock(shared=True), timing_lock(), timing_lock()
    for lock in (with_a_gpu, ended):
        lock.announce(1)
    with with_a_gpu.timing():
        ended.share()
        with other.timing():
            pass


def lose(judge):
    """What a judge finds when it starts again after its GPU fell off the bus."""
    judge.requested = "cuda:99"


@pytest.mark.slow
@pytest.mark.usefixtures("cold_starts")
def test_without_anything_to_build_no_process_is_there_for_it_before_one_is_needed(solutions):
    others = set(victims.children(os.getpid()))
    pipeline = Pipeline(Options(device="cpu", timeout_s=20, jobs=1), builds=False)
    try:
        assert len(set(victims.children(os.getpid())) - others) == 1, "the judge, and nobody who imports PyTorch too"
        (ended,) = pipeline.evaluate(solutions("this is not C++", suffix=".cpp"))
        assert ended.result.status is Status.BUILD_ERROR, "it was built all the same"
    finally:
        pipeline.kill()


@pytest.mark.slow
def test_a_lost_device_leaves_its_work_to_the_others(solutions, two_judges, killer):
    pipeline, (lost, other) = two_judges
    lose(lost)
    killer(lost)
    pairs = solutions(*[f"# {number}\n{victims.SOURCE}" for number in range(5)])
    ended = list(pipeline.evaluate(pairs))
    assert {item.solution for item in ended} == {solution for _, solution in pairs} and len(ended) == 5
    assert all(isinstance(item, Evaluated) for item in ended), "what was lost with it too"
    assert lost.lost and not other.lost


@pytest.mark.slow
def test_without_any_device_left_the_rest_is_listed_as_not_evaluated(solutions, two_judges, killer):
    pipeline, judges = two_judges
    for judge in judges:
        lose(judge)
    killer(*judges)
    ended = list(pipeline.evaluate(solutions(*[f"# {number}\n{victims.SOURCE}" for number in range(5)])))
    assert len(ended) == 5 and all(isinstance(item, Skipped) for item in ended)
    assert sum("no device is left" in item.reason for item in ended) >= 3


@pytest.mark.parametrize(
    "device, message",
    [("cpu,cpu", "names the same device twice"), ("cuda:0,cuda:99", "cuda:99|no GPU"), ("cpu,", "is no device")],
)
def test_a_list_of_devices_that_cannot_be_is_one_clear_error(device, message):
    with pytest.raises(EnvironmentUnfit, match=message):
        open_judges(Options(device=device))


@pytest.mark.gpu
def test_one_gpu_by_two_names_is_an_error():
    with pytest.raises(EnvironmentUnfit, match="names the same device twice"):
        open_judges(Options(device="cuda,cuda:0"))


@pytest.mark.gpu
def test_all_gpus_have_a_judge_each():
    judges = open_judges(Options(device="cuda:all"))
    try:
        assert len({judge.device["uuid"] for judge in judges}) == len(judges) == judges[0].visible
    finally:
        for judge in judges:
            judge.kill()


@pytest.mark.gpu
def test_several_gpus_share_the_work_and_write_the_same_records(examples, tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    for device in ("cuda:0", "cuda:all"):
        evaluate_directory(Selection(examples / "cuda"), Options(device=device, timeout_s=60), out=tmp_path / device)
    one, all_of_them = (Run.load(tmp_path / device).latest() for device in ("cuda:0", "cuda:all"))
    assert len({result.device["uuid"] for result in all_of_them}) > 1
    for alone, among in zip(one, all_of_them, strict=True):
        assert alone.to_json().keys() == among.to_json().keys()
        assert alone.solution == among.solution and alone.status is among.status is Status.OK


@pytest.mark.slow
def test_what_is_gone_from_the_cache_when_its_turn_comes_is_built_again(solutions, tmp_path, monkeypatch):
    """Others' libraries pushed it out while it waited, and it was ``crashed``."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path / "cache"))
    (pair,) = solutions(
        "#include <algorithm>\n#include <cstddef>\n"
        'extern "C" void solution(const float* x, float* y, size_t n, size_t m) '
        "{ for (size_t i = 0; i < n * m; i++) y[i] = std::max(x[i], 0.0f); }\n",
        suffix=".cpp",
    )
    with contextlib.closing(Pipeline(Options("cpu", cv_target=0.5))) as pipeline, pipeline.line(1) as line:
        answer = line._answer

        def late(judge, built):
            built.artefact.result()
            shutil.rmtree(tmp_path / "cache" / "entries")
            return answer(judge, built)

        monkeypatch.setattr(line, "_answer", late)
        (ended,) = line.submit_all([(*pair, lambda text: None)])
        assert ended.result().result.status is Status.OK, ended.result().result.message


def test_what_was_built_before_costs_nothing(server, tmp_path):
    context = BuildContext(server, None, "2.0", 60, 1 << 30)
    path = tmp_path / "1_19.cpp"
    path.write_text('extern "C" void solution() {}')
    solution = read_solution(path)
    assert expected_cost(solution, context).memory_bytes > 0
    build(solution, context)
    assert expected_cost(solution, context) == NOTHING
    path.write_text('extern "C" void solution() { return; }')
    assert expected_cost(read_solution(path), context) != NOTHING


def test_builds_are_ranked_by_what_they_compile(server, tmp_path):
    sources = {
        "plain.py": MODEL,
        "kernel.cu": "__global__ void k() {}",
        "extension.py": "from torch.utils.cpp_extension import load_inline\nload_inline('a', '')",
        "cuda_extension.py": "from torch.utils.cpp_extension import load_inline\nload_inline('a', '', cuda_sources='')",
        "templates.cu": "#include <cutlass/gemm/device/gemm.h>",
    }
    costs = []
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
        solution = read_solution(tmp_path / name, problem=ProblemId(1, 19))
        costs.append(expected_cost(solution, BuildContext(server, "9.0", "2.0", 60, 1 << 30)))
    assert costs[0] == NOTHING
    assert [cost.seconds for cost in costs] == sorted({cost.seconds for cost in costs})
    assert [cost.memory_bytes for cost in costs] == sorted({cost.memory_bytes for cost in costs})


def test_builds_wait_for_memory_but_one_alone_never_does():
    memory = MemoryBudget(10)
    order = []

    def take(size):
        with memory.taken(size):
            order.append(size)

    with memory.taken(8):
        waiting = threading.Thread(target=take, args=(4,))
        waiting.start()
        take(2)
    waiting.join(timeout=10)
    take(50)
    assert order == [2, 4, 50]


def test_who_takes_all_memory_waits_for_those_too_who_hold_none():
    """A build that costs nothing ran beside one that was to have the machine to itself."""
    memory, entered = MemoryBudget(10), []

    def enter():
        with memory.taken(None):
            entered.append(True)

    with memory.taken(0):
        waiting = threading.Thread(target=enter)
        waiting.start()
        waiting.join(timeout=0.2)
        assert not entered
    waiting.join(timeout=10)
    assert entered


def test_who_takes_all_memory_is_alone_and_others_are_told_apart():
    memory = MemoryBudget(10)
    with memory.taken(4) as beside_others:
        assert not beside_others()
        with memory.taken(0) as also:
            assert beside_others() and also()
        assert beside_others()
    entered = []

    def enter():
        with memory.taken(0):
            entered.append(True)

    with memory.taken(None) as beside_others:
        waiting = threading.Thread(target=enter)
        waiting.start()
        waiting.join(timeout=0.2)
        assert not entered and not beside_others()
    waiting.join(timeout=10)
    assert entered


@pytest.mark.slow
def failed_thrice():
    failure = CandidateFailure(Status.BUILD_ERROR, "the machine failed three times with the build of a.cpp")
    failure.__cause__ = MachineFault("memory of this machine grew by 1.0 GB")
    return failure


def killed():
    failure = CandidateFailure(Status.BUILD_ERROR, "c++: fatal error: Killed signal terminated program cc1plus")
    failure.killed_by = "SIGKILL"
    return failure


@pytest.mark.parametrize(
    "failure",
    [
        CandidateFailure(Status.TIMEOUT, "the build took longer than 1 s"),
        CandidateFailure(Status.BUILD_ERROR, "it failed", "fatal error: error writing to x.s: No space left on device"),
        CandidateFailure(Status.BUILD_ERROR, "it failed", "vfork: Resource temporarily unavailable"),
        MachineFault("no room in /tmp: 0 MB are free"),
        failed_thrice(),
        killed(),
        CandidateFailure(Status.BUILD_ERROR, "it failed", "cc1plus: out of memory allocating 65536 bytes"),
        CandidateFailure(Status.CRASHED, "it wrote 9 files of 0.1 GB together; the limit is 1000 and 0.1 GB"),
    ],
    ids=["cores", "disk", "processes", "full disk", "memory", "killed", "no memory", "half of what is free"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_build_that_others_may_have_spoilt_is_tried_once_more_by_itself(solutions, monkeypatch, alone, failure):
    """Another candidate's loops at import had the cores, or its files the disk: an honest neighbour's build failed."""
    pairs = solutions(WRONG) if alone else solutions(WRONG, WRONG)
    slow, together, tries = pairs[0][1], threading.Barrier(len(pairs)), []

    def too_slow_beside_others(solution, context, problem):
        if solution not in tries:
            together.wait(30)
        tries.append(solution)
        if solution is slow and tries.count(slow) == 1:
            raise failure
        return build(solution, context, problem)

    monkeypatch.setattr("kernelbench.evaluation.local_executor.build", too_slow_beside_others)
    pipeline = Pipeline(Options(device="cpu", workload="small", timeout_s=20, jobs=2))
    ended = {item.solution.name: item for item in pipeline.evaluate(pairs)}[slow.name]
    pipeline.close()
    assert tries.count(slow) == 2 - alone
    if alone and isinstance(failure, MachineFault):
        assert isinstance(ended, Skipped) and "no room" in ended.reason
    else:
        assert ended.result.status is (failure.status if alone else Status.WRONG_VALUE)


def test_what_goes_wrong_about_one_candidate_ends_that_one_only(solutions, monkeypatch):
    pairs = solutions(WRONG, WRONG)

    def fails_once(solution, context, problem):
        return [][0] if solution is pairs[0][1] else build(solution, context, problem)

    monkeypatch.setattr("kernelbench.evaluation.local_executor.build", fails_once)
    pipeline = Pipeline(Options(device="cpu", workload="small", timeout_s=20))
    ended = {item.solution.name: item for item in pipeline.evaluate(pairs)}
    pipeline.close()
    assert isinstance(ended["0.py"], Skipped) and "IndexError" in ended["0.py"].reason
    assert ended["1.py"].result.status is Status.WRONG_VALUE
