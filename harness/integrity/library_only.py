"""Rule ``library_only``: in the track ``kernels`` a solution must have kernels of its own that do some of the work.

Decided by the names of the kernels that CUPTI saw. A kernel with a library's name is the library's. A kernel that
none of the solution's sources and binaries names is not its own either. To pass library kernels off as its own a
solution must launch kernels of its own that do a share of the work. On a CPU no kernels are seen: a solution there has
its own if it is C++ or built an extension.
"""

from __future__ import annotations

import re
from typing import Any

from harness.integrity.origin import Origin
from harness.result import CandidateFailure, Status

RULE = "library_only"
TRACKS = ("kernels", "open")
LEAST_SHARE = 0.005  # of the time of all kernels; chosen: a kernel that does no work takes less

# Kernels of PyTorch, cuBLAS, cuDNN, and what Inductor generates; names as CUPTI gives them, demangled.
_LIBRARY = re.compile(
    r"""
    \bat::(native|cuda|)\b | \bat_cuda_detail:: | \bc10:: | \btorch::(?!executor) | \bpytorch_flash::
  | \bcudnn | \bcublas | \bcublasLt | \bcask | \bxmma_ | _xmma_ | \bcudnn_generated | \bnvjet_ | \bnccl
  | \bcutlass_?\d*_(tensorop|simt|wmma|\d+) | \bcutlass::Kernel2?<cutlass_ | \bcutlass__ | fmha_cutlass
  | \bflash_(fwd|bwd)
  | \b(ampere|volta|turing|maxwell|hopper|blackwell|sm\d+)_\w*(gemm|conv|fprop|dgrad|wgrad|xmma|cudnn)
  | \b(gemm|gemv)\w*(NSP|2T|2N|SN|_kernel_val|k1_kernel) | \bsplitKreduce_kernel | \bdot_kernel<
  | \breduce_1Block_kernel<
  | \b(implicit_convolve|explicit_convolve|winograd|fft2d|pooling_fw|bn_fw|conv2d_grouped|dgrad2d|wgrad2d)
  | \bscalePackedTensor
  | \bnhwcToNchw | \bnchwToNhwc | \bconvolve_ | \bRNN_\w+ | \belementWiseRNNcell | \bLSTM_ | \bGRU_ | \bpersistRNN
  | ^triton_(poi|red|per|tem|for|mm|fused)
  | ^mem(cpy|set)$
    """,
    re.VERBOSE | re.IGNORECASE,
)


def own_kernels(profile: dict[str, Any], origin: Origin | None = None) -> tuple[dict[str, float], float]:
    """Share of the time of all kernels by each of the solution's own, and of all those together.

    Without an ``origin`` every kernel that has no library's name is.
    """
    kernels = profile["kernels"]
    whole_ms = sum(kernel["ms"] for kernel in kernels)
    own = {
        kernel["name"]: kernel["ms"] / whole_ms
        for kernel in kernels
        if whole_ms and not _LIBRARY.search(kernel["name"]) and (origin is None or origin.has(kernel["name"]))
    }
    return own, sum(own.values())


def check(profile: dict[str, Any], share: float) -> None:
    """Raises CandidateFailure where its own kernels, as of ``own_kernels``, did no ``share`` of the work."""
    if share < LEAST_SHARE:
        names = ", ".join(kernel["name"][:60] for kernel in profile["kernels"][:3]) or "no kernel at all"
        raise _library_only(
            f"{1 - share:.1%} of the time of its kernels is in those of libraries, or that none of its sources and "
            f"binaries name ({names})"
        )


def check_on_cpu(own: bool) -> None:
    """Raise CandidateFailure where a solution for the CPU built nothing of its ``own``."""
    if not own:
        raise _library_only("it builds nothing of its own, so all that it computes with is PyTorch's")


def _library_only(what: str) -> CandidateFailure:
    return CandidateFailure(
        Status.REJECTED,
        f"{what}; in the track 'kernels' a solution must do some of the work in kernels of its own. "
        "--allow-library accepts any solution",
        rule=RULE,
    )
