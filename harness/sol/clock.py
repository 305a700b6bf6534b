"""The clocks that t_SOL is taken at: one choice for records, prompts, reports and schedules.

The clock that was observed while a candidate was timed; another one where it is given; the
rated one of the table where nothing was observed. The source goes with the clock everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports torch, and a command line only has to read a clock
    from harness.sol.hardware import Limits

OBSERVED, GIVEN, RATED = "observed", "given", "rated"

# SM clocks in MHz by name. "mucutlass": the one that the muCUTLASS paper locks its H100 to, to reproduce its bounds.
PRESETS = {"mucutlass": 1500.0}


@dataclass(frozen=True)
class Clock:
    """SM and memory clock in MHz, and where the SM clock comes from: ``observed``, ``given`` or ``rated``."""

    sm_mhz: float
    memory_mhz: float
    source: str


def parse(text: str) -> float:
    """Return the SM clock in MHz that ``text`` names: a number, or one of ``PRESETS``. Raises ValueError."""
    if text in PRESETS:
        return PRESETS[text]
    try:
        mhz = float(text)
    except ValueError:
        mhz = math.nan
    if not 1 <= mhz < math.inf:
        known = ", ".join(PRESETS)
        raise ValueError(f"an SM clock must be a finite number of MHz from 1 on, or one of {known}, got {text}")
    return mhz


def choose(limits: Limits, conditions: dict[str, Any] | None = None, given_mhz: float | None = None) -> Clock:
    """Return the clocks to take t_SOL at.

    Parameters
    ----------
    limits
        Of the device; its rated clocks stand in where nothing was observed.
    conditions
        Of a result, with the clocks that were observed while it was timed.
    given_mhz
        SM clock that the user asked for, before any other.

    Raises
    ------
    ValueError
        Where the device has no clock of ``given_mhz``.
    """
    sm_mhz, memory_mhz = (
        ((conditions or {}).get(key) or {}).get("median") for key in ("sm_clock_mhz", "memory_clock_mhz")
    )
    memory_mhz = memory_mhz or limits.memory_mhz
    if given_mhz is not None:
        if given_mhz > limits.max_mhz:
            raise ValueError(
                f"{limits.title} has no SM clock of {given_mhz:g} MHz; its highest is {limits.max_mhz} MHz"
            )
        return Clock(given_mhz, memory_mhz, GIVEN)
    return Clock(sm_mhz, memory_mhz, OBSERVED) if sm_mhz else Clock(limits.rated_mhz, memory_mhz, RATED)
