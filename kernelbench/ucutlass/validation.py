"""Validation of a program: every rule that it breaks, with the place, the reason and a fix.

No compiler is started and PyTorch is not imported.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.defaults import complete, complete_kernel
from kernelbench.ucutlass.language.findings import Finding, ProgramError, in_order
from kernelbench.ucutlass.language.parse import read
from kernelbench.ucutlass.rules import RULES, Subject


def validate(program: ir.Program) -> list[Finding]:
    """Every rule that a parsed program breaks, in the order of the source."""
    found = [finding for one in _of(Subject.PROGRAM) for finding in one.findings(program)]
    for kernel in program.kernels:
        found += [finding for one in _of(Subject.WRITTEN) for finding in one.findings(kernel)]
        if kernel.dtypes and kernel.arch and (kernel.layout or not kernel.is_gemm):
            whole = complete_kernel(kernel)
            found += [finding for one in _of(Subject.COMPLETE) for finding in one.findings(whole)]
    return in_order(found)


def _of(subject: Subject) -> list:
    return [one for one in RULES.values() if one.subject is subject]


def findings(source: str) -> list[Finding]:
    """Everything that is wrong with a source; empty where it can be compiled. Raises LibraryMissing."""
    program, found = read(source)
    return in_order(found + (validate(program) if program else []))


def check(source: str) -> ir.Program:
    """The program of a source, complete and valid.

    Raises ProgramError with every finding, and LibraryMissing.
    """
    program, found = read(source)
    found = in_order(found + (validate(program) if program else []))
    if found or program is None:
        raise ProgramError(found)
    return complete(program)
