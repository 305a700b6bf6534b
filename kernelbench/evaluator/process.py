"""The evaluator's side of ``kernelbench.evaluator.client``: answer calls with builds and judges that stay warm.

This process imports no torch. Judges and builds are those of ``kb eval``, opened at the
first call and opened anew only for other conditions or where the machine failed.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading

from harness.process import owned_folders
from kernelbench.evaluator.bench import Benches
from kernelbench.evaluator.call import Call


def serve(fd: int) -> None:
    """Serve each socket that comes over this one, until its other end is closed: then its caller has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    control = socket.socket(fileno=fd)
    benches = Benches()
    owned_folders.sweep()
    with owned_folders.scratch() as folder:
        try:
            while (received := socket.recv_fds(control, 1, 1))[0]:
                call = Call(socket.socket(fileno=received[1][0]), benches, folder)
                threading.Thread(target=call.serve, daemon=True).start()
        finally:
            threading.excepthook = lambda _: None  # of calls that begin while all is taken from them
            benches.kill()
