"""Triton."""

from harness.solution.languages import Language

LANGUAGE = Language(
    name="triton",
    title="Triton",
    modules=("triton",),
    distributions=("triton", "pytorch-triton"),
    advice="pip install triton",
    caches=("TRITON_CACHE_DIR",),
    decorators=("triton.jit",),
    target=True,
    seen=True,
)
