"""How many calls the judge's clock is read over, and how often."""

import itertools
from types import SimpleNamespace

import pytest

from harness.integrity import forged_clock
from harness.judge.cross_check import cpu
from harness.judge.cross_check.base import Reading, calls_of_a_burst


def test_a_burst_is_long_enough_to_be_told_from_what_it_costs():
    assert calls_of_a_burst("cuda", 0.005, 1, held=True) == 128
    assert calls_of_a_burst("cuda", 1.0, 1, held=True) == 9
    assert calls_of_a_burst("cuda", 20.0, 1, held=True) == 1
    assert calls_of_a_burst("cpu", 1.0, 1, held=True) == 11


def test_launches_have_to_fit_the_queue_behind_the_gate_and_nowhere_else():
    assert calls_of_a_burst("cuda", 0.3, 100, held=True) == 6
    assert calls_of_a_burst("cuda", 3.0, 3000, held=True) == 1
    assert calls_of_a_burst("cuda", 3.0, 3000, held=False) == 7


@pytest.mark.parametrize(
    "burst_ms, cpu_ms, busiest_ms, lowers",
    [(9.0, 5.0, 4.0, True), (11.0, 4.0, 4.0, True), (11.0, 5.0, 3.0, True), (11.0, 5.0, 4.0, False),
     (9.0, None, None, True)],
)  # fmt: skip
def test_outputs_are_compared_where_any_figure_of_a_burst_counts(burst_ms, cpu_ms, busiest_ms, lowers):
    before = Reading(10.0, 1.0, None, 4, True, *((None, None) if cpu_ms is None else (5.0, 4.0)))
    reading = Reading(burst_ms, 1.0, None, 4, True, cpu_ms, busiest_ms)
    assert reading.lowers(before) is lowers
    assert (before.least(reading) != before) is lowers


@pytest.mark.parametrize("claimed_ms", [0.005, 0.02, 0.1, 0.5, 2.0])
def test_a_candidate_that_pretends_to_many_launches_gains_little_by_it(claimed_ms):
    calls = calls_of_a_burst("cuda", claimed_ms, 10**6, held=True)
    assert forged_clock.allowed_ms(claimed_ms, calls, True, "cuda", 1.0) < 1.4 * claimed_ms + 0.003
    assert forged_clock.allowed_ms(claimed_ms, 1, True, "cuda", 1.0) < 1.4 * claimed_ms + 0.003


@pytest.mark.parametrize(
    ("a_try_s", "cv_target", "tries"),
    [
        (0.01, 0.01, 200), (0.1, 0.01, 20), (0.7, 0.01, 9), (30.0, 0.01, 3),
        (0.1, 0.001, 20), (0.01, 0.1, 20), (0.1, 0.1, 3),
    ],  # fmt: skip
)
def test_a_cpu_is_read_often_enough_for_others_to_leave_and_not_for_ever_where_a_forger_is_slow(
    monkeypatch, a_try_s, cv_target, tries
):
    moments = itertools.count(step=a_try_s)
    monkeypatch.setattr(cpu, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    assert sum(1 for _ in cpu.tries(cv_target)) == pytest.approx(tries, abs=1)


@pytest.mark.parametrize("cv_target", [0.01, 0.25])
def test_before_a_candidate_is_rejected_the_clock_is_read_for_longer(monkeypatch, cv_target):
    moments = itertools.count(step=0.1)
    monkeypatch.setattr(cpu, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    assert sum(1 for _ in cpu.tries(cv_target, lambda: True)) == pytest.approx(50, abs=1)
