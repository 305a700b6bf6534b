"""Load a candidate into this process: a Python module with ``ModelNew``, or a shared library with ``solution``."""

from __future__ import annotations

import ctypes
import importlib.util
import linecache
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.memory.guarded import GuardedBuffers
from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import marked

_TVM_FFI_SYMBOL = "__tvm_ffi_solution"
_C_NUMBERS = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "double": ctypes.c_double, "bool": ctypes.c_bool}


def load_module(path: Path, model_of: Callable[[ModuleType], type] | None = None) -> type:
    """``ModelNew`` of a Python solution. Exceptions of its import pass through.

    Modules in its folder can be imported, as far as they are its own; installed ones of the same name win.
    ``model_of`` makes the model of a solution in another form than ours, which defines no ModelNew.
    """
    sys.meta_path.append(_Beside(path.parent))
    sys.dont_write_bytecode = True  # its folder is its author's
    spec = importlib.util.spec_from_file_location("solution", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    if not hasattr(module, "ModelNew"):
        if model_of:
            return model_of(module)
        raise CandidateFailure(
            Status.LOAD_ERROR, f"{path.name} defines no ModelNew; a Python solution is a class ModelNew(nn.Module)"
        )
    return module.ModelNew


class _Beside(MetaPathFinder):
    """Modules in a ``folder`` that this process may read. Of the others only the names can be seen.

    By ``sys.path`` a neighbour named triton.py, or in a folder triton, would be found where a library asks whether
    Triton is there, and be an error.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if path is not None:  # a part of a package
            return None
        package, module = self._folder / name / "__init__.py", self._folder / f"{name}.py"
        for place in (package, module):  # not what else could have that name, as a neighbour's library or package
            if _is_readable(place):
                folders = [str(package.parent)] if place == package else None
                return importlib.util.spec_from_file_location(name, place, submodule_search_locations=folders)
        found = PathFinder.find_spec(name, [str(self._folder)])
        is_folder = found is not None and found.origin is None
        return found if is_folder and any(map(_is_readable, (self._folder / name).rglob("*.py"))) else None


def _is_readable(file: Path) -> bool:
    try:
        file.open("rb").close()
    except OSError:
        return False
    return True


class LibraryModel(torch.nn.Module):
    """A shared library behind the interface of a model.

    Holds the reference's parameters, because a C function brings none.
    ``prepare`` must have been called for each ``forward``.
    """

    def __init__(
        self,
        path: Path,
        state: dict[str, torch.Tensor],
        outputs: list[dict],
        scalars: list[dict],
        guards: GuardedBuffers | None = None,
    ):
        super().__init__()
        self._guards = guards or GuardedBuffers()
        self._function, self._takes_tensors = _solution_of(path)
        self._state = [
            self._guards.hold(value.detach().contiguous(), name, lasting=True) for name, value in state.items()
        ]
        self._outputs = [(o["shape"], getattr(torch, o["dtype"])) for o in outputs]
        self._scalars = [s["value"] if self._takes_tensors else _C_NUMBERS[s["c_type"]](s["value"]) for s in scalars]
        self._prepared: list[list[torch.Tensor]] = []

    def prepare(self, calls: int, device: torch.device) -> None:
        """Allocate and mark the outputs of the next ``calls`` calls, outside of what is timed."""
        self._prepared = [
            [
                self._guards.hold(marked(shape, dtype, device, call), f"output {index}")
                for index, (shape, dtype) in enumerate(self._outputs)
            ]
            for call in range(calls)
        ]
        self._prepared.reverse()

    def forward(self, *inputs: Any) -> Any:
        tensors = [value.contiguous() for value in inputs if isinstance(value, torch.Tensor)]
        results = self._prepared.pop()
        arguments = (*tensors, *self._state, *results)
        if not self._takes_tensors:
            arguments = [ctypes.c_void_p(tensor.data_ptr()) for tensor in arguments]
        self._function(*arguments, *self._scalars)
        return results[0] if len(results) == 1 else tuple(results)


def _solution_of(path: Path) -> tuple[Callable[..., None], bool]:
    """The function ``solution`` of a library, and whether it takes tensors, through tvm-ffi, in place of pointers."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise CandidateFailure(Status.LOAD_ERROR, f"the library does not load: {error}") from None
    if hasattr(library, _TVM_FFI_SYMBOL):
        import tvm_ffi  # which the library was compiled against

        return tvm_ffi.load_module(str(path)).solution, True
    try:
        function = library.solution
    except AttributeError:
        raise CandidateFailure(
            Status.LOAD_ERROR,
            'the library has no symbol `solution`: declare it as extern "C" void solution(...), or export it with '
            "TVM_FFI_DLL_EXPORT_TYPED_FUNC; `kb starter` prints the whole signature",
        ) from None
    function.restype = None
    return function, False
