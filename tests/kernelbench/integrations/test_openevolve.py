"""OpenEvolve, the real package: its evaluator loads the example and stores metrics and artefacts."""

import asyncio

import pytest
from relu_candidates import CONDITIONS, GOOD, WRONG
from stand_in import StandIn

pytest.importorskip("openevolve", reason="pip install 'kernelbench[openevolve]'")

from openevolve.config import EvaluatorConfig
from openevolve.evaluator import Evaluator

from kernelbench import EvaluationError
from kernelbench.integrations import tasks


@pytest.fixture
def evaluated(tmp_path):
    """Metrics and artefacts that OpenEvolve's own evaluator has of a program."""

    def evaluated(source, retries=0):
        file = tmp_path / "evaluator.py"
        file.write_text(
            f"from kernelbench.integrations.openevolve import evaluator\nevaluate = evaluator('1/19', **{CONDITIONS})\n"
        )
        theirs = Evaluator(EvaluatorConfig(cascade_evaluation=False, max_retries=retries), str(file))
        metrics = asyncio.run(theirs.evaluate_program(source, "p"))
        return metrics, theirs.get_pending_artifacts("p")

    return evaluated


@pytest.mark.slow
def test_a_correct_program_has_the_reward_as_its_score(evaluated):
    metrics, artifacts = evaluated(GOOD)
    assert metrics["combined_score"] >= 0.3 and metrics["correct"] == 1 and artifacts["status"] == "ok"


def test_the_feedback_on_a_wrong_one_reaches_the_next_prompt(evaluated):
    metrics, artifacts = evaluated(WRONG)
    assert (metrics["combined_score"], artifacts["status"]) == (0, "wrong_value")
    assert "first at" in artifacts["feedback"]


@pytest.mark.slow
def test_after_a_fault_of_the_machine_it_tries_again(evaluated, monkeypatch):
    calls = []

    def once_lost(*arguments, **conditions):
        calls.append(arguments)
        if len(calls) == 1:
            raise EvaluationError("the GPU was lost")
        return real(*arguments, **conditions)

    real = tasks.reward
    monkeypatch.setattr(tasks, "reward", once_lost)
    metrics, _ = evaluated(GOOD, retries=1)
    assert len(calls) == 2 and metrics["correct"] == 1


@pytest.mark.slow
def test_the_example_evolves_a_program(example, tmp_path):
    with StandIn(lambda request, number: f"```python\n{GOOD}```") as model:
        options = ("--model", "m", "--base-url", model.base_url, "--iterations", 1, "--out", tmp_path / "o")
        said = example("openevolve_search.py", *options)
    assert model.requests and "class ModelNew" in said and "'correct': 1.0" in said
