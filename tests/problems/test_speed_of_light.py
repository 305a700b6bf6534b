"""The bounds of every problem at its published size: traffic explained, floors below what was measured on an H100."""

import json
from pathlib import Path

import pytest

from harness.integrity.below_floor import PLAUSIBLE
from harness.problem.module import find_problems, load_problem
from harness.sol.bounds import analyse, floor, speed_of_light
from harness.sol.hardware import limits_of
from kernelbench.suite import problem_root

HERE = Path(__file__).parent
MIN_BYTES = {
    fact["id"]: fact["min_bytes"] for fact in map(json.loads, (HERE / "published.jsonl").read_text().splitlines())
}
REFERENCES = HERE.parent.parent / "results" / "h100" / "references" / "results.jsonl"
MEASURED_MS = {
    record["problem"]: min(record["timing"]["min_ms"], record["baselines"]["eager"]["min_ms"])
    for record in map(json.loads, REFERENCES.read_text().splitlines())
}
H100 = limits_of("h100-sxm")


@pytest.fixture(scope="module")
def analyses():
    return {str(file.id): analyse(load_problem(file).workload("full")) for file in find_problems(problem_root())}


@pytest.mark.slow
def test_traffic_is_the_storage_or_the_report_says_why(analyses):
    for problem_id, analysis in analyses.items():
        for expected in (analysis.storage_bytes, MIN_BYTES[problem_id]):
            assert abs(analysis.direct.bytes / expected - 1) <= 0.02 or analysis.notes, problem_id


def test_no_reference_was_quicker_than_its_floor(analyses):
    below = {
        problem_id: (MEASURED_MS[problem_id], floor(analysis, H100).ms)
        for problem_id, analysis in analyses.items()
        if MEASURED_MS[problem_id] < PLAUSIBLE * floor(analysis, H100).ms
    }
    assert len(MEASURED_MS) == 250 and not below


def test_the_floor_is_never_above_the_guidance(analyses):
    for analysis in analyses.values():
        assert floor(analysis, H100).ms <= speed_of_light(analysis, H100, fp16=True).ms * (1 + 1e-9)


def test_the_guidance_is_tight_where_memory_is_the_limit(analyses):
    near = [
        problem_id
        for problem_id, analysis in analyses.items()
        if problem_id.startswith("1/")
        and (bound := speed_of_light(analysis, H100)).bottleneck == "memory"
        and MEASURED_MS[problem_id] <= 1.35 * bound.ms
    ]
    assert len(near) >= 10
