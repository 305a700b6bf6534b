"""Two runs problem by problem."""

import json

import pytest
from logs import judged, result, run

from harness.result import Status
from kernelbench.views.comparison import Change, compare, render


def changes(before, after):
    return {difference.problem: difference.change for difference in compare(before, after)}


def test_every_change_has_its_name(tmp_path):
    failed = {"status": Status.WRONG_VALUE}
    before = run(
        tmp_path / "before", result("1/1", 1.0, seed=1), result("1/2", 1.0, seed=2), result("1/3", 1.0, seed=3),
        result("1/4", 1.0), result("1/5", **failed), result("1/6", **failed), result("1/7", 1.0),
    )  # fmt: skip
    after = run(
        tmp_path / "after", result("1/1", 1.1, seed=11), result("1/2", 0.9, seed=12), result("1/3", 1.0, seed=13),
        result("1/4", **failed), result("1/5", 1.0), result("1/6", **failed),
    )  # fmt: skip
    assert changes(before, after) == {
        "1/1": Change.SLOWER, "1/2": Change.FASTER, "1/3": Change.TIE, "1/4": Change.NEWLY_BROKEN,
        "1/5": Change.NEWLY_FIXED, "1/6": Change.UNSOLVED, "1/7": Change.NEWLY_BROKEN,
    }  # fmt: skip
    why = {d.problem: d.why for d in compare(before, after)}
    assert why["1/4"] == "wrong_value" and why["1/7"] == "no solution"


def test_calls_that_stall_now_and_then_make_no_tie_of_what_is_slower(tmp_path):
    stalls = judged("1/1", 0.39, seed=2)
    stalls.baselines["eager"]["interval"] = [0.04, 0.41]
    before = run(tmp_path / "before", judged("1/1", 0.98))
    assert changes(before, run(tmp_path / "after", stalls)) == {"1/1": Change.SLOWER}


def test_a_difference_within_the_noise_is_a_tie(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, seed=1))
    assert changes(before, run(tmp_path / "after", result("1/1", 1.001, seed=2))) == {"1/1": Change.TIE}


def test_speedups_over_another_reference_are_not_compared(tmp_path):
    """The same file was told twice as fast where only the problem's module was another."""
    of = [result("1/1", 1.0 / speedup, seed=seed) for seed, speedup in enumerate((1, 2))]
    for one, digest in zip(of, "ab"):
        one.problem_sha256 = digest
    (found,) = compare(run(tmp_path / "before", of[0]), run(tmp_path / "after", of[1]))
    assert (found.change, found.why, found.ratio) == (Change.NOT_COMPARABLE, "its problem has changed", None)


def test_the_best_sample_of_each_run_is_compared(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, sample=0), result("1/1", 0.5, sample=1, seed=1))
    (found,) = compare(before, run(tmp_path / "after", result("1/1", 1.0, sample=2, seed=2)))
    assert found.change is Change.SLOWER and 0.45 < found.ratio < 0.55


def test_without_a_time_nothing_is_faster(tmp_path):
    before, after = run(tmp_path / "before", result("1/1")), run(tmp_path / "after", result("1/1", 0.1))
    for runs, when in (((before, after), "before"), ((after, before), "after"), ((before, before), "before and after")):
        (found,) = compare(*runs)
        assert found.change is Change.NOT_COMPARABLE and found.why == f"not timed {when}"


def test_forms_and_the_worst_first(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, seed=1), result("1/2", 1.0))
    after = run(tmp_path / "after", result("1/1", 2.0, seed=2), result("1/2", status=Status.CRASHED), device="gpu")
    data = json.loads(render(before, after, "json"))
    assert [p["change"] for p in data["problems"]] == ["newly broken", "slower"]
    assert data["counts"] == {"newly broken": 1, "slower": 1} and data["problems"][1]["interval"]["high"] < 1
    assert "1/2 own" in render(before, after, "markdown") and "differ in device" in render(before, after, "terminal")
    assert (
        render(before, after, "csv").splitlines()[0].startswith("problem,name,change,before,after,ratio,interval.low")
    )


def of_size(problem, ms, name, sizes=None):
    made = result(problem, ms)
    made.workload = {"name": name, "sizes": sizes or {}}
    return made


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (("full", {}), ("small", {}), "different sizes: full before, small after"),
        (("full", {"n": 8}), ("full", {"n": 4}), "different sizes: full is n=8 before, n=4 after"),
        (("unknown", {}), ("full", {}), "sizes unknown before"),
        (("unknown", {}), ("unknown", {}), "sizes unknown before and after"),
    ],
    ids=["names", "sizes of one name", "unknown before", "unknown in both"],
)
def test_speedups_of_different_or_unknown_sizes_are_not_compared(tmp_path, before, after, why):
    runs = [run(tmp_path / "a", of_size("1/1", 1.0, *before)), run(tmp_path / "b", of_size("1/1", 2.0, *after))]
    (found,) = compare(*runs)
    assert (found.change, found.why) == (Change.NOT_COMPARABLE, why) and found.ratio is None and found.interval is None
    assert "not comparable" in render(*runs, "terminal") and why in render(*runs, "terminal")


def test_what_broke_is_told_whatever_the_sizes(tmp_path):
    failed = result("1/1", status=Status.CRASHED)
    failed.workload = {"name": "full", "sizes": {}}
    before, after = run(tmp_path / "a", of_size("1/1", 1.0, "small")), run(tmp_path / "b", failed)
    assert changes(before, after) == {"1/1": Change.NEWLY_BROKEN}
