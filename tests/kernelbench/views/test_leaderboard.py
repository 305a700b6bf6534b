"""What a table says of a result besides its figures."""

import dataclasses

from logs import judged, run

from harness.result import Result, Status
from kernelbench.views.leaderboard import result_table, row, write

SETTLED = Result(
    problem="1/19", problem_name="relu", workload={"name": "small"},
    solution={"name": "relu.py", "sample": 0, "language": "pytorch"}, status=Status.OK,
    timing={"median_ms": 1.0}, speedup=3.63,
    baselines={"eager": {"median_ms": 3.63, "verdict": "faster", "interval": [3.6, 3.66]}},
)  # fmt: skip
UNSTABLE = dataclasses.replace(SETTLED, baselines={"eager": {**SETTLED.baselines["eager"], "verdict": "unstable"}})


def test_a_speedup_stands_with_its_interval():
    table = result_table([SETTLED])
    assert "3.63x" in table and "[3.60, 3.66]" in table and "unstable" not in table


def test_a_speedup_whose_times_did_not_settle_is_no_number():
    table = result_table([UNSTABLE])
    assert "3.63x" not in table and "unstable: the times did not settle" in table


def test_a_correct_result_without_a_speedup_says_why():
    untimed = dataclasses.replace(SETTLED, speedup=None, baselines={"compile": {"error": "no C++ compiler"}})
    assert "no speedup: no baseline could be timed: compile: no C++ compiler" in result_table([untimed])


def test_a_row_holds_verdict_and_interval():
    assert row(UNSTABLE)["verdict"] == "unstable" and row(UNSTABLE)["settled_speedup"] is None
    assert row(SETTLED)["interval"] == {"low": 3.6, "high": 3.66} and row(SETTLED)["settled_speedup"] == 3.63


def test_it_takes_the_place_of_a_link_and_leaves_what_that_leads_to(tmp_path):
    made, mine = run(tmp_path / "r", judged("1/1", 2.0)), tmp_path / "mine"
    for name in ("leaderboard.json", "leaderboard.md"):
        (made.path / name).symlink_to(mine)
    write(made, ["1/1"])
    assert not mine.exists() and "fast_1" in (made.path / "leaderboard.md").read_text()
