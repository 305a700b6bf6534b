"""Distinct copies of solutions that build an extension, so that no cache knows them."""

from __future__ import annotations

import ast
import itertools
import sys
from pathlib import Path

from harness.solution.discover import Solution, discover, read_solution
from harness.solution.source_facts import uses_extensions


def buildable(root: Path, device: str) -> list[Solution]:
    """The Python solutions in ``root`` that build an extension and can do so for this kind of device."""
    found = [s for s in discover(root).solutions if s.kind == "py" and s.runs_on(device)]
    found = [s for s in found if device == "cuda" or s.language != "cuda"]
    parsed = []
    for solution in found:
        try:
            parsed.append((solution, ast.parse(solution.path.read_text())))
        except SyntaxError:
            continue
    return [solution for solution, tree in parsed if uses_extensions(tree)]


def write_variants(solutions: list[Solution], count: int, folder: Path) -> list[Solution]:
    """``count`` copies, each with a comment of its own in its extension's source, named as KernelBench does."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_variant(s, k, folder) for k, s in zip(range(count), itertools.cycle(solutions))]


def _variant(solution: Solution, number: int, folder: Path) -> Solution:
    source = solution.path.read_text()
    if "#include" not in source:
        sys.exit(f"{solution.name} has no #include to mark a variant at")
    # The comment that maps the original to its problem and sample would map all of them to the same.
    source = source.replace("kb:", "was kb:", 1).replace("#include", f"// variant {number}\n#include", 1)
    problem = solution.problem
    path = folder / f"level_{problem.level}_problem_{problem.number}_sample_{number}_kernel.py"
    path.write_text(source)
    return read_solution(path, folder)
