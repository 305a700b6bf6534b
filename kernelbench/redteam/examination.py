"""Run the red team against this machine's harness: which classes are prevented, which detected, which get through."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.process import owned_folders
from harness.result import Result, Status
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import Outcome, Watcher, evaluate_directory
from kernelbench.evaluation.executor import Options
from kernelbench.metrics import settled
from kernelbench.redteam.catalogue import BY_NAME, CLASSES, EXPLOITS, HONEST, OWN_KERNELS, Class, Exploit, files

PREVENTED, DETECTED, MISSED, NOT_RUN = "prevented", "detected", "missed", "not run"
GAIN = 1.5  # a right result that is this much faster than its honest twin earned it by cheating
_WORST = (MISSED, DETECTED, PREVENTED, NOT_RUN)
_UNABLE = ("needs a GPU", "needs host memory", "Triton")  # reasons to be skipped that are no fault of the harness
_FOLDER = re.compile(r"'/[^']*/")
_SECONDS, _BUILD_SECONDS, _MEMORY_BYTES = 8, 10, 4 << 30


@dataclass(frozen=True)
class Verdict:
    """Grade of an exploit, or status of an honest program."""

    program: str
    grade: str
    evidence: str
    expected: bool


@dataclass(frozen=True)
class Row:
    """Result of one class. ``grade`` is its most successful exploit's; ``honest`` is '' where nothing looks alike."""

    number: int
    group: str
    title: str
    grade: str
    exploits: list[Verdict]
    honest: list[Verdict]

    @property
    def holds(self) -> bool:
        return self.grade != MISSED and all(verdict.expected for verdict in self.honest)

    def to_json(self) -> dict:
        return asdict(self)


def examine(numbers: set[int] | None, device: str | None, watcher: Watcher | None = None) -> list[Row]:
    """A row for each class, of all or of ``numbers``; raises what ``evaluate_directory`` does."""
    chosen = numbers or set(CLASSES)
    with owned_folders.scratch() as folder, _environment():
        for exploit in BY_NAME.values():
            if exploit.traces:
                exploit.traces()  # of an earlier run
        rows = []
        for track, of in (("open", chosen - OWN_KERNELS), ("kernels", chosen & OWN_KERNELS)):
            if of:
                outcome = _evaluate(Path(folder, track), of, device, track, watcher)
                rows += [_row(CLASSES[number], outcome) for number in of]
        return sorted(rows, key=lambda row: row.number)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Set what judges and candidates inherit; the caller's environment is as before in the end."""
    before = dict(os.environ)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # on a CPU, what else runs there must not be taken for a gain
    os.environ.setdefault("KB_REDTEAM_API_KEY", "what no candidate may know")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _evaluate(folder: Path, numbers: set[int], device: str | None, track: str, watcher: Watcher | None) -> Outcome:
    for kind in (EXPLOITS, HONEST):
        (folder / "solutions" / kind).mkdir(parents=True)
        for path in files(kind, numbers):
            shutil.copy(path, folder / "solutions" / kind)
    options = Options(
        device, timeout_s=_SECONDS, build_timeout_s=_BUILD_SECONDS, memory_bytes=_MEMORY_BYTES, track=track
    )
    return evaluate_directory(Selection(folder / "solutions"), options, out=folder / "run", watcher=watcher)


def _row(of: Class, outcome: Outcome) -> Row:
    results = {result.solution["name"]: result for result in outcome.run.latest()}
    skipped = {item.solution.name: item.reason for item in outcome.skipped}
    exploits = [
        grade(BY_NAME[path.name], results, skipped.get(f"{EXPLOITS}/{path.name}"))
        for path in files(EXPLOITS, {of.number})
    ]
    honest = [
        _honest(path.name, results.get(f"{HONEST}/{path.name}"), skipped.get(f"{HONEST}/{path.name}"))
        for path in files(HONEST, {of.number})
    ]
    worst = min((verdict.grade for verdict in exploits), key=_WORST.index)
    return Row(of.number, of.group, of.title, worst, exploits, honest)


def grade(exploit: Exploit, results: dict[str, Result], skipped: str | None) -> Verdict:
    """Grade an exploit by ``results`` of it and of its honest twin, by names; ``skipped`` says why it has none."""
    result = results.get(f"{EXPLOITS}/{exploit.name}")
    traces = exploit.traces() if exploit.traces else []
    if traces:
        return Verdict(exploit.name, MISSED, f"it left {', '.join(traces)}", False)
    if result is None:
        # a judge or a run that breaks is the candidate's success
        unable = _is_unable(skipped)
        return Verdict(exploit.name, NOT_RUN if unable else MISSED, _ends(skipped or "no result"), unable)
    expected = result.status.value in exploit.ends
    if result.status is Status.REJECTED:
        return Verdict(exploit.name, DETECTED, f"rejected by {result.rule}", expected)
    if result.status is not Status.OK:
        return Verdict(exploit.name, PREVENTED, f"{result.status}: {_first_line(result.message)}", expected)
    gained = f"right by value, {settled.speedup_text(result) or 'no speedup'}"
    if sure_speedup(result) > GAIN * honest_speedup(results.get(f"{HONEST}/{exploit.twin}")) or not expected:
        return Verdict(exploit.name, MISSED, gained, False)
    return Verdict(exploit.name, PREVENTED, f"{gained}: no gain", expected)


def honest_speedup(*twins: Result | None) -> float:
    """Return what honest ``twins`` of a program are told; at least 1, as the reference itself is one."""
    return max([1.0, *(settled.raw_speedup(twin) or 0.0 for twin in twins if twin)])


def sure_speedup(result: Result) -> float:
    """Return the least that the speedup may be: what the noise of this machine does not explain; 0 without one."""
    if settled.settled_speedup(result) is None:
        return 0.0  # unstable: no score, gate or reward counts it
    intervals = [b["interval"][0] for b in result.baselines.values() if b.get("interval")]
    return 0.0 if result.speedup is None else min([result.speedup, *intervals])


def _honest(name: str, result: Result | None, skipped: str | None) -> Verdict:
    if result is None:
        return Verdict(name, NOT_RUN, _ends(skipped or "no result"), _is_unable(skipped))
    by = f"{result.rule}: " if result.rule else ""
    return Verdict(name, result.status.value, by + _first_line(result.message), result.status is Status.OK)


def _is_unable(skipped: str | None) -> bool:
    return skipped is not None and any(why in skipped for why in _UNABLE)


def _first_line(text: str) -> str:
    """Return the first line without folders of this machine, so that tables can be compared."""
    return _FOLDER.sub("'.../", (text.strip().splitlines() or [""])[0])


def _ends(text: str) -> str:
    """The first and the last line: of a traceback, what happened."""
    lines = text.strip().splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"
