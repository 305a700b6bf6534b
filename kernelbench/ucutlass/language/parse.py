"""Source text -> typed program."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.language import syntax
from kernelbench.ucutlass.language.findings import Finding, ProgramError, in_order
from kernelbench.ucutlass.language.lower import Lowering


def read(source: str) -> tuple[ir.Program | None, list[Finding]]:
    """The program of a source, as far as it can be read, and what is wrong with its words; no rule is checked.

    Raises LibraryMissing.
    """
    node, findings = syntax.parse(source)
    if node is None:
        return None, findings
    lowering = Lowering()
    program = lowering.program(node, source)
    return program, in_order(findings + lowering.findings)


def parse(source: str) -> ir.Program:
    """The program of a source.

    Raises ProgramError with every finding, and LibraryMissing. Whether the program keeps the rules of CUTLASS and
    of its architecture, `kernelbench.ucutlass.check` says.
    """
    program, findings = read(source)
    if findings or program is None:
        raise ProgramError(findings)
    return program
