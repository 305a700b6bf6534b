"""The command `kb`. A command is one module with a click command of its name, and its line in ``COMMANDS``.

Modules are imported only when their command runs, so that `kb --help` is quick.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from kernelbench import __version__

# name -> one line of help; the module is kernelbench.cli.<name>
COMMANDS = {
    "eval": "Build, check and time a directory of solutions.",
    "check": "The same as a gate for CI: thresholds in, exit status out.",
    "time": "Everything about the timing of one solution, on one page.",
    "solve": "Let a solver, such as a language model in a loop, write solutions and evaluate them.",
    "baseline": "Measure references, eager and compiled, to compare with later.",
    "leaderboard": "Rank runs: models, agents or GPUs side by side.",
    "compare": "Compare two runs problem by problem.",
    "report": "Write runs as one page for the browser.",
    "serve": "Show a run in the browser while it is going.",
    "import": "Make a run of KernelBench's eval_results.json.",
    "export": "Write runs for KernelBench's tools or for notebooks.",
    "problems": "List the problems of the suite, show one, or audit what they are worth.",
    "starter": "Print a starter file for a problem.",
    "sol": "Speed of light: how fast a problem could be on a GPU.",
    "findings": "Say what in a source a reviewer should look at.",
    "review": "Have a model review what a run found correct.",
    "redteam": "Try to cheat: does every known trick fail on this machine?",
    "cache": "Show the cache of builds, or empty it.",
    "doctor": "Say what can run on this machine, and how to fix what cannot.",
}


class Number(click.FloatRange):
    """A number from ``min`` on, which NaN and infinity are not."""

    def convert(self, value, parameter, context) -> float:
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{value} is no number to go by", parameter, context)
        return number


class OutputFile(click.Path):
    """A file that is written when the work is done; whether there is a place for it is known before."""

    def __init__(self):
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value, parameter, context) -> Path:
        path = super().convert(value, parameter, context)
        if not os.access(path.parent, os.W_OK):
            self.fail(f"there is no folder '{path.parent}' that can be written to", parameter, context)
        return path


precision_option = click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", show_default=True
)

DONE, GATE_FAILED, WRONG_USAGE, UNFIT = 0, 1, 2, 3  # exit statuses
INTERRUPTED = 130


class _LazyGroup(click.Group):
    def list_commands(self, context):
        return list(COMMANDS)

    def get_command(self, context, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"kernelbench.cli.{name}").command

    def invoke(self, context):
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            context.exit(INTERRUPTED)

    def format_commands(self, context, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kb")
def main() -> None:
    """Is this GPU kernel right, is it really faster, and can I trust that?

    \b
    Start here:
      kb doctor
      kb eval --solutions examples
    """
    with contextlib.suppress(ValueError):  # only a process's first thread may
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # how batch systems interrupt


def fail(error: Exception | str, status: int) -> NoReturn:
    """End this process with a message and an exit status."""
    click.echo(f"error: {error}", err=True)
    sys.exit(status)
