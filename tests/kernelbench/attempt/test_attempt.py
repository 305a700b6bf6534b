"""An attempt: its schema, its first error, its hint. Records are made up or come from the log of a GPU."""

import json
from pathlib import Path

import jsonschema
import pytest
from logs import judged, result

from harness.result import Result, Status
from kernelbench.attempt import report, text
from kernelbench.attempt.first_error import first_error
from kernelbench.attempt.hint import hint

H100 = Path(__file__).resolve().parents[3] / "results" / "h100" / "examples" / "results.jsonl"


def conforms(attempt):
    jsonschema.validate(attempt, report.schema())
    assert json.loads(json.dumps(attempt)) == attempt
    return attempt


def failed(status, message, rule=None):
    found = result("1/1", 0.1, status=status, message=message)
    found.rule = rule
    return found


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(report.schema())


@pytest.mark.parametrize("line", H100.read_text().splitlines(), ids=lambda line: json.loads(line)["solution"]["name"])
def test_every_record_of_a_gpu_is_an_attempt(line):
    found = Result.from_json(json.loads(line))
    attempt = conforms(report.of_result(found, "kernel.cu", 5.0))
    assert attempt["correct"] == (attempt["exit_status"] == 0) == (attempt["error"] is None)
    assert attempt["hint"] and text.page(attempt)
    if attempt["verdict"] == "faster":
        assert attempt["interval"][0] > 1 and attempt["speedup"] == attempt["measured_speedup"]
        assert attempt["percent_of_sol"] > 0


def test_a_tie_counts_as_one_and_an_unstable_one_as_nothing():
    tie = result("1/1", 0.98)
    tie.baselines["eager"] |= {"verdict": "tie", "interval": [0.96, 1.07]}
    assert conforms(report.of_result(tie, "k.py"))["speedup"] == 1
    unstable = result("1/1", 0.5)
    unstable.baselines["eager"] |= {"verdict": "unstable", "interval": [0.5, 8]}
    attempt = conforms(report.of_result(unstable, "k.py"))
    assert attempt["speedup"] is None and attempt["exit_status"] == 0 and "did not settle" in attempt["hint"]


def test_a_rejected_attempt_has_no_speedup():
    rejected = judged("1/1", 4.0, status=Status.REJECTED, rule="library_only")
    attempt = conforms(report.of_result(rejected, "k.py"))
    assert (attempt["correct"], attempt["speedup"], attempt["measured_speedup"]) == (False, None, 4.0)


def test_a_correct_one_that_was_only_checked_has_no_time():
    checked = result("1/1", status=Status.OK)
    checked.timing = None
    attempt = conforms(report.of_result(checked, "k.py"))
    assert attempt["correct"] and "time     not taken" in text.page(attempt)


@pytest.mark.parametrize(
    ("message", "line", "begins"),
    [
        ("the compiler refused the source:\n{name}:7: expected ';'\n    int x", 7, "{name}:7: expected"),
        ("SyntaxError: expected ':' ({name}, line 8)\n   def f", 8, "SyntaxError"),
        (
            'ValueError: no\n  File "/x/{name}", line 3, in forward\n  File "/x/{name}", line 9, in inner',
            9,
            "ValueError",
        ),
        ("other.h:7: expected ';'", None, "other.h"),
        ("", None, "runtime_error"),
    ],
)
def test_the_first_error_has_the_line_of_the_solution(message, line, begins):
    found = failed(Status.RUNTIME_ERROR, "")
    name = Path(found.solution["name"]).name
    found.message = message.format(name=name)
    error = first_error(found)
    assert error["line"] == line and error["text"].startswith(begins.format(name=name))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_every_failure_has_a_hint_and_exit_status_1(status):
    attempt = conforms(report.of_result(failed(status, "why", "below_floor"), "k.cu"))
    assert attempt["exit_status"] == 1 and attempt["hint"] and attempt["error"]["message"] == "why"


def test_hints_come_from_bounds_and_profile():
    found = result("1/1", 0.5)
    found.baselines["eager"] |= {"verdict": "faster", "interval": [1.9, 2.1]}
    sol = {"percent_of_sol": 20.0, "bottleneck": "memory", "t_sol_ms": 0.1, "peak_type": "FP32"}
    sol |= {"bandwidth_share": 0.2, "compute_share": 0.1}
    found.sol = sol
    found.timing["profile"] = {"launches": 2, "kernels": [{"name": "mine", "ms": 0.4}, {"name": "other", "ms": 0.1}]}
    assert "memory" in hint(found) and "20%" in hint(found) and "mine takes 80%" in hint(found)
    found.sol = sol | {"bottleneck": "compute"}
    assert "tensor cores" in hint(found)
    found.sol = sol | {"percent_of_sol": 95.0}
    assert "little is left" in hint(found)
    found.timing["launch_bound_ms"] = 2.0
    assert "launch fewer kernels (2 a call)" in hint(found)


def test_what_was_not_evaluated_is_an_attempt_too():
    for status in (2, 3):
        attempt = conforms(report.not_evaluated("no such file: x\nmore", "x", status))
        assert attempt["exit_status"] == status and attempt["error"]["text"] == "no such file: x"
        assert not attempt["correct"] and "no problem, not evaluated" in text.page(attempt)
