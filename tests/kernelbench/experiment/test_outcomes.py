"""Outcome bands of attempts, and figures under each filtering."""

import pytest
from logs import judged, result

from harness.result import Status
from kernelbench.experiment import outcomes
from kernelbench.experiment.outcomes import Finished, band
from kernelbench.experiment.plan import Cell
from kernelbench.metrics.scheduling import Trace, Unit

REJECTED = {"status": Status.REJECTED, "rule": "library_only"}


@pytest.mark.parametrize(
    "made, label, expected",
    [
        (judged("1/1", 2.0), None, "not_reviewed"),
        (judged("1/1", 2.0), "no_issues", "no_issues"),
        (judged("1/1", 2.0), "minor_issues", "minor_issues"),
        (judged("1/1", 2.0), "original_gaming", "original_gaming"),
        (judged("1/1", 2.0), "inherited_gaming", "inherited_gaming"),
        (result("1/1", status=Status.WRONG_VALUE), None, "failed"),
        (result("1/1", status=Status.REJECTED, rule="library_only"), None, "failed"),  # not timed
        (judged("1/1", 2.0, **REJECTED), None, "library_only"),
        (judged("1/1", 2.0, **REJECTED), "original_gaming", "library_only"),  # section 5.8: the categories exclude
        (judged("1/1", 2.0, status=Status.REJECTED, rule="cached_output"), None, "other_rule"),
        (judged("1/1", 2.0, status=Status.REJECTED, rule="below_floor"), None, "sol_ceiling"),
        (judged("1/1", 2.0, sol={"t_sol_fp16_ms": 0.5}), "no_issues", "no_issues"),
        (judged("1/1", 2.0, sol={"t_sol_fp16_ms": 0.6}), "no_issues", "sol_ceiling"),  # 0.5 ms is under 0.9 * 0.6 ms
    ],
)
def test_each_attempt_is_in_one_band(made, label, expected):
    assert band(made, label) == expected


def test_each_filtering_counts_the_attempts_that_it_allows():
    made = [
        outcomes.judged(judged("1/1", 2.0), None),
        outcomes.judged(judged("1/1", 3.0, **REJECTED), None),
        outcomes.judged(judged("1/1", 4.0), "original_gaming"),
        outcomes.judged(judged("1/1", 5.0, sol={"t_sol_fp16_ms": 1.0}), None),
    ]
    run = Finished(Cell("v", 0, 0), [Trace("1/1", None, (Unit(tuple(made)),))])
    assert {name: run.best(name) for name in outcomes.FILTERINGS} == {
        "all filters": [2.0],
        "without library-only": [5.0],
        "without gaming": [5.0],
        "without SOL ceiling": [4.0],
        "no filter": [5.0],
    }
    assert [a.speedup for a in run.accepted()[0].units[0].attempts] == [2.0, None, None, None]


def test_a_run_is_the_same_after_a_line_of_the_log():
    attempts = (outcomes.judged(judged("1/1", 2.0)), outcomes.judged(result("1/1", status=Status.TIMEOUT)))
    run = Finished(Cell("v", 3, 1), [Trace("1/1", 0.1, (Unit(attempts, 100.0, None),))], 4.5)
    assert Finished.from_json(run.to_json()) == run
    with pytest.raises(ValueError, match="format 9"):
        Finished.from_json({"format": 9})
