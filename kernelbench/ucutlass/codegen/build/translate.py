"""The translator of ``.dsl`` solutions: a command that ``harness.compile`` runs as it runs a compiler.

The compiler of µCUTLASS lives above ``harness``, which imports nothing from here. Whoever starts a build hands
``translators()`` down as data: a command line, nvcc's flags, and the folders of CUTLASS's headers.

    python -m kernelbench.ucutlass.codegen.build.translate FILE.dsl OUT.cu --problem PROBLEM.py --precision fp32
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.compile.artefact import Translator
from harness.compile.translated import PROGRAM_WRONG
from harness.process.procfs import end_with_parent, set_limit

if TYPE_CHECKING:
    import torch

    from harness.problem.module import Workload
    from harness.problem.signature import Signature

_ROOT = Path(__file__).resolve().parents[4]
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)
_CPU_S = 120  # of one translation: importing PyTorch takes most of its 5 s
_DATA_BYTES = 4 << 30  # a tenth with PyTorch; not of addresses, of which CUDA's libraries take gigabytes
_START = "from kernelbench.ucutlass.codegen.build.translate import main; main()"


def translators(precision: str = "fp32") -> dict[str, Translator]:
    """Return the translators that builds on this machine may use, by kind of solution."""
    from kernelbench.ucutlass.codegen.build.compiler import TEMPLATE_FLAGS, ToolchainMissing, include_folders
    from kernelbench.ucutlass.language.findings import LibraryMissing

    # Packages may lie where only this process looks: the one that builds has no PYTHONPATH.
    places = [str(_ROOT), *filter(None, sys.path)]
    command = (sys.executable, "-c", f"import sys; sys.path[:0] = {places!r}; {_START}", "--precision", precision)
    if importlib.util.find_spec("lark") is None:
        return {"dsl": Translator(command, missing=str(LibraryMissing("lark")))}
    try:
        folders = tuple(include_folders())
    except ToolchainMissing as error:
        return {"dsl": Translator(command, missing=str(error))}
    return {"dsl": Translator(command, (*TEMPLATE_FLAGS, *(f"-I{folder}" for folder in folders)), folders)}


def main() -> None:
    """Translate one solution; exit with status 1 where the program is wrong, its findings on standard output.

    It ends with the process that started it, and at limits of processor time and memory.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problem", type=Path, required=True)
    parser.add_argument("--precision", default="fp32")
    options = parser.parse_args()
    end_with_parent()
    set_limit(resource.RLIMIT_CPU, _CPU_S)
    set_limit(resource.RLIMIT_DATA, _DATA_BYTES)
    from kernelbench.ucutlass import LibraryMissing, ProgramError
    from kernelbench.ucutlass.codegen.unsupported import Unsupported

    try:
        text = translated(options.file.read_text(encoding="utf-8"), options.problem, options.precision)
    except (ProgramError, Unsupported, LibraryMissing, UnicodeDecodeError) as error:
        print(error)
        sys.exit(PROGRAM_WRONG)
    options.out.write_text(text, encoding="utf-8")


def translated(source: str, problem: Path, precision: str) -> str:
    """Return the CUDA C++ of a program for a problem; raises ProgramError, Unsupported or ProblemError."""
    from harness.problem.inputs import DTYPES
    from harness.problem.module import ProblemFile, ProblemId, load_problem
    from harness.problem.signature import derive_signature
    from kernelbench.ucutlass import check
    from kernelbench.ucutlass.codegen.assembly.solution import generate_solution

    program = check(source)
    loaded = load_problem(ProblemFile(ProblemId(0, 0), problem.stem, problem))
    workloads, dtype = [loaded.workload(name) for name in loaded.workloads], DTYPES[precision]
    signatures = [derive_signature(workload, dtype) for workload in workloads]
    return generate_solution(program, signatures, [_grown(workload, dtype) for workload in workloads])


def _grown(workload: Workload, dtype: torch.dtype) -> Signature | None:
    """Return the signature with each size of the inputs times a prime of its own; None where that cannot be."""
    from harness.problem.held_out import input_sizes
    from harness.problem.module import ProblemError
    from harness.problem.signature import derive_signature

    sizes = {name: size * prime for (name, size), prime in zip(input_sizes(workload).items(), _PRIMES)}
    try:
        return derive_signature(workload.with_sizes(sizes), dtype)
    except ProblemError:
        return None


if __name__ == "__main__":
    main()
