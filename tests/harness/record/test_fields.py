"""Nested fields of a record are checked, and all committed results pass."""

import json
import math
from pathlib import Path

import pytest

from harness.record.shape import NUMBER, TEXT, bounded, list_of, shape
from harness.result import FORMAT, Result

ROOT = Path(__file__).parents[3]
LOGS = sorted((ROOT / "results").rglob("results.jsonl"))


@pytest.fixture(scope="module")
def line():
    """Return a committed result that was timed, as its line."""
    lines = (ROOT / "results/h100/examples/results.jsonl").read_text().splitlines()
    return next(line for line in lines if json.loads(line)["timing"])


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_every_committed_result_is_read_in_its_own_format_and_in_the_newest(log):
    for record in map(json.loads, log.read_text().splitlines()):
        result = Result.from_json(record)
        assert Result.from_json(result.to_json() | {"format": FORMAT}) == result


def test_there_are_committed_results():
    assert len(LOGS) >= 4


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("baselines.eager.interval", [[]], "baselines.eager.interval must be two numbers, or null, and is [[]]"),
        ("baselines.eager.interval", [1.0], "baselines.eager.interval must be two numbers"),
        ("baselines.eager.interval", [1.0, math.nan], "baselines.eager.interval must be two numbers"),
        ("baselines.eager.verdict", ["tie"], "baselines.eager.verdict must be one of faster, slower, tie, unstable"),
        ("baselines.eager", None, "baselines.eager must be an object"),
        ("baselines", {str(number): {} for number in range(17)}, "baselines must be an object of at most 16"),
        ("timing.samples_ms", [1.0] * 20_001, "timing.samples_ms must be a list of positive finite numbers, 1 to"),
        ("timing.samples_ms", [], "timing.samples_ms must be a list of positive finite numbers, 1 to 20,000"),
        ("timing", None, "a speedup without a timing"),
        ("baselines", {}, "a speedup over no baseline"),
        ("timing", {"cv": 0.1}, "timing has neither median_ms nor mean_ms"),
        ("baselines.eager", {"speedup": 2.0}, "eager has neither median_ms nor mean_ms"),
        ("baselines.eager.error", None, "baselines.eager.error must be text"),
        ("conditions.sm_clock_mhz", {"min": 1, "median": 5e-324, "max": 1}, "conditions.sm_clock_mhz.median must be"),
        ("conditions.kernelbench", {"metadata": []}, "conditions.kernelbench.metadata must be an object"),
        ("correctness.allclose", [], "correctness.allclose must be an object"),
        ("problem", "01/1", "problem must be LEVEL/NUMBER"),
        ("problem", "1/001", "problem must be LEVEL/NUMBER"),
        ("workload.sizes", "n=1", "workload.sizes must be an object"),
        ("workload.flops", [1], "workload.flops must be a finite number"),
        ("held_out", [True], "held_out[0] must be an object"),
        ("held_out", [{"status": "ok"}], "held_out[0].baseline_ms is missing"),
        ("stages_s", {"check": 1e6, "time": -999_999.0}, "stages_s.time must be a finite number from 0"),
        ("versions.python", [3], "versions.python must be text"),
        ("timing.calls_a_round", math.nan, "timing.calls_a_round must be a whole number"),
        ("timing.calls_a_round", True, "timing.calls_a_round must be a whole number"),
        ("timing.median_ms", 0.0, "timing.median_ms must be a positive finite number"),
        ("timing.samples_ms", [1.0, math.nan, 1.0], "timing.samples_ms must be a list of positive finite numbers"),
        ("timing.samples_ms", [1.0, 10**400], "timing.samples_ms must be a list of positive finite numbers"),
        ("timing.samples_ms", [1.0, "1"], "timing.samples_ms must be a list of positive finite numbers"),
        ("timing.samples_ms", [1.0, 0.0], "timing.samples_ms must be a list of positive finite numbers"),
        ("timing.samples_ms", [1.0, -1.0], "timing.samples_ms must be a list of positive finite numbers"),
        ("baselines.eager.samples_ms", [0], "baselines.eager.samples_ms must be a list of positive finite numbers"),
        ("timing.mean_ms", 10**400, "timing.mean_ms must be a positive finite number"),
        ("integrity.findings", [1], "integrity.findings[0] must be an object"),
        ("speedup", math.inf, "speedup must be a positive finite number"),
        ("problem", "1/" + "9" * 5000, "problem must be LEVEL/NUMBER"),
        ("build", {"code": ["x"]}, "build.code must be text"),
        ("integrity", {"built_own": "no"}, "integrity.built_own must be"),
        ("timing.profile.side_launches", [], "timing.profile.side_launches must be"),
        ("problem_name", "relu\nstatus  ok", "problem_name must be text of one line"),
        ("solution.name", "a.py\nb.py", "solution.name must be text of one line"),
        ("baselines", {"eager\nx": {}}, "baselines must be an object of at most 16, with names of one line"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_field(line, path, value, message):
    record = json.loads(line)
    *above, last = path.split(".")
    place = record
    for name in above:
        place = place[name]
    place[last] = value
    with pytest.raises(ValueError) as refused:
        Result.from_json(record)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", ["name", "sample", "language", "kind", "sha256"])
def test_what_every_view_reads_of_a_solution_must_be_there(line, name):
    record = json.loads(line)
    del record["solution"][name]
    with pytest.raises(ValueError, match=f"solution.{name} is missing"):
        Result.from_json(record)


def test_fields_that_no_view_knows_may_hold_anything(line):
    record = json.loads(line)
    record["timing"]["later"] = record["workload"]["later"] = record["later"] = [{"a": None}]
    assert Result.from_json(record).timing["later"] == [{"a": None}]


def test_a_table_names_values_entries_and_what_must_be_there():
    table = shape({"times.*": NUMBER, "rows[].name!": TEXT, "tags": list_of(TEXT)})
    table.check({"times": {"a": 1, "b": 2.0}, "rows": [{"name": "x", "more": 1}], "tags": [], "other": object})
    table.check({"times": None, "rows": None})
    for record, message in [
        ([], " must be an object"),
        ({"times": {"a": "1"}}, "times.a must be a finite number"),
        ({"rows": {}}, "rows must be a list"),
        ({"rows": [{}]}, r"rows\[0\].name is missing"),
        ({"tags": [1]}, "tags must be a list, each entry text"),
    ]:
        with pytest.raises(ValueError, match=message):
            table.check(record)


@pytest.mark.parametrize(("error", "kept"), [(1e-310, 0.0), (-1e-310, 0.0), (1e200, 1e100), (-1e200, -1e100), (1, 1)])
def test_a_number_that_a_candidate_chose_makes_no_record_unreadable(line, error, kept):
    """Whoever wrote 1e-310 for zeros had no result: the record was refused, and that was no fault of the candidate."""
    result = Result.from_json(json.loads(line))
    result.correctness["max_error_ratio"] = error
    record = result.to_json()
    assert record["correctness"]["max_error_ratio"] == kept and Result.from_json(record)
    assert bounded({"a": [math.inf, (True, 3, "1e-310", None)]}) == {"a": [math.inf, [True, 3, "1e-310", None]]}
