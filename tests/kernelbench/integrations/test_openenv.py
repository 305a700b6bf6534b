"""OpenEnv, the real package: its client talks to the server over a WebSocket."""

import os
import socket
import subprocess
import sys
import urllib.request

import pytest
import torch
from relu_candidates import CONDITIONS, GOOD, WRONG

pytest.importorskip("openenv.core", reason="pip install 'kernelbench[openenv]'")

from openenv.core import GenericEnvClient

from kernelbench import EvaluationError
from kernelbench.integrations import tasks
from kernelbench.integrations.openenv import KernelAction, KernelEnvironment


@pytest.fixture(scope="module")
def client():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "KERNELBENCH_PROBLEMS": "1/19,1/20", "KERNELBENCH_DEVICE": "cpu"}
    command = [sys.executable, "-m", "uvicorn", "kernelbench.integrations.openenv:app", "--port", str(port)]
    server = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if "Uvicorn running" in line:
                break
        with GenericEnvClient(base_url=f"http://127.0.0.1:{port}", message_timeout_s=300).sync() as connected:
            connected.port = port
            yield connected
    finally:
        server.terminate()
        server.wait(timeout=30)


def test_a_step_is_an_attempt_with_a_reward(client):
    first = client.reset(problem="1/19")
    assert "class Model(nn.Module)" in first.observation["task"] and not first.done
    wrong = client.step({"source": WRONG})
    assert (wrong.reward, wrong.observation["status"]) == (0, "wrong_value")
    assert "first at" in wrong.observation["feedback"] and wrong.observation["attempts_left"] == 4
    good = client.step({"source": GOOD})
    assert good.reward >= 0.3 and good.observation["metrics"]["correct"] == 1
    assert client.state()["step_count"] == 2


def test_the_server_describes_itself(client):
    with urllib.request.urlopen(f"http://127.0.0.1:{client.port}/health", timeout=30) as answer:
        assert b"healthy" in answer.read()


def test_a_problem_that_the_server_does_not_offer_is_an_error(client):
    with pytest.raises(Exception, match="not among those of this server"):
        client.reset(problem="1/1")


def test_an_episode_ends_with_its_attempts():
    environment = KernelEnvironment("1/19", attempts=1, **CONDITIONS)
    environment.reset()
    assert environment.step(KernelAction(source=WRONG)).done
    with pytest.raises(ValueError, match="the episode is over: its 1 attempts are used up"):
        environment.step(KernelAction(source=WRONG))
    assert environment.state.best == 0.0 and environment.state.step_count == 1


def test_a_fault_of_the_machine_has_no_reward_and_costs_no_attempt(monkeypatch):
    def lost(*_, **__):
        raise EvaluationError("the GPU was lost")

    monkeypatch.setattr(tasks, "reward", lost)
    environment = KernelEnvironment("1/19", attempts=1, **CONDITIONS)
    environment.reset()
    seen = environment.step(KernelAction(source=GOOD))
    assert (seen.status, seen.reward, seen.done, seen.attempts_left) == ("unscored", None, False, 1)
    assert "lost" in seen.feedback


def test_an_attempt_is_judged_on_the_device_that_its_task_is_for(monkeypatch):
    asked = []

    def lost(*_, **conditions):
        asked.append(conditions["device"])
        raise EvaluationError("the GPU was lost")

    monkeypatch.setattr(tasks, "reward", lost)
    environment = KernelEnvironment("1/19")
    environment.reset()
    environment.step(KernelAction(source=GOOD))
    assert asked == ["cuda" if torch.cuda.is_available() else "cpu"]
