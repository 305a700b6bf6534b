"""Experiment files: what they come to, and that a mistake in one is named."""

import re
from pathlib import Path

import pytest

from kernelbench.experiment.plan import Cell, ExperimentError, parse, read
from kernelbench.solvers import script
from kernelbench.solvers.schedule.order import schedule_of

ROOT = Path(__file__).resolve().parents[3]

FILE = """
name = "steering"
problems = "1/19,1/23"
budget = 8
seeds = [1, 2]
repeats = 2
compare_with = "flat"
[model]
name = "m"
price = [0.25, 2]
[limits]
usd = 5
[[variant]]
name = "flat"
solver = "refine"
[[variant]]
name = "samples"
solver = "best_of_n"
budget = 4
settings = {temperature = 0.7, few_shot = true}
"""


@pytest.fixture
def written(tmp_path):
    def written(text):
        path = tmp_path / "experiment.toml"
        path.write_text(text)
        return path

    return written


def test_a_file_is_a_matrix_of_runs(written):
    experiment = read(written(FILE))
    cells = list(experiment.cells())
    assert len(cells) == 8 and cells[:3] == [Cell("flat", 1, 0), Cell("samples", 1, 0), Cell("flat", 2, 0)]
    flat, samples = experiment.variant
    assert experiment.budget_of(flat) == 8 and experiment.budget_of(samples) == 4
    assert samples.texts == {"temperature": "0.7", "few_shot": "true"}
    assert experiment.reference == "flat" and experiment.limits.usd == 5.0 and experiment.model.price == [0.25, 2.0]


def test_the_first_variant_is_the_one_to_compare_with(written):
    assert read(written(FILE.replace('compare_with = "flat"', ""))).reference == "flat"


@pytest.mark.parametrize(
    "change, message",
    [
        (("budget = 8", "budgets = 8"), "has no key 'budgets'; there are: name, variant, problems, budget"),
        (("budget = 8", 'budget = "8"'), "budget must be a whole number, got '8'"),
        (("budget = 8", "budget = true"), "budget must be a whole number"),
        (("budget = 8", "budget = 0"), "needs a budget from 1 to 999,999,999"),
        (("budget = 8", f"budget = {10**400}"), "needs a budget from 1 to 999,999,999"),
        (('name = "steering"', ""), "needs the key 'name'"),
        (("usd = 5", 'usd = "5"'), "limits: usd must be a number"),
        (("usd = 5", f"usd = 1{'0' * 400}"), "usd must be a finite number"),
        (("usd = 5", "usd = nan"), "usd must be a finite number"),
        (("usd = 5", "usd = -1"), "limits: usd must be 0 or more, got -1"),
        (("[limits]", "[evaluation]\nat_once = -5\n[limits]"), "evaluation: at_once must be 1 or more, got -5"),
        (("[limits]", '[evaluation]\nprecision = "x"\n[limits]'), "evaluates in fp32, fp16, bf16 only"),
        (("[limits]", '[evaluation]\ntrack = "zz"\n[limits]'), "has a track that is none of"),
        (("[limits]", "[evaluation]\njobs = 0\n[limits]"), "evaluation: jobs must be 1 or more, got 0"),
        (("repeats = 2", "repeats = 1000000000000"), "has more than 1,000,000 runs"),
        (("repeats = 2", "a = " + "[" * 20_000), "is not TOML"),
        (("repeats = 2", "repeats = 2 #" + "x" * 70_000), "it is too large: "),
        (("few_shot = true", "few_shot = 1979-05-27"), "settings may hold texts, numbers"),
        (('name = "steering"', 'name = "../evil"'), "needs a name without '/'"),
        (('name = "steering"', 'name = ".."'), "needs a name without '/'"),
        (("seeds = [1, 2]", "seeds = [1, 1]"), "needs seeds, each once"),
        (("seeds = [1, 2]", "seeds = [-1]"), "needs seeds from 0 to 9223372036854775807"),
        (("seeds = [1, 2]", f"seeds = [{2**63}]"), "needs seeds from 0 to 9223372036854775807"),
        (("[0.25, 2]", "[0.25]"), "model 'm': a price must be two numbers, of prompts and of answers"),
        (("[0.25, 2]", "[0.25, 2, 3]"), "price must be two numbers"),
        (("[0.25, 2]", "[-1, 2]"), "price must be two numbers, of prompts and of answers, each from 0"),
        (('name = "m"', 'name = "m"\nbase_url = "http://me:hunter2@host/v1"'), "put a key into a variable instead"),
        (("price = [0.25, 2]", ""), "model 'm' needs a price, which the limit in usd is counted by"),
        (("[0.25, 2]", "[1, 1e300]"), "each from 0 to 1,000,000,000 USD"),
        (("seeds = [1, 2]", 'seeds = [1, "b"]'), "seeds 2 must be a whole number"),
        (('solver = "refine"', ""), "variant 'flat' needs either 'solver' or 'solver_command'"),
        (('"samples"', '"flat"'), "two variants of the same name"),
        (('"samples"', '"a/b"'), "holds a '/'"),
        (('"samples"', '"a\\nModels are asked at nothing"'), "is not of one line"),
        (('"samples"', '".."'), "has a variant called . or .."),
        (('compare_with = "flat"', 'compare_with = "flatt"'), "compares with 'flatt', which is no variant"),
        (('compare_with = "flat"', 'curves = [["flat", "x"]]'), "has curves of x, which are no variants"),
        (('problems = "1/19,1/23"', ""), "needs the key 'problems', a selector"),
        (("[limits]", "[landscape]\n[limits]"), "leave out 'problems' and 'model'"),
        (("budget = 8", "budget ="), "is not TOML"),
    ],
)
def test_a_mistake_is_named(written, change, message):
    with pytest.raises(ExperimentError) as caught:
        read(written(FILE.replace(*change)))
    assert message in str(caught.value)


def test_a_landscape_has_no_more_problems_than_a_run_may_have():
    world = {"name": "x", "variant": [{"name": "a", "solver": "refine"}]}
    with pytest.raises(ExperimentError, match="a landscape of more than 1,000 problems"):
        parse({**world, "landscape": {"problems": 1001}})
    assert parse({**world, "landscape": {"problems": 1000}}).landscape.problems == 1000


def test_an_experiment_needs_a_variant():
    with pytest.raises(ExperimentError, match=r"needs at least one \[\[variant\]\]"):
        parse({"name": "x", "variant": [], "problems": "1/1"})


def test_a_landscape_runs_solvers_in_python_only():
    program = {"name": "p", "solver_command": "./solver"}
    with pytest.raises(ExperimentError, match="runs solvers in Python only"):
        parse({"name": "x", "landscape": {}, "variant": [program]})


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ExperimentError, match="cannot read"):
        read(tmp_path / "none.toml")


def documented():
    """The TOML blocks of the guide, and the files that come with the project."""
    guide = (ROOT / "docs" / "experiments.md").read_text()
    yield from re.findall(r"^```toml\n(.*?)^```", guide, re.M | re.S)
    yield from (path.read_text() for path in sorted((ROOT / "scripts" / "experiments").glob("*.toml")))


@pytest.mark.parametrize("text", list(documented()))
def test_what_the_guide_shows_and_what_comes_with_the_project_can_be_read(written, text):
    experiment = read(written(text))
    assert [schedule_of(variant.schedule or experiment.schedule) for variant in experiment.variant]
    assert all(script.find(variant.solver).is_file() for variant in experiment.variant)
