"""Subject of the commands of `kb ucutlass`: a program, the problem that it binds to, and what is wrong with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.json_text import parse_writable_json
from harness.solution.includes import read_head
from kernelbench.cli import GATE_FAILED, UNFIT, WRONG_USAGE, fail, say, say_json
from kernelbench.ucutlass import LibraryMissing, ProgramError, check, parse

file_argument = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
problem_option = click.option("--problem", metavar="ID", help="Bind the operands to a problem, as in 2/76.")
workload_option = click.option("--workload", help="Which sizes of the problem. Without it, the published ones.")
folder_option = click.option(
    "--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems, ours or KernelBench's."
)
_MAX_BYTES = 1 << 20  # of a file or of standard input


@dataclass(frozen=True)
class Request:
    """Subject of a command: a source, and the problem that it binds to."""

    source: str
    problem: str | None
    workload: str | None
    precision: str
    problem_dir: Path | None = None


def request(
    file: Path, problem: str | None, workload: str | None, precision: str, problem_dir: Path | None
) -> Request:
    """Return the content of FILE, as text or as JSON; options win over what JSON says."""
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1) if str(file) == "-" else _read(file)
        source = data.decode()
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}", WRONG_USAGE)
    except UnicodeDecodeError:
        fail(f"cannot read {file}: it is no text in UTF-8", WRONG_USAGE)
    if len(data) > _MAX_BYTES:
        fail(f"{file} has more than {_MAX_BYTES} bytes; a program has some hundred", WRONG_USAGE)
    given: dict[str, Any] = {"source": source}
    if source.lstrip().startswith("{"):
        try:
            given = parse_writable_json(source)
        except ValueError as error:
            fail(f"{file} is no JSON: {error}", WRONG_USAGE)
    if not isinstance(given, dict) or not isinstance(given.get("source"), str):
        fail(f'{file} is JSON without a text "source"', WRONG_USAGE)
    named = {name: given.get(name) for name in ("problem", "workload")}
    if any(value is not None and not isinstance(value, str) for value in named.values()):
        fail(f'{file}: "problem" and "workload" are texts, as in "2/76"', WRONG_USAGE)
    return Request(
        given["source"], problem or named["problem"], workload or named["workload"], precision, problem_dir
    )


def _read(file: Path) -> bytes:
    return read_head(file, _MAX_BYTES + 1)[0]


def checked(request: Request, as_json: bool) -> tuple[Any, Any, Any]:
    """The complete program, the program as written, and its binding to a problem; ends the process with findings."""
    try:
        program = check(request.source)
        return program, parse(request.source), _bound(program, request)
    except ProgramError as error:
        found = [finding.as_json() for finding in error.findings]
        text = "\n".join(map(str, error.findings)) + f"\n{len(found)} finding(s)"
        refuse(as_json, {"ok": False, "findings": found}, text, GATE_FAILED)
    except LibraryMissing as error:
        refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), UNFIT)


def _bound(program: Any, request: Request) -> Any:
    if request.problem is None:
        return None
    from harness.problem.inputs import DTYPES  # imports torch
    from harness.problem.module import ProblemError
    from harness.problem.signature import derive_signature
    from kernelbench.api import load_problem
    from kernelbench.ucutlass.operands.binding import resolve

    try:
        workload = load_problem(request.problem, request.problem_dir).workload(request.workload or "full")
        signature = derive_signature(workload, DTYPES[request.precision])
    except (ValueError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    return resolve(program, signature)


def refuse(as_json: bool, data: dict[str, Any], text: str, status: int) -> None:
    """Say why a program goes no further, as JSON or as text, and end the process with ``status``."""
    if as_json:
        say_json(data)
    else:
        say(text, err=True)
    sys.exit(status)
