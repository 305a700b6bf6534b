"""Faults of the machine: tried once more, then reported, never stored as a result of a candidate."""

import errno
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import victims
from warm_kb import REAL_KB

from harness.compile.cache import Cache
from harness.problem.module import ProblemId
from harness.process.procfs import available_memory_bytes
from harness.result import Status
from harness.solution.discover import discover, read_solution
from kernelbench import suite
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import Evaluated, Options, Skipped
from kernelbench.evaluation.judge_process import Judge, asked
from kernelbench.evaluation.local_executor import Pipeline
from kernelbench.run import Run, WriteError
from kernelbench.run_files.log import append_line

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
WRONG = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x\n"
CPP = """#include <cstddef>
extern "C" void solution(const float* x, float* y, size_t batch_size, size_t dim) {
    for (size_t i = 0; i < batch_size * dim; ++i) y[i] = 1;
}
"""
REFERENCE = """import time, torch
class Model(torch.nn.Module):
    def forward(self, x):
        {body}
def get_inputs(): return [torch.rand({size})]
def get_init_inputs(): return []
"""


def script():
    spec = importlib.util.spec_from_file_location("kill_anything", ROOT / "scripts" / "kill_anything.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kill_anything = script()


@pytest.fixture
def solution(tmp_path):
    def write(source, name="19.py"):
        path = tmp_path / "level1" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return suite.find("1/19")[0], read_solution(path, problem=ProblemId(1, 19))

    return write


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline(Options(device="cpu", timeout_s=20, jobs=1))
    yield pipeline
    pipeline.kill()


def problems(tmp_path, **bodies):
    """A folder of problems by their file names."""
    folder = tmp_path / "problems" / "level1"
    folder.mkdir(parents=True)
    for name, (body, size) in bodies.items():
        (folder / f"{name}.py").write_text(REFERENCE.format(body=body, size=size))
    return folder.parent


def wrong(tmp_path, *names):
    """A folder of wrong solutions."""
    folder = tmp_path / "solutions"
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(WRONG)
    return folder


def in_a_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def kill_when(found):
    """End the first process that ``found`` gives."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if pids := found():
            os.kill(int(pids[0]), signal.SIGKILL)
            return
        time.sleep(0.01)


def test_a_build_server_that_was_killed_fails_no_build(pipeline, solution):
    pipeline._server.start()
    os.kill(pipeline._server._process.pid, signal.SIGKILL)
    (ended,) = pipeline.evaluate([solution(CPP, "19.cpp")])
    assert isinstance(ended, Evaluated) and ended.result.status is Status.WRONG_VALUE, ended


def test_a_judge_that_died_while_it_waited_costs_nobody_anything_and_its_successor_lasts(pipeline, solution):
    os.kill(pipeline._judges[0].pid, signal.SIGKILL)
    (ended,) = pipeline.evaluate([solution(WRONG)])
    assert isinstance(ended, Evaluated) and ended.result.status is Status.WRONG_VALUE, ended
    replaced = pipeline._judges[0].pid
    time.sleep(0.5)
    list(pipeline.evaluate([solution(WRONG)]))
    assert pipeline._judges[0].pid == replaced, "it did not end with the thread that started it"


@pytest.mark.parametrize("of", ["worker", "its fork server"])
def test_a_worker_that_somebody_killed_is_no_crash_of_its_candidate(pipeline, solution, of):
    judge = pipeline._judges[0].pid

    def found():
        servers = [child for child in victims.children(judge) if victims.below(child)]
        return [child for server in servers for child in victims.children(server)] if of == "worker" else servers

    killer = in_a_thread(lambda: kill_when(found))
    (ended,) = pipeline.evaluate([solution(victims.SOURCE)])
    killer.join()
    assert isinstance(ended, Evaluated) and ended.result.status is Status.WRONG_VALUE, ended


def test_a_candidate_that_kills_itself_every_time_has_crashed(pipeline, solution):
    suicide = WRONG.replace("return x", "import os; os.kill(os.getpid(), 9)")
    (ended,) = pipeline.evaluate([solution(suicide)])
    assert ended.result.status is Status.CRASHED and "SIGKILL" in ended.result.message
    assert ended.result.conditions["killed_by"] == "SIGKILL"


def test_a_record_says_that_its_candidate_was_killed_before(pipeline, solution):
    """Nobody knows by whom: one that killed itself where it saw that it was wrong had another try unseen."""
    problem = suite.find("1/19")[0]
    (ended,) = pipeline.evaluate([solution(WRONG)])
    record = ended.result.to_json()
    answers = [{"result": record, "again": True, "killed": "SIGKILL"}, {"result": record}]
    judge = SimpleNamespace(ask=lambda job, phase: answers.pop(0), lost=False)
    order = SimpleNamespace(file=problem, solution=None, job={})
    assert asked(judge, order, "small", None, print).result.conditions["killed_before"] == "SIGKILL"
    assert not answers


def test_a_compiler_that_was_killed_is_no_error_of_the_source(pipeline, solution):
    slow = CPP + "template <int N> struct S { enum { v = S<N-1>::v }; }; template <> struct S<0> { enum { v = 0 }; };\n"
    slow += "".join(f"int f{i}() {{ return S<{800 - i}>::v; }}\n" for i in range(400))

    pipeline._server.start()
    server = pipeline._server._process.pid

    def compiler():
        for worker in victims.children(server):
            for driver in victims.children(worker):
                if part := victims.children(driver):
                    return part

    killer = in_a_thread(lambda: kill_when(compiler))
    (ended,) = pipeline.evaluate([solution(slow, "19.cpp")])
    killer.join()
    assert isinstance(ended, Evaluated) and ended.result.status is Status.WRONG_VALUE, ended


def test_a_reference_that_hangs_is_not_evaluated_and_costs_its_other_solutions_nothing(tmp_path):
    folder = problems(tmp_path, **{"001_hangs": ("time.sleep(1000)", 8), "002_fine": ("return x + 1", 8)})
    solutions = wrong(tmp_path, "1_1_s0", "1_1_s1", "1_2")
    begin = time.monotonic()
    options = Options(device="cpu", timeout_s=1)
    outcome = evaluate_directory(Selection(solutions, problem_dir=folder), options, out=tmp_path / "run")
    assert [item.reason for item in outcome.skipped] == ["the reference did not end within 5 s"] * 2
    assert [result.status for result in outcome.run.latest()] == [Status.WRONG_VALUE]
    assert time.monotonic() - begin < 60, "two tries, not two for each solution"


def test_a_judge_that_stands_still_is_replaced():
    """Stop a process as a hanging driver does: nothing of it runs, and nothing of it ends."""
    judge = Judge(Options(device="cpu", timeout_s=20), "cpu")
    judge.wait_until_ready()
    before = judge.pid
    os.kill(before, signal.SIGSTOP)
    judge._deadlines.write("the judge", 0.5)
    answer = judge.ask({}, lambda phase: None)
    assert answer["unevaluated"] == "the judge did not end within 0.5 s" and answer["again"]
    assert judge.pid != before and not judge.lost
    judge.close()


def kb_eval(solutions, *more):
    command = [*REAL_KB, "eval", "--device", "cpu", "--solutions", str(solutions), *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_problem_that_does_not_fit_is_told_at_once_with_both_figures(tmp_path):
    folder = problems(tmp_path, **{"001_huge": ("return x + 1", 1 << 40)})
    done = kb_eval(wrong(tmp_path, "1_1"), "--problem-dir", str(folder), "--out", str(tmp_path / "run"))
    assert done.returncode == 3, done.stderr
    assert "needs 2.2e+04 GB, " in done.stdout and " are free" in done.stdout
    assert not (tmp_path / "run" / "results.jsonl").read_text()


def test_a_judge_may_not_take_all_memory_of_the_host_and_the_run_goes_on(tmp_path):
    """A reference that takes memory which no trace tells."""
    floats = int(0.9 * available_memory_bytes() / 4)
    hog = f"self.held = torch.empty({floats} if x.device.type != 'meta' else 1); return x"
    folder = problems(tmp_path, **{"001_hog": (hog, 8), "002_fine": ("return x + 1", 8)})
    options = Options(device="cpu", timeout_s=20)
    selection = Selection(wrong(tmp_path, "1_1", "1_2"), problem_dir=folder)
    outcome = evaluate_directory(selection, options, out=tmp_path / "run")
    (skipped,) = outcome.skipped
    assert "can't allocate memory" in skipped.reason and "the reference of 1/1" in skipped.reason
    assert [result.problem for result in outcome.run.latest()] == ["1/2"]


def test_a_log_that_cannot_be_opened_is_an_error_of_the_machine_with_what_to_do(tmp_path):
    run = Run.create(tmp_path / "run", {})
    (tmp_path / "run" / "results.jsonl").unlink()
    with pytest.raises(WriteError, match="cannot open .*--resume"):
        append_line(run.path / "results.jsonl", {})


@pytest.mark.parametrize(
    "role, done", [("main", 2), ("judge", 2), ("build server", 0), ("worker", 1)], ids=lambda value: str(value)
)
def test_a_kill_changes_no_result_leaves_nothing_and_the_run_can_be_completed(tmp_path, monkeypatch, role, done):
    """A short form of scripts/kill_anything.py: moments that are told by what is in the log."""
    names = ("19_s1.cpp", "19_s2.cpp", "19_s4.py", "19_s5.py")
    monkeypatch.setattr(kill_anything, "SOURCES", {name: kill_anything.SOURCES[name] for name in names})
    expected = dict(zip(names, ("build_error", "wrong_value", "wrong_value", "wrong_shape")))
    log = tmp_path / "run" / "results.jsonl"

    def moment():
        deadline = time.monotonic() + 60
        while (not log.exists() or len(log.read_text().splitlines()) < done) and time.monotonic() < deadline:
            time.sleep(0.005)

    report = kill_anything.disturbed(tmp_path, role, moment, expected)
    assert report["hit"] and not report["faults"], json.dumps(report, indent=2)


def test_without_a_disk_to_build_on_nothing_is_a_build_error(pipeline, solution, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.faults._FULL_BYTES", 1 << 62)
    monkeypatch.setattr(Cache, "put", full)  # so that another source, which is built beside it, has no room either
    (ended,) = pipeline.evaluate([solution("not C++", "19.cpp")])
    assert isinstance(ended, Skipped) and "MB are free; make room, or set TMPDIR" in ended.reason


def test_a_problem_that_is_written_during_a_run_has_results_of_its_first_text_only(pipeline, tmp_path):
    """Workers read the new text, and records had the old one's digest: honest solutions had a `wrong_shape`."""
    root = problems(tmp_path, **{"1_x": ("return x.clamp(min=0)", 8)})
    (file,), path = suite.find("1/1", root), root / "level1/1_x.py"
    text = path.read_text()
    pairs = [(file, one) for one in discover(wrong(tmp_path, "1_1_s0", "1_1_s1")).solutions]

    def save(kind, said):
        if "load" in said:  # the judge has begun with it
            path.write_text(text.replace("8", "9"))

    (first,) = pipeline.evaluate(pairs[:1])
    (during,) = pipeline.evaluate(pairs[1:], save)
    (after,) = pipeline.evaluate(pairs[1:])
    path.write_text(text)
    (again,) = pipeline.evaluate(pairs[1:])
    assert first.result.status is again.result.status is Status.WRONG_VALUE
    for item in (during, after):
        assert isinstance(item, Skipped) and "its problem was written meanwhile" in item.reason
