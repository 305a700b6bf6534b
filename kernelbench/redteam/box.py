"""A throwaway box: namespaces of its own and the machine's files with everything written going to memory.

``command`` is what starts a program in one; ``enter`` is called first in it. Only root can make one. Processes and
network interfaces of the machine are not seen, and what is written is gone at its end.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MS_BIND, _MS_REC = 4096, 16384
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}  # the number of the system call
_KEPT = ("/dev", "/sys")  # mounted as they are: devices, and what the system tells of them

_libc = ctypes.CDLL(None, use_errno=True)


class NoBox(Exception):
    """A box cannot be made on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Box:
    """Seen from within: the folder in which lies all that was written."""

    written: int  # a descriptor, because nothing leads there by a path any more

    def files(self) -> dict[str, tuple[int, int]]:
        """Size and time of the last change of all files that were made, changed or removed, by their paths within."""
        found = {}
        for folder, _, names, descriptor in os.fwalk(".", dir_fd=self.written, follow_symlinks=False):
            for name in names:
                state = os.lstat(name, dir_fd=descriptor)
                found[os.path.normpath(os.path.join("/", folder, name))] = state.st_size, state.st_mtime_ns
        return {path: state for path, state in found.items() if path != "/.old"}


def command(program: list[str]) -> list[str]:
    """The command that runs ``program`` in a box, if it calls ``enter``; raises NoBox."""
    unshare = shutil.which("unshare")
    if not unshare:
        raise NoBox("there is no `unshare`: install util-linux")
    if os.geteuid() != 0:
        raise NoBox("only root can lay a throwaway file system over the machine's: run it as root")
    start = [unshare, "--mount", "--pid", "--fork", "--net", "--ipc", "--kill-child", "--propagation", "private"]
    tried = subprocess.run([*start, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        why = tried.stderr.strip() or f"exit status {tried.returncode}"
        raise NoBox(f"this machine or container allows no namespaces ({why}): run it where root may make them")
    return [*start, *program]


def enter(place: Path, size_bytes: int) -> Box:
    """Make the box around this process, the first in its namespaces, over the empty folder ``place``; raises NoBox."""
    try:
        return _enter(place, size_bytes)
    except OSError as error:
        raise NoBox(f"cannot make the box: {error}; it needs overlayfs and tmpfs") from error


def _enter(place: Path, size_bytes: int) -> Box:
    _mount("tmpfs", place, "tmpfs", 0, f"size={size_bytes}")
    for name in ("written", "work", "root"):
        (place / name).mkdir()
    root = place / "root"
    _mount("overlay", root, "overlay", 0, f"lowerdir=/,upperdir={place / 'written'},workdir={place / 'work'}")
    for number, folder in enumerate(_other_file_systems()):
        for name in ("written", "work"):
            (place / f"{name}{number}").mkdir()
        options = f"lowerdir={folder},upperdir={place}/written{number},workdir={place}/work{number}"
        _mount("overlay", Path(f"{root}{folder}"), "overlay", 0, options)
    for folder in _KEPT:
        _mount(folder, Path(f"{root}{folder}"), None, _MS_BIND | _MS_REC)
    _mount("tmpfs", root / "dev/shm", "tmpfs", 0, f"size={size_bytes}")
    _mount("proc", root / "proc", "proc", 0)
    written = os.open(place / "written", os.O_RDONLY | os.O_DIRECTORY)
    (root / ".old").mkdir(exist_ok=True)
    os.chdir(root)
    _call("pivot_root", _libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b".old"))
    os.chdir("/")
    _call("umount2", _libc.umount2(b"/.old", _MNT_DETACH))
    os.rmdir("/.old")
    return Box(written)


def _other_file_systems() -> list[str]:
    """Folders of this Python, this checkout and this user that lie on other file systems than the root's."""
    wanted = (Path(__file__).resolve().parents[2], sys.prefix, sys.base_prefix, Path.home(), os.getcwd())
    mounts = {_mount_point(Path(path)) for path in wanted}
    return sorted(str(mount) for mount in mounts if str(mount) != "/")


def _mount_point(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if os.path.ismount(folder))


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    done = _libc.mount(source.encode(), os.fsencode(target), kind and kind.encode(), flags, options.encode())
    _call(f"mount {kind or source} on {target}", done)


def _call(what: str, result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
