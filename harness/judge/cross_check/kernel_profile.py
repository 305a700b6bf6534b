"""The worker's word on what its device ran, taken apart before it is believed to be a profile at all."""

from __future__ import annotations

from typing import Any

from harness.result import CandidateFailure, Status, printable

_MOST_KERNELS = 100  # as harness.timing.cupti keeps
_NAME_CHARACTERS = 500  # likewise
_NUMBERS = ("launches", "ms", "registers", "shared_bytes")
_LEAST_LAUNCH_MS = 1e-3  # ms; no kernel takes less on an H100, an empty one included


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """``answer`` with nothing in it but what a profile has; raises CandidateFailure where it is none."""
    kernels = answer.get("kernels")
    if not isinstance(kernels, list) or len(kernels) > _MOST_KERNELS:
        raise _garbled()
    return {
        "span_ms": _number(answer.get("span_ms")),
        "launches": int(_number(answer.get("launches"))),
        "side_launches": int(_number(answer.get("side_launches"))),
        "kernels": [_kernel(kernel) for kernel in kernels],
    }


def believed_launches(launches: int, call_ms: float) -> int:
    """Return as many of the launches that a worker reports as fit the time of its call, and at least one."""
    return max(1, min(launches, int(call_ms / _LEAST_LAUNCH_MS)))


def _kernel(kernel: Any) -> dict[str, Any]:
    if not isinstance(kernel, dict) or not isinstance(kernel.get("name"), str):
        raise _garbled()
    found: dict[str, Any] = {"name": printable(kernel["name"][:_NAME_CHARACTERS]).replace("\n", " ")}
    found |= {name: _number(kernel.get(name)) for name in _NUMBERS}
    for name in ("grid", "block"):
        sizes = kernel.get(name)
        if not isinstance(sizes, list) or len(sizes) > 3:
            raise _garbled()
        found[name] = [int(_number(size)) for size in sizes]
    return found


def _number(value: Any) -> float | int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12:
        return value
    raise _garbled()


def _garbled() -> CandidateFailure:
    return CandidateFailure(Status.CRASHED, "the worker answered with something that is no profile of its kernels")
