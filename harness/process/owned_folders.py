"""Temporary folders with an owner, and the removal of those whose owner was killed.

The owner holds a lock on the folder itself, which ends with the process, whatever ends it. A lock is also seen
across containers that share a disk and number their processes anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.process.procfs import disk_use, remove_tree

PREFIX = "kb-scratch-"
_MAX_KEPT_BYTES, _MAX_KEPT_FILES = 256 << 20, 5_000  # of a folder that a next process finds again
_YOUNG_S = 60.0  # between making a folder and locking it


def make_folder(parent: Path | None = None) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock: to be closed when the folder is removed."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a file system without locks on folders: nobody sweeps there
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return path, descriptor


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for as long as it is used; ``sweep`` removes it if this process is killed meanwhile."""
    path, lock = make_folder()
    try:
        yield path
    finally:
        remove_tree(path)
        os.close(lock)


def sweep(parent: Path | None = None, young_s: float = _YOUNG_S) -> None:
    """Remove this user's folders below ``parent`` whose owner is gone; without it, of temporary files."""
    parent = parent or Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for path in parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                found = path.lstat()
                mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
                if mine and time.time() - found.st_ctime > young_s:
                    _remove_if_abandoned(path)


def remove_large(folders: Iterable[Path]) -> tuple[int, int]:
    """Remove folders that are kept for a next process and have grown too large; return files and bytes removed."""
    files = size = 0
    for folder in folders:
        kept, kept_size = disk_use(folder, most=_MAX_KEPT_FILES)
        if kept > _MAX_KEPT_FILES or kept_size > _MAX_KEPT_BYTES:
            remove_tree(folder)
            files, size = files + kept, size + kept_size
    return files, size


def _remove_if_abandoned(path: Path) -> None:
    """Raises OSError where the owner lives."""
    os.chmod(path, 0o700)  # what was in there may have taken its rights
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(descriptor)
