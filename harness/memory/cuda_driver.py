"""Calls of the CUDA driver that PyTorch has no function for, in the context that it made current."""

from __future__ import annotations

import ctypes
import functools


class DriverError(Exception):
    """A call that the driver refused."""


@functools.cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def call(function: str, *arguments, raises: type[Exception] = DriverError) -> None:
    if code := getattr(library(), function)(*arguments):
        raise raises(f"{function} failed with CUDA driver error {code}")
