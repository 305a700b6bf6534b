"""Expected cost of a build, from the source alone: cheap ones go first, and no more at once than fit.

A wrong guess costs time, nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.compile.artefact import BuildContext
from harness.compile.cache import Cache, key_of
from harness.solution.discover import Solution
from harness.solution.includes import read_source

_MIB = 1 << 20
_HEAVY = re.compile(r"#\s*include\s*[<\"](cutlass|cute|ck|ck_tile)/")


@dataclass(frozen=True)
class Cost:
    """Cost of one build: seconds in order of magnitude, and peak resident bytes of its compilers together."""

    seconds: float
    memory_bytes: int


NOTHING = Cost(0, 0)
# Peaks as measured by getrusage, with nvcc 13.0, g++ 13 and the headers of PyTorch 2.13: 223 MiB for the .cu and
# the .cpp of the examples, 1437 MiB (31 s) for torch/extension.h through g++, 3007 MiB (100 s) through nvcc. Most
# extensions need less, because minimal headers are tried first; the second try with all of them has to fit too.
_LIBRARY = Cost(2, 256 * _MIB)
_LIBRARY_WITH_HEADERS = Cost(9, 512 * _MIB)  # a .cu with tvm-ffi: 383 MiB, 8.6 s of nvcc 13.0
_CPP_EXTENSION = Cost(15, 1536 * _MIB)
_CUDA_EXTENSION = Cost(30, 3072 * _MIB)
_TEMPLATES = Cost(100, 4096 * _MIB)  # CUTLASS and its like
# A µCUTLASS program with nvcc 13.0: for SM90 48 to 68 s with 13 builds on 16 cores, and up to 4.1 GiB by getrusage;
# for SM80 10 to 29 s and 0.6 to 1.1 GiB (results/h100/ucutlass/ucutlass.json has the seconds).
_PROGRAM_SM90, _PROGRAM_SM80 = Cost(60, 4200 * _MIB), Cost(20, 1200 * _MIB)
_SM90 = re.compile(r"with_arch\s*\(\s*sm_?90a")


def expected_cost(solution: Solution, context: BuildContext) -> Cost:
    """Return the cost of a build on this machine; none for what is in the cache."""
    return NOTHING if was_built(solution, context) else compile_cost(solution)


def compiles(solution: Solution) -> bool:
    """Return whether there is anything to compile; what a language in Python compiles is the call's."""
    return solution.kind in ("cu", "cpp", "dsl") or (solution.kind == "py" and solution.language in ("cuda", "cpp"))


def compile_cost(solution: Solution) -> Cost:
    """Return the cost of compiling a solution, wherever that is; none where there is nothing to compile."""
    if not compiles(solution) or solution.refused:
        return NOTHING
    if solution.kind == "dsl":
        return _PROGRAM_SM90 if _SM90.search(read_source(solution.path)) else _PROGRAM_SM80
    if _HEAVY.search(read_source(solution.path)):
        return _TEMPLATES
    if solution.kind != "py":
        return _LIBRARY if solution.language in ("cuda", "cpp") else _LIBRARY_WITH_HEADERS
    return _CUDA_EXTENSION if solution.language == "cuda" else _CPP_EXTENSION


def was_built(solution: Solution, context: BuildContext) -> bool:
    """Return whether this solution was built before in this context."""
    return Cache().is_marked(_mark(solution, context))


def remember(solution: Solution, context: BuildContext) -> None:
    """Note that this solution is built; what exactly it built is known only by running it."""
    if compiles(solution):
        Cache().mark(_mark(solution, context))


def _mark(solution: Solution, context: BuildContext) -> str:
    return key_of("built", solution.kind, solution.sha256, context.torch_version, str(context.arch))
