"""No strategy set: after every attempt the model says freely what it has learned, and keeps that in view.

The ablation "w/o Strategy Set" of KernelBand (2025), table 4: neither strategies to choose from nor a profile, so the
model reflects in words, as in Reflexion (Shinn et al., 2023), and tries again with the last ``--set memory=3``
reflections. With ``--set profile=raw`` it is "w/o Strategy + Raw Profiling". It is none of KernelBand's baselines.
Each attempt costs two model calls, except for the first.
"""

from kernelbench.solvers.kernelband.features import described
from kernelbench.solvers.task import Candidate


def solve(task):
    memory, parts = int(task.option("memory", "3")), task.option("feedback", "G+E")
    lessons, result, further = [], None, []
    while task.budget:
        answer = task.llm.ask(task.prompt(*further), temperature=0)
        result = yield Candidate(answer, parent=result)
        feedback = task.feedback(result, parts)
        if task.option("profile", "off") == "raw" and result.correct:
            feedback += "\n\n" + task.render("kernelband/raw_profile", profile=described(task.profile(result)))
        lesson = task.llm.ask(task.render("reflect", reference=task.source.strip(), feedback=feedback), temperature=0)
        lessons.append(f"{len(lessons) + 1}. {lesson.text.strip()}")
        further = [
            task.render("improve", feedback=feedback),
            task.render("lessons", lessons="\n".join(lessons[-memory:])),
        ]
