"""`kb ucutlass`"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.json_text import parse_json
from harness.solution.includes import read_head
from kernelbench.cli import GATE_FAILED, UNFIT, WRONG_USAGE, fail, json_option, precision_option, say, say_json
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


class _Group(click.Group):
    """Loads `tune` when it is called for."""

    def list_commands(self, context):
        return [*super().list_commands(context), "tune"]

    def get_command(self, context, name):
        if name == "tune":
            from kernelbench.cli.generate.ucutlass_tune import command as tune

            return tune
        return super().get_command(context, name)


@click.group("ucutlass", cls=_Group)
def command() -> None:
    """Compile, check, explain and tune programs of µCUTLASS, a small language for CUTLASS kernels.

    FILE is a program, or - for standard input. What begins with { is read as JSON: {"source": "gemm()...",
    "problem": "2/76"}. Exit status: 0 done, 1 the program breaks a rule, 2 wrong usage, 3 something is not installed.
    """


@command.command("check")
@file_argument
@problem_option
@workload_option
@folder_option
@precision_option
@json_option
def check_(file: Path, problem, workload, problem_dir: Path | None, precision: str, as_json: bool) -> None:
    """Validate a program: every rule that it breaks, where, why, and what to write instead. Compiles nothing.

    \b
    Examples:
      kb ucutlass check gemm.dsl
      kb ucutlass check gemm.dsl --problem 2/76 --precision fp16 --json
    """
    program, _, _ = checked(request(file, problem, workload, precision, problem_dir), as_json)
    from kernelbench.ucutlass.canonical import canonical, digest

    if as_json:
        say_json({"ok": True, "hash": digest(program), "canonical": canonical(program), "findings": []})
    else:
        say(f"ok: ucutlass_{digest(program)}")


@command.command("explain")
@file_argument
@problem_option
@workload_option
@folder_option
@precision_option
@json_option
def explain_(file: Path, problem, workload, problem_dir: Path | None, precision: str, as_json: bool) -> None:
    """Show what a program means: every choice with its defaults, operands, resources, and the cost of the build.

    \b
    Examples:
      kb ucutlass explain gemm.dsl
      kb ucutlass explain gemm.dsl --json
    """
    program, written, bound = checked(request(file, problem, workload, precision, problem_dir), as_json)
    from kernelbench.ucutlass import explain

    if as_json:
        say_json({"ok": True} | explain.report(program, written, bound))
    else:
        say(explain.text(program, written, bound))


@command.command("compile")
@file_argument
@problem_option
@workload_option
@folder_option
@precision_option
@json_option
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("."), metavar="DIR",
              help="Folder that gets ucutlass_HASH.h and the library. Without it, this one.")  # fmt: skip
@click.option("--header-only", is_flag=True, help="Write the header for your own .cu or load_inline; compile nothing.")
def compile_(file, problem, workload, problem_dir, precision, as_json, out: Path, header_only: bool) -> None:
    """Compile a program: a header with its kernel, and a library. A program that breaks a rule starts no compiler.

    \b
    Examples:
      kb ucutlass compile gemm.dsl -o build
      kb ucutlass compile gemm.dsl --header-only --json
    """
    program, _, _ = checked(request(file, problem, workload, precision, problem_dir), as_json)
    from kernelbench.ucutlass import codegen
    from kernelbench.ucutlass.canonical import digest

    header = out / f"ucutlass_{digest(program)}.h"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if header_only:
            header.write_text(codegen.generate(program))
            built = {"header": str(header), "library": None, "seconds": 0.0}
        else:
            made = codegen.build(program, out)
            built = {"header": str(made.header), "library": made.library and str(made.library),
                     "seconds": round(made.seconds, 3)}  # fmt: skip
    except (codegen.BuildError, codegen.Unsupported) as error:
        _refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), GATE_FAILED)
    except (codegen.ToolchainMissing, OSError) as error:
        _refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), UNFIT)
    if as_json:
        say_json({"ok": True, "hash": digest(program)} | built)
    else:
        say("\n".join(str(path) for path in (built["header"], built["library"]) if path))


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
            given = parse_json(source)
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
        _refuse(as_json, {"ok": False, "findings": found}, text, GATE_FAILED)
    except LibraryMissing as error:
        _refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), UNFIT)


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


def _refuse(as_json: bool, data: dict[str, Any], text: str, status: int) -> None:
    if as_json:
        say_json(data)
    else:
        say(text, err=True)
    sys.exit(status)
