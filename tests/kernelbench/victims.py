"""Candidates that wait to be found from outside: confined as they are, they can tell nobody where they run."""

import contextlib
from pathlib import Path

# Wrong, after a second under this name.
SOURCE = """import ctypes, sys, time, torch
assert "ray" not in sys.modules
class ModelNew(torch.nn.Module):
    def forward(self, x):
        ctypes.CDLL(None).prctl(15, b"victim")
        time.sleep(1)
        return -1 - x
"""


def children(pid):
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += path.read_text().split()
    return found


def below(pid):
    """Whether a victim runs now among the descendants of a process."""
    for child in children(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{child}/comm").read_text() == "victim\n" or below(child):
                return True
    return False
