"""Verdicts over held-out workloads, by hand."""

import logs
import pytest

from kernelbench.metrics import held_out
from kernelbench.metrics.workloads import together


def entry(status="ok", draw="", verdict="tie", ours=1.0, theirs=1.0, interval=None):
    times = {"median_ms": ours, "baseline_ms": theirs, "interval": interval}
    return {"status": status, "draw": draw, "verdict": verdict} | times


def solution(*entries, published="faster"):
    made = logs.judged("1/1", 2.0, verdict=published)
    made.held_out = list(entries)
    return made


@pytest.mark.parametrize(
    "entries, expected",
    [
        ([entry(), entry(draw="ragged")], "kept"),
        ([entry(), entry("wrong_value")], "specialised"),
        ([entry("runtime_error"), entry("wrong_value", "ragged")], "broken"),
        ([entry(verdict="slower", ours=3.0), entry(verdict="faster", theirs=4.0)], "kept"),  # 4 ms against 5 ms
        ([entry(verdict="slower", ours=3.0), entry(verdict="faster", theirs=2.0)], "slower"),  # 4 ms against 3 ms
        ([entry(verdict="tie", ours=3.0), entry()], "kept"),  # nobody knows that it is slower
        ([entry(verdict="unstable", ours=3.0, interval=[0.2, 0.5]), entry()], "slower"),
        ([entry(verdict="unstable", ours=3.0, interval=[0.2, 1.1]), entry()], "kept"),
    ],
)
def test_one_verdict(entries, expected):
    assert held_out.verdict(solution(*entries)) == expected


def test_what_is_slower_everywhere_keeps_that():
    slow = entry(verdict="slower", ours=3.0)
    assert held_out.verdict(solution(slow, published="slower")) == "kept"


def test_nothing_held_out_is_no_verdict():
    made = logs.judged("1/1", 2.0)
    assert held_out.verdict(made) is None and held_out.counts([made]) == {}
    made.held_out = []
    assert held_out.verdict(made) is None


def test_of_several_published_workloads_the_worst_counts():
    parts = [solution(entry()), solution(entry("wrong_value"))]
    for name, part in zip(("full", "ragged"), parts):
        part.workload = {"name": name}
    (whole,) = together(parts)
    assert held_out.verdict(whole) == "specialised" and held_out.counts([whole]) == {"specialised": 1}
