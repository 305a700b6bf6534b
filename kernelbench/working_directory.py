"""The working directory may be of others: an archive that somebody unpacked, a checkout."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def left() -> Iterator[None]:
    """Be in ``/`` for as long as something looks into the working directory for its code or settings.

    Python's own way to start processes imports from there what they begin with, and matplotlib reads its settings.
    """
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir("/")
        yield
    finally:
        os.fchdir(here)
        os.close(here)
