"""Origin of kernels: a solution's own have names that occur in its sources or in its binaries.

A library's kernel whose name matches no pattern occurs in neither. This is no proof: a candidate that forges
the profiler's answer can forge such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from harness.solution.discover import Solution
from harness.solution.languages import Language, languages
from harness.solution.visible_files import own_texts

_LEAST_LETTERS = 3  # of a part of a name that says something


class Origin:
    """``texts`` are sources, ``binaries`` the contents of libraries, ``language`` what makes names of its own."""

    def __init__(self, texts: Iterable[str], binaries: Iterable[bytes] = (), language: Language | None = None):
        texts = list(texts)
        self._owns = language.owns if language else None
        self._functions, self._classes = (
            {name for text in texts for name in re.findall(rf"^[ \t]*{keyword}[ \t]+(\w+)", text, re.MULTILINE)}
            for keyword in ("def", "class")
        )
        self._words = {word for text in texts for word in re.findall(r"\w+", text)}
        self._parts = {part for word in self._words for part in _parts(word)}
        self._binaries = list(binaries)

    @classmethod
    def of(cls, solution: Solution, libraries: Iterable[Path] = ()) -> Origin:
        """Raises OSError where one of them cannot be read."""
        binaries = [path.read_bytes() for path in libraries]
        return cls(own_texts(solution), binaries, languages().get(solution.language))

    def has(self, kernel: str) -> bool:
        """``kernel`` as CUPTI and ncu name it, demangled."""
        name = identifier(kernel)
        if not name:
            return False
        if name in self._words or any(_defines(binary, name) for binary in self._binaries):
            return True
        if self._owns and self._owns(name, self._functions, self._classes):
            return True
        parts = _parts(name)  # languages embedded in Python make names of those of functions
        return bool(parts) and all(part in self._parts for part in parts)


def identifier(kernel: str) -> str:
    """The function's own name: without its namespaces, template arguments, parameters and type."""
    head = re.split(r"[<(]", kernel.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    return (re.findall(r"\w+", head) or [""])[-1]


def _defines(binary: bytes, name: str) -> bool:
    """Return whether a library has a function of this name: mangled, as of the Itanium C++ ABI, or plain."""
    return f"{len(name)}{name}".encode() in binary or f"\0{name}\0".encode() in binary


def _parts(word: str) -> list[str]:
    return re.findall(rf"[A-Za-z]{{{_LEAST_LETTERS},}}", word)
