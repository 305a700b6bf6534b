"""The warm server from outside: calls start it where it is not there. It imports little, to start at once."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from harness.process import protocol
from harness.process.spawn import start_server
from kernelbench.attempt.request import Request
from kernelbench.attempt.warm_place import CALLERS, IDLE_S, Place, private_folder

_SEND_S = 60.0  # the other side reads at once
_TRIES = 2  # a server that dies is the machine's fault, or has just ended: another one is asked once


class ServerError(Exception):
    """A warm server that cannot be had."""


def try_file(request: Request, idle_s: float = IDLE_S) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the attempt of a file, and its record as JSON; None where it was not evaluated.

    ``seconds`` of the attempt are those of this call. The server ends after ``idle_s`` seconds without a call.

    Raises NoPlace where there is no private folder for a server, and ServerError where it died twice, or where the
    working directory is gone.
    """
    begin, death = time.perf_counter(), ""
    try:
        asked = vars(request.anywhere())
    except OSError as error:
        raise ServerError(f"the working directory cannot be found: {error.strerror}") from error
    for _ in range(_TRIES):
        try:
            with _connected(Place.here()) as connection:
                protocol.send(connection, {"idle_s": idle_s, **asked})
                connection.settimeout(None)  # evaluations end by deadlines of their own, and a death closes the socket
                answer = protocol.receive(connection)
        except (protocol.Closed, OSError) as error:
            death = f": {error}" if str(error) else ""
            continue
        return _as_asked(answer["attempt"], request, time.perf_counter() - begin), answer["record"]
    raise ServerError(f"the warm server ended {_TRIES} times without an answer{death}; use --no-server, or `kb doctor`")


def _as_asked(attempt: dict[str, Any], request: Request, wall_s: float) -> dict[str, Any]:
    """Return the attempt with the file as its author named it, and the time that the author waited."""
    seconds = attempt["seconds"]
    more = wall_s - seconds["total"]
    waited = {"total": round(wall_s, 3)}
    if seconds["overhead"] is not None:
        waited["overhead"] = round(seconds["overhead"] + more, 3)
    return {**attempt, "file": request.file, "seconds": {**seconds, **waited}}


def stop() -> int:
    """Ask this user's warm servers to end once they have answered what they were asked; return how many there were.

    Those of other environments and of earlier code are among them. Raises NoPlace.
    """
    return sum(map(_stop, private_folder().glob("*.sock")))


def _stop(path: Path) -> bool:
    try:
        with _greeted(Place.of_socket(str(path))) as connection:
            protocol.send(connection, {"idle_s": 0})
    except OSError:  # nobody serves there
        return False
    return True


def _connected(place: Place) -> socket.socket:
    """Return a connection to the server, which is started where there is none."""
    try:
        return _greeted(place)
    except OSError:
        pass
    with place.locked():
        try:
            return _greeted(place)
        except OSError:  # nobody serves here
            _start(place)
            return _greeted(place)


def _greeted(place: Place) -> socket.socket:
    token = place.token.read_bytes()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_SEND_S)
        connection.connect(str(place.socket))
        connection.sendall(token)
    except BaseException:
        connection.close()
        raise
    return connection


def _start(place: Place) -> None:
    """Start a server that has nothing of its caller's: neither terminal nor pipes nor session."""
    place.remove()
    place.write_token()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.socket))
    os.chmod(place.socket, 0o600)
    listener.listen(CALLERS)
    with _log(place.log) as log:
        start_server("kernelbench.attempt.warm_server", listener, bound=False, output=log.fileno())


def _log(path: Path):
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
