"""Candidates of TritonBench: a model's answers as JSON lines (``instruction``, ``predict``), or the golden files.

An answer belongs to the golden file whose instruction, short or long, it was given. The code in it is the last fenced
block, else all of it. TritonBench's own script then keeps only imports and functions of it; here it stays whole. Golden
files become solutions without their tests: a suite to check against itself, and kernels to start from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.problem.module import ProblemId
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions, first_line, lines_of
from kernelbench.formats.tritonbench import checkout

_FENCE = "```"
_MOST_CHARACTERS = 100_000  # of an answer's instruction: the longest of the benchmark has 3,300
_END_TOKENS = ("<|im_end|>", "<|EOT|>")


def accepts(path: Path) -> bool:
    """Return whether ``path`` is a checkout, or its first line an answer."""
    if path.is_dir():
        return checkout.is_checkout(path)
    if path.suffix != ".jsonl":
        return False
    return _is_answer(_object(first_line(path)))


def read(path: Path, options: ReadOptions) -> Archive:
    """Return golden files of a checkout, or the answers in a file; for these ``options.problem_dir`` is the checkout.

    Raises ArchiveError.
    """
    if path.is_dir():
        return _golden(path)
    if options.problem_dir is None or not checkout.is_checkout(options.problem_dir):
        raise ArchiveError(f"{path} names its problems by TritonBench's instructions: give its checkout, --problem-dir")
    entries = checkout.entries(options.problem_dir)
    archive = Archive(names={entry.id: entry.name for entry in entries})
    instructions = [(text, entry.id) for entry in entries for text in entry.instructions if text]
    for place, line in lines_of(path):
        _add(archive, instructions, _object(line), f"{path}, line {place}", f"line {place}")
    return archive


def _add(archive: Archive, instructions: list[tuple[str, ProblemId]], answer: Any, where: str, origin: str) -> None:
    if not _is_answer(answer):
        raise ArchiveError(f"{where} is no answer: expected an object with the texts instruction and predict")
    asked = " ".join(answer["instruction"][:_MOST_CHARACTERS].split())
    given = [(text, problem) for text, problem in instructions if text in asked]
    # one instruction may be a part of another, which then is the one that was given
    problems = sorted({problem for text, problem in given if not any(text in other != text for other, _ in given)})
    if len(problems) == 1:
        archive.add(Kernel(problems[0], code_of(answer["predict"]), origin=origin))
    elif problems:
        archive.left_out.append((origin, f"its instruction is that of several: {', '.join(map(str, problems))}"))
    else:
        archive.left_out.append((origin, "its instruction is none of the checkout's"))


def code_of(answer: str) -> str:
    """Return the code in an answer: its last fenced block of Python, else all of it."""
    for token in _END_TOKENS:
        answer = answer.replace(token, "")
    _, fence, block = answer.rpartition(_FENCE + "python")
    return block.partition(_FENCE)[0] if fence else answer


def _golden(root: Path) -> Archive:
    archive = Archive()
    for entry in checkout.entries(root):
        archive.names[entry.id] = entry.name
        if entry.golden:
            archive.add(Kernel(entry.id, entry.golden, origin=f"{entry.name}.py"))
        else:
            archive.left_out.append((f"{entry.name}.py", "there is no such golden file"))
    return archive


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, dict) and all(isinstance(answer.get(key), str) for key in ("instruction", "predict"))


def _object(line: str) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None
