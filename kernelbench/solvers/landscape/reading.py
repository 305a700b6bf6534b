"""Reading of a prompt by a simulated author: everything it knows of a kernel it has read there.

An author has no memory of its own. A strategy that wants it to know the profile, the bounds, an error or a
lesson has to show them, as it would have to a model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.result import Status
from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape.terrain import Spec, spec_in

Message = dict[str, str]

_PROFILE = re.compile(
    r"(?:throughput|occupancy|bandwidth)\b[^\n]{0,60}?\d|\d\s*%[^\n]{0,40}\b(?:throughput|occupancy|bandwidth)\b", re.I
)
_BOUNDS = re.compile(r"(?:t_SOL|speed[ -]of[ -]light)[^\n]{0,80}?\d", re.I)
_ATTRIBUTION = "gap attribution:"
_SHARE = re.compile(rf"({'|'.join(p.RESOURCES)}) (\d\.\d+)")
_ERROR = re.compile(r"status: (?:" + "|".join(s.value for s in Status if s is not Status.OK) + r")\b")
_LESSON = re.compile(r"\[lesson (?P<problem>\d+/\d+) (?P<lever>[a-z& ]+): (?P<end>worked|failed)[^\]]*\]")
_LEVER = re.compile(r"\[lever: (?P<lever>[a-z& ]+)\]")
_OWN = ("# landscape ", "[lesson ", _ATTRIBUTION)  # lines of an author's own, in which a lever is no request
_NAMED = re.compile("|".join(name.replace(" & ", r"[ _]*(?:&|and|_)[ _]*") for name in p.LEVERS), re.I)


@dataclass(frozen=True)
class Lesson:
    problem: str
    lever: int
    worked: bool


@dataclass(frozen=True)
class Seen:
    """Content of a prompt. ``wanted`` is the lever that it asks for, None where it asks for none or for several."""

    base: Spec | None
    wanted: int | None
    profile: bool
    bounds: bool
    attribution: dict[str, float]  # share of the gap by resource; empty without one
    error: bool
    lessons: tuple[Lesson, ...] = field(default=())


def read(messages: list[Message]) -> Seen:
    """Return what there is to know from a conversation."""
    text = "\n".join(message["content"] for message in messages)
    last = messages[-1]["content"]
    return Seen(
        spec_in(text),
        _wanted(text, last),
        _PROFILE.search(text) is not None,
        _BOUNDS.search(text) is not None,
        _attribution(text),
        _ERROR.search(last) is not None,
        tuple(
            Lesson(found["problem"], p.LEVERS.index(found["lever"]), found["end"] == "worked")
            for found in dict.fromkeys(_LESSON.finditer(text)) if found["lever"] in p.LEVERS
        ),
    )  # fmt: skip


def _attribution(text: str) -> dict[str, float]:
    """Return the last attribution of the gap in a text."""
    line = text.rpartition(_ATTRIBUTION)[2].partition("\n")[0] if _ATTRIBUTION in text else ""
    return {name: float(share) for name, share in _SHARE.findall(line)}


def _wanted(text: str, last: str) -> int | None:
    """Return the lever of the last hypothesis that is quoted, else the only one that the last message names."""
    if marks := [found["lever"] for found in _LEVER.finditer(last) if found["lever"] in p.LEVERS]:
        return p.LEVERS.index(marks[-1])
    asked = "\n".join(line for line in last.split("\n") if not any(mark in line for mark in _OWN))
    named = {found.lower()[:6] for found in _NAMED.findall(asked)}
    levers = [index for index, name in enumerate(p.LEVERS) if name[:6] in named]
    return levers[0] if len(levers) == 1 else None
