"""Files of a directory that have several names, by links."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.solution.includes import Lookups, reached, real_path

_ELSEWHERE = "is a file of another folder, too, and takes in files beside it: put a copy of it there"
_OUTSIDE = "it, or a file that it takes in, has a name outside of the directory, too: put a copy of that there"


def and_their_links(files: frozenset[Path], entries: Iterable[Path]) -> frozenset[Path]:
    """Return files, and the real paths of all entries that are one of them by another name."""
    several = {(at.st_dev, at.st_ino) for at in map(_stat, files) if at and at.st_nlink > 1}
    if not several:
        return files
    same = (path for path in entries if (at := _stat(path)) and (at.st_dev, at.st_ino) in several)
    return files | {Path(os.path.realpath(path)) for path in same}


def of_other_folders(taken_in: Mapping[Path, list[Path]], entries: Iterable[Path]) -> dict[Path, str]:
    """Return why solutions are left out that may be somebody else's by a hard link, with the files that each takes in.

    Of several folders among ``entries`` any may be its author's, and a name that is none of them may be any file's.
    """
    files = {*taken_in, *itertools.chain(*taken_in.values())}
    several = {path: at for path in files if (at := _stat(path)) and at.st_nlink > 1}
    folders: dict[tuple[int, int], list[Path]] = {}
    for path in entries if several else ():
        if at := _stat(path):
            folders.setdefault((at.st_dev, at.st_ino), []).append(path.parent)

    def folders_of(path: Path) -> list[Path]:
        return folders.get((several[path].st_dev, several[path].st_ino), [])

    found = {}
    for path, own in taken_in.items():
        if any(len(folders_of(file)) < several[file].st_nlink for file in (path, *own) if file in several):
            found[path] = _OUTSIDE
        elif own and path in several and len({*folders_of(path)}) > 1:
            found[path] = _ELSEWHERE
    return found


def leads_to_a_folder(link: Path, root: Path, lookups: Lookups) -> bool:
    """Return whether a link does, or out of ``root`` by a name that may be a folder's.

    Nothing is looked at there: it may be on a disk that never answers. Nor is anything once ``lookups`` take long.
    """
    top = Path(os.path.realpath(root))
    try:
        lookups.no_longer()
        _, mode = reached(top / link.relative_to(root), (top,))
    except OSError:
        return link.suffix == ""
    return stat.S_ISDIR(mode)


def real_or_none(path: Path) -> Path | None:
    """Return the real path of a file; None where the system cannot say."""
    with contextlib.suppress(OSError):
        return real_path(path)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
