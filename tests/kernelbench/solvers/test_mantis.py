"""MANTIS: its formula by hand, its forms end to end, its ablations, and what malformed answers cost."""

import json

import pytest
from candidates import RIGHT, WRONG
from mantis_model import ANALYSIS, NOMINATED, hypotheses, model, phase_of, said

from kernelbench.solvers.mantis import analyze, triage
from kernelbench.solvers.mantis.artefacts import Measurement
from kernelbench.solvers.mantis.settings import ABLATIONS


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "gap, roi",
    [
        (50, 3.0),  # exponent 1 + log10(50 / 5) = 2: 3^2 / (2 * 1.5) = 9 / 3
        (500, 9.0),  # exponent 3: 27 / 3
        (5, 1.0),  # exponent 1: 3 / 3
        (1.2, 1.0),  # below 5 ambition is not dampened
        (None, 1.0),  # no bound is known
    ],
)
def test_roi_by_hand(gap, roi):
    """ROI(h) = S^(1 + max(0, log10(g/5))) / (R_impl R_perf): section 4.2, page 7, for S = 3 and risks 2 and 1.5."""
    assert triage.roi(3.0, 2.0, 1.5, gap) == pytest.approx(roi)


def test_a_large_gap_prefers_ambition_and_a_small_one_what_is_safe():
    """At g = 500 (exponent 3) a risky 9x has 729 / 25 and a safe 1.2x has 1.728; at g = 2 they have 0.36 and 1.2."""
    assert triage.roi(9.0, 5.0, 5.0, 500) == pytest.approx(29.16) and triage.roi(1.2, 1, 1, 500) == pytest.approx(1.728)
    assert triage.roi(9.0, 5.0, 5.0, 2) == pytest.approx(0.36)
    assert triage.roi(1.2, 1, 1, 2) == pytest.approx(1.2)


class Known:
    """A task with a bound of 0.5 ms."""

    class bounds:
        t_sol_ms = 0.5


@pytest.mark.parametrize("best_ms, baseline_ms, gap", [(2.0, 5.0, 4.0), (None, 5.0, 10.0), (None, None, None)])
def test_the_gap_is_of_the_best_kernel_and_before_there_is_one_of_pytorch(best_ms, baseline_ms, gap):
    assert analyze.gap(Known, Measurement(None, best_ms, baseline_ms, "")).gap == gap


@pytest.mark.slow
def test_orchestrated_end_to_end(solved, stand_in):
    """Two iterations of two hypotheses with two attempts: every call and attempt is tagged, every phase readable."""
    settings = {"iterations": "2", "attempts": "2"}
    with stand_in.StandIn(model) as server:
        outcome = solved("mantis", server, budget=8, selector="1/19,1/20", at_once=1, settings=settings)
    assert not outcome.failures, outcome.failures
    run = outcome.run.path
    attempts = lines(run / "trajectory.jsonl")
    of_first = [a["tags"] for a in attempts if a["problem"] == "1/19"]
    assert of_first == [
        {"iteration": i, "phase": "implement", "hypothesis": f"h{i}.{h}", "attempt": a, "unit": i}
        for i in (1, 2) for h in (1, 2) for a in (1, 2)
    ]  # fmt: skip
    phases = [call["tags"]["phase"] for call in lines(run / "calls.jsonl") if call["problem"] == "1/19"]
    assert phases == 2 * ["analyze", "nominate", *4 * ["implement"], "summarize"]
    folder = run / "artefacts" / "1_19" / "iteration_1"
    assert {path.stem for path in folder.iterdir()} == {
        "1_measure", "2_analyze", "3_nominate", "4_triage", "5_implement_h1_1", "5_implement_h1_2", "6_summarize",
    }  # fmt: skip
    chosen = json.loads((folder / "4_triage.json").read_text())
    assert [(one["name"], one["roi"]) for one in chosen] == [("fuse", 1.2), ("tile", 1.0)]
    assert "# Triage: 1/19" in (folder / "4_triage.txt").read_text()
    notes = lines(run / "memory.jsonl")
    assert [note["problem"] for note in notes] == ["1/19", "1/19", "1/20", "1/20"]
    second = next(r for r in server.requests[14:] if phase_of(r) == "nominate")
    assert "What other problems taught" in second["messages"][1]["content"]


@pytest.mark.slow
def test_the_best_two_by_roi_are_implemented_best_first(solved, stand_in):
    """Without a bound the gap is unknown, so ROI is S over the risks: 1.2, then 3 / 3; the rewrite has 9 / 25."""
    with stand_in.StandIn(model) as server:
        outcome = solved("mantis", server, budget=2, settings={"iterations": "1", "attempts": "1"})
    names = [a["tags"]["hypothesis"] for a in lines(outcome.run.path / "trajectory.jsonl")]
    assert names == ["h1.1", "h1.2"] and not outcome.failures


@pytest.mark.slow
@pytest.mark.parametrize("without", [name for name in ABLATIONS if name])
def test_each_ablation_is_one_setting_and_costs_no_attempt(solved, stand_in, without):
    rated = hypotheses(("rewrite", 9.0, 5, 5), ("tile", 3.0, 2, 1.5), ("fuse", 1.2, 1, 1))

    def answering(request, number):
        return said(rated) if phase_of(request) == "nominate" else model(request, number)

    settings = {"iterations": "2", "attempts": "1", "without": without}
    with stand_in.StandIn(answering) as server:
        outcome = solved("mantis", server, budget=4, selector="1/19", settings=settings)
    assert not outcome.failures and len(lines(outcome.run.path / "trajectory.jsonl")) == 4
    asked = [phase_of(request) for request in server.requests]
    texts = [m["content"] for request in server.requests for m in request["messages"]]
    assert ("analyze" in asked) == (without != "analyze") and ("summarize" in asked) == (without != "summarize")
    assert any("What earlier iterations" in text for text in texts) == (without != "summarize")
    assert bool(lines(outcome.run.path / "memory.jsonl")) == (without not in ("summarize", "memory"))
    first = lines(outcome.run.path / "trajectory.jsonl")[0]["tags"]["hypothesis"]
    assert first == ("h1.1" if without == "triage" else "h1.3")


@pytest.mark.slow
def test_flat_and_in_prompt_end_to_end(solved, stand_in):
    for form, steered in (("flat", False), ("in-prompt", True)):
        with stand_in.StandIn(lambda request, number: WRONG if number == 1 else RIGHT) as server:
            outcome = solved("mantis", server, budget=2, out=form, settings={"form": form})
        assert not outcome.failures and [r.status for r in outcome.run.results[:2]] == ["wrong_value", "ok"]
        system, asked = (message["content"] for message in server.requests[1]["messages"])
        assert ("Nominate: think of several hypotheses" in system) == steered
        assert ("- attempt 1: wrong_value" in asked) == steered and "status: wrong_value" in asked


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_guardrail_clauses_are_a_switch(solved, stand_in, switch):
    with stand_in.StandIn(lambda request, number: RIGHT) as server:
        solved("mantis", server, budget=1, settings={"form": "flat", "guardrails": switch})
    text = json.dumps(server.requests)
    for clause in ("Write the kernels yourself", "Do the work that the problem describes"):
        assert (clause in text) == (switch == "on")


@pytest.mark.slow
def test_a_workload_that_is_not_timed_is_solved_too(solved, stand_in, tmp_path):
    """Its best kernel has no time, and a TypeError ended the problem."""
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "001_own.py").write_text(
        "import torch\nWORKLOADS = {'few': dict(size=4096)}\nUNTIMED = ['few']\n"
        "class Model(torch.nn.Module):\n    def forward(self, x): return torch.relu(x)\n"
        "def get_inputs(size=4096): return [torch.randn(size)]\ndef get_init_inputs(size=4096): return []\n"
    )
    settings = {"iterations": "2", "attempts": "1"}
    with stand_in.StandIn(model) as server:
        outcome = solved("mantis", server, budget=3, selector="1/1", workload="few", problem_dir=tmp_path,
                         settings=settings)  # fmt: skip
    assert not outcome.failures, outcome.failures
    assert [(result.status, result.timing) for result in outcome.run.results] == [("ok", None)] * 3
    asked = [message["content"] for request in server.requests for message in request["messages"]]
    assert any("Best kernel: attempt 1, time unknown" in text for text in asked)
    assert any("got no time to compare with" in text for text in asked)


def test_malformed_answers_cost_turns_and_never_the_run(solved, stand_in):
    """Prose, broken JSON, wrong numbers, no code: told what was wrong, the model is asked again, then done without."""
    broken = iter(["I think that ...", '```json\n{"bottlenecks": 3}\n```', said(ANALYSIS)])
    wrong = json.loads(json.dumps(NOMINATED))
    wrong["hypotheses"][1]["implementation_risk"] = "low"
    huge = json.loads(json.dumps(NOMINATED))
    huge["hypotheses"][1]["expected_speedup"] = 10**400
    nominated = iter([said(wrong), said(huge), said(wrong)])
    summarized = iter(["[]", said({"lessons": ["half \ud800"], "next": ""}), "[]"])

    def answering(request, number):
        phase = phase_of(request)
        if phase == "analyze":
            return next(broken)
        if phase == "nominate":
            return next(nominated)
        if phase == "summarize":
            return next(summarized)
        return "I would rather not."

    settings = {"iterations": "1", "attempts": "1"}
    with stand_in.StandIn(answering) as server:
        outcome = solved("mantis", server, budget=2, settings=settings)
    assert not outcome.failures, outcome.failures
    asked = [phase_of(request) for request in server.requests]
    assert asked == 3 * ["analyze"] + 3 * ["nominate"] + 6 * ["implement"] + 3 * ["summarize"]
    told = [request["messages"][-1]["content"] for request in server.requests]
    assert "there is no JSON object in it" in told[1] and "implementation_risk must be a number from 1 to 5" in told[4]
    assert "too large" in told[5] and "surrogates not allowed" in told[-1]
    assert [r.status for r in outcome.run.results] == ["build_error", "build_error"]
    names = [a["tags"]["hypothesis"] for a in lines(outcome.run.path / "trajectory.jsonl")]
    assert names == ["h1.free0", "h1.free1"]


@pytest.mark.slow
def test_raw_files_and_tools_without_attempts(solved, stand_in):
    """``kind=cpp`` asks for a library by its signature, ``trials=on`` lets the model check it before the attempt."""
    source = 'extern "C" void solution(const float *x, float *out, size_t b, size_t d)'
    source = f"#include <cstddef>\n{source} {{ for (size_t i = 0; i < b * d; ++i) out[i] = x[i] > 0 ? x[i] : 0; }}\n"

    def answering(request, number):
        if number == 1:
            assert 'extern "C" void solution(' in request["messages"][1]["content"]
            return stand_in.Answer("", tool_calls=[("check", json.dumps({"source": source}))])
        assert request["messages"][-1]["content"] == "ok"
        return f"```cpp\n{source}```\n"

    with stand_in.StandIn(answering) as server:
        outcome = solved("mantis", server, budget=1, settings={"form": "flat", "kind": "cpp", "trials": "on"})
    assert not outcome.failures and outcome.run.results[0].correct and len(server.requests) == 2


@pytest.mark.parametrize(
    "setting, message",
    [
        ({"form": "round"}, "use one of flat, in-prompt, orchestrated"),
        ({"without": "measure"}, "use one of analyze, triage, summarize, memory"),
        ({"kind": "sass"}, "use one of py, cu, cpp, dsl"),
        ({"attempts": "0"}, "whole number of at least 1"),
        ({"guardrails": "maybe"}, "use one of on, off"),
    ],
)
def test_a_setting_that_does_not_exist_is_told(solved, stand_in, setting, message):
    with stand_in.StandIn(model) as server:
        outcome = solved("mantis", server, budget=1, settings=setting)
    assert message in outcome.failures["1/19"] and not server.requests
