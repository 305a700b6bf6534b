"""List a directory of solutions; where it holds too much, its largest folders are left out."""

from __future__ import annotations

import heapq
import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

from harness.limits import MAX_ENTRIES, MAX_PATH_CHARACTERS
from harness.solution.includes import Lookups
from harness.solution.links import leads_to_a_folder
from harness.solution.naming import SolutionError, is_run

LeftOut = list[tuple[Path, str]]

_RUN = "a run, by its files config.json and results.jsonl: what lies in it is no solution"
_LINK = "a link to a folder, which is not followed: put the folder itself there"


@dataclass
class _Found:
    """Paths below a directory, the characters in them, and folders that are not looked into, with the reason."""

    paths: list[Path] = field(default_factory=list)
    characters: int = 0
    left_out: LeftOut = field(default_factory=list)

    @property
    def share(self) -> float:
        """Return the share that it has of what is read of a directory."""
        return _share(len(self.paths), self.characters)


def _share(paths: int, characters: int) -> float:
    return max(paths / MAX_ENTRIES, characters / MAX_PATH_CHARACTERS)


def entries_of(root: Path) -> tuple[list[Path], LeftOut]:
    """Return what lies below ``root``, and the folders there that are not looked into, with the reason.

    Where that is too much, the largest folders in ``root`` are left out: who fills one keeps no other author's
    solutions from being evaluated. Raises SolutionError where the files in ``root`` itself are too many.
    """
    lookups, top = Lookups(), _Found()
    folders = _look_into(root, root, lookups, top)
    most = f"{MAX_ENTRIES:,} files, or {MAX_PATH_CHARACTERS:,} characters in their paths"
    if top.share > 1:
        raise SolutionError(f"{root} holds more than {most}: name a folder of solutions only")
    kept: dict[Path, _Found] = {}
    sizes: list[tuple[float, Path]] = []  # a heap, the largest first
    paths, characters = len(top.paths), top.characters
    for folder in folders:
        found = kept[folder] = _below(folder, root, lookups)
        heapq.heappush(sizes, (-found.share, folder))
        paths, characters = paths + len(found.paths), characters + found.characters
        while _share(paths, characters) > 1:
            _, largest = heapq.heappop(sizes)
            found = kept.pop(largest)
            paths, characters = paths - len(found.paths), characters - found.characters
            top.left_out.append((largest, f"too much lies in it: the directory may hold {most}"))
    parts = [top, *kept.values()]
    return [path for part in parts for path in part.paths], [one for part in parts for one in part.left_out]


def _below(folder: Path, root: Path, lookups: Lookups) -> _Found:
    """Look into a folder and all below it, until that is too much."""
    found, folders = _Found(), [folder]
    while folders and found.share <= 1:
        folders += _look_into(folders.pop(), root, lookups, found)
    return found


def _look_into(folder: Path, root: Path, lookups: Lookups, found: _Found) -> list[Path]:
    """Add what lies in a folder to ``found``; return the folders in it."""
    if folder != root and is_run(folder):
        found.left_out.append((folder, _RUN))
        return []
    try:
        with os.scandir(folder) as entries:
            entries = sorted(itertools.islice(entries, MAX_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:  # not ours to read, or its path too long
        found.left_out.append((folder, f"cannot be read: {error.strerror or error}"))
        return []
    linked = (folder / entry.name for entry in entries if entry.is_symlink())
    found.left_out += [(link, _LINK) for link in linked if leads_to_a_folder(link, root, lookups)]
    found.paths += [folder / entry.name for entry in entries]
    found.characters += sum(len(entry.path) - len(str(root)) for entry in entries)
    return [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
