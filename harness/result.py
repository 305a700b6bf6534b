"""The result record, its status vocabulary, its JSON form.

One record can be read alone: it names the problem and its workload, the
solution by content, the device, the versions, the method and every sample.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import json
import re
import unicodedata
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from harness.limits import MAX_LOG_BYTES, MAX_MESSAGE_BYTES
from harness.record.fields import RESULT
from harness.record.shape import bounded

FORMAT = 2
# What format 1 calls otherwise, by the part of a record.
_RENAMED = {
    "timing": {
        "dry_rounds": "underfull_rounds", "between_runs": "run_to_run_rel", "places": "placements",
        "judge_clock": "cross_check",
    },
    "cross_check": {"charged_ms": "penalty_ms", "held": "queue_held"},
    "conditions": {"copy_share": "bandwidth_fraction"},
    "stages_s": {"witness": "cross_check"},
}  # fmt: skip


class Status(str, Enum):
    """End of an evaluation; exactly one per result."""

    OK = "ok"
    BUILD_ERROR = "build_error"  # the compiler (of C++, CUDA or Python) refused the source
    LOAD_ERROR = "load_error"  # import, ModelNew or the library's symbol failed
    RUNTIME_ERROR = "runtime_error"  # a call raised
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"  # the process died, or it lost its device context
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUE = "wrong_value"
    NONFINITE = "nonfinite"
    REJECTED = "rejected"  # right by value, but an integrity rule forbids it

    def __str__(self) -> str:
        return self.value


_LEFT_OUT_BYTES = 64  # that say how much of a text is left out
_MOST_MARKS = 2  # on one letter; of those in use, Vietnamese has two
# Characters that Python calls printable and that show nothing: fillers, joiners, variation selectors, an empty pattern.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """``text`` without what drives a terminal, shows nothing or cannot be encoded: those characters as escapes.

    A candidate writes much of what is shown of it, and could otherwise write over the rest.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\n\t" else escape(c) for c in text)
    return text if text.isascii() else _without_stacks(_UNSEEN.sub(lambda found: escape(found[0]), text))


def _without_stacks(text: str) -> str:
    """``text`` with escapes for marks that would be drawn over other lines: more than two on one letter."""
    marks, shown = 0, []
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        shown.append(escape(character) if marks > _MOST_MARKS else character)
    return "".join(shown)


def escape(character: str) -> str:
    """Return how a text of Python says this character."""
    return character.encode("unicode_escape").decode()


def shown(text: str, most: int) -> str:
    """Return it printable, and without its middle where it has more than ``most`` bytes in a record.

    How it begins and how it ends says most.
    """
    if len(text) <= most:
        text = printable(text)
    if len(json.dumps(text)) <= most:
        return text
    half = (most - _LEFT_OUT_BYTES) // 2
    begin, end = _begin(printable(text[:half]), half), _begin(printable(text[-half:])[::-1], half)[::-1]
    return f"{begin}\n[{len(text) - len(begin) - len(end)} characters left out]\n{end}"


def _begin(text: str, most: int) -> str:
    """Return as many of its first characters as have ``most`` bytes in a record."""
    fits = bisect.bisect_right(range(len(text) + 1), most, key=lambda length: len(json.dumps(text[:length])))
    return text[: max(0, fits - 1)]


def first_line(text: str) -> str:
    """Return the first line of a message; '' if there is none, as in older and foreign records."""
    return text.strip().partition("\n")[0]


class CandidateFailure(Exception):
    """Reason why a candidate is not ``ok``; raised wherever that becomes known.

    ``message`` is for the candidate's author (a person, or a model that must
    repair the code); ``log`` holds compiler or process output, as much of it as is kept; ``rule``
    names the integrity rule of a rejection; ``killed_by`` the signal that ended its process, if
    nobody here sent it: the system may have.
    """

    def __init__(self, status: Status, message: str, log: str = "", rule: str | None = None):
        super().__init__(message)
        self.status = status
        self.message = shown(message, MAX_MESSAGE_BYTES) or "no reason was given"
        self.log = shown(log, MAX_LOG_BYTES)
        self.rule = rule
        self.killed_by = ""


@dataclass
class Result:
    """One evaluation of one solution on one workload of its problem. Times in ms unless named otherwise."""

    problem: str
    problem_name: str
    workload: dict[str, Any]  # name, sizes, flops, bytes; timed, where it is only checked
    solution: dict[str, Any]  # name, sample, kind, language, sha256; helpers, if it takes in other files
    status: Status
    message: str = ""
    log: str = ""
    rule: str | None = None  # the integrity rule behind ``rejected``
    precision: str = "fp32"
    correctness: dict[str, Any] | None = None  # trials, worst errors, tolerance, weights
    timing: dict[str, Any] | None = None  # statistics and samples of the candidate
    baselines: dict[str, dict[str, Any]] = field(default_factory=dict)  # the same for each baseline
    speedup: float | None = None  # baseline median / candidate median
    problem_sha256: str = ""  # of its module; '' where that is not known
    confirms: dict[str, Any] | None = None  # speedup, verdict, interval of the first measurement, where this repeats it
    held_out: list[dict[str, Any]] | None = None  # one entry a held-out workload; None: not asked
    gflops: float | None = None
    gbps: float | None = None
    sol: dict[str, Any] | None = None  # bounds, headroom g, percent of SOL, shares of the device's peaks
    build: dict[str, Any] | None = None
    integrity: dict[str, Any] = field(default_factory=dict)  # what its source shows to a reviewer; no verdict
    device: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)  # clocks, power, throttling, cache, math modes
    versions: dict[str, str] = field(default_factory=dict)
    started: str = ""  # UTC, ISO 8601
    seconds: float = 0.0  # wall time of build and evaluation together
    stages_s: dict[str, float] = field(default_factory=dict)  # wall time of the evaluation, by what went on
    format: int = FORMAT

    @property
    def correct(self) -> bool:
        return self.status is Status.OK

    @property
    def unconfirmed(self) -> str:
        """Return why the judge's own clock could not be read; '' where it was, or where nothing is known of it."""
        clock = (self.timing or {}).get("cross_check")
        return clock if isinstance(clock, str) else ""

    def speedup_over_first(self) -> float | None:
        """Over the first baseline that ran; None without one."""
        return next((b["speedup"] for b in self.baselines.values() if "speedup" in b), None)

    def to_json(self) -> dict[str, Any]:
        return bounded({**dataclasses.asdict(self), "status": self.status.value})

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Result:
        """Inverse of ``to_json``; ValueError for a record of another format, or with values of other types."""
        if not isinstance(record, dict):
            raise ValueError("it is not an object")
        if record.get("format") == 1:
            record = upgraded(record)
        if record.get("format") != FORMAT:
            raise ValueError(f"result format {record.get('format')!r} is not 1 or {FORMAT}, which this version reads")
        known = _field_types()
        result = cls(**{**{k: v for k, v in record.items() if k in known}, "status": Status(record["status"])})
        result.check()
        return result

    def check(self) -> None:
        """Raise ValueError that names a field with a value of another type."""
        for name, allowed in _field_types().items():
            if not isinstance(value := getattr(self, name), allowed):
                raise ValueError(f"{name} is {value!r:.80}")
        RESULT.check(vars(self))
        for name, timing in {"timing": self.timing, **self.baselines}.items():
            if timing and "error" not in timing and not timing.keys() & {"median_ms", "mean_ms"}:
                raise ValueError(f"{name} has neither median_ms nor mean_ms")
        if self.speedup is not None and not self.timing:
            raise ValueError("a speedup without a timing")
        if self.speedup is not None and not any(b and "error" not in b for b in self.baselines.values()):
            raise ValueError("a speedup over no baseline")


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 with the names of format 2."""
    record = {**record, "format": FORMAT}
    for part in ("conditions", "stages_s"):
        record[part] = _renamed(record.get(part), part)
    record["timing"] = upgraded_timing(record.get("timing"))
    baselines = record.get("baselines")
    if isinstance(baselines, dict):
        record["baselines"] = {name: upgraded_timing(timing) for name, timing in baselines.items()}
    return record


def upgraded_timing(timing: Any) -> Any:
    """Return the statistics of one side, as format 1 has them, with the names of format 2."""
    timing = _renamed(timing, "timing")
    if isinstance(timing, dict):
        if timing.get("stopped") == "places":
            timing["stopped"] = "placements"
        if "cross_check" in timing:
            timing["cross_check"] = _renamed(timing["cross_check"], "cross_check")
    return timing


def _renamed(values: Any, part: str) -> Any:
    names = _RENAMED[part]
    return {names.get(k, k): v for k, v in values.items()} if isinstance(values, dict) else values


@functools.cache
def _field_types() -> dict[str, tuple[type, ...]]:
    """Field of a result -> the types that its value may have."""
    types = {}
    for name, hint in get_type_hints(Result).items():
        hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        types[name] = tuple(get_origin(h) or h for h in hints) + ((int,) if float in hints else ())
    return types
