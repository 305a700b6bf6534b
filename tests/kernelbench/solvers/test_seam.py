"""The seam below a task: strategies run without a device or a disk; a new strategy is a short file."""

from candidates import STRATEGIES, answer
from mantis_model import model
from simulated import BASELINE_MS, T_SOL_MS, Facts, SimulatedBackend

from kernelbench.completion import Completion
from kernelbench.solvers import session
from kernelbench.solvers.plan import Plan
from kernelbench.solvers.script import Script

MOST_LINES = 80  # of a strategy


class SimulatedModel:
    """A model without a network; ``about`` tells it who asks."""

    model, base_url, fields = "simulated", "none", {}

    def __init__(self, says):
        self._says, self.about = says, []

    def sampling(self, asked):
        return asked

    def complete(self, messages, sampling, about):
        self.about.append(about)
        text = self._says({"messages": messages}, about.number)
        return Completion(text, "stop", 100, 10, 0.0, 1)

    def cost_usd(self, prompt, completion):
        return (prompt + completion) / 1e6


def run(solver, says, **plan):
    endpoint = SimulatedModel(says)
    made = Plan(Script(STRATEGIES / f"{solver}.py" if isinstance(solver, str) else solver), endpoint=endpoint, **plan)
    backend, store = SimulatedBackend(), session.Store()
    return session.run(made, [Facts(1), Facts(2)], backend, store), store, endpoint


def test_mantis_runs_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended, store, endpoint = run("mantis", model, budget=40, at_once=1, schedule="breadth")
    assert not ended.failures and not ended.stopped
    assert [len(task.results) for task in ended.tasks.values()] == [40, 40]
    assert len(store.journal.calls) == 2 * 5 * (3 + 8) and not list(tmp_path.iterdir())
    assert {about.tags["phase"] for about in endpoint.about} == {"analyze", "nominate", "implement", "summarize"}
    best = ended.tasks["1/1"].best
    assert best.timing["median_ms"] == min(r.timing["median_ms"] for r in ended.tasks["1/1"].results if r.correct)
    report = next(c.messages[1]["content"] for c in store.journal.calls.values() if c.tags["phase"] == "analyze")
    assert f"Gap g = t_best / t_SOL: {BASELINE_MS / T_SOL_MS:.3g}" in report


def test_two_runs_with_one_seed_are_the_same():
    first, second = (run("mantis", model, budget=16, at_once=1, schedule="breadth")[1].journal for _ in range(2))
    assert first.calls == second.calls and first.notes == second.notes and first.granted == second.granted


def test_every_strategy_is_a_short_file_and_a_new_one_needs_no_other(tmp_path):
    """Written for this test: keeps the best of a few tries, names phases, remembers, and obeys the schedule."""
    path = tmp_path / "hill_climber.py"
    path.write_text('''
"""Climbs from the best kernel so far; what worked is remembered for other problems."""
from kernelbench.solvers.task import Candidate

def solve(task):
    for iteration in task.iterations(3):
        hints = "\\n".join(note.text for note in task.memory.read(own=False)[-3:])
        further = [task.feedback(task.best, "G+E")] if task.best else [f"PyTorch takes {task.baseline['median_ms']} ms"]
        with task.tagged(phase="climb", iteration=iteration):
            answer = task.llm.ask([{"role": "user", "content": "\\n\\n".join([task.source, hints, *further])}])
            result = task.evaluate(Candidate(answer, parent=task.best))
        if result.correct and result is task.best:
            task.memory.add(f"{task.id}: {task.profile(result).sm_percent:.3g} % SM", speedup=result.speedup)
''')
    assert len(path.read_text().splitlines()) <= MOST_LINES
    ended, store, endpoint = run(
        path, lambda request, number: answer(f"x + {number}"), budget=3, at_once=1, schedule="breadth"
    )
    assert not ended.failures and [about.problem for about in endpoint.about] == 3 * ["1/1", "1/2"]
    assert {attempt.tags["phase"] for attempt in store.journal.attempts.values()} == {"climb"}
    assert store.journal.notes and "% SM" in store.journal.notes[0].text
    assert all(len(script.read_text().splitlines()) <= MOST_LINES for script in STRATEGIES.glob("*.py"))
