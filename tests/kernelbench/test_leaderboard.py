"""What a table says of a result besides its figures."""

import dataclasses

from harness.result import Result, Status
from kernelbench.leaderboard import result_table

SETTLED = Result(
    problem="1/19", problem_name="relu", workload={"name": "small"},
    solution={"name": "relu.py", "language": "pytorch"}, status=Status.OK, timing={"median_ms": 1.0}, speedup=3.63,
    baselines={"eager": {"median_ms": 3.63, "verdict": "faster"}},
)  # fmt: skip
UNSTABLE = dataclasses.replace(SETTLED, baselines={"eager": {"median_ms": 3.63, "verdict": "unstable"}})


def test_a_speedup_whose_times_did_not_settle_is_marked_and_explained():
    table = result_table([UNSTABLE])
    assert "~3.63x" in table and "~ unstable: its times did not settle" in table


def test_one_that_did_is_not():
    assert "3.63x" in result_table([SETTLED]) and "~" not in result_table([SETTLED])
