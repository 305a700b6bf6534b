"""`kb ucutlass`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.cli import GATE_FAILED, UNFIT, json_option, precision_option, say, say_json
from kernelbench.cli.generate.ucutlass_request import (
    checked,
    file_argument,
    folder_option,
    problem_option,
    refuse,
    request,
    workload_option,
)


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
    from harness.faults import MachineFault
    from kernelbench.run_files.log import write_whole
    from kernelbench.ucutlass import codegen
    from kernelbench.ucutlass.canonical import digest

    header = out / f"ucutlass_{digest(program)}.h"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if header_only:
            write_whole(header, codegen.generate(program))
            built = {"header": str(header), "library": None, "seconds": 0.0}
        else:
            made = codegen.build(program, out)
            built = {"header": str(made.header), "library": made.library and str(made.library),
                     "seconds": round(made.seconds, 3)}  # fmt: skip
    except (codegen.BuildError, codegen.Unsupported) as error:
        refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), GATE_FAILED)
    except (codegen.ToolchainMissing, MachineFault, OSError) as error:
        refuse(as_json, {"ok": False, "findings": [], "error": str(error)}, str(error), UNFIT)
    if as_json:
        say_json({"ok": True, "hash": digest(program)} | built)
    else:
        say("\n".join(str(path) for path in (built["header"], built["library"]) if path))
