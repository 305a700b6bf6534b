"""The files beside a solution that decide what it is as much as its own source: included, imported, or named.

Sources are parsed here, never imported or compiled.
"""

from __future__ import annotations

import ast
import errno
import functools
import importlib.util
import stat
from collections.abc import Callable
from pathlib import Path

from harness.solution.includes import Lookups, local_includes, reached, read_source

NOT_PYTHON = (SyntaxError, ValueError, MemoryError, RecursionError)  # of ast.parse: the last two where it is too deep

_INCLUDING = (".cu", ".cuh", ".cpp", ".cc", ".c", ".hpp", ".h")
_SOURCE_SUFFIXES = (*_INCLUDING, ".py")
_MOST_FOLDERS = 20
_MOST_NAMES = 10_000


def parsed(source: str) -> ast.AST | None:
    """The tree of a Python source; None where it is none. Raises MemoryError: with more memory it may be one."""
    try:
        return ast.parse(source)
    except MemoryError:
        raise
    except NOT_PYTHON:
        return None  # the build says what is wrong


def taken_in(
    path: Path, source: str, tree: ast.AST | None, root: Path, of_others: Callable[[Path], bool]
) -> dict[Path, str]:
    """Path and text of the files that a source includes, imports, or that strings in Python name from its folder on.

    Only those below the real path ``root`` are opened: no others are the solution's. A module ``of_others`` has no
    text.
    """
    try:
        if path.suffix == ".py":
            return _of_python(path, tree, root, of_others) if tree else {}
        return local_includes(source, path.parent, [], below=(root,))
    except (ValueError, OSError):
        return {}  # the build says what is wrong


def _of_python(path: Path, tree: ast.AST, root: Path, of_others: Callable[[Path], bool]) -> dict[Path, str]:
    """Path and text of the files that a module names, of those beside it that it imports, and of what those name."""
    files = _named_files(tree, path.parent, root)
    for file, text in _modules(path, tree, root, of_others).items():
        files[file] = text
        if inner := parsed(text):
            files |= _named_files(inner, path.parent, root)
    return files


def trees_of(path: Path, tree: ast.AST, root: Path, of_others: Callable[[Path], bool]) -> list[ast.AST]:
    """The tree of the module at ``path``, and those of its own modules beside it, below ``root``, that it imports."""
    try:
        texts = _modules(path, tree, root, of_others).values()
    except (ValueError, OSError):
        return [tree]
    return [tree, *filter(None, map(parsed, texts))]


def _modules(path: Path, tree: ast.AST, root: Path, of_others: Callable[[Path], bool]) -> dict[Path, str]:
    """Path and text of the modules in the folder of ``path`` that it imports, and that those import.

    Without the text of those ``of_others``, its neighbours: it cannot import them.
    """
    found: dict[Path, str] = {}
    todo = [tree]
    while todo:
        for file in imported_files(todo.pop(), path.parent, root):
            if file not in found and file != path.resolve():
                found[file] = "" if of_others(file) else read_source(file)
                todo += filter(None, [parsed(found[file])])
    return found


def named_below(path: Path, tree: ast.AST) -> set[Path]:
    """Files that strings of a module name or include, in its folder or in one below it that another names."""
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    texts = sorted(text for text in constants if isinstance(text, str) and text)[:_MOST_NAMES]
    names = [text for text in texts if "\n" not in text]
    root = path.parent.resolve()

    there = dict(filter(None, (_there(root / name, root) for name in names)))
    folders = {place for place, mode in there.items() if stat.S_ISDIR(mode)} - {root}
    search = [root, *sorted(folders)[:_MOST_FOLDERS]]
    there |= dict(filter(None, (_there(folder / name, root) for folder in search[1:] for name in names)))
    files = {place for place, mode in there.items() if stat.S_ISREG(mode)}
    lookups = Lookups()
    sources = [file for file in sorted(files) if file.suffix in _INCLUDING]
    for text, beside in [*((text, None) for text in texts), *((read_source(file), file.parent) for file in sources)]:
        try:
            found = local_includes(text, beside, search, lookups=lookups, below=(root,))
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            found = {}  # a neighbour's torch/extension.h, perhaps; of its own the build says that it is too large
        files |= found.keys()
    return files


def _there(path: Path, root: Path) -> tuple[Path, int] | None:
    """Return the real path and the mode of what is there without a look out of ``root``, a real path."""
    try:
        real, mode = reached(path, (root,))
    except (OSError, ValueError):
        return None
    return (real, mode) if mode else None


def _named_files(tree: ast.AST, folder: Path, root: Path) -> dict[Path, str]:
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    files: dict[Path, str] = {}
    lookups = Lookups()
    for text in (value for value in constants if isinstance(value, str)):
        files |= local_includes(text, folder, [], Path.is_file, lookups, (root,))  # devices are no error here
        place = _there(folder.resolve() / text, root) if text.endswith(_SOURCE_SUFFIXES) else None
        if place and stat.S_ISREG(place[1]):
            path = place[0]
            files[path] = read_source(path)
            files |= local_includes(files[path], path.parent, [], Path.is_file, lookups, (root,))
    return files


def libraries_beside(path: Path) -> set[Path]:
    """Real paths of the built libraries in the folder of one, itself included."""
    return {file.resolve() for file in path.parent.glob("*.so*") if file.is_file()}


def imported_files(tree: ast.AST, folder: Path, root: Path) -> list[Path]:
    """Return the real paths, below ``root``, of the modules in ``folder`` that absolute imports of a source name.

    An installed module wins over one of the same name there, as it does in the candidate's process: see
    ``harness.worker.load``.
    """
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    paths = [module.replace(".", "/") for module in sorted(modules) if not _is_installed(module.partition(".")[0])]
    folder = folder.resolve()
    places = (_there(folder / name, root) for path in paths for name in (f"{path}.py", f"{path}/__init__.py"))
    return [place[0] for place in places if place and stat.S_ISREG(place[1])]


@functools.cache
def _is_installed(name: str) -> bool:
    """Return whether a module of this name comes with Python or is installed; it is not imported.

    A folder without an ``__init__.py``, as those of a checkout, gives way to any module of its name.
    """
    try:
        spec = importlib.util.find_spec(name)
        return spec is not None and spec.origin is not None
    except (ImportError, ValueError):  # of what is imported and does not say where from, as __main__
        return True
