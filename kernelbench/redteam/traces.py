"""Traces that programs of the red team leave on a machine that lets them; found and removed."""

from __future__ import annotations

import contextlib
import os
import signal
import sysconfig
from collections.abc import Callable
from pathlib import Path

from harness.compile.cache import cache_root
from harness.process.owned_folders import disk_use, remove_unheld

Trace = Callable[[], list[str]]


def shared_memory(number: int) -> Trace:
    """Return a trace in /dev/shm."""
    return _file(lambda: Path(f"/dev/shm/kb-redteam-{number:02}-{os.getuid()}"))


def packages(name: str) -> Trace:
    """Return a trace among the installed packages."""
    return _file(lambda: Path(sysconfig.get_paths()["purelib"], name))


def user_cache(name: str) -> Trace:
    """Return a trace in the user's cache folder."""
    return _file(lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", name))


def kept_files(most: int) -> Trace:
    """Folders of the cache that a candidate filled with more files than that; not those that a process has."""

    def find() -> list[str]:
        full = (folder for folder in (cache_root() / "private").glob("*") if disk_use(folder, most).files > most)
        return [f"{folder} with more than {most} files" for folder in full if remove_unheld(folder)]

    return find


def processes(*command: str) -> Trace:
    """Return a trace of processes with this command line."""
    wanted = b"\0".join(word.encode() for word in command) + b"\0"

    def find() -> list[str]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes() == wanted:
                    os.kill(int(folder.name), signal.SIGKILL)
                    found.append(f"process {folder.name}: {' '.join(command)}")
        return found

    return find


def _file(path: Callable[[], Path]) -> Trace:
    def find() -> list[str]:
        if not path().exists():
            return []
        path().unlink()
        return [str(path())]

    return find
