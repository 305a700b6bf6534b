"""The judge's clock adds to the times that a worker reports what it saw beyond them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.integrity import forged_clock
from harness.judge.cross_check import check
from harness.judge.cross_check.base import NotHeld, NotRead, Reading
from harness.process.procfs import usable_cores
from harness.timing.interleaved import CANDIDATE


def test_a_busy_machine_excuses_waiting_and_not_work():
    """The reference took four times as long in the burst: the candidate may have seen to that."""
    result = SimpleNamespace(timing={"median_ms": 4.0, "mean_ms": 4.0}, baselines={"eager": {"median_ms": 15.0}})
    reading = Reading(burst_ms=15.0, overhead_ms=0.0, reference_ms=60.0, calls=1, held=True)
    cores = usable_cores()

    def penalty_ms(reading):
        judged = check._judged(result, reading, "cpu", 1.0)
        return max(0.0, *(ms - allowed_ms for ms, allowed_ms in judged))

    waited = replace(reading, cpu_ms=4.0 * cores, busiest_ms=4.0)
    assert penalty_ms(waited) == 0.0
    assert penalty_ms(replace(waited, cpu_ms=15.0 * cores)) == pytest.approx(15.0 - 1.5 * 4.0, abs=0.1)
    one_thread = replace(waited, cpu_ms=15.0, busiest_ms=15.0)  # the other cores are no excuse for it
    assert penalty_ms(one_thread) == pytest.approx(15.0 - 1.5 * 4.0, abs=0.1)


@pytest.mark.parametrize(
    "reference_ms, waited, claimed_ms, penalty_ms",
    [
        (None, 4.0, 3.0, 0.0),  # honest: it waited as the reference did
        (None, 4.0, 0.75, 4 * 1.0 - 1.5 * 0.75),  # its CPU time, less a quarter
        (1.0, 4.0, 0.75, 4 * 1.0 - 1.5 * 0.75),
        (2.0, 4.0, 0.75, 2 * 1.0 - 1.5 * 0.75),  # the burst was half as busy
        (4.0, 4.0, 0.75, 0.0),  # as busy
        (4.0, 1.0, 0.75, 0.0),
    ],
)
def test_who_leaves_out_of_his_claim_that_he_waited_for_a_core_pays_for_it(
    reference_ms, waited, claimed_ms, penalty_ms
):
    """Two busy loops on two cores: CPU time as a claim was told 10 to 18x, as quiet bursts agreed with it."""
    timing = {"median_ms": claimed_ms, "mean_ms": claimed_ms}
    result = SimpleNamespace(timing=timing, baselines={"eager": {"median_ms": 4.0}})
    reading = Reading(1.0, 0.0, reference_ms, 1, True, cpu_ms=0.0, busiest_ms=0.0)
    judged = check._judged(result, reading, "cpu", check._waited_more(result, reading, waited))
    if penalty_ms:
        penalty_ms -= forged_clock.ABSOLUTE_MS["cpu"]
    assert max(0.0, *(ms - allowed_ms for ms, allowed_ms in judged)) == pytest.approx(penalty_ms)


def test_nobody_is_accused_while_others_have_the_cores():
    result = SimpleNamespace(timing={"median_ms": 0.07, "mean_ms": 0.07}, baselines={})
    reading = Reading(3.3, 0.0, None, 1, True, cpu_ms=2.0, busiest_ms=1.0)
    for others in (0.0, 0.5):  # one program on one of two cores is no excuse
        check._check_cores_are_free(result, replace(reading, others=others), "cpu")
    with pytest.raises(NotRead, match="other programs had 95% of the cores; evaluate again when they are free"):
        check._check_cores_are_free(result, replace(reading, others=0.95), "cpu")
    agrees = replace(reading, burst_ms=0.2, others=0.95)
    check._check_cores_are_free(result, agrees, "cpu")


def test_what_single_rounds_claim_is_held_against_the_clock_too():
    """A fifth of the rounds told as nothing is not in the median, but in the mean that exports tell."""
    assert check._claimed_ms({"median_ms": 1.0, "mean_ms": 0.8}) == 0.8
    assert check._claimed_ms({"median_ms": 1.0, "mean_ms": 1.3}) == 1.0  # others came to the cores now and then
    reading = Reading(burst_ms=1.0, overhead_ms=0.0, reference_ms=None, calls=1, held=True)
    allowed = [
        check._allowed_ms(SimpleNamespace(timing={"median_ms": 1.0, "mean_ms": mean_ms}, baselines={}), reading, "cpu")
        for mean_ms in (0.5, 1.0, 1.3)
    ]
    assert allowed[0] == pytest.approx(0.5 * 1.5 + 0.1) and allowed[1] == allowed[2] == pytest.approx(1.6)


@pytest.mark.parametrize("side_launches, waits, is_held", [(0, set(), True), (2, set(), None), (2, {CANDIDATE}, False)])
def test_calls_with_work_on_other_streams_are_timed_with_their_launches(monkeypatch, side_launches, waits, is_held):
    """Behind a gate each such call took 2 ms more than it takes, which is up to 30 times as long (an H100)."""
    held = []

    def read(clock, result, timed):
        held.append(CANDIDATE not in timed.interleaved.waits)
        raise NotRead("enough")

    def profile(session, result, timed):
        result.timing["profile"] = {"side_launches": side_launches}

    monkeypatch.setattr(check, "_read", read)
    monkeypatch.setattr(check, "_profile_launches", profile)
    clock = SimpleNamespace(session=SimpleNamespace(conditions=SimpleNamespace(device=torch.device("cuda"))))
    interleaved = SimpleNamespace(waits=waits, is_close=None)
    timed = SimpleNamespace(interleaved=interleaved, baselines=(), write=lambda *_, **__: None)
    result = SimpleNamespace(timing={})
    if is_held is None:
        with pytest.raises(NotHeld):
            check.cross_check(clock, result, timed)
    else:
        check.cross_check(clock, result, timed)
    assert held == ([] if is_held is None else [is_held])
