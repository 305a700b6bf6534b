"""The study of policies, and `kb schedule replay` on a run directory."""

import json

import pytest
from click.testing import CliRunner
from logs import judged, run

from kernelbench.cli import main
from kernelbench.metrics.scheduling import Attempt, Policy, Trace, Unit, attempt_of, grid
from kernelbench.scheduling.study import Grid, Variant, study, sweep


def trace(problem, speedups, tokens=100.0):
    results = [judged(problem, speedup, sample=n) for n, speedup in enumerate(speedups, 1)]
    units = tuple(Unit((attempt_of(one),), tokens, tokens / 1e6) for one in results)
    return Trace(problem, 0.2, units)  # the baseline takes 1 ms: t_SOL is a speedup of 5


def variants():
    quick = Variant("quick", [trace("1/1", [4.0, 4.0, 4.4, 4.4]), trace("1/2", [0.5, 0.6, 0.7, 0.8])], 1.0)
    dear = Variant("dear", [trace("1/1", [2.0] * 4), trace("1/2", [0.5] * 4)], 10.0)
    return [quick, dear]


def test_figures_of_a_policy_by_hand():
    """eps = 25 %: 1 / 4 <= 1.25 * 0.2, so that 1/1 stops after its first attempt and loses sqrt(4 / 4.4)."""
    data = study(variants(), Grid([Policy(0.25)]))
    (row,) = data["variants"][0]["policies"]
    assert row["retention"]["value"] == pytest.approx((4.0 / 4.4) ** 0.5)
    assert row["attempts_saved"]["value"] == row["tokens_saved"]["value"] == row["usd_saved"]["value"] == 3 / 8
    assert row["gain"]["value"] == pytest.approx((4.0 / 4.4) ** 0.5 / (5 / 8))
    assert row["cost"] == pytest.approx(0.5e-3 / 8e-3)  # 500 tokens at 1 over 800 at 10
    assert data["variants"][0]["fixed"]["cost"] == pytest.approx(0.1)
    assert data["variants"][0]["best"] is row
    assert data["variants"][0]["hull"][0] == [row["cost"], row["geometric_mean"]]


def test_a_policy_that_loses_too_much_is_never_the_best():
    data = study(variants(), Grid([Policy(0.25)], least=0.99))
    assert data["variants"][0]["best"] is None


def test_sweeps_are_those_of_the_paper():
    (first, _) = study(variants(), Grid(grid()))["variants"]
    assert [row["eps"] for row in sweep(first, eps=True)] == [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert [row["window"] for row in sweep(first, eps=False)] == [0, 4, 8, 12, 16, 20]


def test_dollars_that_one_variant_does_not_know_leave_tokens():
    unknown = Variant("own", [Trace("1/1", None, (Unit((), 10.0, None),))])
    assert study([unknown, variants()[0]], Grid([Policy()]))["cost_of"] == "tokens"


def test_a_solver_that_asks_no_model_spends_attempts():
    """It records tokens and dollars, and both are nothing: over them each policy would be as dear as none."""
    own = Variant("own", [trace("1/1", [4.0, 4.0, 4.4, 4.4], tokens=0.0), trace("1/2", [0.5] * 4, tokens=0.0)])
    data = study([own], Grid([Policy(0.25)]))
    (row,) = data["variants"][0]["policies"]
    assert data["cost_of"] == row["gain_over"] == "attempts" and row["cost"] == 5 / 8
    assert row["usd_saved"] is row["tokens_saved"] is None
    assert row["gain"]["value"] == pytest.approx(row["retention"]["value"] / (5 / 8))


def test_a_policy_that_spends_nothing_saves_all_and_has_no_gain():
    """It stops each problem after a first unit that asked no model, and its cost was taken for an unknown one."""
    free, dear = (Unit((Attempt(1.0, 4.0, 4.0),), tokens, tokens / 1e6) for tokens in (0.0, 100.0))
    variant = Variant("a", [Trace("1/1", 1.0, (free, dear)), Trace("1/2", 1.0, (free, dear))])
    data = study([variant], Grid([Policy(eps=1.0)]))
    (found,) = data["variants"]
    (row,) = found["policies"]
    assert data["cost_of"] == "usd" and row["gain_over"] == "tokens"
    assert row["tokens"] == row["usd"] == row["cost"] == 0.0
    assert row["tokens_saved"]["value"] == row["usd_saved"]["value"] == 1.0 and row["attempts_saved"]["value"] == 0.5
    assert row["gain"] == {"value": None, "low": None, "high": None} and found["best"] is None
    assert found["hull"] == [[0.0, 4.0]]


def test_the_interval_of_a_gain_leaves_out_draws_that_cost_nothing():
    free, dear = (Unit((Attempt(1.0, 4.0, 4.0),), tokens) for tokens in (0.0, 100.0))
    variant = Variant("a", [Trace("1/1", 1.0, (free, dear)), Trace("1/2", 1.0, (dear, dear))])
    (found,) = study([variant], Grid([Policy(eps=1.0)]))["variants"]
    (row,) = found["policies"]
    assert row["gain"] == pytest.approx({"value": 300 / 100, "low": 200 / 100, "high": 300 / 100})


def test_a_run_without_attempts_takes_no_other_with_it():
    data = study([variants()[0], Variant("begun", [Trace("1/1", None, ())])], Grid([Policy()]))
    assert data["cost_of"] == "attempts"
    assert [of["fixed"]["attempts"] for of in data["variants"]] == [8.0, 0.0]
    assert study([Variant("begun", [Trace("1/1", None, ())])], Grid([Policy()]))["variants"][0]["fixed"]["cost"] == 0.0


def test_a_cost_that_only_a_policy_knows_is_compared_with_nothing():
    """The unit whose answer told no tokens comes after the policy has stopped."""
    known, unknown = (Unit((Attempt(1.0, 4.0, 4.0),), tokens, None) for tokens in (100.0, None))
    variant = Variant("a", [Trace("1/1", 1.0, (known, unknown))])
    (found,) = study([variant], Grid([Policy(eps=1.0)]))["variants"]
    (row,) = found["policies"]
    assert row["tokens"] == 100 and row["tokens_saved"] is None and row["gain_over"] == "attempts"


@pytest.fixture
def recorded(tmp_path):
    results = [judged("1/19", s, sample=n, sol={"t_sol_fp16_ms": 0.2}) for n, s in enumerate([4.0, 4.0, 4.4], 1)]
    made = run(tmp_path / "mine", *results)
    lines = [
        {"problem": "1/19", "sample": n, "tokens": {"prompt": 90, "completion": 10}, "cost_usd": 0.001}
        for n in (1, 2, 3)
    ]
    (made.path / "trajectory.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made.path


def kb(*arguments):
    return CliRunner().invoke(main, ["schedule", "replay", *map(str, arguments)])


def test_the_command_says_what_each_policy_saves(recorded, tmp_path):
    done = kb(recorded, "--eps", "off,25%", "--window", "0,1", "--plot", tmp_path / "pareto.png")
    assert done.exit_code == 0, done.output
    assert "eps=25% w=0" in done.output and "66.7%" in done.output
    assert (tmp_path / "pareto.png").stat().st_size > 1000


def test_json_has_the_whole_grid_and_off_reproduces_the_run(recorded):
    data = json.loads(kb(recorded, "--eps", "off", "--window", "0", "--format", "json").output)
    (variant,) = data["variants"]
    (row,) = variant["policies"]
    assert row == variant["fixed"]
    assert row["attempts"] == 3 and row["tokens"] == 300 and row["usd"] == pytest.approx(0.003)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--eps", "25"], "write a percentage such as 25%"),
        (["--window", "-1"], "numbers of attempts"),
        (["--price", "0.25"], "RUN=USD"),
        (["--price", "other=0.25"], "the runs are mine"),
    ],
)
def test_wrong_usage_says_what_to_write(recorded, arguments, message):
    done = kb(recorded, *arguments)
    assert done.exit_code == 2 and message in done.output


def test_a_run_without_results_is_refused(tmp_path):
    made = run(tmp_path / "empty")
    done = kb(made.path)
    assert done.exit_code == 2 and "nothing to replay" in done.output
