"""Access tokens: a file that only its owner can read, with a client's name and its token a line."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from harness.solution.unchanged import stamp_of_file

_LEAST = 32  # characters: 128 bits in hexadecimal
_LINE = re.compile(r"(?P<name>[A-Za-z0-9_.-]{1,64})\s+(?P<token>\S+)")


class TokenError(Exception):
    """A file of tokens that cannot be used; the message says what to do."""


class Tokens:
    """The clients that may use the service. The file is read again whenever it has changed. Raises TokenError."""

    def __init__(self, path: Path):
        self._path = path
        try:
            if not path.exists():
                _create(path)
            self._read()
        except OSError as error:
            raise TokenError(f"{path} cannot be used: {error.strerror}") from error

    def _read(self) -> None:
        status, state = self._path.stat(), stamp_of_file(self._path)
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise TokenError(f"others can read {self._path}: chmod 600 {self._path}, and choose new tokens")
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise TokenError(f"{self._path} is no text in UTF-8: {error}") from error
        if not lines:  # an editor may be about to write it, and nobody is a stranger meanwhile
            raise TokenError(f"{self._path} is empty: expected a NAME and a TOKEN a line, or a comment")
        clients: dict[str, bytes] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if not match or len(match["token"]) < _LEAST or match["name"] in clients:
                raise TokenError(f"{self._path}, line {number}: expected a new NAME and a TOKEN of {_LEAST} characters")
            if (digest := _digest(match["token"])) in clients.values():
                raise TokenError(f"{self._path}, line {number}: another client has this token")
            clients[match["name"]] = digest
        self._clients, self._state = clients, state

    def client(self, token: str) -> str | None:
        """Return the name of the client with this token; None for a stranger. The time tells nothing of any token."""
        if stamp_of_file(self._path) != self._state:
            self._read()
        given, found = _digest(token), None
        for name, digest in self._clients.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _create(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f"# One client a line: NAME TOKEN\ndefault {secrets.token_hex(_LEAST)}\n")
