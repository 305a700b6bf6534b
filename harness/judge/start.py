"""Where a judge's process begins: its fork server imports PyTorch at the same time as it does."""

from __future__ import annotations

from harness.process import ForkServer


def serve(fd: int) -> None:
    """Answer jobs until the other end closes the socket."""
    with ForkServer() as workers:
        from harness.judge import server  # imports torch

        server.serve(fd, workers)
