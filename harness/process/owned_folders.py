"""Temporary folders with an owner, what lies in them, and the removal of those whose owner was killed.

The owner holds a lock on the folder itself, which ends with the process, whatever ends it. A lock is also seen
across containers that share a disk and number their processes anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "kb-scratch-"
_MAX_KEPT_BYTES, _MAX_KEPT_FILES = 256 << 20, 5_000  # of a folder that a next process finds again
_MAX_DEPTH = 64  # of folders in folders; caches of compilers have five
_MOST_MOVED = 1_000_000  # folders of one that is removed, to which somebody may be adding
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


@contextlib.contextmanager
def guarded_scratch() -> Iterator[Path]:
    """Give a folder as ``scratch`` does, which goes at once if this process is killed: a shell waits for its end."""
    with scratch() as path:
        command = ["/bin/sh", "-c", 'read -r _; rm -rf -- "$0"', str(path)]
        guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        try:
            yield path
        finally:
            guard.kill()
            guard.communicate()


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


class KeptFolders:
    """Folders that a next process finds again, each in the hands of one process at a time.

    In the place of one that another process has, whose candidate may have the same source, there is a new one in
    ``scratch``. ``paths`` are those to write to.
    """

    def __init__(self, folders: Iterable[Path], scratch: Path):
        self._locks: dict[Path, int] = {}
        self._instead: dict[str, str] = {}
        self.paths: list[Path] = []
        for number, folder in enumerate(folders):
            try:
                self._locks[folder] = _held(folder)
                self.paths.append(folder)
            except OSError:  # another has it, it is gone, or the file system has no locks
                new = scratch / f"kept-{number}"
                new.mkdir()
                self._instead[str(folder)] = str(new)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return ``variables`` with the new folders for those that others have."""
        return {name: self._instead.get(value, value) for name, value in variables.items()}

    def close(self) -> tuple[int, int]:
        """Give the folders back, and remove those that have grown too large; return files and bytes removed."""
        files = size = 0
        for folder, descriptor in self._locks.items():
            if removed := _without_overgrown(folder):
                files, size = files + removed.files, size + removed.bytes
            os.close(descriptor)
        self._locks.clear()
        return files, size


def remove_unheld(folder: Path, overgrown: bool = False) -> bool:
    """Remove a folder that is kept unless a process has it, and return whether; or only if it is ``overgrown``."""
    try:
        descriptor = _held(folder)
    except OSError:
        return False
    try:
        if not overgrown:
            remove_tree(folder)
            return True
        return _without_overgrown(folder) is not None
    finally:
        os.close(descriptor)


def _without_overgrown(folder: Path) -> DiskUse | None:
    """Remove a folder that is larger than may be kept, and return what it had.

    An eighth of what would be free without it leaves the next ones room, however many there are.
    """
    use = disk_use(folder, most=_MAX_KEPT_FILES)
    with contextlib.suppress(OSError):
        most = min(_MAX_KEPT_BYTES, (shutil.disk_usage(folder).free + use.bytes) // 8)
        if use.files > _MAX_KEPT_FILES or use.bytes > most or use.hidden:
            remove_tree(folder)
            return use
    return None


def _held(folder: Path) -> int:
    """Return the descriptor of a folder that nobody else has; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@dataclass
class DiskUse:
    """Files and folders below a folder, and the bytes that all take; ``hidden`` says what was not counted."""

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
                    # a folder that held many files takes megabytes when it is empty again
                    use.bytes += entry.stat(follow_symlinks=False).st_blocks * 512
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth == _MAX_DEPTH:
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

    Folders move up before they are emptied, so that no path grows. All is done by descriptors: who still writes there
    may put a link to anywhere in the place of a folder.
    """
    with contextlib.suppress(OSError), _opened(root) as top:
        _empty(top)
    with contextlib.suppress(OSError):
        root.rmdir()


def _empty(top: int) -> None:
    """Remove what lies in an open folder; raises OSError where it cannot be listed."""
    moved, removed = 0, True
    while removed and moved <= _MOST_MOVED and (folders := _folders_left(top)):
        removed = False
        for name in folders:
            with contextlib.suppress(OSError):
                with _opened(name, top) as folder:
                    for below in _folders_left(folder):
                        with contextlib.suppress(OSError), _opened(below, folder):  # which gives the rights to move it
                            os.rename(below, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
                            moved += 1
                os.rmdir(name, dir_fd=top)
                removed = True


def _folders_left(folder: int) -> list[str]:
    """Remove the files in an open folder; return the names of the folders there."""
    folders, removed = [], True
    while removed:  # who removes while it lists may be told of some only then
        folders, removed = [], False
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    else:
                        os.unlink(entry.name, dir_fd=folder)
                        removed = True
    return folders


@contextlib.contextmanager
def _opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """Open a folder, of which what was in there may have taken the rights; raises OSError for a link."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
        descriptor = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_if_abandoned(path: Path) -> None:
    """Raises OSError where the owner lives."""
    with _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
