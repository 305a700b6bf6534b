"""PyTorch's umbrella headers, in the small: what an extension's source names instead of everything.

Nearly all of an inline extension's build time goes into reading <torch/extension.h>,
three times over for CUDA. ``write_minimal_headers`` writes a folder of headers
with the umbrella headers' names that declare the tensor, the operators that the
source names, and the rest only where the source mentions it. Put first on the
include path they stand in for the real ones. They declare nothing of their own:
every declaration is PyTorch's, so what compiles with them is what would have
compiled without; what does not compile is tried again with the real ones.
"""

from __future__ import annotations

import re
from pathlib import Path

# Umbrella headers, all of which stand for "the tensor library".
_UMBRELLAS = ("torch/torch.h", "torch/all.h", "ATen/ATen.h", "ATen/Functions.h")
# Each operator's header includes these, and needs no more of them than the tensor.
_UNNEEDED = {
    "ATen/Context.h": r"globalContext|at::Context|CUDAHooks|manual_seed|\bhas(CUDA|CUDNN|MKL)\b|vmapMode",
    "ATen/DeviceGuard.h": r"\bdevice_of\b|\bDeviceGuard\b|\bOptionalDeviceGuard\b",
    "ATen/TensorUtils.h": r"\bTensorArg\b|\bcheck\w+\b|TensorGeometry",
    "ATen/TracerMode.h": r"tracer",
}
# What the umbrella headers bring besides the tensor, by the words that ask for it.
_BY_MENTION = {
    "ATen/Dispatch.h": r"AT_DISPATCH",
    "ATen/Parallel.h": r"parallel_for|parallel_reduce|get_num_threads",
    "ATen/TensorIndexing.h": r"\bindexing\b|\bTensorIndex\b|\bSlice\b",
    "ATen/ScalarOps.h": r"scalar_to_tensor|scalar_tensor",
    "ATen/core/grad_mode.h": r"GradMode|NoGradGuard",
    "torch/library.h": r"TORCH_LIBRARY",
    "iostream": r"\bcout\b|\bcerr\b|\bclog\b",
    "thread": r"\bthread\b",
    "mutex": r"\bmutex\b|lock_guard|unique_lock",
    "numeric": r"\baccumulate\b|\biota\b|\breduce\b",
    "map": r"std::map\b",
    "unordered_map": r"unordered_map",
    "random": r"mt19937|_distribution\b",
    "chrono": r"\bchrono\b",
}
_BINDING = r"PYBIND11|pybind11|\bpy::|THP\w+"
# Names that torch:: gives another meaning than at::, so that only the real headers will do.
_FULL = r"\btorch\s*::\s*(tensor|nn|optim|jit|data|autograd|cuda|fft|special|serialize|save|load)\b|requires_grad"

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
_WORD = re.compile(r"\w+")
_LONGEST_NAME = 200  # of an operator, far more than any has: the name of a file has at most 255


def write_minimal_headers(folder: Path, include: Path, cpp: str, cuda: str) -> bool:
    """Write into ``folder`` the headers for the ``cpp`` and the ``cuda`` sources of one extension.

    ``include`` is PyTorch's own include folder. False, and nothing written, where
    the sources are known to need the real headers.
    """
    sides = {"defined(__CUDACC__)": _code(cuda), "!defined(__CUDACC__)": _code(cpp)}
    both = "\n".join(sides.values())
    types = include / "torch/csrc/api/include/torch/types.h"
    if re.search(_FULL, both) or not types.is_file():
        return False
    for header, words in _UNNEEDED.items():
        if not re.search(words, both) and f"<{header}>" not in both:
            _write(folder / header, ["ATen/core/Tensor.h"])
    needed = "".join(f"#if {side}\n{_include(_needed(code, include))}#endif\n" for side, code in sides.items())
    # The macro with which PyTorch's own sources keep its headers from including all operators.
    macro = "#ifndef AT_PER_OPERATOR_HEADERS\n#define AT_PER_OPERATOR_HEADERS\n#endif\n"
    _write(folder / "torch/types.h", [], macro + needed + _without_includes(types.read_text()))
    for header in _UMBRELLAS:
        _write(folder / header, ["torch/types.h"])
    binding = "".join(
        f"#if {side}\n{_include(['torch/csrc/Exceptions.h', 'torch/csrc/utils/pybind.h'])}#endif\n"
        for side, code in sides.items()
        if re.search(_BINDING, code)
    )
    _write(folder / "torch/extension.h", ["torch/types.h"], binding)
    return True


def _needed(code: str, include: Path) -> list[str]:
    """The headers of the tensor, of what ``code`` mentions and of the operators that it names."""
    headers = ["ATen/core/Tensor.h", "ATen/TensorOperators.h", "algorithm", "cmath", "vector", "string"]
    headers += [header for header, words in _BY_MENTION.items() if re.search(words, code)]
    words = sorted(word for word in set(_WORD.findall(code)) if len(word) <= _LONGEST_NAME)
    operators = (f"ATen/ops/{word}.h" for word in words)
    return headers + [header for header in operators if (include / header).is_file()]


def _code(source: str) -> str:
    """``source`` without its comments."""
    return _COMMENT.sub(lambda match: match[1] or " ", source)


def _without_includes(header: str) -> str:
    return "".join(
        line for line in header.splitlines(keepends=True) if not line.startswith(("#include", "#pragma once"))
    )


def _include(headers: list[str]) -> str:
    return "".join(f"#include <{header}>\n" for header in headers)


def _write(path: Path, headers: list[str], rest: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#pragma once\n{_include(headers)}{rest}", encoding="utf-8")
