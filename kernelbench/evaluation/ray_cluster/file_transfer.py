"""Transfer to a node: a solution with the files beside it that it names."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.process import owned_folders
from harness.solution.discover import Solution
from harness.solution.visible_files import own_files


@dataclass(frozen=True)
class Parcel:
    """One solution with the files that it names, on its way to a node."""

    solution: Solution  # its path below the folder of solutions
    files: dict[str, bytes]  # by their paths below it

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[Solution]:
        """The solution in a folder of its own, which goes again."""
        with owned_folders.scratch() as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            yield dataclasses.replace(self.solution, path=Path(folder, self.solution.path))


def pack(solution: Solution) -> Parcel:
    """The solution and the files of its folder that it may see."""
    root = solution.root.resolve()
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in own_files(solution)}
    path = solution.path.relative_to(solution.root)
    files[path.as_posix()] = solution.path.read_bytes()  # where it is a link to a file of its folder, too
    return Parcel(dataclasses.replace(solution, path=path, neighbours=frozenset()), files)
