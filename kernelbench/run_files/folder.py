"""Links, pipes and devices in a run directory of others are neither read nor written through.

Nor is written into a file of several names.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from harness.json_text import parse_json
from harness.solution.includes import read_bytes
from harness.solution.naming import is_run

DEFINITION = "experiment.json"
MOST_LINES = 1_000_000  # 250 problems with a hundred samples of forty lines each
WORKSPACES = "workspaces"  # has a folder for each problem, in which a solver's program does as it likes


def foreign(folder: Path, depth: int = 0) -> str:
    """Return the first thing in a run or an experiment that is neither folder nor file, and what; '' without one.

    Links to files do no harm: whoever writes in a run replaces or refuses them. What lies in the workspaces of programs
    is not looked at: of a run its folder of that name, or of each of the runs that lie ``depth`` folders below.
    """
    folders = [folder]
    while folders:
        here = folders.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            continue  # who writes there hears of it
        for entry in entries:
            path = here / entry.name
            if entry.is_symlink():
                if os.path.isdir(path):
                    return f"{path} is a link"
            elif entry.is_dir():
                folders += [path] if path.relative_to(folder).parts[depth:-1] != (WORKSPACES,) else []
            elif not entry.is_file():
                return f"{path} cannot be read: it is not a plain file"
    return ""


def first_in(folder: Path) -> str:
    """Return the first name in a folder; '' if it is not there or empty but for hidden files, such as drafts."""
    try:
        return next((name for name in sorted(os.listdir(folder)) if not name.startswith(".")), "")
    except OSError:
        return ""  # who writes there hears of it


def must_have_one_name(file: int | Path) -> None:
    """Raise OSError for a file that has other names, and may be any of ours by one of them: an archive can bring that.

    What is written into it in place is written there too.
    """
    if (names := os.stat(file, follow_symlinks=isinstance(file, int)).st_nlink) > 1:
        raise OSError(errno.EMLINK, f"it has {names} names, one perhaps elsewhere: put a copy in its place")


def linked(path: Path) -> str:
    """Return the first link on the way to a file that nobody named, in a checkout of others perhaps; '' without one."""
    way = (*reversed(path.parents), path)
    return next((f"{one} is a link" for one in way if one.is_symlink()), "")


def run_left_by_a_link(path: Path) -> Path | None:
    """Return the outermost run or experiment that a path lies in by its name, if a link in that is on its way.

    Or that its folder lies in: a link that is the user's may lead into a run, where the file is a link of others.
    """
    real = Path(os.path.realpath(path.parent)) / path.name
    for way in (path.absolute(), real):
        around = reversed(way.parents)
        top = next((folder for folder in around if is_run(folder) or os.path.lexists(folder / DEFINITION)), None)
        if top and leads_by_a_link_in(top, way):
            return top
    return None


def leads_by_a_link_in(folder: Path, path: Path) -> bool:
    """Return whether a link that lies below a folder is on the way of a path, which may begin anywhere.

    So it is told of what no path can be, with a zero byte or too long: nobody may follow it.
    """
    top, here = folder.resolve(), Path.cwd()
    try:
        for part in path.parts:
            place = here.parent if part == ".." else here / part
            if place.is_symlink() and here.is_relative_to(top):
                return True
            here = Path(os.path.realpath(place))
    except (OSError, ValueError):
        return True
    return False


def read_own(path: Path, most: int) -> bytes:
    """Return a file of a run; OSError for a link, which may lead to any file of its reader, a pipe and a large one."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is not a plain file, but a link", str(path))
    return read_bytes(path, most)


def read_lines(path: Path, most: int) -> tuple[list[bytes], bytes]:
    """Return the lines of a log, and what stands behind the last; raises OSError also for too many lines.

    Each is an object: a line of one byte takes 40. A last one that is whole, and lacks its end only, is one of them.
    """
    data = read_own(path, most)
    if (count := data.count(b"\n")) > MOST_LINES:
        raise OSError(errno.EFBIG, f"it is too large: {count:,} lines, and the limit is {MOST_LINES:,}", str(path))
    *lines, rest = data.split(b"\n")
    return ([*lines, rest], b"") if is_whole(rest) else (lines, rest)


def is_whole(line: bytes) -> bool:
    """Return whether it is a JSON object: of one that was cut off a part is none."""
    try:
        return line.startswith(b"{") and isinstance(parse_json(line), dict)
    except ValueError:
        return False
