"""PyTorch's own ``load`` and ``load_inline``, up to the built library, with minimal headers tried first.

Runs in a process of its own that holds no candidate code, in whose working
directory it builds. All that differs from a stock build are the compilers' names
in the environment: ours are scripts that compile with minimal headers and, where
that fails, once more without.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension

from harness.compile.extension import passes
from harness.compile.extension.flags import FLAGS, quoted
from harness.compile.extension.headers import write_minimal_headers
from harness.solution.includes import local_includes

_LOG_CHARACTERS = 1 << 18
_TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
# The C++ source that torch generates declares its module even where the candidate's does not.
_BOUND = "PYBIND11_MODULE"
# Errors that no further declaration cures: a complete class lacks the member, a semicolon is missing.
_FINAL = "|".join(
    (
        "has no member named",
        '(class|struct) "[^"]*" has no member',
        "expected .{1,3};.{1,3} before",
        'expected a ";"',
        "redefinition of",
    )
)
_COMPILER = """#!/bin/sh
# Minimal headers first, PyTorch's own where these may not do; only the last try is heard.
case " $* " in *" -c "*)
    log={headers}/log.$$
    {first} -I {headers} "$@" >"$log" 2>&1 && exec cat "$log"
    errors=$(grep -E 'error( *#[^ ]+)?: ' "$log")
    if [ -n "$errors" ] && ! echo "$errors" | grep -Evq {final}; then cat "$log"; exit 1; fi
esac
exec {compiler} "$@"
"""


def build(function: str, arguments: dict[str, Any], host: str, nvcc: str | None) -> dict[str, Any]:
    """Call ``cpp_extension.function``; the path of the library, or what was raised.

    ``host`` and ``nvcc`` are the paths of the compilers.
    """
    work = Path.cwd()
    directory = work / "extension"
    directory.mkdir()
    _stand_in(work, function, arguments, host, nvcc)
    cpp_extension._import_module_from_library = lambda name, path, is_python_module: os.path.join(path, f"{name}.so")
    try:
        library = getattr(cpp_extension, function)(**_quoted(arguments), build_directory=str(directory))
    except Exception as error:
        return {"raised": type(error).__name__, "message": str(error)[:_LOG_CHARACTERS]}
    return {"library": library, "dependencies": _read(directory)}


def _quoted(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with flags and include paths that the shell of ninja takes as they were checked.

    Include paths are passed as flags: not every version of PyTorch quotes them.
    """
    searched = [f"-I{path}" for path in arguments.get("extra_include_paths") or []]
    passed = {name: quoted(arguments.get(name) or []) for name in FLAGS}
    for name in ("extra_cflags", "extra_cuda_cflags"):
        passed[name] = [*map(shlex.quote, searched), *passed[name]]
    return arguments | passed | {"extra_include_paths": None}


def _read(directory: Path) -> list[str]:
    """The files that the compilers have read, as ninja noted them; generated ones are relative to ``directory``."""
    listed = subprocess.run(["ninja", "-t", "deps"], cwd=directory, capture_output=True, text=True, errors="replace")
    names = (line.strip() for line in listed.stdout.splitlines() if line.startswith("    "))
    read = dict.fromkeys(os.path.join(directory, name) for name in names)
    return [name for name in read if not name.startswith(f"{_TORCH_INCLUDE}/")]  # its version is in the key


def _stand_in(work: Path, function: str, arguments: dict[str, Any], host: str, nvcc: str | None) -> None:
    """Name our compilers in the environment, if the extension's sources may do with minimal headers."""
    try:
        cpp, cuda = _sources(function, arguments)
    except OSError:
        return
    headers = work / "headers"
    if not write_minimal_headers(headers, _TORCH_INCLUDE, cpp, cuda):
        return
    os.environ["CXX"] = str(_script(work / "bin" / Path(host).name, [host], [host], headers))
    if nvcc:
        side_by_side = [sys.executable, "-I", "-S", passes.__file__, nvcc]
        os.environ["PYTORCH_NVCC"] = str(_script(work / "bin" / "nvcc", side_by_side, [nvcc], headers))


def _script(path: Path, first: list[str], compiler: list[str], headers: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    text = _COMPILER.format(
        first=shlex.join(first), compiler=shlex.join(compiler), headers=headers, final=shlex.quote(_FINAL)
    )
    # executable from the first: nothing changes rights in the sandbox
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755), "w", encoding="utf-8") as script:
        script.write(text)
    return path


def _sources(function: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """The C++ and the CUDA text of an extension, included local files among both."""
    search = [Path(os.path.realpath(path)) for path in arguments.get("extra_include_paths") or []]
    if function == "load_inline":
        cpp, cuda = (list(arguments.get(name) or []) for name in ("cpp_sources", "cuda_sources"))
        included = [local_includes(text, None, search) for text in (*cpp, *cuda)]
        if arguments.get("functions") is not None:
            cpp.append(_BOUND)
    else:
        paths = [Path(path) for path in arguments.get("sources") or []]
        texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in paths}
        included = [local_includes(text, path.parent, search) for path, text in texts.items()]
        cuda = [text for path, text in texts.items() if path.suffix == ".cu"]
        cpp = [text for path, text in texts.items() if path.suffix != ".cu"]
    shared = [text for files in included for text in files.values()]
    return "\n".join([*cpp, *shared]), "\n".join([*cuda, *shared])
