"""The command `kb`. A command is one module with a click command of its name, and its line in ``ROOMS``.

Modules are imported only when their command runs, so that `kb --help` is quick.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import math
import os
import re
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.sol.clock import PRESETS as CLOCKS
from harness.sol.clock import parse as parse_clock
from kernelbench import __version__, escaping

# room of kernelbench.cli -> title, and one line of help a command, whose module has its name
ROOMS = {
    "evaluate": ("Evaluate", {
        "eval": "Build, check and time a directory of solutions, or one file.",
        "try": "Judge one file and say what to do next.",
        "check": "The same as a gate for CI: thresholds in, exit status out.",
        "time": "Everything about the timing of one solution, on one page.",
        "baseline": "Measure references, eager and compiled, to compare with later.",
    }),
    "generate": ("Generate", {
        "solve": "Let a solver, such as a language model in a loop, write solutions and evaluate them.",
        "experiment": "Run a matrix of solvers, settings and seeds, with one report.",
        "review": "Have a model, or rules, review what a run found correct.",
        "ucutlass": "Compile, check, explain and tune programs of a small language for CUTLASS kernels.",
    }),
    "results": ("Results", {
        "leaderboard": "Rank runs: models, agents or GPUs side by side.",
        "compare": "Compare two runs problem by problem.",
        "lineage": "Strategies, scaling, time and regret of searches, from their lineage.",
        "schedule": "Replay runs under budget policies: what each would have saved and lost.",
        "report": "Write runs as one page for the browser.",
        "serve": "Show a run in the browser while it is going.",
        "import": "Import others' kernels with what they claim, to be measured here.",
        "regrade": "Compare an archive's claims with what was measured.",
        "export": "Write runs for KernelBench's tools or for notebooks.",
    }),
    "agents": ("Agents and trainers", {
        "mcp": "Offer the tools to a coding agent over MCP.",
        "serve-eval": "Serve evaluations over HTTP to training runs and other machines.",
    }),
    "suite": ("Suite", {
        "problems": "List the problems of the suite, show one, or audit what they are worth.",
        "starter": "Print a starter file for a problem.",
        "sol": "Speed of light: how fast a problem could be on a GPU.",
        "findings": "Say what in a source a reviewer should look at.",
        "skill": "Print the page that teaches a coding agent to write kernels.",
    }),
    "machine": ("Machine", {
        "doctor": "Say what can run on this machine, and how to fix what cannot.",
        "redteam": "Try to cheat: does every known trick fail on this machine?",
        "cache": "Show the cache of builds, or empty it.",
    }),
}  # fmt: skip
COMMANDS = {command: room for room, (_, commands) in ROOMS.items() for command in commands}


_DEVICE = re.compile(r"cpu|cuda|cuda:\d+")
_ALL_DEVICES = "cuda:all"


_LARGEST_NUMBER = 1e9


class Number(click.FloatRange):
    """A finite number from ``min`` on; help does not show the range, a wrong value does.

    None of seconds, gigabytes or dollars is larger than a billion: the system's clocks and counters end some way above.
    """

    def __init__(self, **bounds):
        super().__init__(**{"max": _LARGEST_NUMBER, **bounds})

    def _describe_range(self) -> str:
        return ""

    def convert(self, value, parameter, context) -> float:
        number = click.FLOAT.convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"must be a finite number, got {value}", parameter, context)
        if not self.min <= number <= self.max or (self.min_open and number == self.min):
            least = f"above {self.min:g}" if self.min_open else f"from {self.min:g}"
            self.fail(f"{value} is no number {least} to {self.max:g}", parameter, context)
        return number


class Percent(click.ParamType):
    """A share, written as a percentage: ``5%`` is 0.05."""

    name = "PERCENT"

    def convert(self, value, parameter, context) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(value).strip())
        if match and float(match[1]) <= 100:
            return float(match[1]) / 100
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        meant = 100 * number if 0 < number < 1 else number
        hint = f": write {meant:g}%" if 0 <= meant <= 100 else ", as in 5%"
        self.fail(f"'{value}' is no percentage from 0% to 100%{hint}", parameter, context)


class Device(click.ParamType):
    """A name that a device may have; whether this machine has it, its user finds out. With ``several``, a list."""

    name = "DEVICE"

    def __init__(self, several: bool = False):
        self._several = several

    def convert(self, value, parameter, context) -> str:
        names = value.split(",") if self._several else [value]
        if all(map(_DEVICE.fullmatch, names)) or (self._several and value == _ALL_DEVICES):
            return value
        known = "cpu, cuda, cuda:INDEX" + (", several as cuda:0,cuda:1, cuda:all" if self._several else "")
        self.fail(f"'{value}' is no device; there are: {known}", parameter, context)


class OutputFile(click.Path):
    """A file that is written when the work is done; that it can be written is known before."""

    def __init__(self):
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value, parameter, context) -> Path:
        path = super().convert(value, parameter, context)
        if not path.parent.is_dir():
            self.fail(f"cannot write {path}: there is no folder '{path.parent}'", parameter, context)
        if not path.exists():
            try:
                tempfile.TemporaryFile(dir=path.parent).close()
            except OSError as error:
                self.fail(f"cannot write {path}: {error.strerror}", parameter, context)
        return path


class ClockRate(click.ParamType):
    """An SM clock in MHz, or the name of one."""

    name = "MHZ"

    def convert(self, value, parameter, context) -> float:
        try:
            return value if isinstance(value, float) else parse_clock(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


def clock_option(default: str):
    """Decorator: ``--clock``; ``default`` says what t_SOL is taken at without it."""
    named = ", ".join(f"{name} for {mhz:g}" for name, mhz in CLOCKS.items())
    text = f"SM clock of t_SOL, or {named}. Else {default}."
    return click.option("--clock", "clock_mhz", type=ClockRate(), help=text)


def device_option(several: bool = False, purpose: str = ""):
    """Decorator: ``--device``; ``purpose`` says what it is for, where that is not the evaluation."""
    known = "cpu, cuda, cuda:0,cuda:1, cuda:all" if several else "cpu, cuda or cuda:INDEX"
    text = f"{purpose}{known}. Default: the GPU."
    return click.option("--device", type=Device(several), metavar="NAME", help=text)


def out_option(text: str, **attributes):
    """Decorator: ``-o/--out``, the file that a command writes."""
    return click.option("-o", "--out", type=OutputFile(), metavar="FILE", help=text, **attributes)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
precision_option = click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", show_default=True
)

DONE, GATE_FAILED, WRONG_USAGE, UNFIT = 0, 1, 2, 3  # exit statuses
INTERRUPTED = 130


def _open_standard_streams() -> None:
    """Have something in the place of streams that are closed: what is opened next would take their numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue  # of another kind, such as a folder
            if (null := os.open(os.devnull, os.O_RDWR)) != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


class _LazyGroup(click.Group):
    def list_commands(self, context):
        return list(COMMANDS)

    def get_command(self, context, name):
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        return importlib.import_module(f"kernelbench.cli.{COMMANDS[name]}.{module}").command

    def main(self, *arguments, **options):
        _open_standard_streams()
        with contextlib.suppress(AttributeError):  # of a stream that is none, or another one
            sys.stdout.reconfigure(errors="backslashreplace")  # text of candidates may be in no Latin letters
        try:
            return super().main(*arguments, **options)
        except SystemExit as end:
            if end.code == INTERRUPTED and any(one.daemon for one in threading.enumerate()):
                # They may be in native code, which ends a process that takes the interpreter from it by SIGABRT.
                atexit._run_exitfuncs()
                sys.stdout.flush()
                os._exit(INTERRUPTED)
            raise

    def make_context(self, *arguments, **options):
        with writing():  # help, and the version
            return super().make_context(*arguments, **options)

    def invoke(self, context):
        try:
            with writing(errors=BrokenPipeError):  # the help of a command; others are perhaps not of the output
                return super().invoke(context)
        except KeyboardInterrupt:
            say("interrupted", err=True)
            context.exit(INTERRUPTED)
        except click.ClickException as error:  # its words may be names of files
            error.message = escaping.terminal(str(error.message))
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # which nobody foresaw: text of candidates may be in it, and it is no verdict
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                fail(f"{str(error.filename)[:100]}...: {error.strerror}", WRONG_USAGE)
            fail(f"kernelbench failed, please report this:\n{traceback.format_exc()}", UNFIT)

    def format_commands(self, context, formatter):
        for title, commands in ROOMS.values():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kb")
def main() -> None:
    """Is this GPU kernel right, is it really faster, and can I trust that?

    \b
    Start here:
      kb doctor                    # what can run on this machine
      kb starter 1/19 -o mine      # a kernel to fill in, of a kind that runs here
      kb eval --solutions mine     # is it right, and how fast
    """
    with contextlib.suppress(ValueError):  # only a process's first thread may
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who starts it may ignore the ends of its children
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # how batch systems interrupt


def say(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text that candidates may have had a part in."""
    with writing(err):
        click.echo(escaping.terminal(str(text)), err=err, nl=nl)


def say_json(data: Any) -> None:
    """Print data as JSON."""
    with writing():
        click.echo(escaping.json_text(data))


@contextlib.contextmanager
def writing(err: bool = False, errors: type[OSError] = OSError) -> Iterator[None]:
    """End this process with a status that is no verdict where the output cannot be written, which ``errors`` say."""
    try:
        yield
    except errors as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if err else 1)  # what is left of it goes there in the end
        if not err and not isinstance(error, BrokenPipeError):  # who reads no further, as `head`, knows
            say(f"error: standard output cannot be written: {error.strerror}", err=True)
        sys.exit(UNFIT)


def fail(error: Exception | str, status: int) -> NoReturn:
    """End this process with a message and an exit status."""
    say(f"error: {error}", err=True)
    sys.exit(status)
