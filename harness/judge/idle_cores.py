"""Others' work on the cores of this process: what a candidate had the kernel do is in no process's time.

The kernel's own work, such as freeing what a candidate gave back, goes on while that is suspended and after its end.
/proc/stat shows it, of each core in hundredths of a second.
"""

from __future__ import annotations

import os
import time

_LOOK_S = 0.03  # some ticks, of which one core's may be somebody's who was there for a moment
_IDLE = (3, 4)  # fields of a core: idle, waiting for a disk


def wait_for_idle_cores(patience_s: float) -> bool:
    """Return whether all cores that this process may use were idle for a moment; False after ``patience_s`` seconds.

    Where the system does not say what cores do, they count as idle.
    """
    cores, deadline = {f"cpu{core}" for core in os.sched_getaffinity(0)}, time.monotonic() + patience_s
    while True:
        before = _busy_ticks(cores)
        time.sleep(_LOOK_S)
        if _busy_ticks(cores) - before <= 1:
            return True
        if time.monotonic() > deadline:
            return False


def share_of_others() -> float:
    """Return the share of the cores that this process may use that others have for a moment, while it sleeps.

    0 where the system does not say what cores do.
    """
    cores, begin = {f"cpu{core}" for core in os.sched_getaffinity(0)}, time.monotonic()
    before = _busy_ticks(cores)
    time.sleep(_LOOK_S)
    most = (time.monotonic() - begin) * os.sysconf("SC_CLK_TCK") * len(cores)
    return min(1.0, (_busy_ticks(cores) - before) / most)


def _busy_ticks(cores: set[str]) -> int:
    """Return hundredths of a second that these cores worked since the system started."""
    try:
        with open("/proc/stat", encoding="utf-8") as stat:
            lines = [line.split() for line in stat if line.startswith("cpu")]
    except OSError:
        return 0
    return sum(
        int(ticks)
        for name, *fields in lines if name in cores
        for place, ticks in enumerate(fields[:8]) if place not in _IDLE
    )  # fmt: skip
