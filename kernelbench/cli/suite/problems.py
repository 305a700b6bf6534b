"""`kb problems`"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from harness.faults import MachineFault
from harness.problem.module import ProblemError, ProblemFile
from harness.process.procfs import usable_cores
from kernelbench import escaping, suite
from kernelbench.audit.record import Audit, AuditFile
from kernelbench.cli import (
    GATE_FAILED,
    INTERRUPTED,
    UNFIT,
    WRONG_USAGE,
    device_option,
    fail,
    json_option,
    say,
    say_json,
)
from kernelbench.views import tables

_OPERATORS_SHOWN = 4

_folder = click.option(
    "--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems, ours or KernelBench's."
)


@click.group("problems")
def command() -> None:
    """List the problems of the suite, show one, or audit how well they tell right from wrong."""


@command.command("list")
@click.argument("selector", default="all")
@_folder
@json_option
def list_(selector: str, problem_dir: Path | None, as_json: bool) -> None:
    """List problems.

    Operators, FLOPs and bytes (of the first workload) and the grade come from the audit; '-' where a
    problem was not audited, or has changed since.

    \b
    Examples:
      kb problems list
      kb problems list level2
      kb problems list 'llm&sound'
      kb problems list all~smoke
    """
    problems = _find(selector, problem_dir)
    headers = ("problem", "name", "grade", "GFLOP", "MB", "workloads", "operators", "what it computes")
    try:
        known = suite.audits(problem_dir)
        if as_json:
            say_json([_record(p, known.get(p)) for p in problems])
        else:
            say(tables.table(headers, [_row(p, known) for p in problems], "terminal"))
    except ProblemError as error:
        fail(error, WRONG_USAGE)


def _record(problem: ProblemFile, audited: Audit | None) -> dict[str, Any]:
    """Return what is known of a problem; None for what its audit would say."""
    known = audited if audited and not audited.error else None
    return {
        "problem": str(problem.id),
        "name": problem.name,
        "summary": problem.summary(),
        "workloads": problem.workload_names(),
        "grade": known and known.grade,
        "flops": known and known.published_flops,
        "bytes": known and known.published_bytes,
        "operators": list(known.operators) if known else None,
    }


def _row(problem: ProblemFile, known: AuditFile) -> tuple:
    record = known.get(problem)
    found = ("-",) * 3
    operators = "-"
    if record and not record.error:
        flops, moved = record.published_flops, record.published_bytes
        found = record.grade, _of(flops, 1e9), _of(moved, 1e6)
        names = list(record.operators)
        operators = ", ".join(names[:_OPERATORS_SHOWN])
        if len(names) > _OPERATORS_SHOWN:
            operators += f" and {len(names) - _OPERATORS_SHOWN} more"
    return (problem.id, problem.name, *found, ", ".join(problem.workload_names()), operators, problem.summary())


def _of(number: int | None, unit: float) -> str:
    return "-" if number is None else f"{number / unit:.4g}"


@command.command("show")
@click.argument("problem")
@click.option("--workload", help="Which sizes. Without it, the published ones.")
@_folder
def show(problem: str, workload: str | None, problem_dir: Path | None) -> None:
    """Show a problem: its source, sizes, work, what its audit found, and the signature of a .cu or .cpp solution.

    \b
    Example:
      kb problems show 1/19
    """
    from kernelbench import starter  # imports torch
    from kernelbench.audit import table

    try:
        say(starter.description(problem, workload, problem_dir))
    except (ValueError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    if record := _audits(None, problem_dir).get(suite.find(problem, problem_dir)[0]):
        say("\nAudit:\n" + table.details(record))


@command.command("load")
@click.argument("selector", default="all")
@_folder
@json_option
def load(selector: str, problem_dir: Path | None, as_json: bool) -> None:
    """Load problems on this machine and list those that do not load, with the reason.

    Of TritonBench, golden and perf files are imported, in a process of its own. The exit status is 1 if one does not
    load.

    \b
    Examples:
      kb problems load
      kb problems load tritonbench-50 --problem-dir TritonBench
    """
    problems = _find(selector, problem_dir)
    reasons = suite.unloadable(problems, problem_dir)
    if as_json:
        say_json([{"problem": str(p.id), "name": p.name, "error": reasons.get(p.id)} for p in problems])
    else:
        if reasons:
            rows = [(p.id, p.name, reasons[p.id]) for p in problems if p.id in reasons]
            say(tables.table(("problem", "name", "why it does not load"), rows, "terminal") + "\n")
        say(f"{len(problems) - len(reasons)} of {len(problems)} problems load")
    if reasons:
        sys.exit(GATE_FAILED)


@command.command("audit")
@click.argument("selector", default="all")
@click.option("--workload", default="small", show_default=True, help="Which sizes, or all of them.")
@device_option()
@click.option("--jobs", type=click.IntRange(min=1), help="Problems side by side. Without it, one a core, on a GPU one.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where records are kept; else beside the problems.")
@click.option("--again", is_flag=True, help="Audit anew what has a record that still holds, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the records, a line each.")
@_folder
def audit(selector, workload, device, jobs, out, again, as_json, problem_dir) -> None:
    """Measure how well the check of each problem tells right from wrong.

    Trivial answers (zeros, the mean, an input, the output for other inputs) and mutants of the reference
    (a dropped bias, a skipped tile, half-precision sums) take the place of a candidate. What passes
    is listed. Records are kept as they are made; what has one that still holds is not audited again.
    The exit status is 3 where the machine failed on one, which has no record then.

    \b
    Examples:
      kb problems audit 1/19
      kb problems audit level2 --workload all --jobs 4
    """
    problems = _find(selector, problem_dir)
    from harness.device import DeviceError  # imports torch
    from kernelbench.audit import suite_audit, table

    try:
        chosen = suite_audit.workloads(problems, workload)
        one_a_core = not suite_audit.on_gpu(device)
    except ProblemError as error:
        fail(error, WRONG_USAGE)
    except DeviceError as error:
        fail(error, UNFIT)
    known = _audits(out, problem_dir)
    todo = chosen if again else suite_audit.stale(chosen, known)
    jobs = jobs or (usable_cores() if one_a_core else 1)
    failed = ""
    try:
        if kept := len(chosen) - len(todo):
            say(f"{kept} record(s) in {known.path} still hold and are kept; --again audits anew", err=True)
        if todo:
            known.put()  # to find out before the work, not after it
        bar = tqdm(total=len(todo), unit="problem", file=sys.stderr, dynamic_ncols=True, disable=None)
        with bar:
            for record in suite_audit.audit_all(todo, device, jobs):
                known.put(record)
                bar.update()
    except MachineFault as fault:
        failed = str(fault)
    except KeyboardInterrupt:
        say(f"interrupted; what was audited is kept in {known.path}", err=True)
        sys.exit(INTERRUPTED)
    except OSError as error:
        fail(f"cannot write {known.path}: {error.strerror}; choose another file with --out", UNFIT)
    records = [record for file, name in chosen if (record := known.get(file, name))]
    if as_json:
        say("\n".join(escaping.json_line(record.to_json()) for record in records))
    elif records:
        say(table.table(records) if len(records) > 1 else table.details(records[0]))
    if failed:
        fail(failed, UNFIT)
    if any(record.grade == "F" for record in records):
        sys.exit(GATE_FAILED)


def _audits(out: Path | None, problem_dir: Path | None) -> AuditFile:
    try:
        return AuditFile(out) if out else suite.audits(problem_dir)
    except ProblemError as error:
        fail(error, WRONG_USAGE)


def _find(selector: str, problem_dir: Path | None) -> list[ProblemFile]:
    try:
        return suite.find(selector, problem_dir)
    except (suite.SelectorError, ProblemError) as error:
        fail(error, WRONG_USAGE)
