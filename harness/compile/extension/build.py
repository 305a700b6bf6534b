"""Extensions that a candidate's process asks for with ``load`` or ``load_inline``.

The process that asks runs candidate code, so it only says what it wants. Here,
on the trusted side, the key is computed, and what is not in the cache is built
in another process, which holds no candidate code, then moved into the cache.
The candidate's process loads a copy.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.compile.artefact import BuildContext, ToolchainError
from harness.compile.cache import Cache, built_bytes, key_of
from harness.compile.dependencies import UnforeseenFile, of_the_system
from harness.compile.diagnostics import killed_by
from harness.compile.extension.request import Refused, Request
from harness.compile.toolchain import host_compiler, host_cpu, nvcc
from harness.limits import MAX_BUILT_TOGETHER_BYTES
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution
from harness.solution.includes import open_plain
from harness.solution.visible_files import own_files

_ARCH = re.compile(r"\d{1,3}\.\d{1,3}[a-z]?")
_MOST_REQUESTS = 1000  # of one candidate: its time grows by what each takes, of which the build is a part
_MOST_COMPILERS = 64  # at once: ninja waits for all of them in one call, which has at most 128
_MOST_ARCH_CHARACTERS = 1000  # of a list of architectures: a hundred of them


@dataclass
class ExtensionBuilder:
    """Builds for the process of one candidate; keeps count of what it built."""

    solution: Solution
    context: BuildContext
    requests: int = 0
    compiled: int = 0
    reused: int = 0
    seconds: float = field(default=0.0)
    bytes: int = 0  # of what it built
    room: int = 0  # bytes that this may have, known from the first on
    keys: list[str] = field(default_factory=list)
    libraries: list[Path] = field(default_factory=list)  # in the cache

    def __call__(self, request: dict[str, Any], scratch: Path) -> dict[str, Any]:
        """The answer to one request: ``library``, a path below ``scratch``, or what was ``raised``; and ``output``.

        Raises CandidateFailure where the builds of this candidate are too many, or
        take too much time or memory.
        """
        self.requests += 1
        if self.requests > _MOST_REQUESTS:
            raise CandidateFailure(Status.CRASHED, f"it asked for more than {_MOST_REQUESTS:,} builds")
        if self.seconds > self.context.timeout_s:
            message = f"what it asked to have built took longer than {self.context.timeout_s:g} s together"
            raise CandidateFailure(Status.TIMEOUT, message)
        begin = time.perf_counter()
        try:
            return self._library(self.checked(request, scratch), self._environment(request))
        except (Refused, ToolchainError) as error:
            return {"raised": "RuntimeError", "message": str(error), "output": ""}
        except CandidateFailure as failure:
            if failure.status is Status.TIMEOUT:
                failure.message = f"the build took longer than {self.context.timeout_s:g} s"
            raise
        finally:
            self.seconds += time.perf_counter() - begin

    def _library(self, request: Request, environment: dict[str, str]) -> dict[str, Any]:
        cache, scratch = Cache(), request.scratch
        key = self._key(request, environment)
        name, output = f"{request.arguments['name']}.so", ""
        with cache.building(key):
            delivered = _from_cache(cache, key, name, scratch)
            if delivered:
                self.reused += 1
            else:
                files = request.files()
                with self.context.worker(*files, env=environment) as worker:
                    left_s = max(1.0, self.context.timeout_s - self.seconds)
                    answer = worker.request(_compile_request(request), left_s)
                    worker.end()
                    output = worker.output.decode(errors="replace")
                    built = worker.scratch / "extension"
                    if "raised" in answer:
                        _must_not_be_killed(str(answer.get("message")) + output)
                        return _failure(answer, built, scratch, key) | {"output": output}
                    if self._key(request, environment) != key:
                        raise Refused("a source of the extension changed while it was compiled; run it again")
                    self._take_room(cache, built / name)
                    read = _dependencies(answer, files, self.solution.root, worker.scratch, scratch)
                    cache.put(key, [built / name], read)
                    delivered = _deliver(built / name, scratch, key)  # it may have left the cache already
                self.compiled += 1
        if key not in self.keys:  # it may ask for the same one at every call
            self.keys.append(key)
            self.libraries.append(cache.path(key) / name)
        return {"library": str(delivered), "output": output}

    def _take_room(self, cache: Cache, library: Path) -> None:
        """Raise Refused where a library is none, or is too large, or all of this candidate's are together.

        They stay in the cache, where the next candidates need room, too.
        """
        try:
            self.bytes += built_bytes(library)
        except ValueError as error:
            raise Refused(str(error)) from None
        self.room = self.room or min(MAX_BUILT_TOGETHER_BYTES, cache.share_bytes())
        if self.bytes > self.room:
            raise Refused(f"its extensions have more than {self.room:,} bytes together")

    def checked(self, request: dict[str, Any], scratch: Path) -> Request:
        """Return the request, checked; raises Refused."""
        return Request.checked(request, self.solution, own_files(self.solution), scratch)

    def _environment(self, request: dict[str, Any]) -> dict[str, str]:
        """Return the environment of the process that compiles."""
        environment = {"CUDA_VISIBLE_DEVICES": "", "MAX_JOBS": str(min(self.context.jobs, _MOST_COMPILERS))}
        if self.context.arch:
            wished = _ARCH.findall(str(request.get("arch_list"))[:_MOST_ARCH_CHARACTERS])
            suits = [arch for arch in wished if arch.rstrip("abcdef") == self.context.arch]
            environment["TORCH_CUDA_ARCH_LIST"] = ";".join(suits[:1]) or self.context.arch
        return environment

    def _key(self, request: Request, environment: dict[str, str]) -> str:
        compilers = [compiler for compiler in (nvcc(), host_compiler()) if compiler]
        return key_of(
            "extension", *request.key_parts(), self.context.torch_version,
            environment.get("TORCH_CUDA_ARCH_LIST", ""), host_cpu(), *(f"{c.path} {c.version}" for c in compilers),
        )  # fmt: skip


def _must_not_be_killed(log: str) -> None:
    """Raises CandidateFailure, which is worth another try, where somebody ended a compiler."""
    if signal := killed_by(1, log):
        failure = CandidateFailure(Status.BUILD_ERROR, f"a compiler of an extension was killed by {signal}", log)
        failure.killed_by = signal
        raise failure


def _failure(answer: dict[str, Any], built: Path, scratch: Path, key: str) -> dict[str, Any]:
    """Return what was raised, with the generated sources moved to where the message then says that they are."""
    for source in ("main.cpp", "cuda.cu"):
        if (built / source).is_file():
            with contextlib.suppress(Refused):  # a link, which what ran with the compiler may have made
                _deliver(built / source, scratch, key)
    own = str(_folder_in(scratch, key))
    return {"raised": str(answer["raised"]), "message": str(answer.get("message")).replace(str(built), own)}


def _from_cache(cache: Cache, key: str, name: str, scratch: Path) -> Path | None:
    """Return a copy of a library of the cache in ``scratch``; None where there is none, or not any more."""
    if (entry := cache.get(key)) is None:
        return None
    try:
        return _deliver((entry / name).resolve(), scratch, key)
    except Refused:
        if (entry / name).exists():
            raise
        return None


def _folder_in(scratch: Path, key: str) -> Path:
    return scratch / "extensions" / key


def _deliver(source: Path, scratch: Path, key: str) -> Path:
    """Copy ``source`` to where the candidate may read it; what is there already is the candidate's own affair.

    No link is followed, neither of ``scratch``, which the candidate owns, nor to another file than ``source``, a real
    path in the folder of a process that may have run a plugin of the candidate's. Raises Refused.
    """
    target = _folder_in(scratch, key) / source.name
    try:
        with contextlib.ExitStack() as opened:
            folder = os.open(scratch, os.O_DIRECTORY | os.O_NOFOLLOW)
            opened.callback(os.close, folder)
            for name in target.parent.relative_to(scratch).parts:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
                folder = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                opened.callback(os.close, folder)
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with contextlib.suppress(FileExistsError), open_plain(source, in_place=True) as original:
                with open(os.open(target.name, new, 0o600, dir_fd=folder), "wb") as copy:
                    shutil.copyfileobj(original, copy)
    except OSError as error:
        raise Refused(f"cannot put the extension into {target.parent}: {error.strerror}") from None
    return target


def _compile_request(request: Request) -> dict[str, Any]:
    host, cuda = host_compiler(), nvcc()
    if host is None:
        raise ToolchainError("no C++ compiler: install g++ or clang++, or set CXX")
    return {
        "op": "extension",
        "function": request.function,
        "arguments": request.arguments,
        "host": host.path,
        "nvcc": cuda.path if cuda else None,
    }


def _dependencies(
    answer: dict[str, Any], files: list[Path], root: Path, generated: Path, scratch: Path
) -> dict[str, str]:
    """The system's files that the compilers read; raises Refused where they read others that nobody foresaw."""
    read = answer.get("dependencies")
    if not read:
        raise Refused("the build does not say what it has read")
    try:
        return of_the_system(map(str, read), files, root, generated, scratch=[scratch])
    except (TypeError, OSError):
        raise Refused("the build does not say what it has read") from None
    except UnforeseenFile as file:
        raise Refused(str(file)) from None
