"""Build requests of a candidate's process, checked: anybody who runs in that process may have written them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.compile.dependencies import found_in_system, is_the_systems, system_folders
from harness.compile.extension.flags import FLAGS, SEARCHED, paths, taken_apart
from harness.limits import MAX_SOURCE_BYTES
from harness.solution.discover import Solution
from harness.solution.includes import DEVICES, Lookups, local_includes, reached, read_bytes

FUNCTIONS = ("load", "load_inline")

_TEXTS = ("sources", "cpp_sources", "cuda_sources")
_LISTS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
_NAME = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)
_SOURCE_NAME = re.compile(r"\w[\w.+-]*")  # an object has it in the linker's command, which may take others for flags
_MAX_CHARACTERS = 64 << 20  # of the files of one extension
_MAX_ITEMS = 500  # sources, flags or include paths of one extension
_MAX_FLAG_CHARACTERS = 64 << 10  # of all its flags and include paths: they are taken apart one character at a time
_MAX_PATH_CHARACTERS = 4096  # as of the system; to look for the real one of so many folders takes their square
_SHELL = re.compile(r"[;|&`<>$\x00-\x1f]")  # ninja has a shell run the compiler, and lines and variables of its own
_QUOTES = re.compile(r'["\\]')  # nvcc puts paths between double quotes for a shell of its own
_NOT_OURS = (  # another compiler, another result, or a place of its own
    "sycl_sources", "with_sycl", "extra_sycl_cflags", "is_standalone", "use_pch", "build_directory",
)  # fmt: skip
_UNKEYED = ("verbose", "keep_intermediates")
_BY_CONTENT = ("sources", "extra_include_paths")


class Refused(Exception):
    """A request that no candidate's process sends in good faith, or that cannot be built here."""


@dataclass(frozen=True)
class Request:
    """``own`` are the real paths of the solution's files; what it wrote itself lies in ``scratch``.

    ``places`` has the real path of each that the request names, looked up once: what it wrote it may put a link for,
    too, and a path may lead through links of links.
    """

    function: str
    arguments: dict[str, Any]
    solution: Solution
    own: tuple[Path, ...]
    scratch: Path
    places: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def checked(cls, request: dict[str, Any], solution: Solution, own: list[Path], scratch: Path) -> Request:
        """Raises Refused where its form is not that of a request, or it names what is not the solution's."""
        function, arguments = request.get("function"), request.get("arguments")
        if function not in FUNCTIONS or not isinstance(arguments, dict):
            raise Refused("the request is not one of load or load_inline")
        if not_ours := next((name for name in _NOT_OURS if arguments.get(name)), None):
            raise Refused(f"{not_ours} is no argument of an extension that is built for a candidate")
        name = arguments.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Refused(f"the name of an extension must be an identifier, not {name!r:.80}")
        if not all(_is_texts(arguments.get(name)) for name in (*_TEXTS, *_LISTS)):
            raise Refused("sources, flags and include paths of an extension are strings or lists of strings")
        if reason := _excess(arguments):
            raise Refused(reason)
        arguments = arguments | {name: _listed(arguments[name]) for name in (*_TEXTS, *_LISTS) if name in arguments}
        made, lookups = cls(function, arguments, solution, tuple(own), Path(os.path.realpath(scratch))), Lookups()
        places = {}
        try:
            for path in dict.fromkeys([*made._named(), *(arguments.get("sources") or ())]):
                lookups.no_longer()
                places[path] = made._own_or_the_systems(path)
        except OSError as error:
            raise Refused(error.strerror) from None
        except ValueError as error:
            raise Refused(str(error)) from None
        return replace(made, places=places)

    @property
    def sources(self) -> list[Path]:
        """The real paths of those that are files."""
        return [self.places[path] for path in self.arguments.get("sources") or ()]

    def key_parts(self) -> list[str]:
        """Everything that decides what is built, except for compilers and versions; raises Refused."""
        keyed = {name: value for name, value in self.arguments.items() if name not in (*_UNKEYED, *_BY_CONTENT)}
        files = self.files()
        with self._reading():
            folders = self._folders()
            numbers = {str(folder): number for number, folder in reversed([*enumerate(folders)])}
            sources = [_place(path, folders, numbers) for path in self.sources]  # among headers, and in their order
            digests = sorted(f"{_place(path, folders, numbers)}\0{_digest(path)}" for path in files)
            includes = _listed(self.arguments.get("extra_include_paths"))
            theirs = [path if is_the_systems(self.places[path]) else "" for path in includes]
        parts = [self.function, json.dumps(keyed, sort_keys=True), json.dumps(theirs)]
        if files or "" in theirs:
            # The owner of a file may swap it under the compiler, so such a build is never shared with others.
            # Where they are does not matter: a solution may write them into a temporary folder.
            parts += [self.solution.sha256, self.solution.helpers, json.dumps(sources), *digests]
        return parts

    def files(self) -> list[Path]:
        """The local files that the extension is made of, as far as its sources name them.

        Raises Refused where they cannot be read, also for a moment: who owns them may move them about. And where they
        are too large together.
        """
        with self._reading():
            return self._files()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise Refused(f"cannot read the sources of extension {self.arguments['name']}: {error}") from None

    def _files(self) -> list[Path]:
        sizes: dict[Path, int] = {}
        search, size, lookups = self._searched(), 0, Lookups()
        below = (self.solution.root.resolve(), self.scratch, *DEVICES)
        for text, path in self._sources():
            folder, own = (path.parent, {path: text}) if path else (None, {})
            found = own | local_includes(text, folder, search, self._is_read, lookups, below)
            new = {file: len(text) for file, text in found.items() if file not in sizes}
            sizes |= new
            size += sum(new.values())
            if size > _MAX_CHARACTERS:
                raise ValueError(f"they have more than {_MAX_CHARACTERS >> 20} Mi characters together")
        return list(sizes)

    def _sources(self) -> Iterator[tuple[str, Path | None]]:
        """Text of each source, and its path where it is a file."""
        if self.function == "load_inline":
            for name in ("cpp_sources", "cuda_sources"):
                yield from ((text, None) for text in self.arguments.get(name) or [])
            return
        for path in dict.fromkeys(self.sources):
            yield read_bytes(path, in_place=True).decode(errors="replace"), path

    def _searched(self) -> list[Path]:
        search = list(_listed(self.arguments.get("extra_include_paths")))
        search += [value for name in FLAGS for option, value in self._flags(name) if option in SEARCHED]
        return list(dict.fromkeys(self.places[path] for path in search if os.path.isabs(path)))

    def _flags(self, name: str) -> list[tuple[str, str]]:
        return taken_apart(_listed(self.arguments.get(name)), for_nvcc=name == "extra_cuda_cflags")

    def _named(self) -> Iterator[str]:
        """Every path in the request but its sources."""
        yield from _listed(self.arguments.get("extra_include_paths"))
        for name in FLAGS:
            yield from paths(self._flags(name))

    def _own_or_the_systems(self, path: str) -> Path:
        """Return the real path of one that the request names; raises Refused for what is not its own to name."""
        with contextlib.suppress(OSError, ValueError):  # no path at all
            root = self.solution.root.resolve()
            if any(Path(path).is_relative_to(folder) for folder in (root, self.scratch)):
                real, _ = reached(path, (root, self.scratch))
            elif is_the_systems(Path(os.path.normpath(path))):
                real = found_in_system(Path(path), system_folders())
            else:
                raise OSError  # without a look at it
            holds_own = real.is_relative_to(root) and any(file.is_relative_to(real) for file in self.own)
            if os.path.isabs(path) and (self._is_own(real) or holds_own or is_the_systems(real)):
                return real
        raise Refused(f"{path} is not the solution's own file and not the system's: put it beside the solution")

    def _is_own(self, real: Path) -> bool:
        return real in self.own or real.is_relative_to(self.scratch)

    def _is_read(self, real: Path) -> bool:
        """Besides its own files, devices: to read them is an error, which a compiler does not tell."""
        return self._is_own(real) or real.is_char_device()

    def _folders(self) -> list[Path]:
        """Real paths of the folders that hold its sources, and of those in which headers are looked for."""
        return [*(source.parent for source in self.sources), *self._searched()]


def _place(path: Path, folders: list[Path], numbers: Mapping[str, int]) -> str:
    """Return where a file lies, seen from the first of the folders that holds it.

    ``numbers`` has each one's: to compare every file with each folder would take minutes where both are many.
    """
    number, above = -1, os.path.dirname(path)
    while True:
        if (found := numbers.get(above, -1)) >= 0 and (number < 0 or found < number):
            number = found
        if above == (above := os.path.dirname(above)):
            folder = folders[number] if number >= 0 else path.parent
            return f"{number}\0{path.relative_to(folder)}"


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, in_place=True)).hexdigest()


def _is_texts(value: Any) -> bool:
    return (
        value is None or isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
    )


def _excess(arguments: dict[str, Any]) -> str:
    """Return which limit a request exceeds, or ''."""
    for name in (*_TEXTS, *_LISTS):
        if len(_listed(arguments.get(name))) > _MAX_ITEMS:
            return f"{name} of an extension has more than {_MAX_ITEMS} items"
    texts = (text.encode(errors="replace") for name in _TEXTS for text in _listed(arguments.get(name)))
    if any(len(text) > MAX_SOURCE_BYTES for text in texts):
        return f"a text of an extension has more than {MAX_SOURCE_BYTES >> 20} MiB"
    if any(len(path) > _MAX_PATH_CHARACTERS for path in _listed(arguments.get("sources"))):
        return f"the path of a source has more than {_MAX_PATH_CHARACTERS:,} characters"
    names = map(os.path.basename, _listed(arguments.get("sources")))
    if odd := next((name for name in names if not _SOURCE_NAME.fullmatch(name)), None):
        return f"the name of a source has letters, digits and . + - _ only, a letter, digit or _ first, not {odd!r:.80}"
    if any(_SHELL.search(text) for name in ("sources", *_LISTS) for text in _listed(arguments.get(name))):
        return "paths and flags of an extension may not have characters that a shell acts on: ; | & ` $ < >"
    if any(_QUOTES.search(path) for name in _BY_CONTENT for path in _listed(arguments.get(name))):
        return "paths of an extension may not have quotation marks or backslashes: nvcc has a shell read them"
    if sum(len(text) for name in _LISTS for text in _listed(arguments.get(name))) > _MAX_FLAG_CHARACTERS:
        return f"flags and include paths of an extension have more than {_MAX_FLAG_CHARACTERS:,} characters"
    return ""


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])
