"""The judge's clock adds to the times that a worker reports what it saw beyond them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.judge.cross_check import check
from harness.judge.cross_check.base import Reading
from harness.process.procfs import usable_cores


def test_a_busy_machine_excuses_waiting_and_not_work():
    """The reference took four times as long in the burst: the candidate may have seen to that."""
    result = SimpleNamespace(timing={"median_ms": 4.0}, baselines={"eager": {"median_ms": 15.0}})
    reading = Reading(burst_ms=15.0, overhead_ms=0.0, reference_ms=60.0, calls=1, held=True)
    cores = usable_cores()

    def penalty_ms(reading):
        judged = check._judged(result, reading, "cpu")
        return max(0.0, *(ms - allowed_ms for ms, allowed_ms in judged))

    waited = replace(reading, cpu_ms=4.0 * cores, busiest_ms=4.0)
    assert penalty_ms(waited) == 0.0
    assert penalty_ms(replace(waited, cpu_ms=15.0 * cores)) == pytest.approx(15.0 - 1.5 * 4.0, abs=0.1)
    one_thread = replace(waited, cpu_ms=15.0, busiest_ms=15.0)  # the other cores are no excuse for it
    assert penalty_ms(one_thread) == pytest.approx(15.0 - 1.5 * 4.0, abs=0.1)
