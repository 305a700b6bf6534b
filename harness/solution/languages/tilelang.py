"""TileLang. A kernel is called ``FUNCTION_kernel``, with a number where a function launches several."""

import re

from harness.solution.languages import Language


def _owns(kernel: str, functions: set[str], classes: set[str]) -> bool:
    return re.sub(r"_kernel(_\d+)?$", "", kernel) in functions and re.search(r"_kernel(_\d+)?$", kernel) is not None


LANGUAGE = Language(
    name="tilelang",
    title="TileLang",
    modules=("tilelang",),
    distributions=("tilelang",),
    advice="pip install tilelang, in an environment without apache-tvm-ffi 0.1.13 or later",
    caches=("TILELANG_CACHE_DIR",),
    decorators=("tilelang.jit",),
    owns=_owns,
)
