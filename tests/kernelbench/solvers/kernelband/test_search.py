"""KernelBand, its baselines and its ablations as solvers, on the landscape."""

from pathlib import Path

import pytest

from kernelbench.solvers.kernelband.model_author import named_in
from kernelbench.solvers.kernelband.strategies import STRATEGIES, TITLES
from kernelbench.solvers.landscape import reading
from kernelbench.solvers.landscape.simulation import Landscape, simulate
from kernelbench.solvers.script import Script, find

pytest.importorskip("sklearn")

PROBLEMS = ("1/1", "1/2", "1/3")


def run(solver="kernelband", budget=25, **settings):
    landscape = Landscape(seed=5, problems=PROBLEMS, author="strong")
    return simulate(Script(Path(find(solver))), landscape, budget=budget, settings=settings)


@pytest.fixture(scope="module")
def full():
    return run()


def iterations(made, problem="1/1"):
    """Attempts of a problem from its first iteration on."""
    found = [attempt for (of, _), attempt in sorted(made.journal.attempts.items()) if of == problem]
    return [attempt for attempt in found if attempt.tags["iteration"] > 0]


def test_an_iteration_is_one_attempt_with_one_strategy_on_one_kernel(full):
    attempts = iterations(full)
    assert [attempt.tags["iteration"] for attempt in attempts] == list(range(1, len(attempts) + 1))
    assert len([r for r in full.results if r.problem == "1/1"]) == 25
    correct = {result.solution["sample"] for result in full.results if result.problem == "1/1" and result.correct}
    for attempt in attempts:
        assert attempt.parent in correct and attempt.tags["strategy"] in STRATEGIES
        (wanted,) = {reading.read(attempt.prompt).wanted}
        assert reading.p.LEVERS[wanted] == TITLES[attempt.tags["strategy"]]
    calls = [call for call in full.journal.calls.values() if call.problem == "1/1"]
    assert all(call.sampling["temperature"] == 1.0 and call.sampling["max_tokens"] == 16384 for call in calls)


def test_clusters_are_made_at_iterations_10_and_20(full):
    eras = [attempt.tags["era"] for attempt in iterations(full)]
    assert eras[:9] == [0] * 9 and set(eras[9:19]) == {1} and set(eras[19:]) == {2}


def test_only_the_centres_of_clusters_are_asked_for_their_counters(full):
    profiled = {(problem, name) for problem, name in full.journal.facts if name.startswith("profile:")}
    assert profiled  # a landscape's records have no launch, so features are of profiles there


def test_the_same_arguments_give_the_same_run(full):
    again = run()
    assert [result.to_json() for result in again.results] == [result.to_json() for result in full.results]


def test_a_run_that_is_resumed_goes_on_where_it_was(full):
    shorter = run(budget=12)
    for problem in PROBLEMS:
        both = [[r.solution["sha256"] for r in made.results if r.problem == problem] for made in (shorter, full)]
        assert both[0] == both[1][:12]


@pytest.mark.parametrize(
    "solver, settings",
    [("kernelband", {"k": "1"}), ("kernelband", {"profile": "off"}), ("kernelband", {"profile": "all"}),
     ("kernelband", {"select": "llm"}), ("no_strategy_set", {"profile": "raw"}), ("no_strategy_set", {}),
     ("geak", {}), ("best_of_n", {"temperature": "1.0"})],
)  # fmt: skip
def test_baselines_and_ablations_spend_the_same_budget(solver, settings):
    made = run(solver, 12, **settings)
    assert len(made.results) == 12 * len(PROBLEMS)
    assert any(result.correct for result in made.results)


def test_where_the_model_selects_its_answer_is_the_strategy():
    made = run(budget=8, select="llm")
    calls = [call for call in made.journal.calls.values() if call.tags["phase"] == "select"]
    asked = {(call.problem, call.tags["iteration"]): call.answer for call in calls}
    assert asked
    for attempt in made.journal.attempts.values():
        if attempt.tags["iteration"]:
            assert attempt.tags["strategy"] == named_in(asked[attempt.problem, attempt.tags["iteration"]])


@pytest.mark.parametrize(
    "answer, strategy",
    [("It is bound by memory, so not tiling.\nFusion", "fusion"), ("Access and layout.", "access_layout"),
     ("access_layout", "access_layout"), ("None of them.", None)],
)  # fmt: skip
def test_the_strategy_that_an_answer_names_last_counts(answer, strategy):
    assert named_in(answer) == strategy


def test_geaks_loop_reflects_on_failures_and_plans_from_what_is_correct():
    made = run("geak", 10)
    phases = [call.tags["phase"] for (_, _), call in sorted(made.journal.calls.items()) if call.problem == "1/1"]
    assert phases[:3] == ["implement", "reflect", "implement"] and phases.count("implement") == 10
