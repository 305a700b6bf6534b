"""A solver as a Python script with a function ``solve(task)``: a generator of candidates, or a plain function."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Generator
from pathlib import Path

from harness.problem.import_source import import_source
from harness.solution.includes import read_bytes
from kernelbench.solvers.plan import SolverError
from kernelbench.solvers.task import Task


def shipped() -> dict[str, Path]:
    """The solvers that come with the package, by name: inside it once installed, in ``scripts/`` in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "strategies"
    folder = installed if installed.is_dir() else package.parents[1] / "scripts" / "solvers"
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}


def find(solver: str) -> Path:
    """The script that ``solver`` is: the name of one that is shipped, or a path. Raises SolverError."""
    known = shipped()
    if solver in known:  # before a file of that name, which a checkout of others may have
        return known[solver]
    path = Path(solver)
    if path.is_file():
        return path
    raise SolverError(f"there is no solver {solver}: name a Python file, or one of {', '.join(known)}")


def summary(path: Path) -> str:
    """The first line of a script's docstring; the script is not run."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def digest(path: Path) -> str:
    """Return the digest of a script, which is not run. Raises SolverError where it cannot be read, or is too large."""
    return hashlib.sha256(_read(path)).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise SolverError(f"cannot read the solver {path}: {error.strerror}") from None


class Script:
    """Raises SolverError where the file does not load, or holds no ``solve``."""

    def __init__(self, path: Path):
        source = _read(path)
        self.name, self.sha256 = path.name, hashlib.sha256(source).hexdigest()
        if path.suffix != ".py":
            raise SolverError(f"{path} is not a Python file; programs in other languages go with --solver-command")
        try:
            module = import_source(path, f"kb_solver_{path.stem}", source)
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
