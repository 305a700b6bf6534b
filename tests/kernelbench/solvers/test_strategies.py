"""The conversations of the strategies, as the endpoint hears them, and what their logs say afterwards."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from candidates import RIGHT, WRONG, answer, candidate

from kernelbench.metrics import at_k
from kernelbench.run import Run

SOLVERS = Path(__file__).parents[3] / "scripts" / "solvers"
TASK = "You are an expert in fast code for CPUs"


def said(server):
    """The text of each request, all of which are single messages of the user."""
    for request in server.requests:
        assert [message["role"] for message in request["messages"]] == ["user"]
    return [request["messages"][0]["content"] for request in server.requests]


def trajectory(outcome):
    return [json.loads(line) for line in (outcome.run.path / "trajectory.jsonl").read_text().splitlines()]


def samples(outcome):
    return list(at_k.samples_of_each_problem(outcome.run.results, outcome.problems).values())


def test_one_shot_asks_once_with_an_example_and_the_problem(stand_in, solved):
    with stand_in.StandIn(lambda request, number: RIGHT) as server:
        outcome = solved("one_shot", server, budget=1, prices=(1.0, 1.0))
    (prompt,) = said(server)
    assert server.requests[0]["temperature"] == 0
    assert prompt.startswith(TASK) and prompt.count("class Model(") == 2 and "class ModelNew(" in prompt
    assert "batch_size = 64, dim = 4096" in prompt and "EXPLOITS" not in prompt and "latest generation" not in prompt
    (result,) = outcome.run.results
    assert result.correct and result.solution["name"] == "level1/19_s1.py"
    (attempt,) = trajectory(outcome)
    assert attempt["answer"] == RIGHT and attempt["prompt"] == server.requests[0]["messages"]
    assert {key: attempt[key] for key in ("problem", "sample", "parent", "turn")} == {
        "problem": "1/19", "sample": 1, "parent": None, "turn": 1,
    }  # fmt: skip
    words = attempt["tokens"]["prompt"] + attempt["tokens"]["completion"]
    assert words > 100 and attempt["cost_usd"] == pytest.approx(words / 1e6) and attempt["seconds"] >= 0
    assert (outcome.run.path / "solutions" / "level1" / "19_s1.py").read_text() == candidate("x.clamp(min=0)")


@pytest.mark.slow
def test_best_of_n_asks_the_same_at_once_and_gives_fast_p_at_k(stand_in, solved):
    slow = stand_in.Answer(WRONG, after_s=1)
    with stand_in.StandIn(lambda request, number: RIGHT if number == 2 else slow) as server:
        outcome = solved("best_of_n", server, budget=3, settings={"temperature": "1.6"})
    assert len(set(said(server))) == 1 and {request["temperature"] for request in server.requests} == {1.6}
    assert len(server.requests) == 3
    assert [attempt["parent"] for attempt in trajectory(outcome)] == [None] * 3
    ends = sorted((result.status.value, result.message) for result in outcome.run.results)
    assert [status for status, _ in ends] == ["ok", "wrong_value", "wrong_value"], ends
    assert at_k.pass_at_k(at_k.passes(samples(outcome), 0.0), 1) == pytest.approx(1 / 3)
    assert at_k.pass_at_k(at_k.passes(samples(outcome), 0.0), 3) == 1.0
    tokens = [attempt["tokens"]["completion"] for attempt in trajectory(outcome)]
    assert sorted(tokens) == sorted([len(WRONG.split())] * 2 + [len(RIGHT.split())])


@pytest.mark.parametrize("parts, generation, execution", [("G", True, False), ("G+E+P", True, True)])
def test_refinement_shows_the_latest_generation_and_the_feedback_that_is_asked_for(
    stand_in, solved, parts, generation, execution
):
    with stand_in.StandIn(lambda request, number: [WRONG, RIGHT, WRONG][number - 1]) as server:
        outcome = solved("refine", server, budget=3, settings={"feedback": parts})
    first, second, third = said(server)
    assert first.startswith(TASK) and "latest generation" not in first
    assert (candidate("x") in second) is generation and (candidate("x.clamp(min=0)") in third) is generation
    assert ("status: wrong_value" in second and "off" in second) is execution
    assert ("status: ok" in third and "speedup: " in third) is execution
    assert ("GB/s, counting" in third) is (parts == "G+E+P") and "GB/s, counting" not in second
    lines = trajectory(outcome)
    assert [(line["parent"], line["turn"]) for line in lines] == [(None, 1), (1, 2), (2, 3)]
    assert at_k.attempt_fast_p(samples(outcome), 0.0) == [(1, 0.0), (2, 1.0), (3, 1.0)]  # the curve by turn


def test_an_answer_without_code_is_an_attempt_that_says_so(stand_in, solved):
    with stand_in.StandIn(lambda request, number: "I would rather not.") as server:
        outcome = solved("refine", server, budget=2, settings={"feedback": "G+E"})
    assert [result.status for result in outcome.run.results] == ["build_error"] * 2
    assert "status: build_error\nthe answer holds no code that defines a class ModelNew" in said(server)[1]
    assert "I would rather not." in said(server)[1]


def test_without_a_strategy_set_a_model_thinks_between_the_attempts_and_remembers(stand_in, solved):
    answers = [WRONG, "The negative part was left.", answer("x * 2"), "Doubling was wrong.", WRONG]
    with stand_in.StandIn(lambda request, number: answers[number - 1]) as server:
        outcome = solved("no_strategy_set", server, budget=3, settings={"memory": "1"})
    attempts, thoughts = said(server)[::2], said(server)[1::2]
    assert len(attempts) == 3 and len(thoughts) == 2
    assert (
        "status: wrong_value" in thoughts[0]
        and "Do not write code now" in thoughts[0]
        and candidate("x") in thoughts[0]
    )
    assert "1. The negative part was left." in attempts[1] and candidate("x") in attempts[1]
    assert "2. Doubling was wrong." in attempts[2] and "The negative part" not in attempts[2]
    lines = trajectory(outcome)
    assert lines[1]["tokens"]["completion"] == len(answers[1].split()) + len(answers[2].split())
    assert lines[1]["answer"] == answers[2]


@pytest.mark.parametrize(("settings", "parts"), [({}, "G+E"), ({"feedback": "G+E+P"}, "G+E+P")])
def test_without_a_strategy_set_there_is_no_profile_either_unless_it_is_asked_for(settings, parts):
    shown, answer = [], SimpleNamespace(text="a lesson")
    task = SimpleNamespace(
        budget=1, source="", option=lambda name, default: settings.get(name, default),
        llm=SimpleNamespace(ask=lambda *prompt, **options: answer), prompt=lambda *further: [],
        feedback=lambda result, parts: shown.append(parts), render=lambda name, **values: "",
    )  # fmt: skip
    attempts = runpy.run_path(str(SOLVERS / "no_strategy_set.py"))["solve"](task)
    next(attempts)
    task.budget = 0
    with pytest.raises(StopIteration):
        attempts.send(None)
    assert shown == [parts]


def test_few_shot_and_other_context_go_into_the_prompt(stand_in, solved):
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        outcome = solved("one_shot", server, settings={"context": "few_shot,hardware"})
        failing = solved("one_shot", server, settings={"context": "everything"}, out="other")
    (prompt,) = said(server)
    for kernel in ("bias_gelu_kernel", "matmul_kernel", "attention_kernel"):
        assert kernel in prompt
    assert not outcome.failures and "the parts are few_shot, hardware, sol" in failing.failures["1/19"]
    assert Run.load(failing.run.path).results == []
