"""µCUTLASS: a small language for CUTLASS kernels.

A program of about ten lines is parsed (`language`) into a typed configuration (`ir`), validated (`validation`,
`rules`), completed with defaults (`defaults`), and handed to code generation (`codegen`).
"""

from kernelbench.ucutlass.defaults import complete
from kernelbench.ucutlass.language.findings import Finding, LibraryMissing, ProgramError
from kernelbench.ucutlass.language.parse import parse
from kernelbench.ucutlass.validation import check, findings

__all__ = ["Finding", "LibraryMissing", "ProgramError", "check", "complete", "findings", "parse"]
