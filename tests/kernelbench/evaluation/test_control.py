"""Whose fault it is where the machine fails again and again with one candidate: the reference in its place says."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.compile.cache import Cache
from harness.faults import MachineFault
from harness.isolated_call import TooMuch
from harness.problem.module import ProblemId
from harness.result import Status
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.evaluation.control import reference_as_candidate, worked
from kernelbench.evaluation.executor import Evaluated, Options, Skipped
from kernelbench.evaluation.judge_process import asked, profile
from kernelbench.evaluation.local_executor import Artefact, Pipeline

MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
FULL = {"unevaluated": "no room", "again": True, "broken": True}


@pytest.fixture
def solution(tmp_path):
    (path := tmp_path / "1_19.py").write_text(MODEL)
    return read_solution(path)


@pytest.fixture(scope="module")
def pipeline(request):
    options = Options(device=getattr(request, "param", "cpu"), timeout_s=20, jobs=1, track="open")
    pipeline = Pipeline(options, builds=False)
    yield pipeline
    pipeline.kill()


on_each_device = pytest.mark.parametrize(
    "pipeline", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)


@pytest.fixture
def right(pipeline, solution):
    (ended,) = pipeline.evaluate([(suite.find("1/19")[0], solution)])
    assert ended.result.status is Status.OK
    return ended.result.to_json()


def answered(solution, answers, job=None, built=Artefact):
    """Return the item of a candidate to which a judge answers so, and its jobs."""
    jobs, left = [], list(answers)

    def ask(job, phase):
        jobs.append(job)
        return left.pop(0)

    order = SimpleNamespace(file=suite.find("1/19")[0], solution=solution, job=job or {})
    found = asked(SimpleNamespace(ask=ask, lost=None), order, "small", built, lambda text: None)
    assert not left, "it was asked less often"
    return found, jobs


def is_of_reference(job):
    return job["solution"]["name"] == "reference.py"


@pytest.mark.slow
@on_each_device
@pytest.mark.parametrize("more", ["", "from torch.utils import cpp_extension\n", "import helper\n"],
                         ids=["", "it builds", "its helper builds"])  # fmt: skip
def test_the_reference_is_right_in_the_place_of_a_candidate(pipeline, tmp_path, more):
    file = suite.find("1/19")[0]
    (path := tmp_path / "1_19.py").write_text(more + MODEL)
    (tmp_path / "helper.py").write_text("from torch.utils import cpp_extension\n")
    with reference_as_candidate({}, file, read_solution(path)) as job:
        control = read_solution(Path(job["solution"]["path"]), problem=ProblemId(1, 19))
        assert ("cpp_extension" in control.path.read_text()) == bool(more)
        (ended,) = pipeline.evaluate([(file, control)])
    assert ended.result.status is Status.OK and worked({"result": ended.result.to_json()})
    assert ended.result.build["cached"] is False, "what is in a cache needs no room"
    assert not control.path.exists()


def test_who_fails_three_times_where_the_reference_does_not_has_failed(solution, right):
    failed = right | {"status": "crashed", "speedup": None, "message": "as told"}
    found, jobs = answered(solution, [FULL, FULL, {"result": right}, FULL, {"result": failed}])
    assert isinstance(found, Evaluated) and found.result.status is Status.CRASHED
    assert [is_of_reference(job) for job in jobs] == [False, False, True, False, False]
    said = jobs[-1]["failure"]
    assert said["status"] == "crashed" and jobs[-1]["confirmed"]
    assert said["message"] == "the machine failed three times with it, not with the reference in its place: no room"


def test_who_cannot_be_read_when_it_is_handed_to_the_judge_is_not_built(solution, right, monkeypatch):
    def lacks_memory(solution):
        raise TooMuch("more than 1 GiB of memory")

    monkeypatch.setattr("harness.job.named_neighbours", lacks_memory)
    failed = right | {"status": "build_error", "speedup": None, "message": "as told"}
    found, (job,) = answered(solution, [{"result": failed}], built=lambda: pytest.fail("it is built"))
    assert isinstance(found, Evaluated) and job["failure"]["status"] == "build_error"
    assert job["failure"]["message"].endswith("is not built: to read it takes more than 1 GiB of memory")


def test_a_record_that_cannot_be_read_is_no_result_and_may_be_its_doing(solution, right):
    failed = right | {"status": "crashed", "speedup": None, "message": "as told"}
    odd = {"result": right | {"seconds": 1e200}}
    found, jobs = answered(solution, [odd, odd, {"result": right}, odd, {"result": failed}])
    assert isinstance(found, Evaluated) and found.result.status is Status.CRASHED
    assert "its record cannot be read" in jobs[-1]["failure"]["message"]


def test_a_machine_that_fails_with_the_reference_too_is_to_blame(solution, right):
    for control in (FULL, {"unevaluated": "no such workload"}, {"result": right | {"correctness": None}}):
        found, jobs = answered(solution, [FULL, FULL, control])
        assert isinstance(found, Skipped) and found.reason == "no room"


def test_what_a_third_try_gives_stands(solution, right):
    found, _ = answered(solution, [FULL, FULL, {"result": right}, {"result": right}])
    assert isinstance(found, Evaluated) and found.result.correct
    assert found.result.conditions["machine_failed_before"] == 2
    found, _ = answered(solution, [FULL, {"result": right}])
    assert found.result.conditions["machine_failed_before"] == 1
    found, _ = answered(solution, [{"result": right}])
    assert "machine_failed_before" not in found.result.conditions


def test_a_library_stays_where_the_judge_looks_for_it_until_it_has_answered(solution, right, tmp_path):
    """A wrong .cpp asked for so many builds that its own left the cache, and withdrew where it would have failed."""
    cache, seen, builds = Cache(), [], []

    def built():
        builds.append(1)
        (tmp_path / "solution.so").write_bytes(b"it")
        return Artefact(library=cache.put("9" * 40, [tmp_path / "solution.so"]) / "solution.so")

    def ask(job, phase):
        cache.clear()
        seen.append(None if is_of_reference(job) else Path(job["artefact"]["library"]))
        assert is_of_reference(job) or seen[-1].read_bytes() == b"it"
        return [FULL, FULL, {"result": right}, {"result": right}][len(seen) - 1]

    order = SimpleNamespace(file=suite.find("1/19")[0], solution=solution, job={})
    found = asked(SimpleNamespace(ask=ask, lost=None), order, "small", built, lambda text: None)
    assert isinstance(found, Evaluated) and len(seen) == 4 and len(builds) == 1
    assert not any(place.exists() for place in seen if place)


def test_a_library_that_left_the_cache_before_it_was_held_is_built_once_more(solution, right, tmp_path):
    """And where somebody clears it again and again, nobody is to blame."""
    (kept := tmp_path / "solution.so").write_bytes(b"it")
    places = [tmp_path / "gone.so", kept]
    found, _ = answered(solution, [{"result": right}], built=lambda: Artefact(library=places.pop(0)))
    assert isinstance(found, Evaluated) and not places
    found, jobs = answered(solution, [], built=lambda: Artefact(library=tmp_path / "gone.so"))
    assert isinstance(found, Skipped) and not jobs


def no_room():
    raise MachineFault("no room")


def too_deep():
    raise RecursionError("no room")


@pytest.mark.parametrize("built", [no_room, too_deep], ids=["the machine", "kernelbench"])
def test_what_its_code_had_a_build_do_is_told_as_of_its_calls(solution, right, built):
    """It was imported to be built, and had the machine fail there, or us: it withdrew, without the reference."""
    solution.path.write_text("from torch.utils import cpp_extension\n" + MODEL)
    failed = right | {"status": "crashed", "speedup": None, "message": "as told"}
    found, jobs = answered(solution, [{"result": right}, FULL, {"result": failed}], built=built)
    assert isinstance(found, Evaluated) and [is_of_reference(job) for job in jobs] == [True, False, False]
    found, _ = answered(solution, [FULL], built=built)
    assert isinstance(found, Skipped) and "no room" in found.reason
    assert ("please report this" in found.reason) == (built is too_deep)


@pytest.mark.parametrize("name", ["1_19.cpp", "1_19.py"])
def test_a_build_that_runs_none_of_its_code_and_with_which_the_machine_fails_is_nobodys_fault(tmp_path, name):
    (path := tmp_path / name).write_text("")
    found, jobs = answered(read_solution(path), [], built=no_room)
    assert isinstance(found, Skipped) and not jobs


def test_what_does_not_fit_is_not_tried_again(solution):
    found, _ = answered(solution, [{"unevaluated": "needs 32 GB, 22 are free"}])
    assert isinstance(found, Skipped)


def test_what_does_not_fit_after_it_had_the_machine_fail_may_be_its_doing(solution, right):
    """It took memory that stays taken, and killed itself: the second try had no room, and it was withdrawn."""
    no_room, failed = {"unevaluated": "needs 1 GB, 0 are free"}, right | {"status": "wrong_value", "speedup": None}
    found, jobs = answered(solution, [FULL, no_room, {"result": right}, {"result": failed}])
    assert isinstance(found, Evaluated) and not found.result.correct
    assert [is_of_reference(job) for job in jobs] == [False, False, True, False]
    found, jobs = answered(solution, [FULL, FULL, {"result": right}, {"unevaluated": "no memory"}, {"result": failed}])
    assert isinstance(found, Evaluated) and "no memory" in jobs[-1]["failure"]["message"]


def test_a_profile_has_no_verdict_to_withdraw_from(solution):
    found, _ = answered(solution, [FULL, FULL], profile(None))
    assert isinstance(found, Skipped)
