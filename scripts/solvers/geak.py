"""GEAK's loop, written from its description: generate, evaluate, reflect on errors, optimise what is correct.

Wang et al., "GEAK" (2025), the baseline of KernelBand. A failure is reflected on, and
the reflection goes into the next version; after ``--set traps=5`` failures in a row the model starts anew. A correct
kernel is measured, and the model plans with the last ``--set history=3`` correct kernels in order of their speed, then
writes. Each attempt but the first costs two model calls. ``--set temperature=1.0`` is KernelBand's.
"""

from kernelbench.metrics.settled import rank
from kernelbench.solvers.task import Candidate


def solve(task):
    temperature, most = float(task.option("temperature", "1.0")), int(task.option("traps", "5"))
    shown = int(task.option("history", "3"))
    result, failures, further = None, 0, []
    while task.budget:
        with task.tagged(phase="implement"):
            answer = task.llm.ask(task.prompt(*further), task.kinds[0], temperature=temperature)
        result = yield Candidate(answer, parent=result)
        failures = 0 if result.correct else failures + 1
        if not task.budget:
            return
        if failures == most:
            result, failures, further = None, 0, []
            continue
        subject, text = (result, reflection(task, result)) if failures else optimisation(task, shown)
        with task.tagged(phase="reflect"):
            plan = task.llm.ask(text, temperature=temperature).text
        further = [task.render("geak_write", feedback=task.feedback(subject, "G+E"), plan=plan.strip())]
        result = subject


def reflection(task, result):
    return task.render("reflect", reference=task.source.strip(), feedback=task.feedback(result, "G+E"))


def optimisation(task, shown):
    """The fastest kernel, and the question what to change, with profiles of the fastest ``shown``."""
    correct = sorted((result for result in task.results if result.correct), key=rank)[-shown:]
    history = "\n\n".join(task.feedback(result, "G+E+P") for result in correct)
    return correct[-1], task.render("geak_plan", reference=task.source.strip(), history=history)
