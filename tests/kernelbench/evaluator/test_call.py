"""One call of an evaluator: whose mistake it is where a file cannot be evaluated, and callers who hang up."""

import fcntl
import resource
import socket
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from logs import result

from harness.result import Result
from harness.solution.discover import SolutionError
from kernelbench.evaluation.executor import Evaluated
from kernelbench.evaluator import call
from kernelbench.evaluator.client import Conditions, EvaluationError, Job, outcome_of, problem_file

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"


@pytest.fixture
def connection():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


@pytest.fixture
def outcome(tmp_path, connection):
    """Return what is told of a file that gets no judge."""

    def outcome(path, judged=None):
        line = SimpleNamespace(order=lambda orders: judged(orders) if orders else [])
        bench = SimpleNamespace(device_type="cpu", line=line)
        benches = SimpleNamespace(take=lambda *_: bench, give_back=lambda *_: None)
        conditions, answers = Conditions(device="cpu"), []
        job = Job(problem_file("1/19", conditions), path)
        made = call.Call(connection, benches, tmp_path)
        made.answer([{"index": 0, **job.to_json()}], conditions.to_json(), answers.append)
        return outcome_of(answers[0])

    return outcome


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(GOOD)
    return path


def test_a_file_that_is_no_solution_is_the_callers_mistake(outcome, file):
    file.write_text("# kb: sample=x\n" + GOOD)
    found = outcome(file)
    assert isinstance(found, SolutionError) and "sample=x is not a number" in str(found)


def test_a_machine_without_room_for_copies_is_no_mistake_of_the_caller(outcome, file, monkeypatch):
    """It was told as a wrong call, which trying again would not mend."""
    monkeypatch.setattr("harness.solution.private_copy.free_bytes", lambda folder: 0)
    found = outcome(file)
    assert isinstance(found, EvaluationError) and "No space left" in str(found)


def test_a_file_that_is_being_saved_is_no_mistake_of_the_caller(outcome, file, monkeypatch):
    """A look in the middle of a save was told as a wrong call."""
    read = call.read_solution

    def then_saved(*arguments, **named):
        found = read(*arguments, **named)
        file.write_text(GOOD + "\n")
        return found

    monkeypatch.setattr(call, "read_solution", then_saved)
    found = outcome(file)
    assert isinstance(found, EvaluationError) and "changed meanwhile" in str(found)


@pytest.mark.parametrize("saved", [True, False])
def test_a_file_that_is_saved_while_it_is_evaluated_has_no_result(outcome, file, saved):
    """`kb try` said `ok`, of a text that is not there any more; `kb eval` and `kb time` said that it changed."""

    def judged(orders):
        ended = Future()
        ended.set_result(Evaluated(orders[0].solution, result("1/19", name="relu.py")))
        if saved:
            file.write_text(GOOD.replace("min=0", "min=1"))
        return [ended]

    found = outcome(file, judged)
    assert isinstance(found, EvaluationError if saved else Result) and saved == ("changed meanwhile" in str(found))


@pytest.fixture
def many_files():
    """Let this process open more files than 1024."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4096:
        pytest.skip("it may open 1024 files at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_who_hangs_up_is_noticed_among_more_than_a_thousand_callers(many_files):
    """A descriptor from 1024 on was an error, which ended the calls of all."""
    ours, theirs = socket.socketpair()
    with ours, socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 2000)) as connection:
        assert not call._hung_up(connection)
        theirs.close()
        assert call._hung_up(connection)
