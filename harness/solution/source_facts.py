"""Facts in a source: language, device, files that it takes in, errors of its syntax.

These functions parse what candidates wrote, so they are called by ``harness.isolated_call`` only. They take the real
path of a source: a folder of it that becomes a link meanwhile would lead to a file of somebody else.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.limits import MAX_INCLUDED_FILES, MAX_INCLUDED_FOLDERS, MAX_NAME_CHARACTERS, MAX_NAMED_BYTES
from harness.solution import languages
from harness.solution.discover import is_solution
from harness.solution.helper_files import (
    NOT_PYTHON,
    imported_files,
    libraries_beside,
    named_below,
    parsed,
    taken_in,
    trees_of,
)
from harness.solution.includes import included_link, named_digest, read_source
from harness.solution.visible_files import may_see

_MOST_CHARACTERS = 500  # of a line that is shown; one of a megabyte did not fit an answer


def facts(path: str, root: str) -> dict[str, Any]:
    """``language`` of the kernels, the kind of ``device`` they need, and the files ``taken_in`` with a digest of each.

    The record shows their digests. So these are files only that the solution may see, as far as it alone tells.
    ``refused`` says that it names too many, or which is a module of which Python runs another text than is read here.
    """
    file, top = Path(path), Path(root).resolve()
    source = read_source(file, in_place=True)
    tree = parsed(source) if file.suffix == ".py" else None
    language, device = _describe(file.suffix, source, trees_of(file, tree, top, is_solution) if tree else [])
    if file.suffix != ".py" and (link := included_link(source, file.parent, top)):
        return {"language": language, "device": device, "refused": f"{link} is a link: put the file itself there"}
    own = {*taken_in(file, source, tree, top, is_solution), *(named_below(file, tree) if tree else ())}
    found = {"language": language, "device": device}
    if len(own) > MAX_INCLUDED_FILES:
        return found | {"refused": f"it names {len(own):,} files, and the limit is {MAX_INCLUDED_FILES}"}
    names = [os.path.relpath(one, top) for one in own]
    if any(len(name) > MAX_NAME_CHARACTERS for name in names):  # a copy of it may have no place
        return found | {"refused": f"it names a file whose path has more than {MAX_NAME_CHARACTERS} characters"}
    folders = {folder for name in names for folder in Path(name).parents}
    if len(folders) > MAX_INCLUDED_FOLDERS:
        most = f"the limit is {MAX_INCLUDED_FOLDERS}"
        return found | {"refused": f"it names files in {len(folders):,} folders, with those around them, and {most}"}
    if (size := _size(own - {file.resolve()}, top)) > MAX_NAMED_BYTES:
        most = f"the limit is {MAX_NAMED_BYTES:,}"
        return found | {"refused": f"the files that it names have {size:,} bytes together, and {most}"}
    digests = _digests(file, own, top)
    return found | {"taken_in": digests, "refused": _in_other_encoding(digests)}


def _in_other_encoding(files: Iterable[str]) -> str:
    """Return which of these is a Python source in another encoding than UTF-8, and in which; '' if none is."""
    for file in map(Path, files):
        try:
            if file.suffix == ".py":
                read_source(file)
        except OSError as error:
            if error.errno == errno.EILSEQ:
                return f"{file.name}: {error.strerror}"
    return ""


def libraries(path: str, root: str) -> dict[str, Any]:
    """Return the facts of a built library: the files ``taken_in`` are the libraries beside it."""
    own = libraries_beside(Path(path))
    if (size := _size(own, Path(root).resolve())) > MAX_NAMED_BYTES:
        return {"refused": f"libraries beside it have {size:,} bytes together, and the limit is {MAX_NAMED_BYTES:,}"}
    return {"taken_in": _digests(Path(path), own, Path(root))}


def files(path: str, root: str) -> list[str]:
    """The files below ``root`` that a source includes, imports or names; without those that cannot be read."""
    file = Path(path)
    source = read_source(file, in_place=True)
    tree = parsed(source) if file.suffix == ".py" else None
    return list(map(str, taken_in(file, source, tree, Path(root).resolve(), is_solution)))


def named(path: str) -> list[str]:
    """The files that strings of a Python source name or include, in its folder or in one below it."""
    tree = parsed(read_source(Path(path), in_place=True))
    return list(map(str, named_below(Path(path), tree))) if tree else []


def imported(path: str, root: str) -> list[str]:
    """The modules below ``root`` that a Python source imports by names from there."""
    tree = parsed(read_source(Path(path), in_place=True))
    return list(map(str, imported_files(tree, Path(root), Path(root).resolve()))) if tree else []


def python(path: str, root: str) -> dict[str, Any]:
    """Return for a Python source its syntax ``error``, '' without one, and whether it ``builds`` extensions."""
    file = Path(path)
    try:
        tree = ast.parse(read_source(file, in_place=True), file.name)
    except NOT_PYTHON as error:
        return {"error": _syntax_message(error, file), "builds": False}
    return {"error": "", "builds": any(map(uses_extensions, trees_of(file, tree, Path(root).resolve(), is_solution)))}


def why_no_python(code: str) -> str | None:
    """Return what keeps ``code`` from being Python; None where nothing does."""
    try:
        ast.parse(code)
    except NOT_PYTHON as error:
        return str(error) or "too large, or nested too deep"
    return None


def _syntax_message(error: Exception, path: Path) -> str:
    if not isinstance(error, SyntaxError):
        return f"{path.name} is not Python source: {str(error) or 'too large, or nested too deep'}"
    line = (error.text or "").rstrip()[:_MOST_CHARACTERS]
    return f"SyntaxError: {error.msg} ({path.name}, line {error.lineno})" + (f"\n    {line}" if line else "")


def uses_extensions(tree: ast.AST) -> bool:
    """Return whether a Python solution mentions torch.utils.cpp_extension, so that there is something to build."""
    return _imports(tree, "cpp_extension") or any(
        isinstance(node, ast.Attribute) and node.attr == "cpp_extension" for node in ast.walk(tree)
    )


def _size(own: set[Path], root: Path) -> int:
    """Return the bytes of a solution's ``own`` files below ``root`` that it may see, holes included."""
    size = 0
    for file in own:
        with contextlib.suppress(OSError):
            size += file.stat().st_size if may_see(file, root) else 0
    return size


def _digests(path: Path, own: set[Path], root: Path) -> dict[str, str]:
    """Digest of name and content of each of a solution's ``own`` files below ``root`` that it may see."""
    real, root, digests = path.resolve(), root.resolve(), {}
    for file in sorted(own - {real}):
        with contextlib.suppress(OSError):  # nor can the candidate read it
            if may_see(file, root):
                digests[str(file)] = named_digest(file, real.parent)
    return digests


def _describe(suffix: str, source: str, trees: list[ast.AST]) -> tuple[str, str]:
    """Language of the kernels, and the kind of device they need; ``trees`` are of a Python source and its modules."""
    if suffix != ".py":
        own, device = ("cpp", "cpu") if suffix == ".cpp" else ("cuda", "cuda")
        known = languages.of_library(source)
        return (known.name if known else own), device
    if known := languages.of_python(trees):
        return known.name, "cuda"
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    extension_calls = [node for node in calls if _called_name(node) in ("load_inline", "load")]
    if any(_mentions_cuda(node) for node in extension_calls):
        return "cuda", "cuda"
    return ("cpp" if any(map(uses_extensions, trees)) else "pytorch"), "any"


def _imports(tree: ast.AST, module: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(module in alias.name.split(".") for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            names = (node.module or "").split(".") + [alias.name for alias in node.names]
            if module in names:
                return True
    return False


def _called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _mentions_cuda(call: ast.Call) -> bool:
    keywords = {keyword.arg for keyword in call.keywords}
    strings = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
    files = any(isinstance(value, str) and value.endswith(".cu") for value in strings)
    return bool(keywords & {"cuda_sources", "with_cuda"}) or len(call.args) > 2 or files
