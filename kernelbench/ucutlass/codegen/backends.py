"""Which back end builds which kernel."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen import depthwise, sm80, sm90
from kernelbench.ucutlass.codegen.call import KernelCode
from kernelbench.ucutlass.codegen.unsupported import Unsupported


def generate_kernel(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of one kernel; raises Unsupported."""
    arch = kernel.arch
    known = arch is ir.Arch.SM90A or 80 <= arch.number < 90
    if known and not kernel.is_gemm and kernel.operation.form is ir.ConvForm.DEPTHWISE:
        return depthwise.generate(kernel)
    if arch is ir.Arch.SM90A:
        return sm90.generate(kernel, namespace)
    if 80 <= arch.number < 90:
        return sm80.generate(kernel, namespace)
    if arch is ir.Arch.SM90:
        raise Unsupported("sm_90 has no wgmma", "write .with_arch(sm_90a)")
    if arch.number < 80:
        raise Unsupported("nvcc 13 builds for compute capability 7.5 and later, not for 7.0", "write .with_arch(sm_80)")
    raise Unsupported("kernels of SM100 use another instruction (tcgen05), for which no code is generated",
                      "write .with_arch(sm_90a) for Hopper")  # fmt: skip
