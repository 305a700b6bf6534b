"""Helion, which compiles to Triton. A kernel is called ``_helion_FUNCTION``."""

from harness.solution.languages import Language

_PREFIX = "_helion_"


def _owns(kernel: str, functions: set[str], classes: set[str]) -> bool:
    return kernel.startswith(_PREFIX) and kernel.removeprefix(_PREFIX) in functions


LANGUAGE = Language(
    name="helion",
    title="Helion",
    modules=("helion",),
    distributions=("helion",),
    advice="pip install helion",
    caches=("TRITON_CACHE_DIR",),
    decorators=("helion.kernel",),
    owns=_owns,
)
