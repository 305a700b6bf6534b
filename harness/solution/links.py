"""Files of a directory that have several names, by links."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from harness.solution.includes import Lookups, reached, real_path


def and_their_links(files: frozenset[Path], entries: Iterable[Path]) -> frozenset[Path]:
    """Return files, and the real paths of all entries that are one of them by another name."""
    several = {(at.st_dev, at.st_ino) for at in map(_stat, files) if at and at.st_nlink > 1}
    if not several:
        return files
    same = (path for path in entries if (at := _stat(path)) and (at.st_dev, at.st_ino) in several)
    return files | {Path(os.path.realpath(path)) for path in same}


def in_several_folders(files: Iterable[Path], entries: Iterable[Path]) -> list[Path]:
    """Return those of ``files`` that are entries of another folder, too, by a hard link."""
    several = {path: (at.st_dev, at.st_ino) for path in files if (at := _stat(path)) and at.st_nlink > 1}
    folders: dict[tuple[int, int], set[Path]] = {}
    for path in entries if several else ():
        if at := _stat(path):
            folders.setdefault((at.st_dev, at.st_ino), set()).add(path.parent)
    return [path for path, file in several.items() if len(folders[file]) > 1]


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
