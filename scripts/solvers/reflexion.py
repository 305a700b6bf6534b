"""Refinement with a memory: after every attempt the model first says what it has learned, and keeps that in view.

After Reflexion (Shinn et al., 2023), a baseline of KernelBand (2025): evaluate, reflect in words, try again with the
last ``--set memory=3`` reflections. Each attempt costs two model calls, except for the first.
"""

from kernelbench.solvers.task import Candidate


def solve(task):
    memory = int(task.option("memory", "3"))
    lessons, result, further = [], None, []
    while task.budget:
        answer = task.llm.ask(task.prompt(*further), temperature=0)
        result = yield Candidate(answer, parent=result)
        feedback = task.feedback(result)
        lesson = task.llm.ask(task.render("reflect", reference=task.source.strip(), feedback=feedback), temperature=0)
        lessons.append(f"{len(lessons) + 1}. {lesson.text.strip()}")
        further = [
            task.render("improve", feedback=feedback),
            task.render("lessons", lessons="\n".join(lessons[-memory:])),
        ]
