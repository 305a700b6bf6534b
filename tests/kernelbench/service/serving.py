"""A service as a process, and who runs below it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"


class Serving:
    """`kb serve-eval` on a folder and a port that stay the same over restarts; ``code`` runs before it."""

    def __init__(self, folder, *options, code=""):
        self.folder, self._options, self._code = folder, options, code
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        code = f"{self._code}\nfrom kernelbench.cli import main\nmain()"
        command = [sys.executable, "-c", code, "serve-eval", str(self.folder), "--port", str(self.port)]
        options = ["--device", "cpu", *self._options]
        self.process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.url in (line := self.process.stdout.readline()), line

    @property
    def token(self):
        return (self.folder / "tokens").read_text().split()[-1]

    @property
    def evaluator(self):
        """The number of the evaluator's process."""
        return next(pid for pid in children(self.process.pid) if "kernelbench.evaluator.process" in command_of(pid))

    @property
    def judges(self):
        return [pid for pid in children(self.evaluator) if "harness.judge.main" in command_of(pid)]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """End it as a system does; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


def children(pid):
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
