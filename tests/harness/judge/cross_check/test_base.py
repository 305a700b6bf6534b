"""How many calls the judge's clock is read over, and how often."""

import functools
import itertools
from types import SimpleNamespace

import pytest

from harness.integrity import forged_clock
from harness.judge.cross_check import cpu
from harness.judge.cross_check.base import NotRead, Reading, calls_of_a_burst, longest, mean_of_undisturbed
from harness.result import CandidateFailure, Status


def test_a_burst_is_long_enough_to_be_told_from_what_it_costs():
    assert calls_of_a_burst("cuda", 0.005, 1, held=True) == 128
    assert calls_of_a_burst("cuda", 1.0, 1, held=True) == 9
    assert calls_of_a_burst("cuda", 20.0, 1, held=True) == 1
    assert calls_of_a_burst("cpu", 1.0, 1, held=True) == 11


def test_launches_have_to_fit_the_queue_behind_the_gate_and_nowhere_else():
    assert calls_of_a_burst("cuda", 0.3, 100, held=True) == 6
    assert calls_of_a_burst("cuda", 3.0, 3000, held=True) == 1
    assert calls_of_a_burst("cuda", 3.0, 3000, held=False) == 7


def test_the_least_times_of_two_readings_count():
    before, later = Reading(10.0, 1.0, 3.0, 4, True), Reading(11.0, 0.5, None, 4, True)
    assert later.least(before) == before.least(later) == Reading(10.0, 0.5, 3.0, 4, True)


def test_the_case_that_takes_longest_counts_and_what_any_says_of_how_busy_the_machine_is():
    """An honest candidate beside others was told 0.19x: the reference was called in the burst of another case."""
    short, long = Reading(4.0, 0.0, 3.0, 4, True), Reading(8.0, 0.0, None, 4, True)
    assert longest([short, long]) == Reading(8.0, 0.0, 3.0, 4, True)
    assert longest([short, Reading(8.0, 0.0, 5.0, 4, True)]).reference_ms == 5.0
    assert longest([long]) == long


def test_who_waits_in_one_case_does_not_hide_what_it_works_in_the_other():
    works = Reading(4.0, 0.0, None, 4, True, cpu_ms=1.0, busiest_ms=0.9)
    waits = Reading(8.0, 0.0, None, 4, True, cpu_ms=0.1, busiest_ms=0.1)
    assert longest([works, waits]) == longest([waits, works]) == Reading(8.0, 0.0, None, 4, True, 1.0, 0.9)


def test_a_mean_leaves_out_the_quarter_that_others_may_have_disturbed():
    assert mean_of_undisturbed([1.0]) == 1.0 and mean_of_undisturbed([1.0, 3.0]) == 2.0
    assert mean_of_undisturbed([1.0, 2.0, 100.0, 3.0]) == 2.0
    assert mean_of_undisturbed([1.0, 9.0] * 4) > 3.0, "every second call is quick by luck"


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


@pytest.mark.parametrize(("called_s", "tries"), [(0.5, 9), (5.0, 3)])
def test_who_is_slow_between_calls_is_read_as_often_as_others(monkeypatch, called_s, tries):
    """A candidate slept before a burst, when calls had been lucky, and so chose which counted: 3 to 9 of a kind."""
    moments = itertools.count(step=30.0)
    monkeypatch.setattr(cpu, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    assert sum(1 for _ in cpu.tries(0.01, called_s=lambda: called_s)) == pytest.approx(tries, abs=1)


@pytest.mark.parametrize("cv_target", [0.01, 0.25])
def test_before_a_candidate_is_rejected_the_clock_is_read_for_longer(monkeypatch, cv_target):
    moments = itertools.count(step=0.1)
    monkeypatch.setattr(cpu, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    assert sum(1 for _ in cpu.tries(cv_target, lambda: True)) == pytest.approx(50, abs=1)


@pytest.mark.parametrize("fails", ["request", "rest", "check_rest"])
def test_what_a_worker_without_a_candidate_does_is_no_candidates_failure(fails):
    def crashes(*_, **__):
        raise CandidateFailure(Status.CRASHED, "2 s after its answer something still runs")

    rested = SimpleNamespace(cpu_ms=0.0, busiest_ms=0.0)
    works = {name: lambda *_, **__: 0.0 for name in ("request", "rest", "check_rest", "check_limits")}
    idle = SimpleNamespace(rested=rested, **(works | {fails: crashes}))
    rehearsal = object.__new__(cpu.CpuRehearsal)
    rehearsal.idle, rehearsal.timeout_s = idle, 1.0
    rehearsal._ask = functools.partial(rehearsal.ask_idle, idle)
    with pytest.raises(NotRead, match="a worker without a candidate failed: 2 s after its answer"):
        rehearsal.calls(8, 1)
