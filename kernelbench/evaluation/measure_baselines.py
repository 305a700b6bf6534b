"""``kb baseline`` as a function: the references of a selection, in every configuration, timed and kept in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.baselines import EAGER
from harness.job import encode_problem
from harness.problem.module import ProblemFile
from kernelbench.evaluation.executor import EnvironmentUnfit, Options, closed_or_killed
from kernelbench.evaluation.judge_process import Judge, open_judges
from kernelbench.evaluation.stored_baselines import BaselineError, BaselineFile, BaselineKey, default_file
from kernelbench.metrics.workloads import workloads_of
from kernelbench.run import WriteError
from kernelbench.run_files.folder import linked
from kernelbench.views import tables
from kernelbench.views.leaderboard import duration


@dataclass(frozen=True)
class Case:
    problem: ProblemFile
    workload: str
    configuration: str

    def __str__(self) -> str:
        return f"{self.problem.id} {self.workload} {self.configuration}"


@dataclass
class Measured:
    """State of a file for a selection."""

    path: Path
    records: list[dict[str, Any]] = field(default_factory=list)


class Watcher:
    """Told what happens; the command line shows it. The default shows nothing."""

    def started(self, device: dict[str, Any], path: Path, todo: int, kept: int) -> None: ...

    def status(self, case: Case, phase: str) -> None: ...

    def ended(self, case: Case, record: dict[str, Any]) -> None: ...


def measure_selection(
    problems: Sequence[ProblemFile],
    configurations: Sequence[str],
    options: Options,
    *,
    timeout_s: float,
    out: Path | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
) -> Measured:
    """Measure what has no record that holds, or with ``again`` everything.

    A configuration that does not compile, takes its process down or is not done
    within ``timeout_s`` is a record with the reason, and the work goes on. That of a process that ended, or of a lack
    of memory, does not hold, nor does one of less time. Records are on disk
    as they are made. Raises ProblemError, BaselineError or WriteError for wrong input before
    anything runs, and EnvironmentUnfit where this machine cannot do it.
    """
    watcher = watcher or Watcher()
    with contextlib.ExitStack() as opened:
        judges = open_judges(options)
        for judge in judges:
            opened.enter_context(closed_or_killed(judge))
        if len(judges) > 1:
            raise EnvironmentUnfit("baselines are measured on one device; name one with --device")
        (judge,) = judges
        present = BaselineKey.here(judge.device, judge.torch_version, options.precision)
        cases = [
            Case(problem, workload, configuration)
            for problem in problems
            for workload in workloads_of(problem, options.workload, judge.device["type"])
            for configuration in configurations
        ]
        default = default_file(judge.device["name"], judge.device["type"])
        if not out and (link := linked(default)):
            raise WriteError(f"{link}; name the file with -o")
        file = _open(out or default)
        todo = [case for case in cases if again or not _known(file, case, present, timeout_s)]
        watcher.started(judge.device, file.path, len(todo), len(cases) - len(todo))
        for case in todo:
            record = _measured(judge, case, timeout_s, lambda phase, case=case: watcher.status(case, phase))
            file.append(record)
            watcher.ended(case, record)
    found = [file.find(case.problem, case.workload, case.configuration, present) for case in cases]
    return Measured(file.path, found)


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each problem and workload; a column for each configuration with its time and its speedup over eager."""
    names = list(dict.fromkeys(record["configuration"] for record in records))
    rows: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for record in records:
        case = f"{record['problem']} {record['problem_name']}", record["workload"]["name"]
        rows.setdefault(case, {})[record["configuration"]] = record
    cells = [(*case, *(_cell(found.get(name), found.get(EAGER)) for name in names)) for case, found in rows.items()]
    return tables.table(("problem", "workload", *names), cells, "terminal")


def _cell(record: dict[str, Any] | None, eager: dict[str, Any] | None) -> str:
    if record is None or record["error"]:
        return "error" if record else ""
    timing = record["timing"]
    parts = [duration(timing)]
    if eager and eager is not record and not eager["error"]:
        parts.append(f"{eager['timing']['median_ms'] / timing['median_ms']:.2f}x")
    if timing["stability"] != "stable":
        parts.append(timing["stability"])
    return " ".join(parts)


def _open(path: Path) -> BaselineFile:
    try:
        file = BaselineFile(path)
        file.create()
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}; choose another file with -o") from error
    return file


def _known(file: BaselineFile, case: Case, present: BaselineKey, timeout_s: float) -> bool:
    """Return whether there is a timing, or an error that would be there again with so much time."""
    try:
        record = file.find(case.problem, case.workload, case.configuration, present)
    except BaselineError:
        return False
    return bool(record["timing"]) or not record.get("again") and record.get("timeout_s", timeout_s) >= timeout_s


def _measured(judge: Judge, case: Case, timeout_s: float, phase: Callable[[str], None]) -> dict[str, Any]:
    """One record; of a configuration that took its judge down, the next judge writes it. Raises EnvironmentUnfit."""
    job = {"problem": encode_problem(case.problem), "workload": case.workload, "measure": case.configuration}
    answer = judge.ask(job, phase, timeout_s)
    why: dict[str, Any] = {}
    if "unevaluated" in answer:
        why = {"timeout_s": timeout_s} if answer.get("late") else {"again": True}
        answer = {} if judge.lost else judge.ask(job | {"error": answer["unevaluated"]}, phase)
    if "measured" not in answer:
        raise EnvironmentUnfit(f"{case}: {judge.lost or answer['unevaluated']}")
    return answer["measured"] | why
