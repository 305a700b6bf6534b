"""Calls of the CUDA driver that PyTorch has no function for, in the context that it made current."""

from __future__ import annotations

import ctypes
import functools


class DriverError(Exception):
    """A call that the driver refused."""


@functools.cache
def library() -> ctypes.CDLL:
    """Return the CUDA driver's library; raises OSError where there is none."""
    return ctypes.CDLL("libcuda.so.1")


def call(function: str, *arguments, raises: type[Exception] = DriverError) -> None:
    """Call a function of the CUDA driver; raise ``raises`` for any code but success."""
    if code := getattr(library(), function)(*arguments):
        raise raises(f"{function} failed with CUDA driver error {code}")
