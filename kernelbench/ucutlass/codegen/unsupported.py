"""Refusal of a program that cannot be built."""

from __future__ import annotations


class Unsupported(Exception):
    """A valid program that CUTLASS or the compiler at hand cannot build: the reason, and what to write instead."""

    def __init__(self, reason: str, fix: str):
        super().__init__(f"{reason}; {fix}")
        self.reason = reason
        self.fix = fix
