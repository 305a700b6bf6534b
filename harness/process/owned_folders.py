"""Temporary folders with an owner, what lies in them, and the removal of those whose owner was killed.

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
from dataclasses import dataclass
from pathlib import Path

PREFIX = "kb-scratch-"
_MAX_KEPT_BYTES, _MAX_KEPT_FILES = 256 << 20, 5_000  # of a folder that a next process finds again
_MAX_DEPTH = 64  # of folders in folders; caches of compilers have five
_YOUNG_S = 60.0  # between making a folder and locking it


def make_folder(parent: Path | None = None) -> tuple[Path, int]:
    """The real path of a new folder, and the descriptor that holds its lock: to be closed when it is removed."""
    path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=parent)))
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
        kept = disk_use(folder, most=_MAX_KEPT_FILES)
        if kept.files > _MAX_KEPT_FILES or kept.bytes > _MAX_KEPT_BYTES or kept.hidden:
            remove_tree(folder)
            files, size = files + kept.files, size + kept.bytes
    return files, size


@dataclass
class DiskUse:
    """Files and folders below a folder, and the bytes that the files take; ``hidden`` says what was not counted."""

    files: int = 0
    bytes: int = 0
    hidden: str = ""


def disk_use(folder: Path, most: int) -> DiskUse:
    """Count what lies below ``folder``, whose owner may be writing to it; stops at ``most`` files."""
    use = DiskUse()
    with contextlib.suppress(OSError):
        _count_in(folder, None, use, most, depth=0)
    return use


def _count_in(folder: Path | str, parent: int | None, use: DiskUse, most: int, depth: int) -> None:
    """Count by descriptors: nested folders have longer paths than the system takes. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                use.files += 1
                if use.files > most:
                    return
                try:
                    if not entry.is_dir(follow_symlinks=False):
                        use.bytes += entry.stat(follow_symlinks=False).st_blocks * 512
                    elif depth == _MAX_DEPTH:
                        use.hidden = f"folders more than {_MAX_DEPTH} deep"
                    else:
                        _count_in(entry.name, descriptor, use, most, depth + 1)
                except PermissionError:
                    use.hidden = "folders that nobody may read"
                except OSError:  # it is gone
                    continue
    finally:
        os.close(descriptor)


def remove_tree(root: Path) -> None:
    """Delete a folder whatever somebody put into it: no rights, folders nested beyond the longest path.

    Folders move up before they are emptied, so that no path grows. Nobody may write there any more.
    """
    pending = [root]
    while pending:
        folder = pending.pop()
        for entry in _entries(folder):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                if folder != root:
                    place = tempfile.mkdtemp(dir=root)
                    os.rename(entry.path, place)
                    pending.append(Path(place))
                else:
                    pending.append(Path(entry.path))
    for folder in (*map(Path, _entries(root)), root):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _entries(folder: Path) -> list[os.DirEntry]:
    try:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _remove_if_abandoned(path: Path) -> None:
    """Raises OSError where the owner lives."""
    os.chmod(path, 0o700)  # what was in there may have taken its rights
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(descriptor)
