"""Transfer to a node: a solution with the files beside it that it names."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.process import owned_folders
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution
from harness.solution.includes import read_bytes
from harness.solution.visible_files import own_files

MOST_BYTES = 64 << 20  # of one solution, all its files together: the memory of the driver and of Ray holds many


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
            top = folder.resolve()
            taken_in = tuple((top / file, digest) for file, digest in self.solution.taken_in)
            yield dataclasses.replace(self.solution, path=Path(folder, self.solution.path), taken_in=taken_in)


def pack(solution: Solution) -> Parcel:
    """Return the solution and the files of its folder that it may see; without those that we may not read.

    Raises OSError where its own cannot be read, and CandidateFailure where they are too large to travel.
    """
    own, *others = own_files(solution)
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    top = solution.root.resolve()
    for path in (own, *others):
        name = path.relative_to(top).as_posix()
        try:
            files[name] = read_bytes(path, left)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise _refusal("its file and those that it names are too large") from None
            if path == own:
                raise
            continue
        left -= len(files[name])
    return Parcel(_for_a_node(solution), files)


def pack_nothing(solution: Solution) -> Parcel:
    """Return the solution without its files, for a record of its failure."""
    return Parcel(_for_a_node(solution), {})


def _for_a_node(solution: Solution) -> Solution:
    top = solution.root.resolve()
    taken_in = tuple((Path(os.path.relpath(file, top)), digest) for file, digest in solution.taken_in)
    path = solution.path.relative_to(solution.root)
    return dataclasses.replace(solution, path=path, taken_in=taken_in, neighbours=frozenset())


def _refusal(reason: str) -> CandidateFailure:
    message = f"{reason} to send to a node: at most {MOST_BYTES >> 20} MiB; --executor local takes more"
    return CandidateFailure(Status.BUILD_ERROR, message)
