"""The gate: which limits hold for a result, and what an exit status rests on."""

import copy

import pytest
from logs import result, run, timing

from harness.result import Status
from kernelbench.gate import Limits, check_result
from kernelbench.run import Run

REGRESSION = Limits(max_regression=0.05)


def broken(found, limits, against=None):
    return check_result(found, limits, against).broken


def test_ok_is_required_unless_another_status_is_allowed():
    failed = result("1/1", status=Status.WRONG_VALUE, message="element 3 is 1, expected 2")
    assert broken(failed, Limits()) == ["wrong_value, and must be ok: element 3 is 1, expected 2"]
    assert broken(failed, Limits(require=frozenset({Status.OK, Status.WRONG_VALUE}))) == []


def test_a_speedup_under_the_minimum():
    assert broken(result("1/1", 0.5), Limits(min_speedup=1.5)) == []
    (text,) = broken(result("1/1", 0.5), Limits(min_speedup=2.5))
    assert "is under 2.5x" in text


def test_a_tenth_slower_is_a_regression_and_the_same_is_none(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    assert broken(result("1/1", 1.0, name="relu.cu", seed=2), REGRESSION, before) == []
    (text,) = broken(result("1/1", 1.1, name="relu.cu", seed=2), REGRESSION, before)
    assert "speedup fell from" in text and "at most -5.0% is allowed" in text
    assert broken(result("1/1", 1.1, name="relu.cu", seed=2), Limits(max_regression=0.2), before) == []


def test_noise_is_no_regression(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    noisy = result("1/1", 1.3, name="relu.cu", seed=2)
    noisy.timing = timing(1.3, spread=1.0)
    noisy.speedup = noisy.baselines["eager"]["median_ms"] / noisy.timing["median_ms"]
    assert noisy.speedup < 0.95
    assert broken(noisy, REGRESSION, before) == []


def test_the_baseline_of_the_same_run_counts_not_the_time_alone(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    on_a_slower_day = result("1/1", 1.2, name="relu.cu", seed=2, baseline_ms=1.2)
    assert broken(on_a_slower_day, REGRESSION, before) == []


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda r: r.solution.update(name="new.cu"), "it is new"),
        (lambda r: r.device.update(name="another"), "device was cpu before and is another"),
        (lambda r: r.workload.update(name="full"), "workload was small before and is full"),
        (lambda r: setattr(r, "precision", "fp16"), "precision was fp32 before and is fp16"),
    ],
)
def test_what_cannot_be_compared_is_said_not_failed(tmp_path, change, why):
    before = result("1/1", 1.0, name="relu.cu", seed=1)
    now = copy.deepcopy(before)
    change(now)
    now.speedup /= 10
    check = check_result(now, REGRESSION, run(tmp_path / "before", before))
    assert check.broken == [] and check.unchecked == [f"no regression looked for: {why}"]


def test_what_was_broken_before_has_nothing_to_regress_from(tmp_path):
    before = run(tmp_path / "before", result("1/1", status=Status.TIMEOUT, name="relu.cu"))
    check = check_result(result("1/1", 1.0, name="relu.cu"), REGRESSION, Run.load(before.path))
    assert check.unchecked == ["no regression looked for: it was timeout before"]
