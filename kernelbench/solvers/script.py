"""A solver as a Python script with a function ``solve(task)``: a generator of candidates, or a plain function."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Generator
from pathlib import Path

from harness.build.cache import digest_of
from kernelbench.solvers.orchestrator import SolverError
from kernelbench.solvers.task import Task


class Script:
    """Raises SolverError where the file does not load, or holds no ``solve``."""

    def __init__(self, path: Path):
        self.name = path.name
        try:
            self.sha256 = digest_of(path)
        except OSError as error:
            raise SolverError(f"cannot read the solver {path}: {error.strerror}") from None
        spec = importlib.util.spec_from_file_location(f"kb_solver_{path.stem}", path)
        if spec is None:
            raise SolverError(f"{path} is not a Python file; programs in other languages go with --solver-command")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise SolverError(f"the solver {path} does not load: {type(error).__name__}: {error}") from error
        self._solve = getattr(module, "solve", None)
        if not callable(self._solve):
            raise SolverError(f"the solver {path} defines no function solve(task)")

    def run(self, task: Task, folder: Path) -> None:
        made = self._solve(task)
        if inspect.isgenerator(made):
            _drive(made, task)
        elif made is not None:
            raise SolverError(
                f"solve() returned {type(made).__name__}; it should yield candidates, or call task.evaluate() itself"
            )


def _drive(candidates: Generator, task: Task) -> None:
    """Evaluate what is yielded, one or a list, and send back its result or results."""
    try:
        wanted = next(candidates)
        while True:
            several = isinstance(wanted, (list, tuple))
            if several and len(wanted) > task.budget:
                task.evaluate_all(wanted)
                return
            wanted = candidates.send(task.evaluate_all(wanted) if several else task.evaluate(wanted))
    except StopIteration:
        pass
    finally:
        candidates.close()
