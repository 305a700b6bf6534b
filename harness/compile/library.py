""".cu and .cpp solutions: one compiler call, source -> shared library."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from harness.compile.artefact import Artefact, BuildContext, ToolchainError
from harness.compile.cache import Cache, built_bytes, key_of
from harness.compile.dependencies import UnforeseenFile, listed_in, of_the_system
from harness.compile.diagnostics import compiler_errors, killed_by
from harness.compile.toolchain import Compiler, host_compiler, host_cpu, nvcc, target_flags, unknown_target
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution
from harness.solution.includes import DEVICES, local_includes, read_bytes, read_source
from harness.solution.languages import languages, missing
from harness.solution.visible_files import own_files

_IN_NO_LIST = re.compile(r"[\\\x00-\x1f\ud800-\udfff]")  # of the files that were compiled in, which is one for make
_FOR_A_SHELL = re.compile(r'["$`\\\x00-\x1f]')  # nvcc has one run its steps, with paths between double quotes
_LIBRARY, _READ, _TRANSLATED = "solution.so", "solution.d", "translated.cu"
# Linked without symbols and build number, sources that differ in comments are one library.
_CPP_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fopenmp", "-shared", "-fPIC", "-s", "-Wl,--build-id=none")
_CUDA_FLAGS = (
    "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-lineinfo", "-Xlinker", "-s", "-Xlinker", "--build-id=none",
)  # fmt: skip


def build_cpp(solution: Solution, context: BuildContext) -> Artefact:
    """Compile a ``.cpp`` solution with the host's compiler; raises ToolchainError where there is none."""
    compiler = host_compiler()
    if compiler is None:
        raise ToolchainError("no C++ compiler: install g++ or clang++, or set CXX")
    if _IN_NO_LIST.search(str(solution.path)):
        message = (
            "compilers list no path with \\, a control character or bytes that are no UTF-8 so that it can be read: "
            "rename the file, or the folder that has one"
        )
        raise CandidateFailure(Status.BUILD_ERROR, message)
    return _compile(solution, compiler, _CPP_FLAGS, context)


def build_cuda(solution: Solution, context: BuildContext) -> Artefact:
    """Compile a ``.cu`` solution with nvcc; raises ToolchainError where it is missing."""
    compiler = nvcc_for()
    if _FOR_A_SHELL.search(str(solution.path)):
        message = 'nvcc takes no path with " $ ` \\ or a control character: rename the file, or the folder that has one'
        raise CandidateFailure(Status.BUILD_ERROR, message)
    return _compile(solution, compiler, (*_CUDA_FLAGS, *target_flags(context.arch)), context)


def nvcc_for() -> Compiler:
    """Return nvcc; raises ToolchainError where it or the host's compiler is missing."""
    compiler = nvcc()
    if compiler is None:
        raise ToolchainError("no nvcc: install the CUDA toolkit, or set CUDA_HOME to where it is")
    if host_compiler() is None:
        raise ToolchainError("no C++ compiler, which nvcc needs: install g++")
    return compiler


def _compile(solution: Solution, compiler: Compiler, flags: tuple[str, ...], context: BuildContext) -> Artefact:
    flags += _language_flags(solution)
    own = own_files(solution)
    _must_be_sources(solution)
    cache, key = Cache(), _key(solution, own, compiler, flags)
    with cache.building(key):
        entry = cache.get(key)
        cached = entry is not None
        if not cached:
            with context.worker(*own) as worker:
                _run(worker, solution.path, compiler, flags, context)
                if own_files(solution) != own or _key(solution, own, compiler, flags) != key:
                    raise CandidateFailure(Status.BUILD_ERROR, "the source changed while it was compiled; run it again")
                read = _read_files(worker, solution, own, cache.share_bytes())
                entry = cache.put(key, [worker.scratch / _LIBRARY], read)
    return Artefact(entry / _LIBRARY, cached=cached, flags=flags, compiler=_named(compiler), keys=(key,))


def compile_text(
    solution: Solution, text: str, flags: tuple[str, ...], headers: tuple[Path, ...], context: BuildContext
) -> Artefact:
    """Compile CUDA C++ that was made of a solution; ``headers`` are folders that it may include from."""
    compiler = nvcc_for()
    flags = (*_CUDA_FLAGS, *flags, *target_flags(context.arch))
    digest = hashlib.sha256(text.encode()).hexdigest()
    cache, key = Cache(), key_of("translated", digest, compiler.path, compiler.version, *flags)
    with cache.building(key):
        entry = cache.get(key)
        cached = entry is not None
        if not cached:
            with context.worker(*(folder.resolve() for folder in headers)) as worker:
                source = worker.scratch / _TRANSLATED
                source.write_text(text, encoding="utf-8")
                _run(worker, source, compiler, flags, context)
                read = _read_files(worker, solution, [], cache.share_bytes(), headers)
                entry = cache.put(key, [worker.scratch / _LIBRARY], read)
    return Artefact(entry / _LIBRARY, cached=cached, flags=flags, compiler=_named(compiler), keys=(key,))


def _named(compiler: Compiler) -> str:
    return f"{Path(compiler.path).name} {compiler.version}"


def _run(worker: Worker, source: Path, compiler: Compiler, flags: tuple[str, ...], context: BuildContext) -> None:
    """Compile in the worker's scratch folder.

    Raises CandidateFailure with the compiler's errors, and ToolchainError where it does not know the device.
    """
    library, read = worker.scratch / _LIBRARY, worker.scratch / _READ
    command = [compiler.path, *flags, str(source), "-o", str(library), "-MD", "-MF", str(read)]
    answer = worker.request({"op": "compile", "command": command}, context.timeout_s)
    worker.end()
    if answer["code"] != 0:
        log = answer["log"]
        if lacking := unknown_target(compiler, log, context.arch):
            raise ToolchainError(lacking)
        failure = CandidateFailure(Status.BUILD_ERROR, compiler_errors(log, source), log)
        failure.killed_by = killed_by(answer["code"], log)
        raise failure


def _read_files(
    worker: Worker, solution: Solution, own: list[Path], room: int, headers: tuple[Path, ...] = ()
) -> dict[str, str]:
    """The system's files that the compiler has read.

    Raises CandidateFailure where it has read others, or where the library has more bytes than there is ``room`` for.
    """
    try:
        built_bytes(worker.scratch / _LIBRARY, room)
        listed = listed_in(worker.scratch / _READ)
        if not listed:
            raise ValueError("the compiler does not say what it has read")
        return of_the_system(listed, own, solution.root, worker.scratch, headers)
    except (UnforeseenFile, ValueError) as error:
        raise CandidateFailure(Status.BUILD_ERROR, f"{solution.name}: {error}") from None


def _language_flags(solution: Solution) -> tuple[str, ...]:
    """Return what the compiler needs to find a language's headers; raise ToolchainError where they are missing."""
    known = languages().get(solution.language)
    if known is None or known.flags is None:
        return ()
    if lacking := missing(known.name):
        raise ToolchainError(lacking)
    return known.flags()


def _must_be_sources(solution: Solution) -> None:
    """Raises OSError where its source, or what that includes, is too large, or a device or pipe that never ends."""
    root = solution.root.resolve()

    def is_read(file: Path) -> bool:  # what else there is, the compiler's process cannot open
        return file.is_relative_to(root) or file.is_char_device()

    local_includes(read_source(solution.path), solution.path.parent, [], is_read, below=(root, *DEVICES))


def _key(solution: Solution, own: list[Path], compiler: Compiler, flags: tuple[str, ...]) -> str:
    """Return the key of the source as it is now, with the files that it takes in."""
    folder = solution.path.resolve().parent  # wherever it is, on whichever host
    files = (f"{os.path.relpath(path, folder)}\0{hashlib.sha256(read_bytes(path)).hexdigest()}" for path in own[1:])
    source = hashlib.sha256(read_bytes(solution.path)).hexdigest()
    return key_of("library", source, *files, compiler.path, compiler.version, host_cpu(), *flags)
