"""Wait until a file, or one beside it that it takes in, is saved."""

from __future__ import annotations

import time
from pathlib import Path

from harness.solution.discover import files_of
from harness.solution.unchanged import stamp_of_file

LOOK_S = 0.1  # a look is a few calls of the system

Saved = dict[Path, tuple[int, ...]]


def saved(path: Path) -> Saved:
    """Return the stamps of ``path`` and each file that it includes, imports or names."""
    return _states([path, *files_of(path, path.parent)] if path.is_file() else [path])


def wait_for_change(path: Path, seen: Saved) -> None:
    """Return once one of the files of ``seen`` differs and ``path`` is there; editors replace it in two steps."""
    while _states(seen) == seen or not path.is_file():
        time.sleep(LOOK_S)


def _states(paths) -> Saved:
    return {path: stamp_of_file(path) for path in paths}
