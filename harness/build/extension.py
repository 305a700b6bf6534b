"""Extensions that a candidate's process asks for with ``load`` or ``load_inline``.

The process that asks runs candidate code, so it only says what it wants. Here,
on the trusted side, the key is computed, and what is not in the cache is built
in another process, which holds no candidate code, then moved into the cache.
The candidate's process loads a copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.build.artefact import BuildContext, ToolchainError
from harness.build.cache import Cache, key_of
from harness.build.toolchain import host_compiler, host_cpu, nvcc
from harness.includes import UnknownInclude, local_includes, read_source
from harness.result import CandidateFailure, Status
from harness.solution import Solution

FUNCTIONS = ("load", "load_inline")

_TEXTS = ("sources", "cpp_sources", "cuda_sources")
_LISTS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
_NAME = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)
_ARCH = re.compile(r"(\d+\.\d+[a-z]?)(\+PTX)?")
_MAX_CHARACTERS = 64 << 20  # of the files of one extension
_UNKEYED = ("verbose", "keep_intermediates")
_BY_CONTENT = ("sources", "extra_include_paths")


class Refused(Exception):
    """A request that no candidate's process sends in good faith, or that cannot be built here."""


@dataclass
class ExtensionBuilder:
    """Builds for the process of one candidate; keeps count of what it built."""

    solution: Solution
    context: BuildContext
    compiled: int = 0
    reused: int = 0
    seconds: float = field(default=0.0)
    keys: list[str] = field(default_factory=list)
    libraries: list[Path] = field(default_factory=list)  # in the cache

    def __call__(self, request: dict[str, Any], scratch: Path) -> dict[str, Any]:
        """The answer to one request: ``library``, a path below ``scratch``, or what was ``raised``; and ``output``.

        Raises CandidateFailure where the builds of this candidate take too much
        time or memory.
        """
        if self.seconds > self.context.timeout_s:
            message = f"what it asked to have built took longer than {self.context.timeout_s:g} s together"
            raise CandidateFailure(Status.TIMEOUT, message)
        begin = time.perf_counter()
        try:
            return self._library(*self._checked(request), scratch)
        except (Refused, ToolchainError) as error:
            return {"raised": "RuntimeError", "message": str(error), "output": ""}
        except CandidateFailure as failure:
            if failure.status is Status.TIMEOUT:
                failure.message = f"the build took longer than {self.context.timeout_s:g} s"
            raise
        finally:
            self.seconds += time.perf_counter() - begin

    def _library(self, function: str, arguments: dict, environment: dict, scratch: Path) -> dict[str, Any]:
        cache = Cache()
        key = self._key(function, arguments, environment)
        name, output = f"{arguments['name']}.so", ""
        with cache.building(key):
            entry = cache.get(key)
            if entry is not None:
                self.reused += 1
            else:
                with self.context.worker(self.solution.root, scratch, env=environment) as worker:
                    left_s = max(1.0, self.context.timeout_s - self.seconds)
                    answer = worker.request(_compile_request(function, arguments), left_s)
                    worker.end()
                    output = worker.output.decode(errors="replace")
                    built = worker.scratch / "extension"
                    if "raised" in answer:
                        return _failure(answer, built, scratch, key) | {"output": output}
                    if self._key(function, arguments, environment) != key:
                        raise Refused("a source of the extension changed while it was compiled; run it again")
                    entry = cache.put(key, [built / name])
                self.compiled += 1
        self.keys.append(key)
        self.libraries.append(entry / name)
        return {"library": str(_deliver(entry / name, scratch, key)), "output": output}

    def _checked(self, request: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, str]]:
        """Function, arguments and environment of a request, whoever wrote it; raises Refused."""
        function, arguments = request.get("function"), request.get("arguments")
        if function not in FUNCTIONS or not isinstance(arguments, dict):
            raise Refused("the request is not one of load or load_inline")
        if not _NAME.fullmatch(str(arguments.get("name"))):
            raise Refused(f"the name of an extension must be an identifier, not {arguments.get('name')!r}")
        if not all(_is_texts(arguments.get(name)) for name in (*_TEXTS, *_LISTS)):
            raise Refused("sources, flags and include paths of an extension are strings or lists of strings")
        arguments = arguments | {name: _listed(arguments[name]) for name in _TEXTS if name in arguments}
        environment = {"CUDA_VISIBLE_DEVICES": "", "MAX_JOBS": str(self.context.jobs)}
        if self.context.arch:
            wished = [match[1] for match in _ARCH.finditer(str(request.get("arch_list")))]
            suits = [arch for arch in wished if arch.rstrip("abcdef") == self.context.arch]
            environment["TORCH_CUDA_ARCH_LIST"] = ";".join(suits[:1]) or self.context.arch
        return function, arguments, environment

    def _key(self, function: str, arguments: dict[str, Any], environment: dict[str, str]) -> str:
        compilers = [compiler for compiler in (nvcc(), host_compiler()) if compiler]
        keyed = {name: value for name, value in arguments.items() if name not in (*_UNKEYED, *_BY_CONTENT)}
        parts = [
            "extension", function, json.dumps(keyed, sort_keys=True), self.context.torch_version,
            environment.get("TORCH_CUDA_ARCH_LIST", ""), host_cpu(), *(f"{c.path} {c.version}" for c in compilers),
        ]  # fmt: skip
        try:
            files = self._files(function, arguments)
        except (OSError, ValueError, UnknownInclude) as error:
            raise Refused(f"cannot read the sources of extension {arguments['name']}: {error}") from None
        if files:
            # Files may be swapped under the compiler by whoever owns them, so they are never shared with others.
            # Where they are does not matter: a solution may write them into a temporary folder.
            parts += [self.solution.sha256, *sorted(f"{path.name}\0{text}" for path, text in files.items())]
        return key_of(*parts)

    def _files(self, function: str, arguments: dict[str, Any]) -> dict[Path, str]:
        """Path and text of the local files that an extension is made of."""
        files: dict[Path, str] = {}
        left = _MAX_CHARACTERS
        for found in _found(function, arguments):
            left -= sum(len(text) for path, text in found.items() if path not in files)
            if left < 0:
                raise ValueError(f"they have more than {_MAX_CHARACTERS >> 20} Mi characters together")
            files |= found
        return files


def _found(function: str, arguments: dict[str, Any]) -> Iterator[dict[Path, str]]:
    """Sources that are files, one after the other, then what each source takes in."""
    search = [Path(path) for path in arguments.get("extra_include_paths") or []]
    for flag in [*(arguments.get("extra_cflags") or []), *(arguments.get("extra_cuda_cflags") or [])]:
        if flag.startswith("-I") and len(flag) > 2:
            search.append(Path(flag[2:]))
    if function == "load":
        places = []
        for path in dict.fromkeys(map(Path, arguments.get("sources") or [])):
            places.append((read_source(path), path.parent))
            yield {path: places[-1][0]}
    else:
        texts = [*(arguments.get("cpp_sources") or []), *(arguments.get("cuda_sources") or [])]
        places = [(text, None) for text in texts]
    for text, folder in places:
        yield local_includes(text, folder, search)


def _failure(answer: dict[str, Any], built: Path, scratch: Path, key: str) -> dict[str, Any]:
    """What was raised, with the generated sources moved to where the message then says that they are."""
    for source in ("main.cpp", "cuda.cu"):
        if (built / source).is_file():
            _deliver(built / source, scratch, key)
    own = str(_folder_in(scratch, key))
    return {"raised": str(answer["raised"]), "message": str(answer.get("message")).replace(str(built), own)}


def _folder_in(scratch: Path, key: str) -> Path:
    return scratch / "extensions" / key


def _deliver(source: Path, scratch: Path, key: str) -> Path:
    """Copy ``source`` to where the candidate may read it; what is there already is the candidate's own affair.

    The candidate owns ``scratch``, so none of its links is followed: they could
    lead to any place where we may write. Raises Refused.
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
            with contextlib.suppress(FileExistsError), open(source, "rb") as original:
                with open(os.open(target.name, new, 0o600, dir_fd=folder), "wb") as copy:
                    shutil.copyfileobj(original, copy)
    except OSError as error:
        raise Refused(f"cannot put the extension into {target.parent}: {error.strerror}") from None
    return target


def _compile_request(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    host, cuda = host_compiler(), nvcc()
    if host is None:
        raise ToolchainError("no C++ compiler: install g++ or clang++, or set CXX")
    return {
        "op": "extension",
        "function": function,
        "arguments": arguments,
        "host": host.path,
        "nvcc": cuda.path if cuda else None,
    }


def _is_texts(value: Any) -> bool:
    return (
        value is None or isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
    )


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])
