"""Counts of the operating system for this process while a model is called."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable


def counted(action: Callable[[], None]) -> dict[str, float]:
    """Call ``action``; return wall and processor seconds, page faults and context switches of all threads."""
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    action()
    wall_s, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "wall_s": wall_s,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "minor_faults": after.ru_minflt - before.ru_minflt,
        "major_faults": after.ru_majflt - before.ru_majflt,
        "voluntary_switches": after.ru_nvcsw - before.ru_nvcsw,
        "involuntary_switches": after.ru_nivcsw - before.ru_nivcsw,
    }
