"""Bands and filterings, against cases worked by hand."""

import math

import logs
import pytest

from harness.result import Status
from kernelbench.metrics import outcomes
from kernelbench.metrics.outcomes import (
    BANDS,
    FILTERINGS,
    INHERITED_GAMING,
    LADDER,
    LIBRARY_ONLY,
    MINOR_ISSUES,
    NO_ISSUES,
    ORIGINAL_GAMING,
    SOL_CEILING,
    UNREVIEWED,
)

PROBLEMS = ["1/1", "1/2", "1/3"]


def labelled(*entries):
    """Results and the function to their bands, from (problem, speedup, band)."""
    results = [
        logs.judged(problem, speedup, sample=sample, name=f"{sample}.py", seed=sample)
        for sample, (problem, speedup, _) in enumerate(entries)
    ]
    bands = {f"{sample}.py": band for sample, (_, _, band) in enumerate(entries)}
    return results, lambda result: bands[result.solution["name"]]


# The first of three problems has four solutions, each faster than the next; the second has one, the third none.
CASE = labelled(
    ("1/1", 16.0, ORIGINAL_GAMING), ("1/1", 8.0, SOL_CEILING), ("1/1", 4.0, LIBRARY_ONLY), ("1/1", 2.0, MINOR_ISSUES),
    ("1/2", 8.0, NO_ISSUES),
)  # fmt: skip


@pytest.mark.parametrize(
    "name, first",
    [("none", 16.0), ("without gaming", 8.0), ("without sol_ceiling", 16.0), ("without library_only", 16.0),
     ("all", 2.0)],
)  # fmt: skip
def test_the_best_that_a_filtering_leaves_in_counts(name, first):
    found = outcomes.figures(*CASE[:1], PROBLEMS, CASE[1])[name]
    assert found["solved"] == 2 and found["settled_fast_1"] == pytest.approx(2 / 3)
    assert found["geometric_mean"] == pytest.approx(math.sqrt(first * 8.0))
    assert found["fallback_geometric_mean"] == pytest.approx((first * 8.0 * 1.0) ** (1 / 3))
    assert found["median"] == pytest.approx((first + 8.0) / 2)


def test_the_ladder_allows_one_band_more_at_each_step():
    means = [f["geometric_mean"] for f in outcomes.figures(CASE[0], PROBLEMS, CASE[1], LADDER).values()]
    assert means == pytest.approx([math.sqrt(best * 8.0) for best in (2.0, 4.0, 16.0, 16.0)])
    assert LADDER["filtered"] == FILTERINGS["all"] and LADDER["and sol_ceiling"] == FILTERINGS["none"]


def test_a_problem_whose_only_solution_is_left_out_is_unsolved():
    results, band_of = labelled(("1/1", 3.0, INHERITED_GAMING))
    found = outcomes.figures(results, ["1/1"], band_of)
    assert found["none"]["solved"] == 1 and found["all"]["solved"] == 0 and found["all"]["geometric_mean"] is None


def test_bands_add_up_to_the_attempts():
    results, band_of = labelled(*[("1/1", 2.0, band) for band in (*BANDS, UNREVIEWED, NO_ISSUES)])
    wrong = logs.result("1/1", status=Status.WRONG_VALUE, name="wrong.py")
    forged = logs.judged("1/1", 9.0, name="forged.py", status=Status.REJECTED, rule="forged_clock")
    found = outcomes.bands([*results, wrong, forged], band_of)
    assert sum(found.values()) == len(results) == 8
    assert found[NO_ISSUES] == 2 and all(found[band] == 1 for band in BANDS if band != NO_ISSUES)


def test_what_a_rule_about_its_speed_rejects_counts_until_it_is_filtered():
    """A library-only result is right by value: figure 12's orange bar allows it."""
    own = logs.judged("1/1", 2.0, name="own.py")
    library = logs.judged("1/1", 5.0, name="library.py", status=Status.REJECTED, rule="library_only")
    band_of = {"own.py": NO_ISSUES, "library.py": LIBRARY_ONLY}
    found = outcomes.figures([own, library], ["1/1"], lambda result: band_of[result.solution["name"]])
    assert found["none"]["geometric_mean"] == pytest.approx(5.0)
    assert found["without library_only"]["geometric_mean"] == pytest.approx(2.0)


def test_a_forged_clock_counts_under_no_filtering():
    forged = logs.judged("1/1", 9.0, name="forged.py", status=Status.REJECTED, rule="forged_clock")
    assert outcomes.figures([forged], ["1/1"], lambda result: UNREVIEWED)["none"]["solved"] == 0


def test_the_speed_of_light_as_a_speedup():
    known = logs.result("1/1", 2.0, baseline_ms=4.0, sol={"t_sol_fp16_ms": 0.5})
    limits = outcomes.sol_limits([known, logs.result("1/2", 2.0)], PROBLEMS)
    assert limits[0] == pytest.approx(known.baselines["eager"]["median_ms"] / 0.5) and math.isnan(limits[1])
