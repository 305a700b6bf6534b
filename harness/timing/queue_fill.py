"""Length of the spin that holds the device until the host has a whole call enqueued."""

from __future__ import annotations

from collections import deque

LEAST_S, _MOST_S = 0.5e-3, 0.1  # seconds of spin; chosen: a host enqueues one kernel in some 10 us
_MARGIN = 1.5  # times what the host took; chosen: an interrupted host takes longer and is seen
_CALLS = 8  # remembered: a round's
_GUESS_S = 0.001  # of the first call; it only has to be right within a factor of ten


class HostTimes:
    """Times that the host took to enqueue the last calls."""

    def __init__(self, guess_s: float = _GUESS_S, calls: int = _CALLS):
        self._seconds: deque[float] = deque([guess_s], maxlen=calls)
        self.begin()

    def begin(self) -> None:
        """Begin with calls that may be others than before."""
        self._late: tuple[float, float] | None = None  # the last call that outlasted its spin: that, and its time
        self._waits = False

    @property
    def expected_s(self) -> float:
        """The longest but one, which an interruption is not."""
        return sorted(self._seconds)[-2:][0]

    @property
    def spin_s(self) -> float:
        """Return seconds to hold the device for the next call."""
        return min(max(_MARGIN * self.expected_s, LEAST_S), _MOST_S)

    def learn(self, spin_s: float, took_s: float, full: bool) -> None:
        """One call; ``full`` says that it was enqueued before the spin ended.

        One that was not takes so long by itself, or it waits for the device and so for the spin. A spin of another
        length tells: what waits takes longer by as much as the spin, and no spin is long enough for it.
        """
        if not full:
            if self._late and spin_s != self._late[0]:
                self._waits = (took_s - self._late[1]) / (spin_s - self._late[0]) > 0.5
            self._late = spin_s, took_s
        self._seconds.append(took_s - spin_s if self._waits and not full else took_s)
