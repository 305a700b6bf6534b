"""µCUTLASS: a small language for CUTLASS kernels.

A program of about ten lines is parsed (`syntax`, `lower`) into a typed configuration (`ir`), validated (`rules`),
completed with defaults (`defaults`), and handed to code generation (`codegen`).
"""

from kernelbench.ucutlass.findings import Finding, LibraryMissing, ProgramError
from kernelbench.ucutlass.parse import parse

__all__ = ["Finding", "LibraryMissing", "ProgramError", "parse"]
