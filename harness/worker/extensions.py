"""``load`` and ``load_inline`` of torch.utils.cpp_extension, for the candidate in this process.

They take what the originals take, return what they return and raise what they
raise. The build happens elsewhere: ``ask`` sends the call's arguments to the
trusted side and brings back a library to load.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Where it is built; and use_pch, which would leave a precompiled header among PyTorch's own.
_OURS_TO_CHOOSE = ("build_directory", "use_pch")
# What changes the kind of result, or needs another compiler; such calls go to the original.
_NOT_OURS = ("sycl_sources", "with_sycl", "extra_sycl_cflags", "is_standalone")


def install(ask: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Put our versions in place; ``ask`` sends one request and returns its answer."""
    from torch.utils import cpp_extension  # not in the process that workers are forked from

    for function in ("load", "load_inline"):
        setattr(cpp_extension, function, _asking(getattr(cpp_extension, function), ask))


def _asking(original: Callable[..., Any], ask: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def build_and_load(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        if any(arguments.get(name) for name in _NOT_OURS) or not _is_plain(arguments):
            return original(*args, **kwargs)
        for name in _OURS_TO_CHOOSE:
            arguments.pop(name, None)
        for name in ("sources", "extra_include_paths"):
            if name in arguments and arguments[name] is not None:
                arguments[name] = _absolute(arguments[name])
        answer = ask(
            {
                "function": original.__name__,
                "arguments": arguments,
                "arch_list": os.environ.get("TORCH_CUDA_ARCH_LIST"),
            }
        )
        print(answer["output"], end="", file=sys.stdout)
        if "raised" in answer:
            raise _exception(answer["raised"])(answer["message"])
        from torch.utils import cpp_extension

        library = Path(answer["library"])
        as_module = arguments.get("is_python_module", True)
        return cpp_extension._import_module_from_library(library.stem, str(library.parent), as_module)

    return build_and_load


def _is_plain(arguments: dict[str, Any]) -> bool:
    try:
        json.dumps(arguments)
    except (TypeError, ValueError):
        return False
    return True


def _absolute(paths: str | list[str]) -> list[str]:
    return [os.path.abspath(path) for path in ([paths] if isinstance(paths, str) else paths)]


def _exception(name: str) -> type[Exception]:
    """The built-in exception of that name, else RuntimeError."""
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError
