"""Solving many problems: nothing is done twice, one failure is one problem's, the guide's examples work."""

import hashlib
import json
import os
import re
import signal
import subprocess
import time
import types
from concurrent.futures import Future
from pathlib import Path

import pytest
from candidates import RIGHT, ROOT, STRATEGIES, WRONG, candidate
from click.testing import CliRunner
from logs import NO_LOGS, no_log
from warm_kb import KB, REAL_KB

from harness.solution.discover import read_solution
from harness.solution.private_copy import private_copies
from kernelbench.cli import main
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import Options, Skipped
from kernelbench.run import Run, RunError
from kernelbench.solvers import script
from kernelbench.solvers.backend.interface import Work
from kernelbench.solvers.backend.local import LocalBackend
from kernelbench.solvers.orchestrator import solve_on
from kernelbench.solvers.plan import Plan, SolverError
from kernelbench.solvers.program import _SETTLED_S, Program, _attempt, _candidate, _opened, _put, _tail
from kernelbench.solvers.script import Script
from kernelbench.solvers.task import Candidate

GUIDE = (ROOT / "docs" / "solvers.md").read_text()


@pytest.fixture
def kb_solve(request):
    """Start the command; it does not outlive the test."""

    def kb_solve(out, *more, **keywords):
        command = [*KB, "solve", "--device", "cpu", "--timeout", "20", "-o", str(out), *map(str, more)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords)
        request.addfinalizer(process.kill)
        return process

    return kb_solve


def finished(process):
    """Output, and error output, of a process that must not fail."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    return out, err


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def write(tmp_path):
    def write(source, name="solver.py"):
        path = tmp_path / name
        path.write_text(source)
        path.chmod(0o755)
        return path

    return write


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_without_asking_or_evaluating_again(kb_solve, stand_in, tmp_path):
    def answer(request, number):
        return stand_in.Answer(WRONG, after_s=30 if number == 6 else 0)  # the last one of the first life

    out = tmp_path / "run"
    with stand_in.StandIn(answer) as server:
        arguments = ("--solver", STRATEGIES / "refine.py", "--problems", "1/19,1/20", "--budget", 4, "--at-once", 1)
        arguments += ("--model", "m", "--base-url", server.base_url)
        process = kb_solve(out, *arguments)
        deadline = time.monotonic() + 120
        while len(server.requests) < 6 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        before = (out / "results.jsonl").read_bytes(), (out / "calls.jsonl").read_bytes()
        with open(out / "calls.jsonl", "a") as log:
            log.write('{"problem": "1/20", "num')  # as the kill may leave it
        _, shown = finished(kb_solve(out, *arguments, "--resume"))
    assert len(before[1].splitlines()) == 5 and len(before[0].splitlines()) == 5
    assert "5 result(s) are in" in shown
    assert len(server.requests) == 9  # eight attempts, one of them asked for twice: the kill came before its answer
    for log, start in zip(("results.jsonl", "calls.jsonl"), before):
        assert (out / log).read_bytes().startswith(start) and len(lines(out / log)) == 8
    assert [(a["problem"], a["sample"]) for a in lines(out / "trajectory.jsonl")] == [
        (problem, sample) for problem in ("1/19", "1/20") for sample in (1, 2, 3, 4)
    ]


def test_a_resumed_run_may_have_a_larger_budget_but_no_other_solver(stand_in, solved, tmp_path):
    with stand_in.StandIn(lambda request, number: WRONG) as server:
        solved("refine", server, budget=1)
        outcome = solved("refine", server, budget=2, resume=True)
        assert len(server.requests) == 2 and outcome.replayed == 1 and len(outcome.run.results) == 2
        with pytest.raises(RunError, match="solver was 'refine.py' and is 'one_shot.py'"):
            solved("one_shot", server, budget=2, resume=True)
        with pytest.raises(RunError, match="holds a run already"):
            solved("refine", server, budget=2)


def test_a_solver_that_does_not_repeat_itself_is_told(solved, write, tmp_path):
    solver = write(f"import time\ndef solve(task):\n    yield {candidate('x')!r} + f'# {{time.time()}}'\n")
    solved(solver)
    outcome = solved(solver, resume=True, budget=2)
    assert "attempt 1 is not the one in" in outcome.failures["1/19"] and len(outcome.run.results) == 1


@pytest.mark.slow
def test_a_run_is_not_resumed_with_another_problem(solved, write, tmp_path):
    """Its results would be copied to attempts with the same code."""
    problem = tmp_path / "problems/level1/001_own.py"
    problem.parent.mkdir(parents=True)
    module = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return {}\n"
    module += "def get_inputs(): return [torch.rand(64)]\ndef get_init_inputs(): return []\n"
    problem.write_text(module.format("x + 1"))
    solver = write(f"def solve(task):\n    yield {candidate('x + 1')!r}\n    yield {candidate('x + 1')!r}\n")
    more = {"selector": "1/1", "problem_dir": problem.parents[1]}
    assert solved(solver, **more).run.results[0].correct
    problem.write_text(module.format("x + 2"))
    with pytest.raises(SolverError, match="1/1 changed since .*: choose another --out"):
        solved(solver, budget=2, resume=True, **more)


@pytest.mark.slow
@pytest.mark.parametrize("older", [False, True], ids=["now", "from before the text was kept"])
def test_what_was_asked_before_a_first_result_is_of_one_text_of_the_problem(solved, write, tmp_path, older):
    """Readings of the log answered for a problem that had another text by then."""
    problem = tmp_path / "problems/level1/001_own.py"
    problem.parent.mkdir(parents=True)
    module = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return {}\n"
    module += "def get_inputs(): return [torch.rand(64)]\ndef get_init_inputs(): return []\n"
    problem.write_text(module.format("x + 1"))
    solver = write("def solve(task):\n    task.once('reading', lambda: 1)\n")
    more = {"selector": "1/1", "problem_dir": problem.parents[1], "resume": True}
    assert not solved(solver, **more).failures and not solved(solver, **more).failures
    facts = tmp_path / "run/facts.jsonl"
    if older:
        facts.write_text("".join(f"{line}\n" for line in facts.read_text().splitlines() if "sha256" not in line))
    problem.write_text(module.format("x + 2"))
    failures = solved(solver, **more).failures
    assert failures == ({} if older else {"1/1": "1/1 changed since the run began with it: choose another --out"})


@pytest.mark.slow
def test_what_was_measured_on_a_problem_that_changed_during_the_run_does_not_count(solved, write, tmp_path):
    problem = tmp_path / "problems/level1/001_own.py"
    problem.parent.mkdir(parents=True)
    module = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return {}\n"
    module += "def get_inputs(): return [torch.rand(64)]\ndef get_init_inputs(): return []\n"
    problem.write_text(module.format("x + 1"))
    save = f"__import__('pathlib').Path({str(problem)!r}).write_text({module.format('x + 2')!r})"
    solver = write(f"def solve(task):\n    yield {candidate('x + 1')!r}\n    {save}\n")
    more = {"selector": "1/1", "problem_dir": problem.parents[1], "budget": 2}
    outcome = solved(solver, **more)
    assert len(outcome.run.results) == 1 and not outcome.run.latest()
    assert "changed during the run, and its results do not count" in outcome.failures["1/1"]
    for text in ("x + 2", "x + 1"):  # put back, it has results that the solver was told and that do not count
        problem.write_text(module.format(text))
        with pytest.raises(SolverError, match="1/1 changed since .*: choose another --out"):
            solved(solver, resume=True, **more)


@pytest.mark.slow
def test_a_run_that_goes_on_with_fewer_problems_leaves_the_others_alone(solved, write):
    """The best of another problem, not measured again before an interruption, ended every continuation."""
    right = candidate("torch.where(x > 0, x, 0.01 * x)")
    solver = write(f"def solve(task):\n    yield from ({right!r} + f'# {{n}}' for n in range(2))\n")
    log = solved(solver, selector="1/20", budget=2).run.path / "results.jsonl"
    interrupted = [record for record in map(json.loads, log.read_text().splitlines()) if record["confirms"] is None]
    for record in interrupted:
        record["baselines"]["eager"] |= {"verdict": "faster", "interval": [2.0, 4.0], "speedup": 3.0}
        record["speedup"] = 3.0
    log.write_text("".join(json.dumps(record) + "\n" for record in interrupted))
    again = solved(solver, selector="1/19", budget=2, resume=True)
    assert {result.problem for result in again.run.results} == {"1/19", "1/20"} and not again.failures
    for name in ("\0", "\ud800", "/proc/version"):
        for record in interrupted:
            record["solution"]["name"] = name
        log.write_text("".join(json.dumps(record) + "\n" for record in interrupted))
        assert not solved(solver, selector="1/19,1/20", budget=2, resume=True).failures


def test_the_sources_of_a_run_evaluate_again(solved, write, tmp_path):
    header = "# kb: problem=1/23 sample=7\n"  # names another problem, as an answer may
    outcome = solved(
        write(f"def solve(task):\n    yield [{header + candidate('x')!r}, {candidate('x + 1')!r}]\n"), budget=2
    )
    selection = Selection(outcome.run.path / "solutions")
    again = evaluate_directory(selection, Options(device="cpu", timeout_s=20), out=tmp_path / "again")
    assert [(r.problem, r.solution["sample"], r.status) for r in again.run.latest()] == [
        ("1/19", 1, "wrong_value"), ("1/19", 2, "wrong_value"),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["\f", "\x0b", "\x85", "\u2028", ""])
def test_an_attempt_cannot_claim_the_number_of_another(solved, write, end):
    """The words of the next line became words of its comment: its verdict was that of the first attempt."""
    claims = f"# kb: a=b{end} sample=1\n{candidate('x')}"
    solver = write(f"def solve(task):\n    yield {candidate('x.clamp(min=0)')!r}\n    yield {claims!r}\n")
    first = solved(solver, budget=2)
    found = {r.solution["sample"]: r.status for r in first.run.results if r.confirms is None}
    again = solved(solver, budget=2, resume=True)
    assert found == {1: "ok", 2: "wrong_value"} and not first.failures and not again.failures
    assert len(again.run.results) == len(first.run.results), "evaluated once more"


def test_plain_functions_lists_and_budgets(solved, write):
    source = f"""
from kernelbench.solvers.task import Candidate
def solve(task):
    draw = task.rng.random()
    first = task.evaluate({candidate("x")!r} + f"# {{draw}}")
    assert first.status == "wrong_value" and task.budget == 3 and task.results == [first]
    right = Candidate({candidate("x.clamp(min=0)")!r}, parent=first)
    second, third = task.evaluate_all([{candidate("x + 1")!r}, right])
    assert second.solution["sample"] == 2 and task.best is third and task.turns[3] == 2
    task.evaluate("no python", kind="cu")
    task.evaluate("more than there is budget for")
"""
    outcome = solved(write(source), budget=4)
    assert not outcome.failures and len(outcome.run.results) == 4
    assert "a cuda solution cannot run here: this run is on a CPU; write py or cpp" in outcome.run.results[-1].message


def test_a_failing_solver_is_its_own_problems_affair(solved, write):
    source = f"""
def solve(task):
    if task.id == "1/19":
        raise RuntimeError("no idea")
    if task.id == "1/20":
        task.llm.ask("what now")
    if task.id == "1/21":
        return "a source that nobody evaluates"
    yield {candidate("x")!r}
"""
    failing = solved(write(source), selector="1/19,1/20,1/22")
    assert "the solver failed: RuntimeError: no idea" in failing.failures["1/19"]
    assert 'raise RuntimeError("no idea")' in failing.failures["1/19"]
    assert "name one with --model" in failing.failures["1/20"]
    assert [result.problem for result in failing.run.results] == ["1/22"]


def test_a_function_that_returns_a_source_is_told_to_yield(solved, write):
    outcome = solved(write("def solve(task):\n    return 'class ModelNew: pass'\n"))
    assert "solve() returned str; it should yield" in outcome.failures["1/19"]


@pytest.mark.parametrize(
    "source, message", [("", "defines no function solve"), ("def solve(task:", "does not load: SyntaxError")]
)
def test_a_file_that_is_no_solver(write, source, message):
    with pytest.raises(SolverError, match=message):
        Script(write(source))


def test_wrong_usage_is_one_clear_error(kb_solve, write, tmp_path):
    script = write("def solve(task): yield ''\n")
    for arguments, message in [
        (("--solver", tmp_path / "none.py", "--problems", "1/19"), "none.py: name a Python file, or one of best_of_n"),
        (("--solver", script, "--problems", "9/9"), "no problem matches"),
        (("--solver", script, "--problems", "1/19", "--seed", -1), "-1 is not in the range"),
        (("--problems", "1/19"), "give either --solver or --solver-command"),
        (("--solver", script, "--problems", "1/19", "--set", "a"), "is not NAME=VALUE"),
        (("--solver-command", "./nowhere.sh", "--problems", "1/19"), "there is no program ./nowhere.sh"),
    ]:
        process = kb_solve(tmp_path / "run", *arguments)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2 and message in err and "Traceback" not in err, err


@pytest.mark.slow
def test_a_wrong_key_and_an_interruption_leave_what_there_is(kb_solve, stand_in, tmp_path):
    with stand_in.StandIn(lambda request, number: stand_in.Fault(401, "who are you")) as server:
        arguments = ("--solver", STRATEGIES / "one_shot.py", "--problems", "1/19", "--model", "m")
        process = kb_solve(tmp_path / "run", *arguments, "--base-url", server.base_url)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 3 and "refuses the key in OPENAI_API_KEY" in out and "Traceback" not in err
    with stand_in.StandIn(lambda request, number: stand_in.Answer(WRONG, after_s=60)) as server:
        process = kb_solve(tmp_path / "other", *arguments, "--base-url", server.base_url)
        while not server.requests and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Continue with --resume" in err


def test_the_guides_python_solver_works_in_twenty_lines(stand_in, solved, write):
    source, _ = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(source.splitlines()) <= 20
    with stand_in.StandIn(lambda request, number: WRONG if number == 1 else RIGHT) as server:
        outcome = solved(write(source), server, budget=2)
    assert [result.status for result in outcome.run.results] == ["wrong_value", "ok"]
    assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "assistant", "user"]
    assert "status: wrong_value" in server.requests[1]["messages"][2]["content"]


def test_the_guides_solver_with_a_tool_works(stand_in, solved, write):
    _, source = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    call = ("check", json.dumps({"source": candidate("x")}))

    def answer(request, number):
        return RIGHT if number % 2 == 0 else stand_in.Answer("", tool_calls=[call])

    with stand_in.StandIn(answer) as server:
        outcome = solved(write(source), server)
    assert outcome.run.results[0].correct and not outcome.failures
    (_, said) = server.requests[1]["messages"][-2:]
    assert said["role"] == "tool" and "elements of the output" in said["content"]


def test_a_program_without_a_path_is_that_of_the_system(tmp_path, monkeypatch):
    """A checkout of others may have one of the same name."""
    monkeypatch.chdir(tmp_path)
    for name in ("sh", "of_theirs"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert Program("sh -c true")._words[0] == "sh"
    with pytest.raises(SolverError, match="no program of_theirs on the PATH; for the one in this folder write ./of_"):
        Program("of_theirs")


@pytest.mark.slow
def test_a_limit_of_attempts_holds_over_the_lives_of_a_program(kb_solve, write, tmp_path):
    """Each resume had one more, as recorded attempts are one unit for a program, whatever they were before."""
    script = write(
        "#!/bin/sh\nfor n in 1 2 3 4; do echo '# '$n 'x(' > attempt_$n.py; "
        "while [ ! -e feedback_$n.json ]; do sleep 0.1; [ -e done ] && exit; done; done\n", "many.sh",
    )  # fmt: skip
    arguments = ("--solver-command", script, "--problems", "1/19", "--budget", 4, "--max-attempts", 2)
    for more in ([], ["--resume"], ["--resume"]):
        kb_solve(tmp_path / "run", *arguments, *more).communicate(timeout=120)
        assert len(lines(tmp_path / "run" / "results.jsonl")) == 2


def test_an_attempt_of_a_program_that_was_written_anew_keeps_no_result(kb_solve, write, tmp_path):
    """The result of the text before stood beside the one that was there."""
    waits = "while [ ! -e feedback_1.json ]; do sleep 0.1; done"
    script = write(f"#!/bin/sh\necho 'x(' > attempt_1.py; {waits}\n", "one.sh")
    arguments = ("--solver-command", script, "--problems", "1/19", "--budget", 1)
    finished(kb_solve(tmp_path / "run", *arguments))
    (attempt,) = (tmp_path / "run/solutions").rglob("*.py")
    attempt.write_text("y(")
    process = kb_solve(tmp_path / "run", *arguments[:-1], 2, "--resume")
    said = "".join(process.communicate(timeout=120))
    assert process.returncode == 3 and "19_s1.py is not what was measured: put it back" in said


@pytest.mark.slow
def test_the_guides_shell_solver_works_in_twenty_lines_and_survives_a_kill(kb_solve, write, tmp_path):
    (source,) = re.findall(r"```sh\n(#!.*?)```", GUIDE, re.DOTALL)
    assert len(source.splitlines()) <= 20
    script = write(source.replace('"x.clamp(min=0)"', '"x" "x + 1"'), "my_solver.sh")  # two that are wrong first
    out = tmp_path / "run"
    arguments = ("--solver-command", f"./{script.name}", "--problems", "1/19", "--budget", 3)
    process = kb_solve(out, *arguments, cwd=tmp_path)
    while not (out / "workspaces" / "1_19" / "feedback_1.json").exists() and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    first = lines(out / "results.jsonl")
    finished(kb_solve(out, *arguments, "--resume", cwd=tmp_path))
    workspace = out / "workspaces" / "1_19"
    results = lines(out / "results.jsonl")
    assert results[: len(first)] == first and [r["solution"]["sample"] for r in results] == [1, 2, 3]
    assert [r["status"] for r in results] == ["wrong_value", "wrong_value", "ok"]
    assert "status: ok" in (workspace / "feedback_3.txt").read_text() and (workspace / "done").exists()
    assert json.loads((workspace / "task.json").read_text())["budget"] == 3
    assert len(lines(out / "trajectory.jsonl")) == 3


@pytest.mark.slow
def test_a_program_tells_what_its_model_said_and_what_it_broke_on(kb_solve, solved, write, tmp_path):
    script = f"""#!/bin/sh
echo '{{"turn": 5, "answer": "thus", "tokens": {{"prompt": 1, "completion": 2}}, "cost_usd": 0.5}}' > attempt_1.json
cat > attempt_1.py <<END
{candidate("x")}END
while [ ! -e feedback_1.json ]; do sleep 0.1; done
echo "it is all over"; exit 7
"""
    out = tmp_path / "run"
    process = kb_solve(out, "--solver-command", write(script, "solver.sh"), "--problems", "1/19", "--budget", 2)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 3 and "exit status 7:\nit is all over" in said
    (attempt,) = lines(out / "trajectory.jsonl")
    assert (attempt["turn"], attempt["answer"], attempt["cost_usd"]) == (5, "thus", 0.5)
    assert attempt["tokens"] == {"prompt": 1, "completion": 2}


@pytest.fixture
def run_program(tmp_path, pipeline, write, monkeypatch):
    """Run a script of a shell as the solver of 1/19, in this process; it has little time to see the end."""
    monkeypatch.setattr("kernelbench.solvers.program._GOODBYE_S", 0.2)

    def run_program(script):
        plan = Plan(Program(str(write(f"#!/bin/sh\n{script}", "solver.sh"))), 1, None)
        return solve_on(pipeline, plan, "1/19", tmp_path / "run")

    return run_program


def has_ended(pid, within_s):
    """Return whether a process ends in time; one that nobody has waited for has."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


STUBBORN = "(trap '' TERM INT HUP; echo x > begun; while :; do sleep 0.1; done) & echo $! > pid\n"
STUBBORN += "while [ ! -e begun ]; do sleep 0.05; done\n"


@pytest.mark.parametrize("end", ["exit 0", "echo '{' > attempt_1.json; echo > attempt_1.py; wait"])
def test_what_a_program_started_ends_with_it(run_program, tmp_path, end):
    """It went on, wrote into the workspace and spent."""
    outcome = run_program(STUBBORN + end)
    assert ("is no description of an attempt" in str(outcome.failures)) == ("attempt_1" in end)
    assert has_ended((tmp_path / "run/workspaces/1_19/pid").read_text().strip(), 2)


@pytest.mark.slow
def test_what_a_program_started_ends_where_kb_is_killed(write, tmp_path, request):
    """The kernel told the first process alone that its parent was gone."""
    script = write(f"#!/bin/sh\n{STUBBORN}wait\n", "solver.sh")
    command = [*REAL_KB, "solve", "--device", "cpu", "--problems", "1/19", "--solver-command", str(script)]
    process = subprocess.Popen([*command, "-o", str(tmp_path / "run")])
    request.addfinalizer(process.kill)
    begun, deadline = tmp_path / "run/workspaces/1_19/begun", time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert has_ended(begun.with_name("pid").read_text().strip(), 8)


def test_a_program_may_end_its_group(run_program):
    """A script with `trap 'kill 0' EXIT` ended what had started it, and its problem failed."""
    assert not run_program("trap 'exit 0' TERM; sleep 100 &\nkill 0; wait\n").failures


def test_an_attempt_with_a_time_in_the_future_is_taken_once_it_is_left_alone(tmp_path):
    """It was never: one that was copied, or a clock of another machine, and both waited for ever."""
    path, seen = tmp_path / "attempt_1.py", {}
    path.write_text("half")
    os.utime(path, (time.time() + 10**6,) * 2)
    assert _attempt(tmp_path, 1, False, seen) is None
    time.sleep(_SETTLED_S)
    path.write_text("whole")
    assert _attempt(tmp_path, 1, False, seen) is None
    time.sleep(_SETTLED_S)
    assert _attempt(tmp_path, 1, False, seen) == path


def test_the_last_attempt_of_a_program_that_has_ended_is_taken_at_once(tmp_path):
    """Seen half written, and whole after the end, it was lost: nobody looked again."""
    path, seen = tmp_path / "attempt_1.py", {}
    path.write_text("half")
    assert _attempt(tmp_path, 1, False, seen) is None
    path.write_text("whole")
    assert _attempt(tmp_path, 1, True, seen) == path


def test_a_program_may_be_a_script_on_its_command_line():
    """One of more than 255 characters, which no file name has, could not be read; one of other bytes was no text."""
    scripts = [f"sh -c '{'true; ' * 100}{end}'" for end in ("", "# other", "# \udcff")]
    assert len({Program(script).sha256 for script in scripts}) == 3


def test_a_command_with_an_open_quote_is_told_as_such(kb_solve, tmp_path):
    """It ended with a traceback."""
    process = kb_solve(tmp_path / "run", "--solver-command", "sh -c 'true", "--problems", "1/19")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "--solver-command is no command line: No closing quotation" in err, err


@pytest.mark.parametrize("name", ["attempt_1.py", "attempt_1.json"])
@pytest.mark.parametrize("kind", NO_LOGS)
def test_what_a_program_leaves_that_is_no_plain_file_is_its_error(tmp_path, name, kind):
    (tmp_path / "attempt_1.py").write_text("")
    no_log(tmp_path / name, kind)
    with pytest.raises(SolverError, match=f"{name} cannot be read: it is (not a plain file|too large)"):
        _candidate(tmp_path / "attempt_1.py")


@pytest.mark.parametrize(
    "said", [{"prompt": "text"}, {"answer": 5}, {"tokens": None}, {"seconds": None}, {"seconds": -5}]
)
def test_what_a_journal_would_not_take_is_a_programs_error(tmp_path, said):
    """It was written, and the run could not be continued."""
    (tmp_path / "attempt_1.py").write_text("")
    (tmp_path / "attempt_1.json").write_text(json.dumps(said))
    with pytest.raises(SolverError, match=f"is no description of an attempt: {next(iter(said))} must be"):
        _candidate(tmp_path / "attempt_1.py")


def test_a_link_in_a_workspace_of_others_is_not_written_through(tmp_path):
    mine, workspace = tmp_path / "mine", tmp_path / "workspaces" / "1_19"
    mine.write_text("mine")
    workspace.mkdir(parents=True)
    for name in ("log.txt", "problem.py"):
        (workspace / name).symlink_to(mine)
    _put(workspace, "problem.py", "the problem")
    with pytest.raises(SolverError, match="cannot write .*log.txt"):
        _opened(workspace / "log.txt")
    assert mine.read_text() == "mine" and (workspace / "problem.py").read_text() == "the problem"
    workspace.rename(tmp_path / "elsewhere")
    workspace.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SolverError, match="cannot write .*feedback_1.txt"):
        _put(workspace, "feedback_1.txt", "ok")
    assert not (tmp_path / "elsewhere" / "feedback_1.txt").exists()


def test_only_the_end_of_a_programs_log_is_read(tmp_path):
    with (tmp_path / "log.txt").open("wb") as log:
        log.truncate(1 << 40)
        log.seek(0, 2)
        log.write(b"\nthe end\n")
    assert _tail(tmp_path / "log.txt").endswith("the end")


def test_of_a_large_file_of_a_program_the_begin_and_the_size_are_looked_at(tmp_path):
    """A plan of others named 200 GB of nothing, and all of it was read to list what it would cost."""
    weights = tmp_path / "weights"
    digests = []
    for size in (200 << 30, 200 << 30, 201 << 30):
        weights.touch()
        os.truncate(weights, size)
        digests.append(Program(f"cat {weights}").sha256)
    assert digests[0] == digests[1] != digests[2]
    with pytest.raises(SolverError, match="cannot read the solver .*too large"):
        script.digest(weights)


def test_a_program_must_be_executable(write):
    path = write("#!/bin/sh\n", "solver.sh")
    path.chmod(0o644)
    with pytest.raises(SolverError, match="chmod"):
        Program(str(path))


def test_a_solve_is_a_run_like_any_other(solved, write):
    outcome = solved(write(f"def solve(task):\n    yield {candidate('x')!r}\n"))
    assert "# Leaderboard: solver.py" in (outcome.run.path / "leaderboard.md").read_text()
    shown = subprocess.run([*KB, "leaderboard", str(outcome.run.path)], capture_output=True, text=True)
    assert shown.returncode == 0 and "fast_1" in shown.stdout, shown.stderr
    assert Run.load(outcome.run.path).config["budget"] == 1 and Candidate("").kind == "py"


def test_a_solve_on_all_workloads_keeps_their_names(solved, write):
    outcome = solved(write(f"def solve(task):\n    yield {WRONG!r}\n"), workload="all")
    assert Run.load(outcome.run.path).config["workloads"] == {"1/19": ["full", "small", "llm"]}


def test_a_solve_keeps_how_many_problems_it_had_at_once_and_may_go_on_with_another_number(solved, write):
    """`kb lineage` promises times with the model's calls batched, and took one at once for every run."""
    solver = write(f"def solve(task):\n    yield {WRONG!r}\n")
    assert Run.load(solved(solver, at_once=3).run.path).config["at_once"] == 3
    assert len(solved(solver, at_once=4, resume=True).run.results) == 1


def test_best_attempts_that_could_not_be_measured_again_are_told(solved, write, monkeypatch):
    """Nothing was said of them, and the exit status was 0."""
    outcome = solved(write(f"def solve(task):\n    yield {candidate('x')!r}\n"))
    found = read_solution(outcome.run.path / "solutions/level1/19_s1.py", outcome.run.path / "solutions")
    outcome.unconfirmed = [Skipped(found, "its device is gone")]
    monkeypatch.setattr("kernelbench.cli.generate.solve.solve", lambda *_, **__: outcome)
    command = ["solve", "--solver", "template", "--problems", "1/19", "--device", "cpu", "-o", str(outcome.run.path)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and "not measured again (1); continue with --resume:" in done.output
    assert "1/19 level1/19_s1.py: its device is gone" in done.output
    assert CliRunner().invoke(main, [*command, "--json"]).exit_code == 3


def test_an_attempt_is_evaluated_as_it_was_first_read(tmp_path):
    """Its file, which the solver's program can write, was another when it was built: `ok` for what only raises."""
    path = tmp_path / "solutions" / "level1" / "19_s1.py"
    path.parent.mkdir(parents=True)
    path.write_text("first")
    work = Work("1/19", 1, "py", "first", path)
    with private_copies() as copies:
        backend = LocalBackend(None, {}, {"type": "cpu"}, tmp_path, copies)
        read = backend.solution(work)
        path.write_text("second")
        assert backend.solution(work) is read and read.name == "level1/19_s1.py"
        assert read.path != path and read.path.read_text() == "first"
        assert read.sha256 == hashlib.sha256(b"first").hexdigest()


def test_the_copy_of_an_attempt_goes_when_its_orders_have_ended(tmp_path):
    """With the room for a few attempts each further one ended its problem."""
    path = tmp_path / "solutions" / "level1" / "19_s1.py"
    path.parent.mkdir(parents=True)
    path.write_text("class ModelNew: pass")
    work, ordered = Work("1/19", 1, "py", "class ModelNew: pass", path), []

    class Line:
        def order(self, orders):
            ordered.extend(orders)
            return [Future()]

    with private_copies() as copies:
        facts = types.SimpleNamespace(file=None, workload_names=["small"])
        backend = LocalBackend(Line(), {"1/19": facts}, {"type": "cpu"}, tmp_path, copies)
        first, second = backend.order(work, "small"), backend.order(work, "small")
        copy = ordered[0].solution
        assert copy is ordered[1].solution and copy.path.is_file() and copy.path != path
        first.set_result(None)
        assert copy.path.is_file()
        second.set_result(None)
        assert not copy.path.exists() and backend.described(work).sha256 == copy.sha256
