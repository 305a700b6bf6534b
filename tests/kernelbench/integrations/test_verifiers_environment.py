"""verifiers before 0.2, the real package: the environment by its name, evaluated with a stand-in model."""

import asyncio
import math

import pytest
from relu_candidates import GOOD, WRONG, answer
from stand_in import StandIn

pytest.importorskip("datasets", reason="pip install 'kernelbench[verifiers-v0]', in an environment of its own")
vf = pytest.importorskip("verifiers", reason="pip install 'kernelbench[verifiers-v0]', in an environment of its own")
if not hasattr(vf, "SingleTurnEnv"):
    pytest.skip("verifiers 0.2 and later have tasksets instead of environments", allow_module_level=True)
types = pytest.importorskip("verifiers.types")

from kernelbench import EvaluationError  # noqa: E402
from kernelbench.integrations import tasks  # noqa: E402


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("NO_KEY", "none")


def rewards(*answers):
    """The rewards of one rollout for each answer, as verifiers' own evaluation gives them."""
    environment = vf.load_environment("kernelbench", problems="1/19", device="cpu", track="open")
    with StandIn(lambda request, number: answers[(number - 1) % len(answers)]) as model:
        client = types.ClientConfig(api_base_url=model.base_url, api_key_var="NO_KEY")
        found = asyncio.run(
            environment.evaluate(client, "m", num_examples=1, rollouts_per_example=len(answers), max_concurrent=1)
        )
    return [output["reward"] for output in found["outputs"]]


def test_the_reward_is_the_judges():
    wrong, good = sorted(rewards(answer(GOOD), answer(WRONG)))
    assert wrong == 0 and good >= 0.3


def test_a_fault_of_the_machine_is_no_number(monkeypatch):
    def lost(*_, **__):
        raise EvaluationError("the GPU was lost")

    monkeypatch.setattr(tasks, "reward", lost)
    (value,) = rewards(answer(GOOD))
    assert math.isnan(value)
