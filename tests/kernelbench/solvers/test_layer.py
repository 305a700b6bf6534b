"""What a strategy has from its task: trials, profiles, memory, tools, tags, schedules, limits, starts."""

import contextlib
import dataclasses
import hashlib
import json
import os
import textwrap
import threading
import time

import pytest
from candidates import RIGHT, WRONG, answer, candidate
from logs import NO_LOGS, no_log
from simulated import Facts, SimulatedBackend

from harness.solution.discover import discover
from kernelbench.endpoint import MOST_CALLS, Endpoint
from kernelbench.metrics import settled
from kernelbench.run import RunError
from kernelbench.solvers import orchestrator, session
from kernelbench.solvers.log.journal import Attempt, Call, Diverged, Journal, Note, numbered
from kernelbench.solvers.model.llm import Hooks, Llm
from kernelbench.solvers.model.tools import Tool, answer_of
from kernelbench.solvers.orchestrator import starting_kernels
from kernelbench.solvers.plan import Plan, SolverError, Watcher
from kernelbench.solvers.schedule import dispatcher
from kernelbench.solvers.schedule.limits import Limits
from kernelbench.solvers.schedule.order import BreadthFirst, DepthFirst, Standing, UnknownSchedule, schedule_of

CLAMP = candidate("x.clamp(min=0)")
CPP = """
#include <cstddef>
// {comment}
extern "C" void solution(const float *x, float *out, size_t batch_size, size_t dim) {{
    for (size_t {i} = 0; {i} < batch_size * dim; ++{i}) out[{i}] = x[{i}] > 0 ? x[{i}] : 0;
}}
"""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def write(tmp_path):
    def write(source, name="solver.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(source))
        return path

    return write


@pytest.mark.slow
def test_what_a_task_knows_before_and_beside_its_attempts(solved, write):
    """Baseline, bounds, builds and checks spend no attempt; a profile is read once, also over a resume."""
    solver = write(f"""
        def solve(task):
            assert task.baseline["name"] == "eager" and task.baseline["median_ms"] > 0
            assert task.bounds.flops and task.bounds.operators and task.bounds.t_sol_ms is None
            assert "is in no table" in task.bounds.unavailable
            assert task.build("def x(:").status == "build_error" and task.build({CLAMP!r}).ok
            wrong, right = task.check({candidate("x")!r}), task.check({CLAMP!r})
            assert wrong.status == "wrong_value" and "elements of the output" in wrong.message
            assert right.ok and task.budget == 2 and dict(task.trials) == {{"build": 2, "check": 2}}
            first = task.evaluate({CLAMP!r})
            profile = task.profile(first)
            assert profile.tool == "cpu" and profile.facts["wall_s"] > 0 and profile == task.profile(first)
            failed = task.evaluate({candidate("x")!r})
            assert task.profile(failed).tool == "none"
            task.say(repr(task.seconds()))
    """)
    outcome = solved(solver, budget=2)
    assert not outcome.failures and [r.status for r in outcome.run.results[:2]] == ["ok", "wrong_value"]
    facts = {fact["key"].partition(":")[0] for fact in lines(outcome.run.path / "facts.jsonl")}
    assert facts == {"problem_sha256", "baseline", "build", "check", "profile", "clock"}
    before = (outcome.run.path / "facts.jsonl").read_bytes()
    again = solved(solver, budget=2, resume=True)
    assert not again.failures and (outcome.run.path / "facts.jsonl").read_bytes() == before


@pytest.mark.slow
def test_attempts_with_the_same_code_are_evaluated_once(solved, write):
    sources = [CPP.format(comment="first", i="i"), CPP.format(comment="second", i="j")]
    python = [CLAMP, CLAMP]
    solver = write(f"""
        from kernelbench.solvers.task import Candidate
        def solve(task):
            yield [Candidate(source, kind="cpp") for source in {sources!r}]
            for source in {python!r}:
                yield source
    """)
    outcome = solved(solver, budget=4)
    first = {r.solution["sample"]: r for r in outcome.run.results if r.confirms is None}
    assert all(r.correct for r in first.values()) and len(first) == 4
    copies = {sample: (r.build or {}).get("same_code_as") for sample, r in first.items()}
    assert sorted(filter(None, (copies[1], copies[2]))) in ([1], [2])  # whichever was built first
    assert first[1].timing == first[2].timing and first[1].solution["name"] != first[2].solution["name"]
    assert settled.settled_speedup(first[1]) == settled.settled_speedup(first[2])
    assert copies[3] is None and copies[4] is None and first[3].timing != first[4].timing  # they know their names


@pytest.mark.slow
def test_a_log_of_others_says_nothing_of_the_code_of_attempts_to_come(solved, write):
    """A wrong attempt, built now, was told the 50x of a line that named its library."""
    wrong = CPP.format(comment="wrong", i="i").replace("x[i] > 0 ? x[i] : 0", "1")
    solver = write(f"""
        from kernelbench.solvers.task import Candidate
        def solve(task):
            for source in {[CPP.format(comment="right", i="i"), wrong]!r}:
                yield Candidate(source, kind="cpp")
    """)
    codes = [r.build["code"] for r in solved(solver, budget=2, out="honest").run.results if r.confirms is None]
    log = solved(solver, budget=1).run.path / "results.jsonl"
    (line,) = lines(log)
    line["build"]["code"] = codes[1]
    log.write_text(json.dumps(line) + "\n")
    again = solved(solver, budget=2, resume=True)
    assert [r.status for r in again.run.results] == ["ok", "wrong_value"]


@pytest.mark.slow
@pytest.mark.parametrize("link", [False, True])
def test_a_log_of_others_names_no_file_outside_of_the_run(solved, write, tmp_path, link):
    """It stood as the best, was run, and a copy of it was kept in the run."""
    solver = write(f"def solve(task):\n    yield from ({CLAMP!r} + f'# {{n}}' for n in range(2))\n")
    run = solved(solver, budget=2).run
    mine = write(CLAMP + "# of mine", "1_19_mine.py")
    name = "1_19_mine.py" if link else os.path.relpath(mine, run.path / "solutions")
    if link:
        (run.path / "solutions" / name).symlink_to(mine)
    line = lines(run.path / "results.jsonl")[0]
    line["solution"] |= {"name": name, "sha256": hashlib.sha256(mine.read_bytes()).hexdigest(), "sample": 3}
    for baseline in line["baselines"].values():
        baseline |= {"speedup": 60.0, "interval": [59.0, 61.0], "verdict": "faster"}
    with (run.path / "results.jsonl").open("a") as log:
        log.write(json.dumps(line) + "\n")
    again = solved(solver, budget=2, resume=True)
    assert [r.solution["name"] for r in again.run.results].count(name) == 1
    assert not any("of mine" in path.read_text() for path in (run.path / "sources").iterdir())


@pytest.mark.slow
def test_an_attempt_that_reads_its_own_comment_has_a_verdict_of_its_own(solved, write):
    """With the syntax tree for its code it was checked only, and what is wrong after some calls was right."""
    told = '# {}\nimport torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return {}\n'
    answer = "x.clamp(min=0) if 'right' in open(__file__).readline() else x"
    solver = write(f"""
        def solve(task):
            for source in {[told.format(word, answer) for word in ("right", "wrong", "right")]!r}:
                yield source
    """)
    outcome = solved(solver, budget=3)
    assert {r.solution["sample"]: r.status for r in outcome.run.results if r.confirms is None} == {
        1: "ok", 2: "wrong_value", 3: "ok"
    }  # fmt: skip


@pytest.mark.slow
def test_an_attempt_knows_neither_the_size_nor_the_name_of_its_library_s_source(solved, write):
    """By the size of its source, or the place of its library, one code was right once and wrong once."""
    looks = """
    #include <dlfcn.h>
    #include <cstdio>
    #include <cstddef>
    #include <cstring>
    static char place[4096];
    extern "C" void solution(const float *x, float *out, size_t rows, size_t columns) {
        Dl_info info;
        dladdr((void *)solution, &info);
        FILE *maps = fopen("/proc/self/maps", "r");
        size_t read = fread(place, 1, 1, maps);
        bool told = strstr(info.dli_fname, "kernelbench") || strstr(info.dli_fname, "19_") || !read;
        for (size_t i = 0; i < rows * columns; ++i) out[i] = told ? 7 : x[i] > 0 ? x[i] : 0;
    }
    """
    solver = write(f"""
        from kernelbench.solvers.task import Candidate
        def solve(task):
            yield [Candidate({looks!r}, kind="cpp")]
    """)
    outcome = solved(solver, budget=1)
    assert [r.status for r in outcome.run.results] == ["ok"] * len(outcome.run.results)


@pytest.mark.slow
def test_several_workloads_are_one_attempt_with_the_ratio_of_total_runtimes(tmp_path, pipeline, solved, write):
    problem = tmp_path / "level1" / "001_own.py"
    problem.parent.mkdir()
    problem.write_text(
        textwrap.dedent("""
        '''Rectified linear unit of two sizes.'''
        import torch
        WORKLOADS = {"few": dict(size=4096), "many": dict(size=65536)}
        class Model(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x)
        def get_inputs(size=4096):
            return [torch.randn(size)]
        def get_init_inputs(size=4096):
            return []
        def get_flops(size=4096):
            return size
        """)
    )
    solver = write(f"""
        def solve(task):
            assert "few: size = 4096; and many: size = 65536" in task.prompt()[0]["content"]
            wrong = yield {candidate("x")!r}
            assert wrong.status == "wrong_value"
            right = yield {CLAMP!r}
            assert right.correct and right.workload["name"] == "few, many", right
            parts = right.parts
            times = sum(part.timing["median_ms"] for part in parts)
            assert abs(right.timing["median_ms"] - times) < 1e-9 and right.speedup > 0
    """)
    outcome = solved(solver, selector="1/1", budget=2, workload="few,many", problem_dir=tmp_path)
    assert not outcome.failures, outcome.failures
    assert [(r.solution["sample"], r.workload["name"]) for r in outcome.run.results[:3]] == [
        (1, "few"), (2, "few"), (2, "many"),
    ]  # fmt: skip
    assert not solved(solver, selector="1/1", budget=2, workload="few,many", problem_dir=tmp_path, resume=True).failures


def test_memory_is_shared_and_a_resumed_run_sees_what_the_first_saw(solved, write):
    solver = write(f"""
        def solve(task):
            seen = [note.text for note in task.memory.read(own=False)]
            task.memory.add(f"{{task.id}} saw {{seen}}", problem_name=task.name)
            assert task.memory.read()[-1].data["problem_name"] == task.name
            yield {candidate("x")!r} + f"# {{seen}}"
    """)
    first = solved(solver, selector="1/19,1/20", at_once=1)
    notes = lines(first.run.path / "memory.jsonl")
    assert notes[1]["text"] == "1/20 saw ['1/19 saw []']"
    with open(first.run.path / "memory.jsonl", "a") as log:  # what others add later changes nothing for these
        log.write(json.dumps({"problem": "1/21", "number": 1, "text": "later", "data": {}}) + "\n")
    again = solved(solver, selector="1/19,1/20", at_once=1, resume=True)
    assert not again.failures and len(lines(first.run.path / "memory.jsonl")) == 3


@pytest.mark.parametrize("name", ["calls.jsonl", "trajectory.jsonl", "facts.jsonl", "memory.jsonl", "schedule.jsonl"])
@pytest.mark.parametrize("kind", NO_LOGS)
def test_a_journal_that_holds_no_plain_files_is_refused_at_once(tmp_path, name, kind):
    no_log(tmp_path / name, kind)
    with pytest.raises(RunError, match=f"{name} cannot be read: it is (not a plain file|too large)"):
        Journal(tmp_path)


@pytest.mark.parametrize("line", [{"problem": "1/19", "unit": 0}, {"problem": "", "unit": 2}])
def test_units_of_a_problem_count_from_one(tmp_path, line):
    """A problem with a unit 0 had its solver run twice at once."""
    (tmp_path / "schedule.jsonl").write_text(json.dumps(line | {"seconds": 1.0}) + "\n")
    with pytest.raises(RunError, match="schedule.jsonl is damaged: units of a problem count from 1"):
        Journal(tmp_path)


@pytest.mark.parametrize(
    "name, line",
    [
        ("calls.jsonl", [1]), ("calls.jsonl", {"problem": []}),
        ("calls.jsonl", {"problem": "1/19", "number": "1", "request": 5, "messages": 5, "sampling": {}, "answer": 5,
                         "finish_reason": None, "tokens": 5, "cost_usd": "x", "seconds": "y", "tries": 1}),
        ("trajectory.jsonl", {"problem": "1/19", "sample": 1, "parent": "x", "turn": "y", "prompt": 5, "answer": 5,
                              "tokens": 5, "cost_usd": "z", "seconds": "q"}),
        ("facts.jsonl", {"problem": "1/19", "key": [], "value": 1}),
        ("memory.jsonl", {"problem": 5, "number": "x", "text": 5, "data": 5}),
        ("schedule.jsonl", {"problem": "1/19", "unit": 1, "seconds": None}),
    ],
)  # fmt: skip
def test_a_journal_of_others_with_values_of_other_types_is_one_clear_error(tmp_path, name, line):
    (tmp_path / name).write_text(json.dumps(line) + "\n")
    with pytest.raises(RunError, match=f"{name} is damaged: .*(must be|is missing)"):
        Journal(tmp_path)


@pytest.mark.parametrize(
    "comment",
    [
        "# kb: device=any*/ problem=1/19", "/* kb: device=cpu */", "# kb: a*/*/ sample=3", "# kb: */ sample=1",
        "\ufeff# kb: sample=1",
    ],
)  # fmt: skip
def test_an_attempt_that_was_numbered_is_the_same_when_it_is_numbered_again(comment):
    """A resumed run reads what it kept: with another comment it had gone another way, for good."""
    once = numbered(f"{comment}\nclass ModelNew: ...\n", "1/20", 2)
    assert numbered(once, "1/20", 2) == once and "problem=1/20 sample=2" in once


def test_a_journal_makes_no_file_through_a_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "calls.jsonl").symlink_to(tmp_path / "notes")
    with pytest.raises(RunError, match="calls.jsonl cannot be read"):
        Journal(tmp_path / "run")
    assert not (tmp_path / "notes").exists()


def test_an_attempt_of_others_that_is_a_link_is_not_read(tmp_path):
    """A resumed run gives its attempts to a model."""
    attempt = Attempt("1/19", 1, None, 1, [], "", {}, None, 0.0)
    (tmp_path / "run").mkdir()
    kept, _ = Journal(tmp_path / "run").add_attempt(attempt, "py", "# mine\n")
    (tmp_path / "secret").write_text(kept.read_text())
    assert Journal(tmp_path / "run").recorded("1/19")
    kept.unlink()
    kept.symlink_to(tmp_path / "secret")
    with pytest.raises(RunError, match=r"19_s1\.py cannot be read: it is not a plain file, but a link"):
        Journal(tmp_path / "run").recorded("1/19")


def test_a_note_that_is_another_one_than_before_is_told():
    journal = Journal()
    journal.add_note(Note("1/1", 1, "tiles"))
    journal.add_note(Note("1/1", 1, "tiles"))
    with pytest.raises(Diverged, match="note 1 is not the one"):
        journal.add_note(Note("1/1", 1, "warps"))


CALL = Call("1/19", 1, "digest", [], {}, "fine", "stop", {"prompt": 1}, None, 0.0, 1)
TRIED = Attempt("1/19", 1, None, 1, [], "", {}, None, 0.0)


def deep(levels):
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "name, add",
    [
        ("calls.jsonl", lambda to: to.add_call(dataclasses.replace(CALL, tags=5))),
        ("trajectory.jsonl", lambda to: to.add_attempt(dataclasses.replace(TRIED, turn=2**63), "py", "")),
        ("trajectory.jsonl", lambda to: to.add_attempt(dataclasses.replace(TRIED, parent="a"), "py", "")),
        ("trajectory.jsonl", lambda to: to.add_attempt(dataclasses.replace(TRIED, tags={"iteration": "1"}), "py", "")),
        ("facts.jsonl", lambda to: to.fact("1/19", "deep", lambda: deep(300))),
        ("memory.jsonl", lambda to: to.add_note(Note("1/19", 1, 5))),
    ],
)  # fmt: skip
def test_what_a_journal_could_not_read_again_is_refused_before_anything_is_written(tmp_path, name, add):
    """It was written, and the run was damaged for good."""
    with pytest.raises(ValueError, match=f"this cannot be kept in {name}"):
        add(Journal(tmp_path))
    assert not (tmp_path / "solutions").exists() and not (tmp_path / name).read_text()
    with pytest.raises(ValueError, match=f"this cannot be kept in {name}"):
        add(Journal())


@pytest.mark.parametrize("data", [{"sizes": (64, 128)}, {64: "warps"}, {"loss": float("nan")}])
def test_notes_are_kept_as_a_resumed_run_reads_them(tmp_path, data):
    """A tuple in the data of a note was a list in the log: the same solver was told that it does something else."""
    for _ in range(2):
        journal = Journal(tmp_path)
        journal.add_note(Note("1/1", 1, "tiles", data))
        journal.add_note(Note("1/1", 1, "tiles", data))
        assert [json.dumps(note.data) for note in journal.notes] == [json.dumps(data)]


@pytest.mark.parametrize("tool", ["says", "refuses", "is unknown"])
def test_what_a_tool_says_is_cut(tool):
    """An error, which quoted the call, was not: a million characters went to the model."""
    def run(text):
        if tool == "says":
            return text
        raise ValueError(text)

    name = "x" * 10**6 if tool == "is unknown" else "look"
    said = answer_of({"name": name, "arguments": json.dumps({"text": "y" * 10**6})}, [Tool("look", "", run)])
    assert len(said) < 21_000 and said.endswith("[the rest is left out]")


def test_what_is_wrong_with_an_answer_is_cut(solved, write, stand_in):
    """It may quote the answer: four million characters were sent back."""
    solver = write("""
        from kernelbench.solvers.model.json_answers import ask_json
        def solve(task):
            def read(found):
                raise ValueError(found["text"])
            assert ask_json(task, task.prompt(), read, repairs=1) is None
    """)
    with stand_in.StandIn(lambda request, number: json.dumps({"text": "x" * 900_000})) as server:
        assert not solved(solver, server).failures
    assert len(server.requests[1]["messages"][-1]["content"]) < 3000


def test_costs_of_samples_that_are_asked_for_at_once_all_count():
    """One thread wrote its sum over another's, and a limit came too late."""
    class Slow(dict):
        def values(self):
            time.sleep(0.01)
            return super().values()

    made = session._Session(Plan(None, 1, None), [Facts(19)], SimulatedBackend(), session.Store(), Watcher())
    call = dataclasses.replace(CALL, tokens=Slow(prompt=1, completion=2))
    threads = [threading.Thread(target=made._charged_for, args=("1/19", call)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made._standings["1/19"].tokens == 24


def test_the_wall_time_of_a_life_counts_after_its_last_grant(solved, write):
    """A solver that is granted all at once had the whole limit again in each life."""
    solver = write(f"import time\ndef solve(task):\n    time.sleep(0.5)\n    yield {candidate('x')!r}\n")
    assert Journal(solved(solver).run.path).seconds_before >= 0.5


def test_the_wall_time_of_a_life_that_is_killed_counts(solved, write, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatcher, "_NOTED_S", 0.05)
    solver = write(f"""
        import json, time
        def solve(task):
            time.sleep(0.5)
            with open({str(tmp_path / "run" / "schedule.jsonl")!r}) as log:
                assert max(json.loads(line)["seconds"] for line in log) > 0.2
            yield {candidate("x")!r}
    """)
    assert not solved(solver).failures


TOOLS = f"""
    from kernelbench.solvers.model.tools import Tool
    def solve(task):
        def check(source):
            return task.check(source).status
        schema = {{"type": "object", "properties": {{"source": {{"type": "string"}}}}, "required": ["source"]}}
        tools = [Tool("check", "Compares a kernel with the reference.", check, schema)]
        with task.tagged(phase="implement", iteration=1):
            answer = task.llm.ask(task.prompt(), tools=tools)
            yield answer
    CLAMP = {CLAMP!r}
"""


@pytest.mark.slow
def test_a_model_calls_tools_by_openais_protocol_and_they_run_once(solved, write, stand_in):
    def answer_of(request, number):
        if request["messages"][-1]["role"] == "user":
            assert request["tools"][0]["function"]["name"] == "check"
            calls = [("check", json.dumps({"source": CLAMP})), ("check", "{"), ("look", "{}")]
            calls += [("check", '{"source": [1]}'), ("check", '{"source": "\\ud800"}')]
            return stand_in.Answer("", tool_calls=calls)
        said = [message["content"] for message in request["messages"] if message["role"] == "tool"]
        assert said[0] == "ok" and said[1].startswith("error: check: ") and "there is no tool 'look'" in said[2]
        assert said[3] == "error: check: source must be of type string" and "surrogates not allowed" in said[4]
        return RIGHT

    for stream in (False, True):
        with stand_in.StandIn(answer_of) as server:
            outcome = solved(write(TOOLS), server, out=f"run{stream}", stream=stream)
            solved(write(TOOLS), server, out=f"run{stream}", stream=stream, resume=True)
        assert not outcome.failures and outcome.run.results[0].correct and len(server.requests) == 2
    calls, (attempt,) = (lines(outcome.run.path / name) for name in ("calls.jsonl", "trajectory.jsonl"))
    assert [len(call["tool_calls"]) for call in calls] == [5, 0]
    assert attempt["tags"] == calls[0]["tags"] == {"phase": "implement", "iteration": 1, "unit": 1}
    assert attempt["tokens"]["completion"] == sum(call["tokens"]["completion"] for call in calls)


@pytest.mark.parametrize("protocol", ["openai", "text"])
def test_one_answer_calls_no_more_tools_than_a_person_would_wait_for(solved, write, stand_in, protocol):
    """A thousand calls in one answer went on for hours, whatever the limits of the run."""
    def answer_of(request, number):
        if number > 1:
            return RIGHT
        calls = [("look", json.dumps({"n": n})) for n in range(40)]
        if protocol == "openai":
            return stand_in.Answer("", tool_calls=calls)
        blocks = [json.dumps({"name": name, "arguments": json.loads(arguments)}) for name, arguments in calls]
        return "\n".join(f"```tool\n{block}\n```" for block in blocks)

    with stand_in.StandIn(answer_of) as server:
        outcome = solved(write(TOOLS), server, settings={"tools": protocol})
    facts = lines(outcome.run.path / "facts.jsonl")
    assert not outcome.failures and sum(fact["key"].startswith("tool:") for fact in facts) == MOST_CALLS


@pytest.mark.parametrize("protocol", ["openai", "text"])
def test_a_conversation_that_is_too_long_to_log_again_and_again_ends(solved, write, stand_in, protocol):
    """Each call logs all of it: sixteen turns of an endpoint that fills its answers were 3.9 GB."""
    call = json.dumps({"name": "look", "arguments": {"n": 1}})

    def answer_of(request, number):
        filled = "x" * (900 << 10)
        if protocol == "openai":
            return stand_in.Answer(filled, tool_calls=[("look", json.dumps({"n": 1}))])
        return f"{filled}\n```tool\n{call}\n```"

    with stand_in.StandIn(answer_of) as server:
        outcome = solved(write(TOOLS), server, settings={"tools": protocol})
    assert len(lines(outcome.run.path / "calls.jsonl")) <= 4 * len(lines(outcome.run.path / "trajectory.jsonl"))


def test_a_model_without_that_protocol_calls_tools_in_plain_text(solved, write, stand_in):
    def answer_of(request, number):
        assert "tools" not in request
        if number == 1:
            assert "- check: Compares a kernel" in request["messages"][0]["content"]
            call = json.dumps({"name": "check", "arguments": {"source": CLAMP}})
            return f"Let me see.\n\n```tool\n{call}\n```\n\n```tool\nnot JSON\n```\n"
        assert "Result of check:\nok" in request["messages"][2]["content"]
        assert "error: there is no tool ''" in request["messages"][2]["content"]
        return RIGHT

    with stand_in.StandIn(answer_of) as server:
        outcome = solved(write(TOOLS), server, settings={"tools": "text"})
    assert not outcome.failures and outcome.run.results[0].correct and len(server.requests) == 2


@pytest.mark.slow
def test_depth_first_and_breadth_first_by_attempt_and_by_iteration(solved, write):
    by_attempt = write(
        f"""
        def solve(task):
            while task.budget:
                yield {candidate("x")!r} + f"# {{task.budget}}"
        """
    )
    by_iteration = write(
        f"""
        def solve(task):
            for number in task.iterations(2):
                yield {candidate("x")!r} + f"# {{number}}"
                yield {candidate("x + 1")!r} + f"# {{number}}"
        """,
        "iterations.py",
    )

    def order(solver, out, **plan):
        outcome = solved(solver, selector="1/19,1/20", at_once=1, out=out, **plan)
        assert not outcome.failures
        return [f"{r.problem}:{r.solution['sample']}" for r in outcome.run.results]

    depth = ["1/19:1", "1/19:2", "1/20:1", "1/20:2"]
    assert order(by_attempt, "depth", budget=2) == depth
    assert order(by_attempt, "breadth", budget=2, schedule="breadth") == ["1/19:1", "1/20:1", "1/19:2", "1/20:2"]
    assert order(by_iteration, "iterations", budget=4, schedule="breadth") == [
        "1/19:1", "1/19:2", "1/20:1", "1/20:2", "1/19:3", "1/19:4", "1/20:3", "1/20:4",
    ]  # fmt: skip
    with pytest.raises(RunError, match="schedule was 'depth' and is 'breadth'"):
        order(by_attempt, "depth", budget=2, schedule="breadth", resume=True)


def test_limits_of_the_run_stop_it_and_more_lets_it_go_on(solved, stand_in):
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        first = solved("refine", server, selector="1/19,1/20", budget=3, at_once=1, limits=Limits(attempts=2))
        assert [r.problem for r in first.run.results] == ["1/19", "1/19"] and not first.failures
        assert first.stopped == dict.fromkeys(("1/19", "1/20"), "the run's limit of 2 attempts is reached")
        solved("refine", server, selector="1/19,1/20", budget=3, at_once=1, limits=Limits(attempts=2), resume=True)
        assert len(server.requests) == 2
        tokens = 2 * sum(sum(call["tokens"].values()) for call in lines(first.run.path / "calls.jsonl"))
        limits = Limits(tokens=tokens)
        more = solved("refine", server, selector="1/19,1/20", budget=3, at_once=1, limits=limits, resume=True)
        assert len(more.run.results) in (4, 5) and "tokens is reached" in more.stopped["1/20"]
        usd = solved("refine", server, budget=3, out="usd", prices=(1e6, 1e6), limits=Limits(usd=1.0))
        assert len(usd.run.results) == 1 and "usd is reached" in usd.stopped["1/19"]
    timed = solved("refine", server, budget=3, out="timed", limits=Limits(seconds=1e-9))
    assert not timed.run.results and "seconds is reached" in timed.stopped["1/19"]


def test_units_that_a_log_of_others_grants_cost_no_more_than_the_limit(solved, stand_in):
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        plan = dict(budget=9, prices=(1e6, 1e6), limits=Limits(usd=1.0))
        first = solved("refine", server, **plan)
        with (first.run.path / "schedule.jsonl").open("a") as log:
            log.write(json.dumps({"problem": "1/19", "unit": 1000, "seconds": 0.1}) + "\n")
        again = solved("refine", server, **plan, resume=True)
        assert len(server.requests) == 1 and "usd is reached" in again.stopped["1/19"] and not again.failures


def test_attempts_that_a_log_of_others_grants_are_no_more_than_the_limit(solved, write):
    """A solver that asks no model made all of them."""
    solver = write(f"def solve(task):\n    yield from ({candidate('x')!r} + f'# {{n}}' for n in range(9))\n")
    plan = dict(budget=9, limits=Limits(attempts=2))
    first = solved(solver, **plan)
    with (first.run.path / "schedule.jsonl").open("a") as log:
        log.write(json.dumps({"problem": "1/19", "unit": 1000, "seconds": 0.1}) + "\n")
    again = solved(solver, **plan, resume=True)
    assert len(first.run.results) == len(again.run.results) == 2
    assert "attempts is reached" in again.stopped["1/19"] and not again.failures


def begun_by_others(run, problems):
    """Make a run one that nobody has asked or tried anything in, and all of whose problems were granted a unit."""
    for name in ("results.jsonl", "trajectory.jsonl", "calls.jsonl", "unevaluated.jsonl"):
        (run.path / name).write_text("")
    units = [{"problem": problem, "unit": 1, "seconds": 0.0} for problem in problems]
    (run.path / "schedule.jsonl").write_text("".join(json.dumps(unit) + "\n" for unit in units))


def test_problems_that_a_log_of_others_begins_ask_in_turn(solved, stand_in):
    """60 problems asked at once, and the limit was passed 80 times."""
    problems = [f"1/{number}" for number in range(19, 25)]
    plan = dict(selector="1/19-24", budget=1, at_once=1, prices=(1e6, 1e6), limits=Limits(usd=1.0))
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        first = solved("one_shot", server, **plan)
        assert len(server.requests) == 1
        begun_by_others(first.run, problems)
        again = solved("one_shot", server, **plan, resume=True)
        assert len(server.requests) == 2 and {*again.stopped} == {*problems} and not again.failures


def test_problems_that_a_log_of_others_begins_make_attempts_in_turn(solved, write):
    problems = [f"1/{number}" for number in range(19, 23)]
    plan = dict(selector="1/19-22", budget=1, at_once=1, limits=Limits(attempts=1))
    solver = write(f"def solve(task):\n    yield {candidate('x')!r}\n")
    begun_by_others(solved(solver, **plan).run, problems)
    again = solved(solver, **plan, resume=True)
    assert len(again.run.results) == 1 and len(again.stopped) == 3 and not again.failures


@pytest.mark.parametrize("limits", [Limits(attempts=1), Limits(seconds=1e-3)], ids=["attempts", "seconds"])
def test_attempts_in_a_log_of_others_without_results_are_evaluated_within_the_limits(solved, write, limits):
    """All of them were, as they were in the log."""
    solver = write(f"def solve(task):\n    yield from ({candidate('x')!r} + f'# {{n}}' for n in range(9))\n")
    first = solved(solver, budget=4)
    assert len(first.run.results) == 4
    (first.run.path / "results.jsonl").write_text("")
    again = solved(solver, budget=4, limits=limits, resume=True)
    assert len(again.run.results) == (limits.attempts or 0) and not again.failures
    assert "is reached" in again.stopped["1/19"]


@pytest.mark.parametrize("spent", [{"tokens": {"prompt": -(10**9), "completion": 0}}, {"cost_usd": -1.0}])
def test_a_log_of_others_gives_nothing_back_of_what_was_spent(solved, stand_in, spent):
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        path = solved("refine", server, prices=(1.0, 1.0)).run.path
        (line,) = lines(path / "calls.jsonl")
        with (path / "calls.jsonl").open("a") as log:
            log.write(json.dumps(line | {"number": 99} | spent) + "\n")
        with pytest.raises(RunError, match="calls.jsonl is damaged: .* must be a finite number from 0"):
            Journal(path)


def test_lost_answers_are_in_the_log_and_in_what_a_run_has_spent(tmp_path, stand_in):
    """A stream that was cut had been generated and billed, and no limit of a run saw it."""
    answers = [stand_in.Fault(body="cut"), "fine, thank you"]
    with stand_in.StandIn(lambda request, number: answers[number - 1]) as server:
        endpoint = Endpoint("model", server.base_url, prices=(1.0, 1.0))
        Llm("1/19", endpoint, Journal(tmp_path), Hooks(contextlib.nullcontext)).ask("How are you")
    (line,) = lines(tmp_path / "calls.jsonl")
    assert (line["tries"], line["lost_tries"]) == (2, 1)
    assert line["tokens"] == {"prompt": 6, "completion": 6} and line["cost_usd"] == pytest.approx(12e-6)
    (call,) = Journal(tmp_path).spent()
    assert call.tokens == line["tokens"] and call.lost_tries == 1


def test_calls_of_a_log_from_before_lost_answers_were_counted_are_read(tmp_path):
    known = dataclasses.asdict(CALL)
    del known["lost_tries"]
    (tmp_path / "calls.jsonl").write_text(json.dumps(known) + "\n")
    assert Journal(tmp_path).spent() == [CALL]


@pytest.mark.parametrize("limits", [Limits(tokens=10**9), Limits(usd=1.0)])
def test_a_limit_on_what_an_endpoint_does_not_count_ends_the_run(solved, stand_in, limits):
    """Unknown counted as nothing, and the run went on for ever."""
    said = {"choices": [{"index": 0, "message": {"content": RIGHT}, "finish_reason": "stop"}]}
    with stand_in.StandIn(lambda request, number: stand_in.Fault(body=said)) as server:
        outcome = solved("refine", server, budget=3, prices=(1.0, 1.0), limits=limits)
    assert len(outcome.run.results) <= 2 and "tells no tokens of its answers" in outcome.stopped["1/19"]


def test_schedules_by_name():
    waiting = [Standing("1/1", 4, units=2), Standing("1/2", 4, units=1), Standing("1/3", 4)]
    assert DepthFirst().next(waiting[1:]).problem == "1/2" and BreadthFirst().next(waiting).problem == "1/3"
    assert isinstance(schedule_of("breadth"), BreadthFirst)
    for wrong, message in [
        ("wide", "use one of depth, breadth"), ("depth:x", "'x' is not key=value"), ("depth:x=1", "no option x"),
    ]:  # fmt: skip
        with pytest.raises(UnknownSchedule, match=message):
            schedule_of(wrong)


@pytest.mark.parametrize("kind, message", [("a link", "cannot read"), ("another kernel", "changed meanwhile; start")])
def test_a_kernel_to_start_from_that_becomes_a_link_is_not_read(tmp_path, monkeypatch, kind, message):
    """Its text is sent to a model, and the link may lead to any file of the user's."""
    kernel = tmp_path / "start" / "level1" / "19_relu.py"
    kernel.parent.mkdir(parents=True)
    (tmp_path / "secret").write_text("hunter2")

    def exchanged(folder):
        found = discover(folder)
        kernel.unlink()
        kernel.symlink_to(tmp_path / "secret") if kind == "a link" else kernel.write_text(candidate("x + 42"))
        return found

    kernel.write_text(candidate("x + 41"))
    monkeypatch.setattr(orchestrator, "discover", exchanged)
    with pytest.raises(SolverError, match=message):
        starting_kernels(tmp_path / "start")


def test_a_kernel_to_start_from(solved, write, tmp_path, stand_in):
    start = tmp_path / "start" / "level1"
    start.mkdir(parents=True)
    (start / "19_relu.py").write_text(candidate("x + 41"))
    kernels = starting_kernels(tmp_path / "start")
    assert kernels == {"1/19": ("py", candidate("x + 41"))}
    solver = write("def solve(task):\n    yield task.starting_kernel\n    yield task.llm.ask(task.prompt())\n")
    with stand_in.StandIn(lambda request, number: answer("x")) as server:
        outcome = solved(solver, server, budget=2, starting_kernels=kernels)
        assert "An implementation to start from" in server.requests[0]["messages"][0]["content"]
        assert "x + 41" in server.requests[0]["messages"][0]["content"] and len(outcome.run.results) == 2
        with pytest.raises(RunError, match="start_sha256"):
            solved(solver, server, budget=2, resume=True)
    with pytest.raises(SolverError, match="no such directory"):
        starting_kernels(tmp_path / "none")
    (start / "20_leaky_relu.py").write_bytes(b"# \xff\n" + candidate("x").encode())
    with pytest.raises(SolverError, match="20_leaky_relu.py is no text in UTF-8"):
        starting_kernels(tmp_path / "start")
    os.truncate(start / "20_leaky_relu.py", 1 << 40)
    with pytest.raises(SolverError, match="20_leaky_relu.py: it is too large"):
        starting_kernels(tmp_path / "start")
    (start / "20_leaky_relu.py").unlink()
    (start / "19.py").write_text("")
    with pytest.raises(SolverError, match="claims 1/19 sample 0, and so does level1/19"):
        starting_kernels(tmp_path / "start")
