""".cu and .cpp solutions: one compiler call, source -> shared library."""

from __future__ import annotations

from pathlib import Path

from harness.build.artefact import Artefact, BuildContext, ToolchainError
from harness.build.cache import entry, key_of
from harness.build.diagnostics import compiler_errors
from harness.build.toolchain import Compiler, host_compiler, nvcc
from harness.result import CandidateFailure, Status
from harness.solution import Solution

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
    # headers beside the solution may be included, and -march=native depends on the host
    key = key_of("library", solution.sha256, str(solution.path.parent), compiler.path, compiler.version, *flags)
    with entry(key) as (folder, cached):
        library = folder / "solution.so"
        if not cached:
            command = [compiler.path, *flags, str(solution.path), "-o", str(library)]
            with context.server.fork({}, context.memory_bytes) as worker:
                answer = worker.request({"op": "compile", "command": command}, context.timeout_s)
            if answer["code"] != 0:
                log = answer["log"]
                raise CandidateFailure(Status.BUILD_ERROR, compiler_errors(log, solution.path), log)
        return Artefact(library, cached=cached, flags=flags, compiler=f"{Path(compiler.path).name} {compiler.version}")
