"""GEPA, the real package: its search calls the judge and reflects on what it says."""

import pytest
from relu_candidates import CONDITIONS, GOOD, WRONG
from stand_in import StandIn

from kernelbench import EvaluationError
from kernelbench.integrations import tasks
from kernelbench.integrations.gepa import KernelEvaluator

oa = pytest.importorskip("gepa.optimize_anything", reason="pip install 'kernelbench[gepa]'")


def config(reflect=lambda prompt: f"```\n{GOOD}\n```", **engine):
    return oa.GEPAConfig(
        engine=oa.EngineConfig(**{"max_metric_calls": 4, "parallel": False, **engine}),
        reflection=oa.ReflectionConfig(reflection_lm=reflect),
    )


@pytest.mark.slow
def test_a_search_turns_a_wrong_candidate_into_a_correct_one_by_the_feedback():
    prompts = []

    def reflect(prompt):
        prompts.append(str(prompt))
        return f"```\n{GOOD}\n```"

    found = oa.optimize_anything(
        WRONG, evaluator=KernelEvaluator("1/19", **CONDITIONS), objective="be fast", config=config(reflect)
    )
    assert "clamp(min=0)" in found.best_candidate and max(found.val_aggregate_scores) >= 0.3
    assert found.val_aggregate_scores[0] == 0 and "wrong_value" in prompts[0] and "first at" in prompts[0]


@pytest.mark.slow
def test_several_problems_are_a_dataset():
    found = oa.optimize_anything(
        GOOD, evaluator=KernelEvaluator(**CONDITIONS), dataset=["1/19", "1/20"], objective="be fast",
        config=config(max_metric_calls=2),
    )  # fmt: skip
    assert found.val_subscores[0][0] >= 0.3 and found.val_subscores[0][1] == 0  # a ReLU is no leaky ReLU


def test_a_fault_of_the_machine_is_no_score(monkeypatch):
    monkeypatch.setattr(tasks, "reward", raising)
    with pytest.raises(EvaluationError, match="lost"):
        oa.optimize_anything(GOOD, evaluator=KernelEvaluator("1/19"), objective="be fast", config=config())


def raising(*_, **__):
    raise EvaluationError("the GPU was lost")


@pytest.mark.parametrize("candidate", [{"a": GOOD, "b": GOOD}, {}])
def test_a_candidate_is_one_source(candidate):
    with pytest.raises(ValueError, match="one source"):
        KernelEvaluator("1/19")(candidate)


def test_without_a_problem_it_says_how_to_name_one():
    with pytest.raises(ValueError, match="KernelEvaluator\\('1/19'\\)"):
        KernelEvaluator()(GOOD)


@pytest.mark.slow
def test_the_example_runs(example):
    with StandIn(lambda request, number: f"```\n{GOOD}\n```") as model:
        said = example("gepa_search.py", "1/19", "--model", "m", "--base-url", model.base_url, "--budget", 3)
    assert model.requests and "class ModelNew" in said
