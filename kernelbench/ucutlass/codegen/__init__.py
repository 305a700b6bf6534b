"""Code generation: a checked program becomes a header of C++, and a shared library.

Two back ends: ``sm90`` emits CUTLASS 3.x collectives, ``sm80`` CUTLASS 2.x kernels. ``chain`` turns an epilogue into
functors that both use, ``program`` puts the stages of a pipeline together, ``header`` adds the interfaces to C and to
PyTorch, ``compiler`` runs nvcc.
"""

from kernelbench.ucutlass.codegen.assembly.header import generate, name_of
from kernelbench.ucutlass.codegen.build.compiler import BuildError, Built, ToolchainMissing, build
from kernelbench.ucutlass.codegen.unsupported import Unsupported

__all__ = ["BuildError", "Built", "ToolchainMissing", "Unsupported", "build", "generate", "name_of"]
