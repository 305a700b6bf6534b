"""Figures of a search from its lineage, against figures worked out by hand."""

import json
import math

import pytest
from logs import judged, result, run

from harness.result import Status
from kernelbench.metrics import lineage
from kernelbench.views import lineage as view


def line(sample, parent, strategy="", problem="1/1", usd=0.1):
    return {"problem": problem, "sample": sample, "parent": parent, "tags": {"strategy": strategy} if strategy else {},
            "tokens": {"prompt": 10, "completion": 5}, "cost_usd": usd, "seconds": 2.0}  # fmt: skip


def measured(sample, ms, problem="1/1"):
    """A kernel that takes exactly ``ms``, where the baseline takes 8; a wrong one without."""
    if ms is None:
        return result(problem, sample=sample, status=Status.WRONG_VALUE)
    made = judged(problem, 8.0 / ms, sample=sample)
    made.timing = {"median_ms": ms}
    return made


@pytest.fixture
def found():
    # 1 (8 ms) -> 2 tiling (4 ms) -> 4 fusion (2 ms), the best; 1 -> 3 fusion fails; 2 -> 5 tiling is slower (5 ms)
    results = [measured(1, 8.0), measured(2, 4.0), measured(3, None), measured(4, 2.0),
               measured(5, 5.0), measured(1, 16.0, "4/2")]  # fmt: skip
    lines = [line(1, None), line(2, 1, "tiling"), line(3, 1, "fusion"), line(4, 2, "fusion"), line(5, 2, "tiling"),
             line(1, None, problem="4/2")]  # fmt: skip
    return lineage.steps(results, lines)


def test_one_long_name_of_a_strategy_does_not_make_all_rows_as_long():
    lines = [line(1, None), *(line(n, 1, "x" * 100_000 if n == 2 else f"s{n}") for n in range(2, 100))]
    steps = lineage.steps([measured(n, 8.0) for n in range(1, 100)], lines)
    assert len(view.text({"r": view.figures(steps, ["1/1"])})) < 200_000


def test_the_reward_of_a_step_is_the_share_of_its_parents_time(found):
    assert [step.reward for step in found] == [None, 0.5, 0.0, 0.5, 0.0, None]
    assert [step.tokens for step in found] == [15] * 6


def test_strategies_have_frequency_success_and_part_in_the_best_kernel(found):
    rows = lineage.strategies(found)
    assert rows["tiling"] == {"applied": 2, "frequency": 0.5, "success": 0.5, "best": 1.0, "mean_reward": 0.25}
    assert rows["fusion"] == {"applied": 2, "frequency": 0.5, "success": 0.5, "best": 1.0, "mean_reward": 0.25}


def test_the_best_kernel_descends_from_the_first(found):
    ours = lineage.by_problem(found)["1/1"]
    assert [step.sample for step in lineage.ancestors(ours, lineage.best_of(ours))] == [1, 2, 4]


def test_quality_counts_problems_without_a_kernel(found):
    table = lineage.table(found, ["1/1", "4/2", "4/3"])
    assert table["correct"] == pytest.approx(2 / 3) and table["fast_1"] == pytest.approx(1 / 3)
    assert table["standard"] == pytest.approx((4.0 * 0.5) ** 0.5)
    assert table["fallback"] == pytest.approx(4.0 ** (1 / 3))


def test_scaling_over_attempts_and_dollars(found):
    assert lineage.over_attempts(found, ["1/1"], 5) == pytest.approx([1.0, 2.0, 2.0, 4.0, 4.0])
    assert lineage.over_attempts(found, ["1/1", "1/2"], 2) == pytest.approx([1.0, 2**0.5])
    assert lineage.over_attempts(found, [], 2) == [None, None]
    assert lineage.over_usd(found, ["1/1"], [0.05, 0.25, 0.45]) == pytest.approx([1.0, 2.0, 4.0])


def test_regret_is_against_the_best_strategy_in_hindsight(found):
    # both strategies have a mean reward of 0.25; rewards 0.5, 0, 0.5, 0
    assert lineage.average_regret(found) == pytest.approx([-0.25, 0.0, -0.25 / 3, 0.0])


def test_batching_divides_the_time_of_the_models_calls(found):
    times = lineage.time_breakdown(found, at_once=4)
    assert times["serial"]["model"] == 2.0 and times["batched"]["model"] == 0.5


@pytest.fixture
def searched(tmp_path):
    """Make the run of these results with ``trajectory.jsonl``: a line for each, in order."""

    def searched(results, lines, **configuration):
        made = run(tmp_path / "run", *results, **configuration)
        (made.path / "trajectory.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        return made

    return searched


@pytest.mark.parametrize("at_once, batched_s", [(None, 2.0), (2, 1.0), (16, 2.0 / 3)])
def test_the_models_calls_of_a_run_are_batched_over_the_problems_that_it_had_at_once(searched, at_once, batched_s):
    problems = ["1/1", "1/2", "1/3"]  # of which no more can be asked for at once
    made = searched([measured(1, 8.0, p) for p in problems], [line(1, None, problem=p) for p in problems],
                    at_once=at_once)  # fmt: skip
    assert view.of_run(made)["time_s"]["batched"]["model"] == pytest.approx(batched_s)


def test_levels_are_grouped_as_the_paper_does_where_there_are_five(found):
    assert list(view.figures(found, ["1/1", "4/2"])["quality"]) == ["L1-2", "L4-5", "all"]
    text = view.text({"mine": view.figures(found, ["1/1", "4/2"])})
    assert "Strategies" in text and "tiling" in text and "L4-5" in text


def test_each_figure_is_of_the_problems_that_count(searched):
    """Strategies, time, regret and the largest budget were of all problems of the run."""
    results = [measured(1, 8.0), measured(2, 4.0), *(measured(n, 8.0, "1/2") for n in (1, 2, 3))]
    lines = [line(1, None), line(2, 1, "tiling"), line(1, None, problem="1/2")]
    lines += [line(n, 1, "fusion", problem="1/2", usd=9.0) | {"seconds": 60.0} for n in (2, 3)]
    made = searched(results, lines)
    found = view.of_run(made, ["1/1"])
    assert list(found["strategies"]) == ["tiling"] and found["average_regret"] == [0.0]
    assert found["over_usd"][-1] == pytest.approx((0.2, 2.0)) and found["time_s"]["serial"]["model"] == 2.0
    assert found["over_attempts"] == pytest.approx([1.0, 2.0])
    assert set(view.of_run(made)["strategies"]) == {"fusion", "tiling"}


def test_within_all_that_the_dearest_problem_cost_its_last_attempt_counts(monkeypatch):
    """From Python 3.12 on `sum` rounds otherwise than one addition after the other: the last was beyond 100 %."""
    monkeypatch.setattr(view, "sum", math.fsum, raising=False)
    costs = [0.1, 0.2, 0.3]
    assert math.fsum(costs) < 0.1 + 0.2 + 0.3
    steps = lineage.steps(
        [measured(n, 8.0 / n) for n in range(1, 4)], [line(n, None, usd=usd) for n, usd in enumerate(costs, 1)]
    )
    (budget, mean) = view.figures(steps, ["1/1"])["over_usd"][-1]
    assert budget == lineage.usd(steps) and mean == pytest.approx(3.0)


def test_no_attempt_beyond_the_first_that_a_budget_does_not_hold_counts():
    steps = lineage.steps(
        [measured(n, 8.0 / n) for n in range(1, 4)], [line(n, None, usd=usd) for n, usd in enumerate([1, 9, 1], 1)]
    )
    assert lineage.over_usd(steps, ["1/1"], [0.5, 2.0, 11.0]) == pytest.approx([1.0, 1.0, 3.0])
