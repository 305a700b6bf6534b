"""What travels to a node: a solution with the files beside it that it names."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.solution import Solution

_FILE_NAME = re.compile(r"[\w-][\w.-]*\.\w+")


@dataclass(frozen=True)
class Parcel:
    """One solution with the files that it names, on its way to a node."""

    solution: Solution  # its path below the folder of solutions
    files: dict[str, bytes]  # by their paths below it

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[Solution]:
        """The solution in a folder of its own, which goes again."""
        with tempfile.TemporaryDirectory(prefix="kb-") as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            yield dataclasses.replace(self.solution, path=Path(folder, self.solution.path))


def _root(solution: Solution) -> Path:
    return solution.path.parents[len(Path(solution.name).parts) - 1]


def files_by_name(solution: Solution) -> dict[str, list[Path]]:
    """All files of the solutions' folder."""
    found: dict[str, list[Path]] = {}
    for path in _root(solution).rglob("*"):
        if path.is_file():
            found.setdefault(path.name, []).append(path)
    return found


def pack(solution: Solution, by_name: dict[str, list[Path]]) -> Parcel:
    """The solution and every file of its folder whose name it mentions, or one of those mentions."""
    root = _root(solution)
    files: dict[str, bytes] = {}
    todo = [solution.path]
    while todo:
        path = todo.pop()
        name = path.relative_to(root).as_posix()
        if name not in files:
            files[name] = path.read_bytes()
            text = "" if path.suffix == ".so" else files[name].decode(errors="replace")
            todo += [named for mention in set(_FILE_NAME.findall(text)) for named in by_name.get(mention, [])]
    return Parcel(dataclasses.replace(solution, path=solution.path.relative_to(root)), files)
