"""Place of a user's warm server: a private folder with its socket, its token and its lock.

A candidate runs as the same user and may connect to sockets, but cannot read this folder. So a caller has to give
the token from there first.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import resource
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.process.sandbox.import_path import private_places
from harness.process.sandbox.landlock import named_paths
from harness.process.spawn import ROOT, environment

IDLE_S = 600.0  # a person's or an agent's pause between two tries
CALLERS = 128  # that may wait to be accepted
TOKEN_CHARACTERS = 64  # 256 bits in hexadecimal
_MAX_SOCKET_BYTES = 107  # of sockaddr_un.sun_path, without its zero
_SESSION = ("XDG_", "LC_")  # variables that differ between terminals and change no result


class NoPlace(Exception):
    """There is no private folder for a server's socket; the message says what to do."""


class Place:
    """Paths of one warm server. Raises NoPlace where the folder is not private."""

    def __init__(self, folder: Path, name: str):
        self.socket = folder / f"{name}.sock"
        self.token, self._lock, self.log = (self.socket.with_suffix(end) for end in (".token", ".lock", ".log"))
        if len(os.fsencode(self.socket)) > _MAX_SOCKET_BYTES:
            raise NoPlace(f"{self.socket} is too long for a socket; set XDG_RUNTIME_DIR to a shorter folder")

    @classmethod
    def here(cls) -> Place:
        """Return the place of a server with this code, this Python, this environment, and these cores and limits."""
        return cls(private_folder(), _key())

    @classmethod
    def of_socket(cls, path: str) -> Place:
        """Return the place whose socket is at ``path``."""
        return cls(Path(path).parent, Path(path).stem)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock under which a server starts and ends."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def write_token(self) -> None:
        """Write a new token that only this user can read."""
        draft = self.token.with_suffix(".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(TOKEN_CHARACTERS // 2))
        os.replace(draft, self.token)

    def remove(self) -> None:
        """Remove socket and token: nobody serves here any more."""
        for path in (self.socket, self.token):
            path.unlink(missing_ok=True)


def private_folder() -> Path:
    """Return the folder of warm servers, made where it is missing, that nobody but this user can enter.

    Raises NoPlace.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime and os.access(runtime, os.W_OK) else None
    folder = parent / "kernelbench" if parent else Path(tempfile.gettempdir()) / f"kernelbench-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoPlace(f"no folder for the warm server: {folder}: {error.strerror}; use --no-server") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NoPlace(f"{folder} is not a private folder of yours: remove it, or use --no-server")
    return folder


def _key() -> str:
    """Return a digest of what decides whether a running server gives the results of a new one."""
    passed = sorted((k, v) for k, v in environment().items() if not k.startswith(_SESSION))
    sources = [path for package in ("harness", "kernelbench") for path in (ROOT / package).rglob("*.py")]
    newest = max(path.stat().st_ctime_ns for path in sources)  # an archive gives files any other time
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    process = os.nice(0), sorted(os.sched_getaffinity(0)), limits
    state = repr((sys.executable, str(ROOT), passed, named_paths(private_places()), len(sources), newest, process))
    return hashlib.sha256(state.encode()).hexdigest()[:16]
