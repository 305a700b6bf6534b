""".cu and .cpp solutions: one compiler call, source -> shared library."""

from __future__ import annotations

import os
from pathlib import Path

from harness.build.artefact import Artefact, BuildContext, ToolchainError
from harness.build.cache import Cache, key_of
from harness.build.diagnostics import compiler_errors
from harness.build.toolchain import Compiler, host_compiler, host_cpu, nvcc
from harness.includes import UnknownInclude, local_includes
from harness.result import CandidateFailure, Status
from harness.solution import Solution

_LIBRARY = "solution.so"
_CPP_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fopenmp", "-shared", "-fPIC")
_CUDA_FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-lineinfo")
# Architectures whose own instructions (wgmma, tcgen05) need the 'a' target.
_FIRST_SPECIFIC_MAJOR = 9


def build_cpp(solution: Solution, context: BuildContext) -> Artefact:
    compiler = host_compiler()
    if compiler is None:
        raise ToolchainError("no C++ compiler: install g++ or clang++, or set CXX")
    return _compile(solution, compiler, _CPP_FLAGS, context)


def build_cuda(solution: Solution, context: BuildContext) -> Artefact:
    compiler = nvcc()
    if compiler is None:
        raise ToolchainError("no nvcc: install the CUDA toolkit, or set CUDA_HOME to where it is")
    if host_compiler() is None:
        raise ToolchainError("no C++ compiler, which nvcc needs: install g++")
    return _compile(solution, compiler, (*_CUDA_FLAGS, *_architecture(context.arch)), context)


def _architecture(arch: str | None) -> tuple[str, ...]:
    """nvcc's target flags for one compute capability; nvcc's own default where none is known."""
    if arch is None:
        return ()
    number = arch.replace(".", "")
    if int(arch.split(".")[0]) >= _FIRST_SPECIFIC_MAJOR:
        number += "a"
    return ("-gencode", f"arch=compute_{number},code=sm_{number}")


def _compile(solution: Solution, compiler: Compiler, flags: tuple[str, ...], context: BuildContext) -> Artefact:
    cache, key = Cache(), _key(solution, compiler, flags)
    with cache.building(key):
        entry = cache.get(key)
        cached = entry is not None
        if not cached:
            with context.worker(solution.root) as worker:
                library = worker.scratch / _LIBRARY
                command = [compiler.path, *flags, str(solution.path), "-o", str(library)]
                answer = worker.request({"op": "compile", "command": command}, context.timeout_s)
                worker.end()
                if answer["code"] != 0:
                    log = answer["log"]
                    raise CandidateFailure(Status.BUILD_ERROR, compiler_errors(log, solution.path), log)
                if _key(solution, compiler, flags) != key:
                    raise CandidateFailure(Status.BUILD_ERROR, "the source changed while it was compiled; run it again")
                entry = cache.put(key, [library])
    compiled_by = f"{Path(compiler.path).name} {compiler.version}"
    return Artefact(entry / _LIBRARY, cached=cached, flags=flags, compiler=compiled_by, keys=(key,))


def _key(solution: Solution, compiler: Compiler, flags: tuple[str, ...]) -> str:
    """Of the source as it is now, with the files beside it that it includes."""
    source = solution.path.read_text(errors="replace")
    try:
        included = local_includes(source, solution.path.parent, [])
    except UnknownInclude as include:
        raise CandidateFailure(
            Status.BUILD_ERROR, f"{solution.name} has {include}: name the file, so that a change of it is noticed"
        ) from None
    folder = solution.path.parent  # wherever it is, on whichever host
    files = (f"{os.path.relpath(path, folder)}\0{text}" for path, text in sorted(included.items()))
    return key_of("library", source, *files, compiler.path, compiler.version, host_cpu(), *flags)
