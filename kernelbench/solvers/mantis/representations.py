"""Code representations: what a model writes, and how it becomes a candidate.

A representation is one line in ``REPRESENTATIONS``, which ``--set kind=NAME`` picks. One that is compiled to another
(a DSL) says so in ``candidate``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelbench.solvers.model.llm import Answer
from kernelbench.solvers.model.tools import Tool
from kernelbench.solvers.task import Candidate

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task


@dataclass(frozen=True)
class Representation:
    """A representation of code.

    ``kind`` is that of the answer (``py``, ``cu``, ``cpp``, ``dsl``), ``form`` the prompt that asks for it. ``starter``
    is the kind of starter whose signature the prompt shows, '' for none, and ``page`` a prompt that teaches the
    language. ``tools`` are free of attempts. ``candidate`` makes what is evaluated of an answer with code.
    """

    kind: str
    form: str
    starter: str = ""
    page: str = ""
    tools: tuple[Tool, ...] = ()
    candidate: Callable[[Task, Answer], Candidate] = lambda task, answer: Candidate(answer)

    def instructions(self, task: Task) -> str:
        """Return the form of the answer, as text for a model."""
        page = {"page": task.render(self.page)} if self.page else {}
        if not self.starter:
            return task.render(self.form, **page)
        from kernelbench import starter  # imports torch

        return task.render(self.form, starter=starter.of(task.workload, self.starter, task.precision).strip(), **page)


def _check_program(source: str) -> str:
    """Return every rule that a µCUTLASS program breaks, as text for a model."""
    from kernelbench.ucutlass import LibraryMissing, findings

    try:
        return "\n".join(map(str, findings(source))) or "ok"
    except LibraryMissing as error:
        return f"error: {error}"


_SOURCE = {"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]}
_CHECK = Tool("ucutlass_check", "Validates a µCUTLASS program in milliseconds: every rule that it breaks, with a fix.",
              _check_program, _SOURCE)  # fmt: skip

REPRESENTATIONS = {
    "py": Representation("py", "mantis/form_module"),
    "cu": Representation("cu", "mantis/form_library", starter="cu"),
    "cpp": Representation("cpp", "mantis/form_library", starter="cpp"),
    "dsl": Representation("dsl", "mantis/form_ucutlass", starter="cu", page="ucutlass", tools=(_CHECK,)),
}
