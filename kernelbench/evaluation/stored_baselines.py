"""Baselines that were measured before: their file, whether they still hold, and what a result is worth against one.

A file has one record a line (``harness.judge.reference.time_baseline``), for each problem, workload,
precision and configuration of the reference. It is only ever appended to; the last that holds counts, and an error
only where none of them was timed.
Imports no torch.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.baselines import BASELINES, EAGER, FORMAT
from harness.json_text import parse_json
from harness.problem.math_modes import MATH_MODES
from harness.problem.module import ProblemFile, ProblemId
from harness.record.fields import BASELINE
from harness.result import Result, upgraded_timing
from harness.solution.includes import digest_of
from harness.timing.stability import NOISE
from harness.timing.statistics import round_means_ms
from harness.timing.unpaired import ratio_of_runs
from kernelbench.run_files.folder import run_left_by_a_link
from kernelbench.run_files.log import append_line, begin, whole_lines

FILE = "baselines.jsonl"
_RESULTS = Path("results")
_SUFFIX = ".jsonl"
_PRODUCT = re.compile(r"\b[A-Z]{1,4}\d{1,4}[A-Za-z]*\b")
_SHOWN = 5


class BaselineError(Exception):
    """Baselines that cannot be used, why, and what to do about it."""


@dataclass(frozen=True)
class Stored:
    """A configuration as a file of measured baselines has it."""

    file: Path
    configuration: str = EAGER

    def __str__(self) -> str:
        return f"stored {self.configuration}"


@dataclass(frozen=True)
class BaselineKey:
    """Conditions that a stored baseline must share to be comparable."""

    device: str  # as the driver names it
    torch: str
    precision: str
    threads: int | None  # of PyTorch on a CPU

    @classmethod
    def here(cls, device: dict[str, Any], torch_version: str, precision: str) -> BaselineKey:
        """Return the conditions of evaluations on a device, as a record describes it."""
        return cls(device["name"], torch_version, precision, device.get("threads"))


def default_file(device_name: str, device_type: str) -> Path:
    """``results/<gpu>/baselines.jsonl``, with a folder such as ``h100``."""
    if device_type == "cpu":
        folder = "cpu"
    else:
        words = [word for word in _PRODUCT.findall(device_name) if not re.fullmatch(r"HBM\d\w*|PCI\w*|SXM\d", word)]
        folder = (words[0] if words else re.sub(r"\W+", "-", device_name).strip("-")).lower()
    return _RESULTS / folder / FILE


def parse(text: str) -> tuple[str | Stored, ...]:
    """Baselines as people write them: names, files, and ``FILE:NAME``, after commas. Raises BaselineError."""
    found = dict.fromkeys(_parse_one(part.strip()) for part in text.split(","))
    if len({str(one) for one in found}) < len(found):
        raise BaselineError("two stored baselines are of one configuration; name one of them")
    return tuple(found)


def _parse_one(text: str) -> str | Stored:
    if text in BASELINES:
        return text
    file, _, configuration = text.rpartition(":")
    stored = Stored(Path(file), configuration) if configuration in BASELINES and file else Stored(Path(text))
    if stored.file.suffix != _SUFFIX:
        known = ", ".join(BASELINES)
        raise BaselineError(f"there is no baseline '{text}'; there are: {known}, and files of them ({_SUFFIX})")
    return stored


class BaselineFile:
    """The records of a file, which need not exist yet. Raises BaselineError where it holds something else."""

    def __init__(self, path: Path):
        self.path = path
        self._place = path.resolve()  # a link of the person who names the file; nobody makes it lead elsewhere later
        self._records: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        if not path.exists():
            return
        try:
            lines, torn = whole_lines(self._place)
        except OSError as error:
            raise BaselineError(f"{path} cannot be read: {error.strerror}") from None
        if torn and not lines:  # perhaps a text of the user's, which ``append`` would take for a half-written line
            raise BaselineError(f"{path} has no whole line: remove it, or name another file")
        for number, line in enumerate(lines, start=1):
            try:
                record = parse_json(line)
                if record["format"] == 1:
                    record |= {"format": FORMAT, "timing": upgraded_timing(record["timing"])}
                if record["format"] != FORMAT:
                    raise ValueError(f"its format is {record['format']!r}, and not 1 or {FORMAT}")
                BASELINE.check(record)
                if not record["timing"] and not record["error"]:
                    raise ValueError("it has neither a timing nor an error")
                self._keep(record)
            except (ValueError, KeyError, TypeError) as error:
                raise BaselineError(f"{path}, line {number}, is no measured baseline: {error}") from None

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))

    def append(self, record: dict[str, Any]) -> None:
        """Keep a record, on disk before this returns. Raises WriteError."""
        append_line(self._place, record)
        self._keep(record)

    def create(self) -> None:
        """Create the file before the work, so that a missing place is found out then. Raise OSError.

        So for one in a run or an experiment of which a link is on the way: it may lead to any file of ours.
        """
        if run_left_by_a_link(self.path):
            raise OSError(errno.ELOOP, "a link in a run leads there", str(self.path))
        self._place.parent.mkdir(parents=True, exist_ok=True)
        begin(self._place)

    def find(self, problem: ProblemFile, workload: str, configuration: str, present: BaselineKey) -> dict[str, Any]:
        """The newest record that holds, of those with a timing if there are any.

        Raises BaselineError with the reason why none does.
        """
        what = f"{problem.id} ({workload}, {present.precision}, {configuration})"
        records = self._records.get((str(problem.id), workload, present.precision, configuration), [])
        if not records:
            raise BaselineError(f"{self.path} has no baseline of {what}")
        digest = digest_of(problem.path)
        why = [_stale(record, digest, present) for record in records]
        if all(why):
            raise BaselineError(f"the baseline of {what} in {self.path} does not hold: {why[-1]}")
        holding = [record for record, stale in zip(records, why) if not stale]
        return next((record for record in reversed(holding) if record["timing"]), holding[-1])

    def _keep(self, record: dict[str, Any]) -> None:
        key = record["problem"], record["workload"]["name"], record["precision"], record["configuration"]
        self._records.setdefault(key, []).append(record)


def _stale(record: dict[str, Any], digest: str, present: BaselineKey) -> str:
    """Explain why a stored record does not apply now; '' where it does."""
    if record["sha256"] != digest:
        return f"the problem has changed since {record['started'][:10]}"
    conditions = {
        "device": (record["device"]["name"], present.device),
        "PyTorch": (record["versions"]["torch"], present.torch),
        "the number of threads": (record["device"].get("threads"), present.threads),
        **{mode: (record["conditions"].get(mode), now) for mode, now in MATH_MODES.items()},
    }
    different = [f"{name} was {then} and is {now}" for name, (then, now) in conditions.items() if then != now]
    return ", ".join(different)


class StoredBaselines:
    """The baselines of an evaluation that are not timed in it."""

    def __init__(self, baselines: Sequence[str | Stored]):
        """Reads their files. Raises BaselineError."""
        self._order = [str(baseline) for baseline in baselines]
        self._stored = [baseline for baseline in baselines if isinstance(baseline, Stored)]
        for stored in self._stored:
            if not stored.file.is_file():
                raise BaselineError(f"there is no {stored.file}; `kb baseline` makes it")
        self._files = {stored.file: BaselineFile(stored.file) for stored in self._stored}

    def refused(
        self, cases: Sequence[tuple[ProblemFile, str]], present: BaselineKey
    ) -> dict[tuple[ProblemId, str], str]:
        """Return why some of these problems, with their workloads, have no baseline that holds.

        Raises BaselineError where all have none.
        """
        why: dict[tuple[ProblemId, str], str] = {}
        for stored, (problem, workload) in itertools.product(self._stored, cases):
            try:
                self._files[stored.file].find(problem, workload, stored.configuration, present)
            except BaselineError as error:
                why.setdefault((problem.id, workload), str(error))
        if why and all((problem.id, workload) in why for problem, workload in cases):
            reasons = list(dict.fromkeys(why.values()))
            shown = "\n".join(f"  {reason}" for reason in reasons[:_SHOWN])
            more = f"\n  and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
            raise BaselineError(f"stored baselines are missing or stale; `kb baseline` measures them:\n{shown}{more}")
        return why

    def into(self, result: Result, problem: ProblemFile) -> None:
        """Add them to a result that was timed, in the order asked for; the speedup is over the first that ran.

        One that turns out not to hold stands there with the reason. What failed before it had rates, or as its clock
        was forged, was not timed, whatever its process said.
        """
        if not self._stored or result.gbps is None and not result.unconfirmed:
            return
        present = BaselineKey.here(result.device, result.versions["torch"], result.precision)
        found = dict(result.baselines)
        for stored in self._stored:
            try:
                file = self._files[stored.file]
                record = file.find(problem, result.workload["name"], stored.configuration, present)
                found[str(stored)] = compared(result, record, stored.file)
                dataclasses.replace(result, baselines=found).check()  # a ratio may be more than a record holds
            except (BaselineError, ArithmeticError, ValueError) as error:
                found[str(stored)] = {"error": str(error)}
        result.baselines = {name: found[name] for name in self._order if name in found}
        result.speedup = result.speedup_over_first()


def compared(result: Result, record: dict[str, Any], file: Path) -> dict[str, Any]:
    """A stored baseline as a result has it: its statistics and samples, where it is from, the speedup over it."""
    source = {"paired": False, "file": str(file), "measured": record["started"], "device": record["device"]}
    if record["error"]:
        return {**source, "error": record["error"]}
    theirs, ours = record["timing"], result.timing
    if result.unconfirmed:
        return {**theirs, **source, "clocks": record["conditions"]}
    between = max(theirs["run_to_run_rel"], ours["run_to_run_rel"])
    noise = NOISE.get(ours.get("method"), math.inf)
    ratio = ratio_of_runs(round_means_ms(theirs), round_means_ms(ours), between, noise)
    settled = theirs["stability"] == ours["stability"] == "stable"
    return {
        **theirs,
        **source,
        "clocks": record["conditions"],
        "speedup": ratio.speedup,
        "interval": [ratio.low, ratio.high],
        "verdict": ratio.verdict if settled else "unstable",
    }
