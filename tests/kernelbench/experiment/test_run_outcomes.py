"""Outcome bands of attempts, and figures under each filtering."""

import math

import pytest
from logs import judged, result, run

from harness.result import Status
from kernelbench.experiment import outcomes
from kernelbench.experiment.on_device import of_folder
from kernelbench.experiment.outcomes import Finished
from kernelbench.experiment.plan import Cell
from kernelbench.metrics.scheduling import Trace, Unit

REJECTED = {"status": Status.REJECTED, "rule": "library_only"}


@pytest.mark.parametrize(
    "made, expected, speedup",
    [
        (judged("1/1", 2.0), "unreviewed", 2.0),
        (result("1/1", status=Status.WRONG_VALUE), "failed", None),
        (judged("1/1", 2.0, status=Status.REJECTED, rule="cached_output"), "failed", None),
        (judged("1/1", 2.0, **REJECTED), "library_only", 2.0),
        (judged("1/1", 2.0, status=Status.REJECTED, rule="below_floor"), "sol_ceiling", 2.0),
    ],
)
def test_each_attempt_is_in_one_band_with_the_speedup_that_a_filtering_may_count(made, expected, speedup):
    made.device, made.solution["language"] = {"type": "cuda", "name": "gpu"}, "cuda"
    attempt = outcomes.judged(made)
    assert (attempt.band, attempt.speedup) == (expected, speedup)


def test_each_filtering_counts_the_attempts_that_it_allows():
    bands = {2.0: "no_issues", 3.0: "library_only", 4.0: "original_gaming", 5.0: "sol_ceiling"}
    made = [outcomes.judged(judged("1/1", speedup), lambda result: bands[result.speedup]) for speedup in bands]
    run = Finished(Cell("v", 0, 0), [Trace("1/1", None, (Unit(tuple(made)),))])
    assert {name: run.best(name) for name in outcomes.FILTERINGS} == {
        "none": [5.0],
        "without library_only": [5.0],
        "without gaming": [5.0],
        "without sol_ceiling": [4.0],
        "all": [2.0],
    }
    assert [a.speedup for a in run.accepted()[0].units[0].attempts] == [2.0, None, None, None]


def test_a_problem_without_an_attempt_that_counts_is_unsolved():
    gaming = outcomes.judged(judged("1/1", 4.0), lambda result: "original_gaming")
    run = Finished(Cell("v", 0, 0), [Trace("1/1", None, (Unit((gaming,)),))])
    assert run.solved() == [False] and math.isnan(run.best()[0])
    assert run.solved("none") == [True]


def test_a_run_is_the_same_after_a_line_of_the_log():
    attempts = (outcomes.judged(judged("1/1", 2.0)), outcomes.judged(result("1/1", status=Status.TIMEOUT)))
    run = Finished(Cell("v", 3, 1), [Trace("1/1", 0.1, (Unit(attempts, 100.0, None),))], 4.5)
    assert Finished.from_json(run.to_json()) == run
    with pytest.raises(ValueError, match="format 9"):
        Finished.from_json({"format": 9})


def test_who_fails_in_the_second_measurement_keeps_the_band_of_the_first(tmp_path):
    """The speedup is the first one's: without a label it counted as accepted."""
    first = judged("1/1", 4.0, name="a.py")
    second = result("1/1", status=Status.WRONG_VALUE, name="a.py", confirms={"median_ms": 1.0, "speedup": 4.0})
    for results in ([first], [first, second]):
        made = run(tmp_path / str(len(results)), *results)
        (trace,) = of_folder(made.path, ["1/1"])
        ((attempt,),) = (unit.attempts for unit in trace.units)
        assert (attempt.speedup, attempt.band) == (4.0, "library_only")
