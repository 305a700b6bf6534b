"""Request for one attempt. It imports little, as the command that sends it is to start at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """One file to judge.

    Attributes
    ----------
    problem
        ``1/19``; None is what the file's name or comment says.
    conditions
        Those of ``kernelbench.evaluate`` by name; what is missing has its default.
    """

    file: str
    problem: str | None = None
    problem_dir: str | None = None
    conditions: dict[str, Any] = field(default_factory=dict)

    def anywhere(self) -> Request:
        """Return the request with absolute paths, for a process in another folder."""
        folder = self.problem_dir and os.path.abspath(self.problem_dir)
        return Request(os.path.abspath(self.file), self.problem, folder, self.conditions)
