"""Rule ``library_only``: in the track ``kernels`` a solution must have kernels of its own that do some of the work.

Decided by the names of the kernels that CUPTI saw. A kernel with a library's name is the library's. A kernel that
none of the solution's sources and binaries names is not its own either. To pass library kernels off as its own a
solution must launch kernels of its own that do a share of the work. On a CPU no kernels are seen: a solution there has
its own if it is C++ or built an extension.

Some names are a library's whatever the sources say: those in its namespaces, those with types of its own among their
arguments, and those that only its authors give. To define an unused kernel with such a name frees no call. Types that
extensions pass, as ``c10::Half``, say nothing. A name that is merely like a library's, as ``flash_fwd_kernel``, is
the solution's own where its sources define a kernel of that name; a word in a comment or a string does not. So an
unused kernel, or the text of one, passes off as own a library's kernel with a name merely alike, and a word one that
no pattern knows.
"""

from __future__ import annotations

import re
from typing import Any

from harness.integrity.origin import Origin, qualified
from harness.result import CandidateFailure, Status

RULE = "library_only"
TRACKS = ("kernels", "open")
LEAST_SHARE = 0.005  # of the time of all kernels; chosen: a kernel that does no work takes less

# Names of PyTorch, cuBLAS, cuDNN and NCCL, without their arguments; as CUPTI gives them, demangled.
_LIBRARY = re.compile(
    r"""
    \bat:: | \bat_cuda_detail:: | \bc10:: | \btorch::(?!executor) | \bpytorch_flash:: | \bcublas(Lt)?::
  | \bcudnn | \bcask | \bxmma_ | _xmma_ | \bnvjet_ | \bnccl[A-Z]
  | \bcutlass_?\d*_(tensorop|simt|wmma|\d+) | \bcutlass__ | \bfmha_cutlass[FB]_
  | convolve_sgemm\b | \bfft2d_(r2c|c2r|c2c)_\d | \b[dw]grad2d_(alg|grouped|c1)
  | \bRNN_blockPersist | \bpersistRNN | \belem(ent)?WiseRNNcell | \b(LSTM|GRU)_elementWise
    """,
    re.VERBOSE,
)
# What nobody else's kernel has among its arguments: types of these libraries, and what cuBLAS calls its instances.
_TYPES = re.compile(
    r"""
    \bcublas[A-Z] | \bcudnn([A-Z]|::) | \bkernel_(conv|grad)_params\b
  | \bat::native\b | \bat_cuda_detail:: | \bat::cuda::detail::enable_\dx_kernel | \bpytorch_flash::
  | \bcutlass::Kernel2?<cutlass_
    """,
    re.VERBOSE,
)
# Names of assemblers, of what Inductor generates, and of copies: these come without arguments.
_BARE = re.compile(
    r"""
    (ampere|volta|turing|maxwell|hopper|blackwell|sm\d+)_(?=\w*(gemm|conv|fprop|dgrad|wgrad|cudnn))\w*_\d+x\d+\w*
  | triton_[a-z]{3}_(fused_\w*)?_\d+
  | mem(cpy|set)
    """,
    re.VERBOSE,
)
# Names that others give their kernels, too.
_ALIKE = re.compile(
    r"""
    \b(ampere|volta|turing|maxwell|hopper|blackwell|sm\d+)_\w*(gemm|conv|fprop|dgrad|wgrad)
  | \bcublas | \bnccl | fmha_cutlass | \bflash_(fwd|bwd) | \bsoftmax_warp_(for|back)ward\b
  | \b(gemm|gemv)\w*(NSP|2T|2N|SN|_kernel_val|k1_kernel) | \bsplitKreduce_kernel
  | \breduce_1Block_kernel$
  | \b(implicit_convolve|explicit_convolve|winograd|fft2d|pooling_fw|bn_fw|conv2d_grouped|dgrad2d|wgrad2d)
  | \bscalePackedTensor
  | \bnhwcToNchw | \bnchwToNhwc | \bconvolve_ | \bRNN_\w+ | \bLSTM_ | \bGRU_
  | ^triton_(poi|red|per|tem|for|mm|fused)
    """,
    re.VERBOSE,
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
        if whole_ms
        and not _has_a_librarys_name(kernel["name"], origin)
        and (origin is None or origin.has(kernel["name"]))
    }
    return own, sum(own.values())


def _has_a_librarys_name(kernel: str, origin: Origin | None) -> bool:
    name = qualified(kernel)
    if _LIBRARY.search(name) or _TYPES.search(kernel) or _BARE.fullmatch(kernel):
        return True
    return bool(_ALIKE.search(name)) and not (origin and origin.defines(kernel))


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
