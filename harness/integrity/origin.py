"""Origin of kernels: a solution's own have names that occur in its sources or in its binaries.

A library's kernel whose name matches no pattern occurs in neither. This is no proof: a candidate that forges
the profiler's answer can forge such a name.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.solution.discover import Solution
from harness.solution.includes import open_plain
from harness.solution.languages import Language, languages
from harness.solution.visible_files import own_texts

_LEAST_LETTERS = 3  # of a part of a name that says something
_PIECE_BYTES = 16 << 20
_SEARCH_S = 10.0  # for all names in all binaries; one in 2 GiB takes two seconds, or ten where bytes repeat


class Origin:
    """``texts`` are sources, ``binaries`` libraries or their contents, ``language`` what makes names of its own."""

    def __init__(self, texts: Iterable[str], binaries: Iterable[bytes | Path] = (), language: Language | None = None):
        texts = list(texts)
        self._owns = language.owns if language else None
        self._functions, self._classes = (
            {name for text in texts for name in re.findall(rf"^[ \t]*{keyword}[ \t]+(\w+)", text, re.MULTILINE)}
            for keyword in ("def", "class")
        )
        self._kernels = {name for text in texts for name in _kernels_of_cuda(text)}
        self._words = {word for text in texts for word in re.findall(r"\w+", text)}
        self._parts = {part for word in self._words for part in _parts(word)}
        self._binaries = list(dict.fromkeys(binaries))  # a candidate may ask for the same library again and again
        self._left_s = _SEARCH_S

    @classmethod
    def of(cls, solution: Solution, libraries: Iterable[Path] = ()) -> Origin:
        """Raises OSError where the solution's own source cannot be read."""
        return cls(own_texts(solution), libraries, languages().get(solution.language))

    def has(self, kernel: str) -> bool:
        """``kernel`` as CUPTI and ncu name it, demangled.

        Every name is where a binary is gone, or the search has taken too long: then nothing tells.
        """
        name = identifier(kernel)
        if not name:
            return False
        if name in self._words or self._owns and self._owns(name, self._functions, self._classes):
            return True
        parts = _parts(name)  # languages embedded in Python make names of those of functions
        if parts and all(part in self._parts for part in parts):
            return True
        return self._may_be_compiled(name)

    def defines(self, kernel: str) -> bool:
        """Return whether the sources define a kernel of this name, or the function of Python that it is made of.

        A string of Python may hold it, as ``load_inline`` compiles such; a comment may not.
        """
        name = identifier(kernel)
        if name in self._kernels or name in self._functions:
            return True
        return bool(self._owns and self._owns(name, self._functions, self._classes))

    def _may_be_compiled(self, name: str) -> bool:
        """Return whether a library has a function of this name: mangled, as of the Itanium C++ ABI, or plain."""
        wanted = [f"{len(name)}{name}".encode(), f"\0{name}\0".encode()]
        begin = time.monotonic()
        try:
            for piece in _pieces(self._binaries, overlap=max(map(len, wanted))):
                if time.monotonic() - begin > self._left_s or any(text in piece for text in wanted):
                    return True
            return False
        except OSError:
            return True
        finally:
            self._left_s -= time.monotonic() - begin


def identifier(kernel: str) -> str:
    """The function's own name: without its namespaces, template arguments, parameters and type."""
    return (re.findall(r"\w+", qualified(kernel)) or [""])[-1]


def qualified(kernel: str) -> str:
    """The function's own name and its namespaces, but unnamed ones; behind its type, if it has one."""
    return re.split(r"[<(]", kernel.replace("(anonymous namespace)::", ""), maxsplit=1)[0]


def _kernels_of_cuda(text: str) -> Iterator[str]:
    """Names of the kernels that a text defines: what stands before parentheses between ``__global__`` and a body."""
    text = re.sub(r"/\*.*?(?:\*/|\Z)|//[^\n]*|#[^\n]*", " ", text, flags=re.DOTALL)
    for piece in text.split("__global__")[1:]:
        head, body, _ = piece.partition("{")
        if body and ";" not in head:
            yield from re.findall(r"\b(\w+)\s*\(", head)


def _pieces(binaries: Iterable[bytes | Path], overlap: int) -> Iterator[bytes]:
    """Read binaries piece by piece, each with the end of the one before: all together may have gigabytes.

    Raises OSError.
    """
    for binary in binaries:
        with open_plain(binary) if isinstance(binary, Path) else io.BytesIO(binary) as file:
            end = b""
            while piece := file.read(_PIECE_BYTES):
                yield (piece := end + piece)
                end = piece[-overlap:]


def _parts(word: str) -> list[str]:
    return re.findall(rf"[A-Za-z]{{{_LEAST_LETTERS},}}", word)
