"""Entry point of a judge's process: it imports PyTorch once, for itself and for its fork server."""

from __future__ import annotations

from harness.process.fork_server import ForkServer
from harness.worker import forkserver


def serve(fd: int) -> None:
    """Answer jobs until the other end closes the socket."""
    forkserver.warm_up()
    with ForkServer(split=True) as workers:  # before there is a job, a device or anything drawn
        from harness.judge import server

        server.serve(fd, workers)
