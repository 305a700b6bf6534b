"""Bound on processor time that linear work stays far below and quadratic work on a megabyte far above."""

import contextlib
import signal

MEGABYTE = 1 << 20
_SECONDS = 4.0  # linear patterns take 0.1 s for a megabyte, quadratic ones an hour


@contextlib.contextmanager
def in_linear_time():
    """End with an AssertionError what takes longer; the load of others does not count."""

    def ended(*_):
        raise AssertionError(f"took more than {_SECONDS:g} s of processor time: not linear")

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
