"""Solutions in a language of their own: another program translates them to CUDA C++, which nvcc compiles.

That program belongs to a layer above this package, so it is not imported: whoever starts a build names it in
``BuildContext.translators``, as a command line with nvcc's flags and the folders of headers that the result includes.
It runs as a process that only reads the solution. What it writes is compiled in the sandbox like any source.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.compile.artefact import Artefact, BuildContext, ToolchainError, Translator
from harness.compile.library import compile_text, nvcc_for
from harness.process.owned_folders import scratch
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution
from harness.solution.includes import read_source

PROGRAM_WRONG = 1  # a translator's exit status for a program that is wrong; it prints why


def build(solution: Solution, context: BuildContext, problem: Path | None) -> Artefact:
    """Translate a solution and compile it; raises ToolchainError where nothing here translates its kind."""
    translator = context.translators.get(solution.kind)
    if translator is None or problem is None:
        raise ToolchainError(f"nothing here translates .{solution.kind} files: evaluate it with kb eval")
    if translator.missing:
        raise ToolchainError(translator.missing)
    nvcc_for()
    read_source(solution.path)  # raises OSError where it is none, or too large
    with scratch() as folder:
        text = _translation(translator, solution, problem, folder / "translated.cu", context.timeout_s)
    return compile_text(solution, text, translator.flags, translator.folders, context)


def _translation(translator: Translator, solution: Solution, problem: Path, out: Path, timeout_s: float) -> str:
    command = [*translator.command, str(solution.path), str(out), "--problem", str(problem)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, cwd="/")
    except subprocess.TimeoutExpired:
        raise CandidateFailure(Status.TIMEOUT, "its translation took too long") from None
    if done.returncode == PROGRAM_WRONG and done.stdout.strip():
        raise CandidateFailure(Status.BUILD_ERROR, done.stdout.strip(), done.stdout)
    if done.returncode or not out.is_file():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CandidateFailure(Status.BUILD_ERROR, f"{solution.name} cannot be translated: {last}", done.stderr)
    return read_source(out)
