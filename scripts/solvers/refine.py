"""Turn after turn: the model sees its latest generation (G), how it executed (E) and its profile (P).

Iterative refinement of KernelBench (2025), section 5.1.2: every turn is one message, the prompt of the one-shot
baseline and the feedback on the turn before. ``--set feedback=G``, ``G+E`` or ``G+E+P`` (the default).
"""

from kernelbench.solvers.task import Candidate


def solve(task):
    parts = task.option("feedback", "G+E+P")
    result, further = None, []
    while task.budget:
        answer = task.llm.ask(task.prompt(*further), temperature=0)
        result = yield Candidate(answer, parent=result)
        further = [task.render("improve", feedback=task.feedback(result, parts))]
