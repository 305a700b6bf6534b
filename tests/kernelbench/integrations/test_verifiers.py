"""verifiers 0.4, the real package: the taskset by its name, and an evaluation by its command with a stand-in model."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from relu_candidates import GOOD, WRONG, answer
from stand_in import StandIn

pytest.importorskip("verifiers.v1", reason="pip install 'kernelbench[verifiers]', in an environment of its own")

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_taskset, taskset_class

from kernelbench import EvaluationError
from kernelbench.integrations import tasks
from kernelbench.integrations.verifiers import KernelTaskConfig, KernelTaskset, KernelTasksetConfig

CONFIG = KernelTasksetConfig(
    id="kernelbench", problems="1/19,1/20", task=KernelTaskConfig(device="cpu", track="open", timeout_s=60)
)


@pytest.fixture
def scored(tmp_path):
    """The trace of an answer to the first problem, scored by verifiers."""

    def scored(text):
        task = next(iter(load_taskset(CONFIG)))
        trace = _trace(task, text)
        asyncio.run(task.score(trace))
        return trace

    return scored


def _trace(task, text):
    trace = vf.Trace(
        agent=vf.AgentInfo(config=vf.AgentConfig()), task=vf.TraceTask(type=type(task).__name__, data=task.data)
    )
    messages = [vf.UserMessage(content=task.data.prompt), vf.AssistantMessage(content=text)]
    for index, message in enumerate(messages):
        trace.nodes.append(vf.MessageNode(message=message, parent=index - 1 if index else None, sampled=index == 1))
    return trace


def test_verifiers_finds_the_taskset_by_the_name_of_the_package():
    assert taskset_class("kernelbench") is KernelTaskset
    loaded = list(load_taskset(CONFIG))
    assert [task.data.problem for task in loaded] == ["1/19", "1/20"] and "ModelNew" in loaded[0].data.prompt


def test_the_reward_is_the_judges(scored):
    trace = scored(answer(GOOD))
    assert trace.reward >= 0.3 and trace.metrics["correct"] == 1 and trace.info["kernelbench"]["label"] == "ok"


def test_a_wrong_kernel_earns_nothing_and_the_trace_says_why(scored):
    trace = scored(answer(WRONG))
    assert trace.reward == 0 and "first at" in trace.info["kernelbench"]["feedback"]


def test_a_fault_of_the_machine_is_an_error_of_the_rollout(scored, monkeypatch):
    def lost(*_, **__):
        raise EvaluationError("the GPU was lost")

    monkeypatch.setattr(tasks, "reward", lost)
    with pytest.raises(vf.TaskError, match="lost"):
        scored(answer(GOOD))


def test_the_command_evaluates_with_a_model(tmp_path):
    command = [str(Path(sys.executable).parent / "vf-eval"), "kernelbench", "--env.taskset.problems", "1/19",
               "--env.taskset.task.device", "cpu", "--env.agent.harness.id", "null",
               "--env.agent.runtime.type", "subprocess", "--push", "False"]  # fmt: skip
    with StandIn(lambda request, number: answer(GOOD)) as model:
        more = ["--model", "m", "--client.base-url", model.base_url]
        env = os.environ | {"OPENAI_API_KEY": "none"}
        done = subprocess.run([*command, *more], capture_output=True, text=True, cwd=tmp_path, timeout=500, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (log,) = tmp_path.rglob("traces.jsonl")
    assert '"kernelbench"' in log.read_text() and json.loads(log.read_text().splitlines()[0])
