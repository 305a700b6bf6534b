"""Regret of a search on the landscape, where expected rewards are known."""

import pytest

from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape import regret, terrain
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.simulation import Landscape, simulate
from kernelbench.solvers.landscape.terrain import Spec
from kernelbench.solvers.script import Script, find


def test_an_expected_reward_is_chance_times_gain_and_diminishes():
    mind = Mind(p.AUTHORS["strong"], terrain.problem(1, "1/1"), 1)
    fresh = Spec((1.0,) * len(p.LEVERS), (1.0,) * len(p.LEVERS))
    best = max(range(len(p.LEVERS)), key=lambda lever: regret.expected_reward(mind, fresh, lever))
    assert 0 < regret.expected_reward(mind, fresh, best) < 1
    left = fresh.left
    for _ in range(8):
        left = mind.used(left, best, 0.9)
    assert regret.expected_reward(mind, Spec(left, left), best) < 1e-3


def test_regrets_are_at_least_0_and_one_an_iteration():
    pytest.importorskip("sklearn")
    made = simulate(Script(find("kernelband")), Landscape(seed=2, problems=("1/1", "1/2"), author="strong"), budget=12)
    for number, found in regret.regrets(made).items():
        named = [a for (of, _), a in made.journal.attempts.items() if of == number and a.tags.get("strategy")]
        assert len(found) == len(named) and min(found) >= 0
    sums = regret.cumulative(list(regret.regrets(made).values()), 8)
    assert sums == sorted(sums) and len(sums) == 8


def test_the_exponent_is_the_slope_in_logarithms():
    assert regret.exponent([3 * t**0.5 for t in range(1, 40)], 5) == pytest.approx(0.5)
