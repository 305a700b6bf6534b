"""The landscape: its kernels, its authors, and that real strategies run on it as on a device."""

import math
import random
import statistics

import pytest
from candidates import STRATEGIES

from kernelbench.metrics import settled
from kernelbench.solvers.backend.interface import Work
from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape import reading, terrain
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.machine import LandscapeBackend
from kernelbench.solvers.landscape.simulation import Landscape, simulate
from kernelbench.solvers.landscape.terrain import Spec
from kernelbench.solvers.script import Script

UNTOUCHED = (1.0,) * len(p.LEVERS)
EXHAUSTED = (0.0,) * len(p.LEVERS)


def used(lever, share=0.5):
    return tuple(1 - share if index == lever else 1.0 for index in range(len(p.LEVERS)))


def script(name):
    return Script(STRATEGIES / f"{name}.py")


def say(text):
    return [{"role": "user", "content": text}]


# -- kernels ---------------------------------------------------------------------------------------------------------


def test_a_problem_is_the_same_whenever_it_is_asked_for():
    assert terrain.problem(3, "1/7") == terrain.problem(3, "1/7") != terrain.problem(4, "1/7")


def test_no_kernel_is_faster_than_the_bound_and_none_beats_the_limit():
    for number in range(1, 50):
        problem = terrain.problem(0, f"1/{number}")
        assert problem.sol_fp16_ms <= problem.sol_ms <= problem.baseline_ms
        assert problem.sol_fp16_ms < problem.time_ms(EXHAUSTED) < problem.time_ms(UNTOUCHED)


def test_headroom_is_that_of_the_paper():
    """Section 6.5 of the muCUTLASS paper: 7.46 in the geometric mean."""
    logs = [
        math.log((problem := terrain.problem(seed, "1/1")).baseline_ms / problem.sol_fp16_ms) for seed in range(2000)
    ]
    assert math.exp(statistics.fmean(logs)) == pytest.approx(7.46, rel=0.08)


def test_a_lever_brings_less_each_time():
    problem = terrain.problem(0, "1/1")
    lever = max(range(len(p.LEVERS)), key=lambda lever: problem.gain(UNTOUCHED, used(lever)))
    first, second = problem.gain(UNTOUCHED, used(lever)), problem.gain(used(lever), used(lever, 0.75))
    assert first > second > 0


def test_a_lever_on_a_resource_that_does_not_bind_brings_little():
    problem = terrain.problem(0, "1/1")
    times = problem.resource_ms(UNTOUCHED)
    idle = times.index(min(times))
    gains = [problem.gain(UNTOUCHED, used(lever)) for lever in range(len(p.LEVERS))]
    assert all(gains[lever] < max(gains) for lever in range(len(p.LEVERS)) if problem.target[lever] == idle)


def test_a_kernel_is_read_back_from_its_source():
    spec = Spec((0.5, *UNTOUCHED[1:]), UNTOUCHED, "tiling", "wrong_value", 2, 1.5)
    assert terrain.spec_in(f"prose\n```python\n{spec.source('1/1')}```") == spec


# -- measurement -----------------------------------------------------------------------------------------------------


def evaluated(source, seed=0, sample=1):
    return LandscapeBackend(seed).evaluate(Work("1/1", sample, "py", source)).result()[0]


def test_a_kernel_is_timed_within_the_noise_and_the_same_one_again():
    problem = terrain.problem(0, "1/1")
    source = Spec(EXHAUSTED, EXHAUSTED).source("1/1")
    result = evaluated(source)
    assert result.speedup == pytest.approx(problem.baseline_ms / problem.time_ms(EXHAUSTED), rel=5 * p.LOG_SD)
    assert result == evaluated(source) and result.speedup != evaluated(source, sample=2).speedup


def test_a_kernel_as_fast_as_its_baseline_is_a_tie_as_often_as_the_interval_says():
    problem = terrain.problem(0, "1/1")
    drag = problem.baseline_ms / problem.time_ms(EXHAUSTED)
    source = Spec(EXHAUSTED, EXHAUSTED, drag=drag).source("1/1")
    verdicts = [settled.verdict(evaluated(source, sample=n)) for n in range(2000)]
    assert 0.895 < verdicts.count(settled.TIE) / len(verdicts) < 0.937  # 95 % of those that settle: 0.916
    assert 0.02 < verdicts.count(settled.UNSTABLE) / len(verdicts) < 0.055


@pytest.mark.parametrize("fault", p.FAULTS)
def test_a_fault_is_a_status_and_has_no_time(fault):
    result = evaluated(Spec(UNTOUCHED, UNTOUCHED, "tiling", fault, 1).source("1/1"))
    assert result.status.value == fault and result.speedup is None


def test_a_source_from_elsewhere_is_no_kernel_here():
    assert "no kernel of the landscape" in evaluated("class ModelNew: pass").message


def test_a_saturated_resource_is_seen_in_the_profile():
    problem = terrain.problem(0, "1/1")
    spec = Spec(EXHAUSTED, EXHAUSTED)
    read = terrain.profile(problem, spec)
    assert max(read["sm"], read["dram"], read["l2"]) > 80
    assert 0 < read["occupancy"] <= 100


# -- authors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("Apply vectorization to it.", "vectorization"),
        ("Strategy: Access & Layout", "access & layout"),
        ("Use access_layout now", "access & layout"),
        ("Choose among tiling, fusion and pipeline.", None),
        ("Make it faster.", None),
        ("[lesson 1/2 tiling: worked]\nApply fusion.", "fusion"),
        ("Tiling or fusion? Hypothesis: more reuse [lever: tiling]", "tiling"),
    ],
)
def test_an_author_does_what_it_is_asked_if_that_is_one_thing(text, wanted):
    seen = reading.read(say(text))
    assert (None if seen.wanted is None else p.LEVERS[seen.wanted]) == wanted


def test_an_author_knows_what_its_prompt_shows_and_nothing_else():
    nothing = reading.read(say("Make it faster."))
    assert not (nothing.profile or nothing.bounds or nothing.attribution or nothing.error or nothing.lessons)
    told = reading.read(
        say(
            "DRAM throughput: 31.2 %\nt_SOL 0.031 ms\ngap attribution: SM 0.8\nstatus: wrong_value\n"
            "[lesson 1/3 pipeline: worked, expected 1.50x and got 1.02x]"
        )
    )
    assert told.profile and told.bounds and told.error and told.attribution == {"SM": 0.8}
    assert told.lessons == (reading.Lesson("1/3", p.LEVERS.index("pipeline"), True),)


def test_information_brings_beliefs_closer_to_the_truth():
    """Of levers that are used up the truth is 0, so that a belief is its error."""

    def error(text, insight=1.0):
        seen = reading.read(say(text))
        minds = [Mind(p.AUTHORS["mini"], terrain.problem(seed, "1/1"), seed, insight) for seed in range(50)]
        return statistics.fmean(abs(mind.belief(k, EXHAUSTED, seen)) for mind in minds for k in range(len(p.LEVERS)))

    informed = "DRAM throughput: 31.2 %\nt_SOL 0.031 ms\ngap attribution: SM 0.8"
    factor = p.WITH_PROFILE * p.WITH_BOUNDS * p.WITH_ATTRIBUTION
    assert error(informed) == pytest.approx(factor * error("Make it faster."))
    assert error(informed, insight=0.0) == error("Make it faster.")


def test_an_author_may_misjudge_more_and_errs_in_the_same_way():
    seen = reading.read(say("Make it faster."))
    usual, worse = (Mind(p.AUTHORS["mini"], terrain.problem(1, "1/1"), 1, error=error) for error in (1.0, 2.0))
    for lever in range(len(p.LEVERS)):
        assert worse.belief(lever, EXHAUSTED, seen) == pytest.approx(2 * usual.belief(lever, EXHAUSTED, seen))


def test_an_author_cannot_use_a_lever_beyond_its_reach():
    mind = Mind(p.AUTHORS["mini"], terrain.problem(0, "1/1"), 0)
    left = UNTOUCHED
    for number in range(60):
        seen = reading.read(say(f"{Spec(left, left).source('1/1')}\nApply fusion."))
        spec = mind.write(seen, random.Random(number))
        left = left if spec.fault else spec.left
    assert 0 < left[p.LEVERS.index("fusion")] == min(left) < 0.9


def test_a_lesson_from_another_problem_mends_only_the_error_that_is_shared():
    problem = terrain.problem(0, "1/1")
    mind = Mind(p.AUTHORS["mini"], problem, 0)
    nothing, there, here = (
        mind.belief(0, UNTOUCHED, reading.read(say(text)))
        for text in ("", "[lesson 1/9 tiling: failed]", "[lesson 1/1 tiling: failed]")
    )
    assert len({nothing, there, here}) == 3


# -- strategies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one_shot", "best_of_n", "refine", "no_strategy_set"])
def test_strategies_that_ask_a_model_run_unchanged(name):
    run = simulate(script(name), Landscape(1, ("1/1", "1/2")), budget=6)
    assert {result.problem for result in run.results} == {"1/1", "1/2"}
    assert all(call.tokens["prompt"] > 0 and call.cost_usd > 0 for call in run.journal.calls.values())


def test_the_same_landscape_gives_the_same_run():
    one, other = (simulate(script("refine"), Landscape(2, ("1/1",)), budget=8).results for _ in range(2))
    assert one == other


def test_refinement_with_feedback_beats_samples_without():
    """KernelBench, section 5.1.3: refinement is better in 5 of 6 cases."""

    def mean(name):
        logs = []
        for seed in range(8):
            run = simulate(script(name), Landscape(seed, ("1/1", "1/2", "1/3"), "mid"), budget=10)
            best = {}
            for result in run.results:
                if speedup := result.correct and settled.settled_speedup(result):
                    best[result.problem] = max(speedup, best.get(result.problem, 0.0))
            logs += [math.log(best.get(number, 0.05)) for number in ("1/1", "1/2", "1/3")]
        return statistics.fmean(logs)

    assert mean("refine") > mean("best_of_n")


def test_an_unknown_author_is_refused():
    with pytest.raises(ValueError, match="use one of mini, mid, strong"):
        simulate(script("refine"), Landscape(author="giant"))
