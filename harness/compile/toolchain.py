"""Compilers of this machine and their versions."""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from harness.faults import MachineFault

_FOR_NOW = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # others have processes, memory or descriptors
# Architectures whose own instructions (wgmma, tcgen05) need the 'a' target.
_FIRST_SPECIFIC_MAJOR = 9
# All that nvcc says then: with other lines a source may have had this one printed.
_UNKNOWN_TARGET = re.compile(r"\s*nvcc fatal\s*: Unsupported gpu architecture '(?:compute|sm)_(\w+)'\s*")


@dataclass(frozen=True)
class Compiler:
    path: str
    version: str


@functools.cache
def nvcc() -> Compiler | None:
    """nvcc of CUDA_HOME or CUDA_PATH, else of PATH, else of /usr/local/cuda; None where there is none."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    candidates = [os.path.join(home, "bin", "nvcc") for home in homes if home]
    candidates += ["nvcc", "/usr/local/cuda/bin/nvcc"]
    return _first(candidates, r"release [\d.]+, V([\d.]+)")


def target_flags(arch: str | None) -> tuple[str, ...]:
    """Return nvcc's flags for a compute capability, such as 9.0; nvcc's own default where none is known."""
    return ("-gencode", f"arch=compute_{_target(arch)},code=sm_{_target(arch)}") if arch else ()


def _target(arch: str) -> str:
    number = arch.replace(".", "")
    return f"{number}a" if int(arch.split(".")[0]) >= _FIRST_SPECIFIC_MAJOR else number


def unknown_target(compiler: Compiler, log: str, arch: str | None) -> str:
    """Return what to do if nvcc's ``log`` says that it does not know this compute capability, else ''."""
    found = _UNKNOWN_TARGET.fullmatch(log)
    if not arch or not found or found[1] != _target(arch):
        return ""
    return (
        f"nvcc {compiler.version} does not know GPUs of compute capability {arch}: install a CUDA toolkit that does, "
        "or set CUDA_HOME to it"
    )


def lacking_target(compiler: Compiler, arch: str) -> str:
    """Return what to do if nvcc does not know this compute capability, else ''. Compiles nothing."""
    command = [compiler.path, *target_flags(arch), "--dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return unknown_target(compiler, done.stdout + done.stderr, arch)


@functools.cache
def host_compiler() -> Compiler | None:
    """The C++ compiler: $CXX, else c++, g++ or clang++."""
    candidates = [os.environ.get("CXX") or "", "c++", "g++", "clang++"]
    return _first(candidates, r"(\d+\.\d+\.\d+)")


@functools.cache
def host_cpu() -> str:
    """Model and instruction sets of the CPU, which -march=native compiles for."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            lines = [line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith(("model name", "flags"))]
    except OSError:
        lines = []
    return "\n".join(dict.fromkeys(lines))


def program(name: str) -> str | None:
    """Return the whole path of a program; None where there is none.

    A part of PATH that is empty, or no whole path, lies where somebody works, where others' files may be.
    """
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    found = shutil.which(name, path=os.pathsep.join(folders))
    return os.path.abspath(found) if found else None


def _first(candidates: list[str], version: str) -> Compiler | None:
    """Return the first that runs. Raises MachineFault where one cannot be started for now: it is there all the same."""
    for candidate in candidates:
        path = program(candidate) if candidate else None
        if not path:
            continue
        try:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
            output = done.stdout
        except OSError as error:
            if error.errno in _FOR_NOW:
                raise MachineFault(f"cannot start {path}: {error.strerror}") from error
            continue
        except subprocess.TimeoutExpired as error:
            raise MachineFault(f"{path} does not tell its version within {error.timeout:g} s") from error
        match = re.search(version, output)
        return Compiler(path, match[1] if match else "unknown")
    return None
