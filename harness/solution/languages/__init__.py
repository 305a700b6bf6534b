"""Kernel languages: one module each, with a ``LANGUAGE``. To add one, add its module here; nothing else lists them.

A language is a package of Python that compiles kernels when they are called, or a header that a ``.cu`` or ``.cpp``
includes. CUDA, C++ and PyTorch are what a source is written in if it names no other.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Language:
    """Facts about a language that the harness must know.

    Parameters
    ----------
    name, title
        For records, and for people.
    modules
        A Python source that imports one of these, or from one, is written in it.
    distributions
        Packages that bring it; any one of them is enough.
    advice
        How to get it.
    headers
        A ``.cu`` or ``.cpp`` that includes a file from one of these folders is written in it.
    caches
        Environment variables that name the folder in which its calls keep what they compile.
    decorators
        Dotted names of the decorators of its kernels.
    target
        Other languages compile to it: a source that imports one of them as well is the other's.
    owns
        Says whether a kernel's name, as CUPTI gives it, stems from one of the functions and classes that the solution
        defines. None where kernels have the names of their functions.
    flags
        Gives what nvcc and the host compiler need to find its headers and its library.
    seen
        Whether its examples have been evaluated on a GPU.
    """

    name: str
    title: str
    modules: tuple[str, ...]
    distributions: tuple[str, ...]
    advice: str
    headers: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    target: bool = False
    owns: Callable[[str, set[str], set[str]], bool] | None = None
    flags: Callable[[], tuple[str, ...]] | None = None
    seen: bool = False

    def installed(self) -> str:
        """Return the installed version; '' without one."""
        for distribution in self.distributions:
            try:
                return version(distribution)
            except PackageNotFoundError:
                continue
        return ""


@functools.cache
def languages() -> dict[str, Language]:
    """Return all languages by name; those that others compile to come last."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    ordered = sorted((module.LANGUAGE for module in modules), key=lambda language: (language.target, language.name))
    return {language.name: language for language in ordered}


def missing(name: str) -> str:
    """Return what this Python lacks for a language, and how to get it; '' for nothing, or a name that is none."""
    known = languages().get(name)
    return "" if known is None or known.installed() else f"no {known.title}: {known.advice}"


def of_python(trees: list[ast.AST]) -> Language | None:
    """Return the language that a Python source, with the modules that it imports from beside it, is written in."""
    names = {name for tree in trees for name in _imported(tree)}
    return next((known for known in languages().values() if any(map(names.__contains__, known.modules))), None)


def of_library(source: str) -> Language | None:
    """Return the language whose headers a ``.cu`` or ``.cpp`` source includes."""
    included = re.findall(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)", source, re.MULTILINE)
    return next(
        (known for known in languages().values() if any(name.startswith(known.headers) for name in included)), None
    )


def of_decorators() -> set[str]:
    """Return the dotted names of the decorators of all languages' kernels."""
    return {name for known in languages().values() for name in known.decorators}


def caches() -> set[str]:
    """Return the environment variables that name the folders in which calls keep what they compile."""
    return {name for known in languages().values() for name in known.caches}


def _imported(tree: ast.AST) -> set[str]:
    """Every module that a source imports, and each of its parents: ``a.b`` and ``a``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {".".join(name.split(".")[:count]) for name in found for count in range(1, name.count(".") + 2)}
