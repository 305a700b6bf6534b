"""Run nvcc on a generated header: a shared library with the C interface.

The flags are those that were found to matter: without NDEBUG the compiler serialises wgmma, and SM90's own
instructions need the target ``sm_90a``. A program for SM80 is compiled for the device that it is to run on, from its
own virtual architecture, so that it stays the same program.
"""

from __future__ import annotations

import importlib.util
import os
import time
from dataclasses import dataclass
from pathlib import Path

from harness.compile.toolchain import nvcc
from harness.limits import MAX_BUILT_BYTES
from harness.process.fork_server import fork_server
from harness.process.procfs import default_memory_bytes
from harness.process.worker_process import Worker
from harness.result import CandidateFailure
from harness.solution.includes import read_bytes
from kernelbench.run_files.log import write_whole
from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly.header import generate, name_of

HEADERS_VARIABLE = "CUTLASS_PATH"  # a checkout of CUTLASS
_HEADERS = ("cutlass/cutlass.h", "cutlass/util/packed_stride.hpp")  # of its two folders
_TIMEOUT_S = 900.0  # one kernel takes 45 s on a quiet core, several minutes on a busy one
TEMPLATE_FLAGS = ("-DNDEBUG", "--expt-relaxed-constexpr", "-w")
_LANGUAGE_FLAGS = ("-std=c++17", "-O3")
_LIBRARY_FLAGS = ("-Xcompiler", "-fPIC", "-shared", "-cudart", "shared")
_ERROR_CHARACTERS = 2000


class BuildError(Exception):
    """The compiler failed; the message has its first errors."""


class ToolchainMissing(Exception):
    """No nvcc, or no headers of CUTLASS; the message says what to install."""


@dataclass(frozen=True)
class Built:
    """Files of a build. ``library`` is None where only the header was asked for."""

    header: Path
    library: Path | None
    seconds: float
    log: str = ""
    ptx: Path | None = None


def include_folders() -> list[Path]:
    """Return the folders of CUTLASS's headers, of ``CUTLASS_PATH`` or of nvidia-cutlass; raises ToolchainMissing."""
    root = os.environ.get(HEADERS_VARIABLE)
    if root is None:
        spec = importlib.util.find_spec("cutlass_library")
        if spec is None or not spec.submodule_search_locations:
            raise ToolchainMissing(
                "the headers of CUTLASS are missing: pip install nvidia-cutlass, or set CUTLASS_PATH to a checkout"
            )
        root = str(Path(spec.submodule_search_locations[0]) / "source")
    folders = [Path(root) / "include", Path(root) / "tools" / "util" / "include"]
    for header in _HEADERS:
        if not any((folder / header).is_file() for folder in folders):
            raise ToolchainMissing(f"{root} holds no {header}: set CUTLASS_PATH to a checkout of CUTLASS")
    return folders


def architecture_flags(arch: ir.Arch, device: str | None = None) -> tuple[str, ...]:
    """Return nvcc's target for a program; ``device`` is the compute capability that it is to run on, as in ``9.0``."""
    if arch is ir.Arch.SM90A:
        return ("-gencode=arch=compute_90a,code=sm_90a",)
    real = arch.number if device is None else max(arch.number, int(device.replace(".", "")))
    return (f"-gencode=arch=compute_{arch.number},code=sm_{real}",)


def build(program: ir.Program, out: Path, device: str | None = None, keep_ptx: bool = False) -> Built:
    """Write ``ucutlass_<hash>.h`` and ``.so`` into ``out``.

    The compiler is confined as that of a candidate is. Raises BuildError, ToolchainMissing, Unsupported, and
    MachineFault where no process can be started.
    """
    begin = time.perf_counter()
    text, name = generate(program), name_of(program)
    compiler, folders = nvcc(), include_folders()
    if compiler is None:
        raise ToolchainMissing("no nvcc: install the CUDA toolkit, or set CUDA_HOME to where it is")
    out.mkdir(parents=True, exist_ok=True)
    header, library = out / f"{name}.h", out / f"{name}.so"
    write_whole(header, text)  # who wrote the program knows its name
    ptx = out / f"{name}.ptx" if keep_ptx else None
    with fork_server().fork({}, default_memory_bytes(), readable=[folder.resolve() for folder in folders]) as worker:
        source = worker.scratch / f"{name}.cu"
        (worker.scratch / header.name).write_text(text, encoding="utf-8")
        source.write_text(f'#include "{header.name}"\n', encoding="utf-8")
        command = [os.path.abspath(compiler.path), *architecture_flags(program.arch, device)]
        command += [*_LANGUAGE_FLAGS, *TEMPLATE_FLAGS, *_LIBRARY_FLAGS]
        command += [f"-I{folder.resolve()}" for folder in folders]
        if keep_ptx:
            command += ["-keep", "-keep-dir", str(worker.scratch)]
        built = worker.scratch / "library.so"
        log = _run(worker, [*command, str(source), "-o", str(built)])
        write_whole(library, read_bytes(built, MAX_BUILT_BYTES, in_place=True))
        if ptx:
            write_whole(ptx, read_bytes(next(worker.scratch.glob("*.ptx")), MAX_BUILT_BYTES, in_place=True))
    return Built(header, library, time.perf_counter() - begin, log, ptx)


def _run(worker: Worker, command: list[str]) -> str:
    """Return what the compiler prints; raises BuildError."""
    try:
        answer = worker.request({"op": "compile", "command": command}, _TIMEOUT_S)
    except CandidateFailure as failure:  # by a limit of time, memory or disk
        raise BuildError(f"nvcc was ended: {failure.message}") from None
    worker.end()
    log = answer["log"]
    if answer["code"]:
        errors = [line for line in log.splitlines() if "error" in line] or log.splitlines()
        raise BuildError("nvcc failed:\n" + "\n".join(errors)[:_ERROR_CHARACTERS])
    return log
