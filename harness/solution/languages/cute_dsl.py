"""CuTe DSL, the Python language of CUTLASS 4.

A kernel is called ``kernel_cutlass_FUNCTION_TYPES_NUMBER``; a method's name is followed by its class, and
``_object_at_``.
"""

from harness.solution.languages import Language

_PREFIX, _METHOD = "kernel_cutlass_", "_object_at_"


def _owns(kernel: str, functions: set[str], classes: set[str]) -> bool:
    name = kernel.removeprefix(_PREFIX)
    if name == kernel or not any(name.startswith(f"{function}_") for function in functions):
        return False
    return _METHOD not in name or any(name.partition(_METHOD)[0].endswith(own) for own in classes)


LANGUAGE = Language(
    name="cute_dsl",
    title="CuTe DSL",
    modules=("cutlass",),
    distributions=("nvidia-cutlass-dsl",),
    advice="pip install 'nvidia-cutlass-dsl[cu13]'",
    caches=("CUTE_DSL_CACHE_DIR",),
    decorators=("cutlass.cute.kernel",),
    owns=_owns,
)
