"""inspect_ai, the real package: the task by its name, the scorer with a stand-in model, samples that are unscored."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from relu_candidates import GOOD, NO_CODE, WRONG, answer
from stand_in import StandIn

pytest.importorskip("inspect_ai", reason="pip install 'kernelbench[inspect]'")

import anyio
import inspect_ai
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolError

from kernelbench import EvaluationError
from kernelbench.attempt import warm_client
from kernelbench.cli.agents.mcp import command as mcp_command
from kernelbench.integrations import inspect_ai as adapter
from kernelbench.integrations import tasks
from kernelbench.integrations.inspect_ai import keep, kernels


@pytest.fixture
def scored(tmp_path):
    """The log of an evaluation of problem 1/19, once for each answer."""

    def scored(*answers):
        model = get_model("mockllm/model", custom_outputs=list(map(said, answers)))
        task = kernels(problems="1/19", device="cpu", track="open")
        (log,) = inspect_ai.eval(
            task, model=model, epochs=inspect_ai.Epochs(len(answers), "mean"), max_connections=1, log_dir=str(tmp_path),
            display="none",
        )  # fmt: skip
        assert log.status == "success", log.error
        return log

    return scored


def said(text):
    output = ModelOutput.from_content("m", text)
    output.usage = ModelUsage(output_tokens=len(text.split()))  # without it Inspect downloads a tokenizer to count
    return output


@pytest.mark.slow
def test_a_model_may_ask_the_judge_before_it_answers(tmp_path, tmp_path_factory, monkeypatch, request):
    pytest.importorskip("mcp", reason="pip install 'kernelbench[mcp]'")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))  # short: it is part of a socket's path
    request.addfinalizer(warm_client.stop)

    others = tmp_path / "others.py"
    others.write_text("API_KEY = 'secret' (\n")

    def judged(messages, tools, choice, config):
        """Keep a wrong kernel, have it judged, ask about a file of others, and answer with the right kernel."""
        told = [message.text for message in messages if message.role == "tool"]
        tried = [("try", {"file": file, "problem": "1/19"}) for file in ((told or [""])[0], str(others))]
        calls = [("keep", {"source": WRONG}), *tried, ("findings", {"file": str(others)})]
        output = ModelOutput.for_tool_call("m", *calls[len(told)]) if len(told) < 4 else said(answer(GOOD))
        output.usage = ModelUsage(output_tokens=1)
        return output

    model = get_model("mockllm/model", custom_outputs=judged)
    task = kernels(problems="1/19", device="cpu", track="open", tools=True)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    _, verdict, *refused = [message for message in log.samples[0].messages if message.role == "tool"]
    assert verdict.error is None and '"wrong_value"' in verdict.text
    assert len(refused) == 2 and all("no other files are taken" in one.error.message for one in refused)
    assert "secret" not in str(log.samples[0].messages)
    (score,) = scores(log)
    assert score.value["correct"] == 1


@pytest.mark.parametrize("track", [None, "open", "kernels"])
def test_the_tools_judge_by_the_rules_of_the_scorer(monkeypatch, track):
    """They took the default track and timeout, so that what they called rejected was right, or the reverse."""
    told = []
    monkeypatch.setattr(adapter, "mcp_server_stdio", lambda args, **_: told.extend(args))
    monkeypatch.setattr(adapter, "mcp_tools", lambda server: [])
    kernels(problems="1/19", device="cpu", timeout_s=7.5, track=track, tools=True)
    given = mcp_command.make_context("kb mcp", told[told.index("mcp") + 1 :]).params
    assert (given["device"], given["timeout"], given["track"]) == ("cpu", 7.5, track)


def test_a_source_that_cannot_be_kept_is_told_to_the_model(tmp_path):
    """Any other error of a tool ends the whole evaluation."""
    kept = keep(str(tmp_path))
    with pytest.raises(ToolError, match="lone surrogate"):
        anyio.run(kept, "half \ud800")
    with pytest.raises(ToolError, match="kind must be one of"):
        anyio.run(kept, GOOD, "rs")
    assert Path(anyio.run(kept, GOOD)).read_text() == GOOD


def scores(log):
    return [score for sample in log.samples for score in sample.scores.values()]


@pytest.mark.slow
def test_a_correct_and_a_wrong_kernel_and_an_answer_without_one(scored):
    log = scored(answer(GOOD), answer(WRONG), NO_CODE)
    by_label = {score.metadata["label"]: score for score in scores(log)}
    assert by_label["ok"].value["correct"] == 1 and by_label["ok"].value["reward"] >= 0.3
    assert by_label["wrong_value"].value["reward"] == 0 and "first at" in by_label["wrong_value"].explanation
    assert by_label["no_code"].value["reward"] == 0 and by_label["no_code"].reason == "invalid_response_format"
    metrics = {score.name: score.metrics for score in log.results.scores}
    assert metrics["correct"]["mean"].value == pytest.approx(1 / 3)


def test_where_the_machine_is_at_fault_the_sample_is_unscored(scored, monkeypatch):
    def lost(*_, **__):
        raise EvaluationError("the GPU was lost")

    monkeypatch.setattr(tasks, "reward", lost)
    (score,) = scores(scored(answer(GOOD)))
    assert math.isnan(score.value) and score.reason == "scoring_failed" and "lost" in score.explanation


@pytest.mark.slow
def test_inspects_command_finds_the_task_by_the_entry_point(tmp_path):
    command = [str(Path(sys.executable).parent / "inspect"), "eval", "kernelbench/kernels", "--model",
               "openai-api/standin/m", "-T", "problems=1/19", "-T", "device=cpu", "--log-dir", str(tmp_path),
               "--display", "plain"]  # fmt: skip
    with StandIn(lambda request, number: answer(GOOD)) as model:
        env = os.environ | {"STANDIN_BASE_URL": model.base_url, "STANDIN_API_KEY": "none"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = list_eval_logs(str(tmp_path))
    (score,) = scores(read_eval_log(log))
    assert score.metadata["label"] == "ok" and "class Model(nn.Module)" in str(model.requests[0]["messages"])
