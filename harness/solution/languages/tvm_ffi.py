"""A ``.cu`` or ``.cpp`` that exports ``solution`` through apache-tvm-ffi, with tensors in place of pointers."""

import importlib.util
from pathlib import Path

from harness.solution.languages import Language


def _flags() -> tuple[str, ...]:
    (package,) = map(Path, importlib.util.find_spec("tvm_ffi").submodule_search_locations)
    library = str(package / "lib")
    link = ("-Xlinker", "--no-as-needed", f"-L{library}", "-ltvm_ffi", "-Xlinker", "-rpath", "-Xlinker", library)
    return (f"-I{package / 'include'}", *link)


LANGUAGE = Language(
    name="tvm_ffi",
    title="tvm-ffi",
    modules=("tvm_ffi",),
    distributions=("apache-tvm-ffi",),
    advice="pip install apache-tvm-ffi",
    headers=("tvm/ffi/",),
    caches=("TVM_FFI_CACHE_DIR",),
    flags=_flags,
)
