"""Code representations: what a model writes, and how it becomes a candidate.

A representation is one line in ``REPRESENTATIONS``, which ``--set kind=NAME`` picks. One that is compiled to another
(a DSL) says so in ``candidate``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelbench.solvers.model.llm import Answer
from kernelbench.solvers.task import Candidate

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task


@dataclass(frozen=True)
class Representation:
    """A representation of code.

    ``kind`` is that of the answer (``py``, ``cu``, ``cpp``), ``form`` the prompt that asks for it. ``starter`` is
    whether the prompt shows the signature. ``candidate`` makes what is evaluated of an answer with code.
    """

    kind: str
    form: str
    starter: bool = False
    candidate: Callable[[Task, Answer], Candidate] = lambda task, answer: Candidate(answer)

    def instructions(self, task: Task) -> str:
        """Return the form of the answer, as text for a model."""
        if not self.starter:
            return task.render(self.form)
        from kernelbench import starter  # imports torch

        return task.render(self.form, starter=starter.of(task.workload, self.kind, task.precision).strip())


REPRESENTATIONS = {
    "py": Representation("py", "mantis/form_module"),
    "cu": Representation("cu", "mantis/form_library", starter=True),
    "cpp": Representation("cpp", "mantis/form_library", starter=True),
}
