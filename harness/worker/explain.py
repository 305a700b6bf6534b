"""Turn what a candidate raised into a status and a message that its author can act on."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import torch

from harness.compile.diagnostics import compiler_errors
from harness.result import CandidateFailure, Status, first_line

_EXTENSION_ERRORS = ("Error building extension", "Error compiling objects for extension")
# By its text too: PyTorch's class is that of its allocator only, and a kernel that the device loads needs room as well.
_NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory")
_ASSUMED_NAMES = ("torch", "nn", "F")
_MAX_FRAMES = 8


def explain(error: BaseException, solution: Path, status: Status) -> CandidateFailure:
    """The failure behind ``error``; ``status`` is what it is if nothing says otherwise."""
    if isinstance(error, CandidateFailure):
        return error
    try:
        return _explained(error, solution, status)
    except BaseException:  # the class is the candidate's: its text and its attributes can raise in turn
        return CandidateFailure(status, f"{type(error).__name__}, and looking at what it says raised another error")


def _explained(error: BaseException, solution: Path, status: Status) -> CandidateFailure:
    text = str(error)
    if isinstance(error, SyntaxError):
        where = f"{Path(error.filename or solution).name}, line {error.lineno}"
        source = (error.text or "").rstrip()
        return CandidateFailure(Status.BUILD_ERROR, f"{type(error).__name__}: {error.msg} ({where})\n  {source}")
    if any(phrase in text for phrase in _EXTENSION_ERRORS):
        own = Path(os.path.realpath(os.environ.get("TMPDIR", ".")))
        return CandidateFailure(Status.BUILD_ERROR, compiler_errors(text, solution, own), text)
    log = "".join(traceback.format_exception(error))
    message = f"{type(error).__name__}: {text}\n{own_frames(error, solution)}".rstrip()
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(phrase in text for phrase in _NO_MEMORY):
        return CandidateFailure(Status.OUT_OF_MEMORY, message, log)
    if isinstance(error, NameError) and getattr(error, "name", None) in _ASSUMED_NAMES:
        message += f"\n'{error.name}' is not imported: a solution sees only what it imports itself"
    if isinstance(error, ImportError):
        message += _import_advice(error, solution)
    if context_lost():
        message = f"the kernel lost the device context: {first_line(text)}\n{own_frames(error, solution)}"
        return CandidateFailure(Status.CRASHED, message.rstrip(), log)
    return CandidateFailure(status, message, log)


def _import_advice(error: ImportError, solution: Path) -> str:
    """Return where a module of the candidate's own has to lie; '' where another one is missing."""
    if "relative import" in str(error):
        return "\na solution is no package: import a file beside it by its name, `import helper`"
    if isinstance(error, ModuleNotFoundError) and error.name:
        file = f"{error.name.partition('.')[0]}.py"
        return f"\n'{error.name}' is not installed, and there is no {file} beside {solution.name}"
    return ""


def own_frames(error: BaseException, solution: Path) -> str:
    """The frames of the traceback from the candidate's first one on."""
    frames = traceback.extract_tb(error.__traceback__)
    for index, frame in enumerate(frames):
        if Path(frame.filename).resolve() == solution.resolve():
            return "".join(traceback.format_list(frames[index:][:_MAX_FRAMES])).rstrip()
    return ""


def context_lost() -> bool:
    """Return whether a CUDA fault (illegal address, launch failure, device assert) has ended this process's context."""
    if not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except Exception:
        return True
    return False
