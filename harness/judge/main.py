"""Entry point of a judge's process: it imports PyTorch once, for itself and for its fork server."""

from __future__ import annotations

import os

from harness.compile.cache import cache_root
from harness.process.fork_server import ForkServer
from harness.worker import forkserver


def serve(fd: int) -> None:
    """Answer jobs until the other end closes the socket."""
    os.chdir("/")  # what lies in the user's folder may be of others, and torch.compile's helpers import from there
    # where torch.compile looks by default, any user of this machine may have put libraries
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache_root() / "torchinductor")
    os.environ["TRITON_CACHE_DIR"] = str(cache_root() / "triton")  # the user's home may be read-only
    forkserver.warm_up()
    with ForkServer(split=True) as workers:  # before there is a job, a device or anything drawn
        from harness.judge import server

        server.serve(fd, workers)
