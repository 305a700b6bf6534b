"""Budget scheduling as a schedule: round robin over the problems that are worth further work.

``--schedule policy:eps=100%,window=8`` stops a problem that is ahead of its baseline and within 100 % of t_SOL under
FP16, or without a settled improvement for 8 attempts. ``eps=off`` and ``window=0``, the defaults, switch a rule off.
``kb schedule replay`` says what that would have saved in a run that is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelbench.metrics.scheduling import Policy, attempt_of, progress, sol_ms_of
from kernelbench.solvers.schedule.order import Standing, UnknownSchedule, refuse


class PolicySchedule:
    """Breadth first over the problems that the policy does not stop."""

    def __init__(self, eps: str = "off", window: str = "0", **options: str):
        refuse(options, self)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", eps)
        if not match and eps != "off":
            raise UnknownSchedule(f"eps={eps} is no headroom threshold: write a percentage such as 100%, or off")
        if not window.isdecimal():
            raise UnknownSchedule(f"window={window} is no number of attempts")
        self.policy = Policy(float(match[1]) / 100 if match else None, int(window))

    def next(self, waiting: Sequence[Standing]) -> Standing | None:
        """Return the eligible problem with the fewest units, the first of several; None where none is."""
        eligible = [one for one in waiting if not self._stops(one)]
        return min(eligible, key=lambda one: one.units, default=None)

    def _stops(self, one: Standing) -> bool:
        return self.policy.stops(progress(map(attempt_of, one.results)), sol_ms_of(one.results))
