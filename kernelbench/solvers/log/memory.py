"""Memory that the problems of a run share: notes that are only ever added.

What a problem reads depends on how far the others are, so each read journals how many notes there were. A resumed run
reads the same notes again, whatever was added since.
"""

from __future__ import annotations

from typing import Any

from kernelbench.solvers.log.journal import Journal, Note


class Memory:
    """The memory as one problem sees it."""

    def __init__(self, problem: str, journal: Journal):
        self._problem, self._journal = problem, journal
        self._reads = self._written = 0

    def read(self, own: bool = True) -> list[Note]:
        """Return all notes so far, oldest first; without ``own`` those of other problems only."""
        self._reads += 1
        count = self._journal.fact(self._problem, f"memory:{self._reads}", lambda: len(self._journal.notes))
        return [note for note in self._journal.notes[:count] if own or note.problem != self._problem]

    def add(self, text: str, **data: Any) -> None:
        """Add a note, which all problems can read from now on. ``data`` are JSON values that go with it."""
        self._written += 1
        self._journal.add_note(Note(self._problem, self._written, text, data))
