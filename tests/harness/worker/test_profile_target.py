"""The program that a tool watches: a candidate in a process of its own."""

import contextlib
import fcntl
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from harness import device as devices
from harness.job import encode_problem, encode_solution
from harness.memory.guarded import UnguardedBuffers
from harness.problem.module import ProblemId
from harness.solution.discover import read_solution
from harness.timing.rounds import RunConfig
from harness.worker import profile_target


def test_a_library_has_its_tensors_without_canaries(problem, monkeypatch):
    """memcheck saw no write beside them, because the canaries are a part of the same allocation."""
    given = {}
    monkeypatch.setattr(profile_target, "LibraryModel", lambda path, state, **others: given.update(others))
    workload = problem("1/19").workload_for("small", "cpu")
    profile_target._model(RunConfig(workload, torch.device("cpu"), torch.float32), Path("relu.cu"), Path("relu.so"))
    assert isinstance(given["guards"], UnguardedBuffers)


def is_taken(device):
    try:
        with open(devices._lock_file(devices._lock_names(device)[0])) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@pytest.mark.parametrize(("more", "during_call"), [({}, True), ({"answers": [], "library": None}, False)])
def test_what_is_watched_holds_the_device_where_no_judge_does(problem, tmp_path, monkeypatch, more, during_call):
    """Its calls came in the middle of those that another run timed."""
    monkeypatch.setattr(devices, "_EVERYBODYS", str(tmp_path))
    path = tmp_path / "1_19.py"
    path.write_text("")
    device, taken = torch.device("cpu"), {}

    def built(*arguments):
        taken["build"] = is_taken(device)
        return SimpleNamespace(env={}, library=None)

    monkeypatch.setattr(profile_target, "build", built)
    monkeypatch.setattr(profile_target, "ForkServer", contextlib.nullcontext)
    monkeypatch.setattr(profile_target.extensions, "install", lambda ask: None)
    monkeypatch.setattr(profile_target, "_model", lambda *arguments: None)
    monkeypatch.setattr(profile_target, "_call", lambda *arguments: taken.update(call=is_taken(device)))
    solution = encode_solution(read_solution(path, problem=ProblemId(1, 19)))
    job = {"problem": encode_problem(problem("1/19")), "solution": solution, "device": "cpu"}
    profile_target.main({**job, "workload": "small", "precision": "fp32", **more})
    assert taken["call"] is during_call and not taken.get("build")
