"""Where built artefacts are kept: a folder a key, the key a hash of everything that decides the artefact."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_DONE = ".built"


def cache_root() -> Path:
    """$KERNELBENCH_CACHE, else kernelbench/ in the user's cache folder."""
    if configured := os.environ.get("KERNELBENCH_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelbench"


def key_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@contextlib.contextmanager
def entry(key: str) -> Iterator[tuple[Path, bool]]:
    """(folder, whether it is built already), locked against every other builder of this key.

    Left without an exception, the entry counts as built; with one, it is emptied.
    """
    folder = cache_root() / "build" / key
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / _DONE
        if done.exists():
            yield folder, True
            return
        try:
            yield folder, False
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        folder.mkdir(exist_ok=True)
        done.touch()
