"""cuTile, NVIDIA's tile language in Python. A kernel is called ``FUNCTION_KCONVENTION_TYPES``."""

from harness.solution.languages import Language


def _owns(kernel: str, functions: set[str], classes: set[str]) -> bool:
    return kernel.rpartition("_K")[0] in functions


LANGUAGE = Language(
    name="cutile",
    title="cuTile",
    modules=("cuda.tile",),
    distributions=("cuda-tile",),
    advice="pip install 'cuda-tile[tileiras]'",
    caches=("CUDA_TILE_TEMP_DIR",),
    decorators=("cuda.tile.kernel",),
    owns=_owns,
)
