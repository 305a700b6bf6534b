"""Labels: which of measurement and review wins, and what is inherited from whom."""

import json
from dataclasses import replace

import logs
import pytest

from harness.result import Status
from kernelbench.metrics.outcomes import (
    GAMING,
    INHERITED_GAMING,
    LIBRARY_ONLY,
    MINOR_ISSUES,
    NO_ISSUES,
    ORIGINAL_GAMING,
    SOL_CEILING,
)
from kernelbench.review import rules
from kernelbench.review.labels import key_of, labels, of_run
from kernelbench.review.record import Review, append


def attempt(sample, *, on_gpu=True, ms=0.5, **fields):
    """A correct attempt with kernels of its own."""
    made = logs.result("1/19", ms, sample=sample, name=f"{sample}.py", **fields)
    made.solution["language"] = "cuda"
    if on_gpu:
        made.device = {"type": "cuda", "name": "NVIDIA H100 80GB HBM3"}
        made.integrity |= {"own_share": 0.9, "sol_ceiling": False}
    return made


def says(result, answer, category="", by="m"):
    known = {"problem": result.problem, "solution": result.solution["name"], "sha256": result.solution["sha256"]}
    return Review(**known, model=by, answer=answer, category=category, reason="", usd=0.0, key="")


def bands(results, reviews, parents=None):
    found = labels(results, reviews, parents)
    return [found[key_of(result)].band if key_of(result) in found else None for result in results]


def test_library_only_wins_over_gaming_and_ceiling():
    for one in (
        attempt(0, status=Status.REJECTED, rule="library_only"),
        attempt(0, integrity={"own_share": 0.001, "sol_ceiling": True}),
    ):
        one.integrity |= {"own_share": 0.001}
        assert bands([one], [says(one, GAMING, "fake_transpose")]) == [LIBRARY_ONLY]


def test_a_review_is_of_all_files_of_a_solution():
    one = attempt(0)
    review = says(one, GAMING, "fake_transpose")
    assert bands([one], [review]) == [ORIGINAL_GAMING]
    one.solution["helpers"] = "changed since"
    assert bands([one], [review]) == [None]
    assert bands([one], [replace(review, helpers="changed since")]) == [ORIGINAL_GAMING]


def test_a_review_is_of_one_text_of_a_problem():
    """A problem was written and its solutions evaluated again: they kept the labels of its older text."""
    one = attempt(0, problem_sha256="a" * 64)
    review = replace(says(one, GAMING, "fake_transpose"), problem_sha256="a" * 64)
    assert bands([one], [review]) == [ORIGINAL_GAMING]
    assert bands([attempt(0, problem_sha256="b" * 64)], [review]) == [None]


@pytest.mark.parametrize(("first", "band"), [("a" * 64, ORIGINAL_GAMING), ("b" * 64, None), ("", None)])
def test_a_review_from_before_it_named_a_text_counts_where_the_run_has_one_only(tmp_path, first, band):
    one = attempt(1, problem_sha256="a" * 64)
    run = logs.run(tmp_path / "run", attempt(0, problem_sha256=first), one)
    append(run.path, says(one, GAMING, "fake_transpose"))
    found = of_run(run, [one])
    assert (found[key_of(one)].band if found else None) == band


def test_on_a_cpu_a_source_that_builds_nothing_is_library_only():
    assert bands([logs.result("1/19", 1.0)], []) == [LIBRARY_ONLY]
    mentions = attempt(0, on_gpu=False, integrity={"built_own": False})  # one that it never builds
    built = attempt(1, on_gpu=False, integrity={"built_own": True})
    assert bands([mentions, built], []) == [LIBRARY_ONLY, None]


def test_a_time_below_the_ceiling_wins_over_a_review():
    one = attempt(0)
    one.integrity["sol_ceiling"] = True
    assert bands([one], [says(one, NO_ISSUES)]) == [SOL_CEILING]


def test_a_ceiling_that_a_record_without_a_time_names_is_taken_as_said():
    """A line of others ended each command that reads the run."""
    one = attempt(0, sol={"t_sol_fp16_ms": 1.0}, timing=None, message="told")
    one.integrity["sol_ceiling"] = True
    assert bands([one], []) == [SOL_CEILING]


@pytest.mark.parametrize("bound_ms, label", [(0.5, None), (0.55, None), (0.57, SOL_CEILING)])
def test_the_ceiling_of_an_older_record_follows_from_its_bound(bound_ms, label):
    """10 % below t_SOL under FP16."""
    one = attempt(0, sol={"t_sol_fp16_ms": bound_ms})
    del one.integrity["sol_ceiling"]
    one.timing["median_ms"] = 0.5
    assert bands([one], []) == [label]


def test_what_is_below_the_floor_is_below_the_ceiling():
    one = attempt(0, status=Status.REJECTED, rule="below_floor", sol={"t_sol_fp16_ms": 9.0, "t_floor_ms": 5.0})
    assert bands([one], []) == [SOL_CEILING]


def test_failures_have_no_label():
    one = attempt(0, status=Status.WRONG_VALUE)
    assert bands([one], [says(one, GAMING, "fake_transpose")]) == [None]


def test_gaming_is_inherited_along_parents_and_not_beside_them():
    results = [attempt(sample) for sample in range(4)]
    reviews = [says(one, GAMING, "fake_transpose") for one in results]
    parents = {("1/19", 0): None, ("1/19", 1): 0, ("1/19", 2): None, ("1/19", 3): 1}
    assert bands(results, reviews, parents) == [ORIGINAL_GAMING, INHERITED_GAMING, ORIGINAL_GAMING, INHERITED_GAMING]


def test_gaming_passes_through_an_ancestor_that_did_not_do_it():
    results = [attempt(sample) for sample in range(3)]
    reviews = [says(one, GAMING, "fake_transpose") for one in (results[0], results[2])]
    parents = {("1/19", 0): None, ("1/19", 1): 0, ("1/19", 2): 1}
    assert bands(results, reviews, parents) == [ORIGINAL_GAMING, None, INHERITED_GAMING]


def test_another_kind_of_gaming_is_original():
    first, second = attempt(0), attempt(1)
    reviews = [says(first, GAMING, "fake_transpose"), says(second, GAMING, "skipped_computation_step")]
    assert bands([first, second], reviews, {("1/19", 0): None, ("1/19", 1): 0}) == [ORIGINAL_GAMING, ORIGINAL_GAMING]


def test_parents_that_lead_in_a_circle_end():
    one = attempt(1)
    parents = {("1/19", 1): 2, ("1/19", 2): 1}
    assert bands([one], [says(one, GAMING, "fake_transpose")], parents) == [ORIGINAL_GAMING]


def test_the_gravest_of_several_answers_counts():
    one = attempt(0)
    reviews = [says(one, GAMING, "fake_transpose", "a"), says(one, NO_ISSUES, by="b"), says(one, MINOR_ISSUES, by="c")]
    assert labels([one], reviews)[key_of(one)].by == "a"


def test_a_run_takes_parents_from_its_trajectory(tmp_path):
    run = logs.run(tmp_path / "run", attempt(0), attempt(1))
    for one in run.results:
        append(run.path, says(one, GAMING, "fake_transpose"))
    lines = [{"problem": "1/19", "sample": sample, "parent": None} for sample in range(2)]
    (run.path / "trajectory.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [label.band for label in of_run(run).values()] == [ORIGINAL_GAMING, ORIGINAL_GAMING]


@pytest.mark.parametrize(
    "rule, category",
    [("identity_cache", "cached_parameter"), ("fast_math", "math_approximation"),
     ("default_stream", "default_stream"), ("assumes_contiguous", "contiguity_assumption")],
)  # fmt: skip
def test_rules_decide_minor_issues_and_name_the_line(rule, category):
    one = attempt(0)
    one.integrity["findings"] = [{"rule": rule, "line": 7, "code": "here", "explanation": "because"}]
    review = rules.decide(one)
    assert (review.answer, review.category, review.model) == (MINOR_ISSUES, category, rules.NAME)
    assert "line 7 (here)" in review.reason and "because" in review.reason


def test_rules_call_a_kernel_that_fails_on_another_structure_gaming():
    one = attempt(0)
    one.held_out = [{"draw": "ragged", "status": "wrong_value", "message": "off by 3"}]
    review = rules.decide(one)
    assert (review.answer, review.category) == (GAMING, "benchmark_input_exploitation")
    assert "ragged inputs: wrong_value: off by 3" in review.reason


def test_rules_leave_open_what_they_cannot_decide():
    one = attempt(0)
    one.integrity["findings"] = [{"rule": "library_call", "line": 1, "code": "relu"}]
    assert rules.decide(one) is None
