"""Copies of solutions that nobody changes while they are built and evaluated.

Who has written a solution may go on writing. What a compiler reads and a worker runs could then be other than what the
record names, and a cache of builds would keep it under the name of the first.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.limits import MAX_INCLUDED_FILES, MAX_LIBRARY_BYTES
from harness.process import owned_folders
from harness.process.worker_limits import free_bytes, free_files
from harness.solution.discover import Solution, SolutionError
from harness.solution.includes import digest_of, name_in_digest, open_plain
from harness.solution.unchanged import CHANGED
from harness.solution.visible_files import is_own

_PIECE_BYTES = 1 << 20
_ROOM_OF_ANY = 64 << 20  # bytes of a solution's files: where not even these have room, that is the machine's fault


class Changed(SolutionError):
    """A file of a solution is not what it was when the solution was discovered."""

    def __init__(self) -> None:
        super().__init__(CHANGED)


class _TooLarge(Exception):
    """A solution names more than all copies together may take."""


class PrivateCopies:
    """Copies of solutions below ``folder``, each made when it is first asked for.

    Together they take half of what is free there: others build and run beside them.
    """

    def __init__(self, folder: Path):
        self._folder, self._numbers = folder, itertools.count()
        self._made: dict[Solution, Solution] = {}
        self._originals: dict[Solution, Solution] = {}
        self._copies: dict[tuple[int, int], Path] = {}  # of each file, whatever its names
        self._taken: dict[tuple[int, int], int] = {}  # bytes of room that each copy took
        self._most_bytes, self._left = 0, (0, 0)  # bytes and files for which there is room

    def of(self, solution: Solution) -> Solution:
        """Return the solution with copies of the files that it may see, in a folder of its own.

        One that is refused is never built and stays where it is, also where its files alone are too large. Raises
        Changed, and OSError where there is no room beside other copies, or for 64 MiB.
        """
        if solution not in self._made and not solution.refused:
            if not self._made:
                self._folder.mkdir(parents=True, exist_ok=True)
                free = free_bytes(self._folder)
                self._most_bytes = max(self._most_bytes, free // 2)  # what had room is not too large later
                self._left = min(self._most_bytes, free), free_files(self._folder) // 2
            folder, left = self._folder / str(next(self._numbers)), self._left
            try:
                copy = self._copied(solution, folder)
            except BaseException as error:
                self._left = left
                self._copies = {file: copy for file, copy in self._copies.items() if not copy.is_relative_to(folder)}
                owned_folders.remove_tree(folder)
                if not isinstance(error, _TooLarge):
                    raise
                refused = replace(solution, refused=str(error))
                self._originals[refused] = solution
                return refused
            self._made[solution], self._originals[copy] = copy, solution
        return self._made.get(solution, solution)

    def _copied(self, solution: Solution, folder: Path) -> Solution:
        """Return the solution with its path in ``folder``. Raises Changed, and OSError where there is no room."""
        root, own = solution.root, solution.path  # the real ones when it was discovered
        digests = dict(solution.helper_files)
        try:
            files = [file for file in sorted(digests) if file != own and is_own(file, solution)][:MAX_INCLUDED_FILES]
        except OSError:
            raise Changed from None
        places = {path: os.path.relpath(path, root) for path in (own, *files)}
        self._take_room(places)
        for path, name in places.items():
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            self._place(path, to)
            named = b"" if path == own else name_in_digest(os.path.relpath(path, own.parent))
            if digest_of(to, named) != (solution.sha256 if path == own else digests[path]):
                raise Changed
        helpers = tuple((folder / os.path.relpath(file, root), digest) for file, digest in solution.helper_files)
        return replace(solution, path=folder / places[own], taken_in=helpers, neighbours=frozenset())

    def _take_room(self, places: dict[Path, str]) -> None:
        """Count bytes of files without a copy, and all names and folders. Raises Changed, _TooLarge, and OSError."""
        new: dict[tuple[int, int], int] = {}
        for path in places:
            status = _status(path)
            if (file := _file(status)) not in self._copies:
                new[file] = _room(status)
        need = sum(new.values())
        if need > max(self._most_bytes, _ROOM_OF_ANY):
            raise _TooLarge(
                f"the files that it names have {need / 1e6:,.0f} MB together, and copies of them may take half of what "
                f"is free for temporary files, {self._most_bytes / 1e6:,.0f} MB"
            )
        names = len({one for name in places.values() for one in (name, *map(str, Path(name).parents))})
        self._left = self._left[0] - need, self._left[1] - names
        if min(self._left) < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _place(self, path: Path, to: Path) -> None:
        """Have a copy of a file at ``to``: one for as many names and solutions as the file system lets it be."""
        status = _status(path)
        if (file := _file(status)) in self._copies:
            with contextlib.suppress(OSError):  # it has no links, or no more of them
                os.link(self._copies[file], to)
                return
            self._left = self._left[0] - _room(status), self._left[1]
            if self._left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _copy(path, to)
        self._copies[file] = to
        self._taken[_file(_status(to))] = _room(status)

    def release(self, solution: Solution | None = None) -> None:
        """Remove the copy of one solution, or all; they are made anew where they are asked for."""
        for original in [solution] if solution else [*self._made]:
            if copy := self._made.pop(original, None):
                self._originals.pop(copy)
                self._remove(copy.root)

    def _remove(self, folder: Path) -> None:
        """Remove a folder of copies, and count its room as free; a file that has names elsewhere is copied anew.

        Its first copy takes its room until the last of these names is gone.
        """
        names, here, links = 1, Counter(), {}
        for at, folders, files in os.walk(folder):
            names += len(folders) + len(files)
            for name in files:
                with contextlib.suppress(Changed):  # it is gone already
                    status = _status(Path(at, name))
                    here[_file(status)] += 1
                    links[_file(status)] = status.st_nlink
        bytes_back = sum(self._taken.pop(copy, 0) for copy, count in here.items() if count == links[copy])
        self._left = self._left[0] + bytes_back, self._left[1] + names
        self._copies = {file: copy for file, copy in self._copies.items() if not copy.is_relative_to(folder)}
        owned_folders.remove_tree(folder)

    def original(self, copy: Solution) -> Solution:
        """Return the solution that ``copy`` is one of, or itself."""
        return self._originals.get(copy, copy)


@contextlib.contextmanager
def private_copies() -> Iterator[PrivateCopies]:
    """Give copies of solutions for as long as they are used."""
    with owned_folders.guarded_scratch() as folder:
        yield PrivateCopies(folder)


def _status(path: Path) -> os.stat_result:
    """Return the status of a file, of a link its own. Raises Changed."""
    try:
        return os.lstat(path)
    except OSError:
        raise Changed from None


def _file(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _room(status: os.stat_result) -> int:
    """Return the bytes that a file takes on a disk: holes take none."""
    return min(status.st_size, 512 * status.st_blocks)


def _copy(path: Path, to: Path, most: int = MAX_LIBRARY_BYTES) -> None:
    """Copy a plain file, and leave holes where it has them. Raises Changed, and OSError of the copy."""
    try:
        source = open_plain(path, in_place=True)
    except OSError:
        raise Changed from None
    with source, to.open("xb") as copy:
        size = os.fstat(source.fileno()).st_size
        if size > most:
            raise Changed
        copy.truncate(size)
        for begin, end in _data_of(source.fileno(), size):
            copy.seek(begin)
            while begin < end and (piece := os.pread(source.fileno(), min(_PIECE_BYTES, end - begin), begin)):
                begin += copy.write(piece)


def _data_of(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file has data. The rest are holes, and a copy of those takes room that the file does not."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # a hole up to the end
        end = min(size, os.lseek(descriptor, begin, os.SEEK_HOLE))
        yield begin, end
