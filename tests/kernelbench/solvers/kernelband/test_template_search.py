"""KernelBand and Optuna over the parameters of templates, with builds and times made up."""

import itertools
import random
from types import SimpleNamespace

import pytest

from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.kernelband.template_author import MOVES, TemplateAuthor, body, choices

PLAN_SPACE = {"threads": [256, 512, 128], "vec": [4, 1], "items": [2, 1]}


class Plan:
    """A plan whose source names the choice."""

    kind, template = "cu", "map.cu"

    def __init__(self, space, name="map"):
        self.space, self.name = space, name

    @property
    def default(self):
        return {name: values[0] for name, values in self.space.items()}

    def fits(self, choice):
        return not (choice["threads"] == 512 and choice["vec"] == 1)

    def source(self, choice):
        return f"// kb\n// choice\n{self.name} {sorted(choice.items())}\n"


def author(*plans):
    task = SimpleNamespace(rng=random.Random(0), budget=99, sources={})
    made = TemplateAuthor(task, list(plans))
    return made, task


def result_of(task, sample, candidate):
    task.sources[sample] = candidate.source
    return SimpleNamespace(solution={"sample": sample})


def test_choices_are_those_that_go_together():
    assert len(list(choices(Plan(PLAN_SPACE)))) == 3 * 2 * 2 - 2


def test_a_strategy_changes_a_parameter_that_it_stands_for():
    made, task = author(Plan(PLAN_SPACE))
    parent = result_of(task, 1, next(made.first()))
    child = made.expand(parent, "tiling")
    before, after = (eval(source.split("map ")[1]) for source in (task.sources[1], child.source))
    assert [a[0] for a, b in zip(before, after) if a != b] == ["threads"]


def test_what_is_tried_is_not_tried_again_and_the_space_ends():
    made, task = author(Plan(PLAN_SPACE))
    parent = result_of(task, 1, next(made.first()))
    seen = {body(Plan(PLAN_SPACE), Plan(PLAN_SPACE).default)}
    for strategy in itertools.cycle(("tiling", "vectorization", "access_layout")):
        candidate = made.expand(parent, strategy)
        if candidate is None:
            break
        content = candidate.source.split("\n", 2)[2]
        assert content not in seen
        seen.add(content)
    assert len(seen) == 10


def test_strategies_without_a_parameter_are_not_offered():
    one = author(Plan(PLAN_SPACE))[0].settings(Settings())
    assert set(one.targets) == {"tiling", "vectorization", "access_layout"}
    two = author(Plan(PLAN_SPACE), Plan(PLAN_SPACE, "rows"))[0].settings(Settings())
    assert "fusion" in two.targets


def test_every_parameter_of_the_templates_belongs_to_one_strategy():
    known = [name for names in MOVES.values() for name in names]
    assert len(known) == len(set(known))
    assert set(known) == {"template", "tile", "chunks", "threads", "items", "vec", "wide", "high", "cache", "unroll",
                          "parts", "depth", "rows", "columns", "grain", "lanes", "team"}  # fmt: skip


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_optuna_spends_no_attempt_on_a_choice_that_it_knows(sampler, monkeypatch):
    pytest.importorskip("optuna")
    from kernelbench.solvers.script import Script, find

    script = Script(find("optuna_templates"))
    module = script._solve.__globals__
    monkeypatch.setitem(module, "fitting", lambda task: [Plan(PLAN_SPACE)])
    monkeypatch.setitem(module, "time_of", lambda result: result)
    task = SimpleNamespace(seed=1, budget=20, option=lambda name, default: {"sampler": sampler}.get(name, default))
    search, seen = script._solve(task), []
    candidate = next(search)
    while True:
        seen.append(candidate.source)
        task.budget -= 1
        try:
            candidate = search.send(1.0 if "('vec', 4)" in candidate.source else 2.0)
        except StopIteration:
            break
    assert len(seen) == len(set(seen)) <= 10 and len(seen) >= 8
