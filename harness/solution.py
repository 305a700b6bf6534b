"""Discover solution files, tell their kind, map each to a problem and a sample number.

Nothing here runs a candidate: Python sources are parsed, never imported.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from harness.includes import UnknownInclude, local_includes, read_source
from harness.problem import ProblemId
from harness.result import printable

SUFFIXES = (".py", ".cu", ".cpp")
PREBUILT_SUFFIX = ".so"
NOT_PYTHON = (SyntaxError, ValueError, MemoryError, RecursionError)  # of ast.parse: the last two where it is too deep

_KERNELBENCH = re.compile(r"level_(?P<level>\d+)_problem_(?P<number>\d+)_sample_(?P<sample>\d+)_kernel")
_PAIR = re.compile(r"(?P<level>\d+)_(?P<number>\d+)(?:_(?!s\d+$)\w+?)?(?:_s(?P<sample>\d+))?", re.ASCII)
_IN_LEVEL = re.compile(r"0*(?P<number>\d+)(?:_(?!s\d+$)\w+?)?(?:_s(?P<sample>\d+))?", re.ASCII)
_LEVEL_FOLDER = re.compile(r"level[_-]?(\d+)")
_DIRECTIVE = re.compile(r"^\s*(?:#|//|/?\*)\s*kb:\s*(?P<settings>.+?)\s*(?:\*/)?$")
_DIRECTIVE_LINES = 10
_DEVICES = ("any", "cpu", "cuda")
_SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".c", ".hpp", ".h", ".py")


class SolutionError(Exception):
    """A solution directory or file that cannot be used, and what to do about it."""


@dataclass(frozen=True)
class Solution:
    """One file that solves one problem.

    ``device`` is the kind of device that the solution is for: ``cpu``, ``cuda``
    or ``any``. ``language`` is what its kernels are written in: ``cuda``,
    ``cpp``, ``triton`` or ``pytorch``. ``sha256`` is of the file, ``helpers`` of
    those that it takes in, as far as it names them; empty where there are none.
    """

    path: Path
    name: str
    problem: ProblemId
    sample: int
    kind: str
    language: str
    device: str
    sha256: str
    helpers: str = ""

    def runs_on(self, device_type: str) -> bool:
        return self.device in ("any", device_type)

    def lacks(self, device_type: str) -> str:
        """What a device of another kind than the solution is for lacks; '' where it runs on it."""
        if self.runs_on(device_type):
            return ""
        needs = "a GPU" if self.device == "cuda" else "host memory: use --device cpu"
        return f"{self.language} solution, needs {needs}"

    @property
    def root(self) -> Path:
        """The directory of solutions that it belongs to: helper files may lie anywhere in it."""
        return self.path.parents[self.name.count("/")]


@dataclass(frozen=True)
class Discovery:
    """What a solution directory holds: solutions, and the files that map to no problem with the reason."""

    solutions: tuple[Solution, ...]
    unmapped: tuple[tuple[Path, str], ...]


def discover(root: Path, prebuilt: bool = False) -> Discovery:
    """All solutions below ``root``, sorted by problem and sample; ``.so`` files only with ``prebuilt``.

    Raises SolutionError where the directory is missing, holds no candidate file
    at all, or holds two files for the same problem and sample.
    """
    if not root.exists():
        raise SolutionError(f"no such directory: {root}")
    if not root.is_dir():
        raise SolutionError(f"{root} is not a directory; give the folder that holds the solutions")
    suffixes = (*SUFFIXES, PREBUILT_SUFFIX) if prebuilt else SUFFIXES
    paths = [path for path in sorted(root.rglob("*")) if path.suffix in suffixes and _is_candidate(path, root)]
    if not paths:
        raise SolutionError(f"no solutions in {root}: expected files ending in {', '.join(suffixes)}")

    solutions: dict[tuple[ProblemId, int], Solution] = {}
    clashes, unmapped = [], []
    for path in paths:
        try:
            solution = read_solution(path, root)
        except (SolutionError, OSError) as error:
            unmapped.append((path, str(error)))
            continue
        other = solutions.setdefault((solution.problem, solution.sample), solution)
        if other is not solution:
            clashes.append(f"  {solution.problem} sample {solution.sample}: {other.name} and {solution.name}")
    if clashes:
        raise SolutionError(
            "two files for the same problem and sample:\n" + "\n".join(clashes) + "\n"
            "give each its own sample number: in its name (_s1) or in a first-lines comment (kb: problem=1/19 sample=1)"
        )
    ordered = sorted(solutions.values(), key=lambda s: (s.problem, s.sample))
    return Discovery(tuple(ordered), tuple(unmapped))


def read_solution(path: Path, root: Path | None = None, problem: ProblemId | None = None) -> Solution:
    """The solution in one file; ``problem`` overrides what name and comment say.

    Raises SolutionError where the file maps to no problem, or is a link that leads out of ``root``.
    """
    if root and not path.resolve().is_relative_to(root.resolve()):
        raise SolutionError("links to a file outside of the directory of solutions: put the file itself there")
    content = path.read_bytes()
    source = "" if path.suffix == PREBUILT_SUFFIX else content.decode("utf-8", errors="replace")
    settings = _directive(source)
    mapped, sample = _mapping(path, settings, problem)
    tree = _parsed(source) if path.suffix == ".py" else None
    language, device = _describe(path.suffix, tree)
    device = settings.get("device", device)
    if device not in _DEVICES:
        raise SolutionError(f"kb: device={device} is not one of {', '.join(_DEVICES)}")
    return Solution(
        path=root.resolve() / path.relative_to(root) if root else path.resolve(),
        name=readable(path.relative_to(root).as_posix() if root else path.name),
        problem=mapped,
        sample=sample,
        kind=path.suffix.removeprefix("."),
        language=language,
        device=device,
        sha256=hashlib.sha256(content).hexdigest(),
        helpers=_helpers(path, source, tree),
    )


def readable(name: str | Path) -> str:
    """A file name may hold any bytes: some could not be written into a result, others drive terminals."""
    text = printable(os.fsencode(name).decode("utf-8", errors="replace"))
    return text.replace("\n", "\\n").replace("\t", "\\t")


def _is_candidate(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return (path.is_file() or path.is_symlink()) and not hidden and path.name != "__init__.py"


def _mapping(path: Path, settings: dict[str, str], problem: ProblemId | None) -> tuple[ProblemId, int]:
    """Problem and sample: the comment wins over the name, the caller over both."""
    named, sample = _from_name(path)
    if "problem" in settings:
        try:
            named = ProblemId.parse(settings["problem"])
        except ValueError as error:
            raise SolutionError(f"kb comment: {error}") from error
        sample = 0
    if "sample" in settings:
        if not settings["sample"].isdigit():
            raise SolutionError(f"kb comment: sample={settings['sample']} is not a number")
        sample = int(settings["sample"])
    named = problem or named
    if named is None:
        raise SolutionError(
            "maps to no problem: name it like level1/19_relu.py (letters, digits and _), 1_19.py, 1_19_s2.py for "
            "sample 2, or level_1_problem_19_sample_0_kernel.py, or add a first-lines comment `kb: problem=1/19`"
        )
    return named, sample


def _from_name(path: Path) -> tuple[ProblemId | None, int]:
    if match := _KERNELBENCH.fullmatch(path.stem):
        return ProblemId(int(match["level"]), int(match["number"])), int(match["sample"])
    folder = _LEVEL_FOLDER.fullmatch(path.parent.name)
    if folder and (match := _IN_LEVEL.fullmatch(path.stem)):
        return ProblemId(int(folder[1]), int(match["number"])), int(match["sample"] or 0)
    if match := _PAIR.fullmatch(path.stem):
        return ProblemId(int(match["level"]), int(match["number"])), int(match["sample"] or 0)
    return None, 0


def _directive(source: str) -> dict[str, str]:
    """Settings of the ``kb: key=value ...`` comment among the first lines, if there is one."""
    for line in source.splitlines()[:_DIRECTIVE_LINES]:
        if match := _DIRECTIVE.match(line):
            pairs = (word.partition("=") for word in match["settings"].split())
            return {key: value for key, separator, value in pairs if separator}
    return {}


def _parsed(source: str) -> ast.AST | None:
    try:
        return ast.parse(source)
    except NOT_PYTHON:
        return None  # the build says what is wrong


def _describe(suffix: str, tree: ast.AST | None) -> tuple[str, str]:
    """Language of the kernels, and the kind of device they need; ``tree`` is of a Python source that parses."""
    if suffix == ".cpp":
        return "cpp", "cpu"
    if suffix != ".py":
        return "cuda", "cuda"
    if tree is None:
        return "pytorch", "any"
    if _imports(tree, "triton"):
        return "triton", "cuda"
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    extension_calls = [node for node in calls if _called_name(node) in ("load_inline", "load")]
    if any(_mentions_cuda(node) for node in extension_calls):
        return "cuda", "cuda"
    return ("cpp" if uses_extensions(tree) else "pytorch"), "any"


def uses_extensions(tree: ast.AST) -> bool:
    """Whether a Python solution mentions torch.utils.cpp_extension, so that there is something to build."""
    return _imports(tree, "cpp_extension") or any(
        isinstance(node, ast.Attribute) and node.attr == "cpp_extension" for node in ast.walk(tree)
    )


def _helpers(path: Path, source: str, tree: ast.AST | None) -> str:
    """Digest of the files that a source takes in; empty without any."""
    folder, files = path.parent, _taken_in(path, source, tree)
    if not files:
        return ""
    named = (f"{os.path.relpath(file, folder)}\0{text}\0" for file, text in sorted(files.items()))
    return hashlib.sha256("".join(named).encode(errors="surrogateescape")).hexdigest()


def _taken_in(path: Path, source: str, tree: ast.AST | None) -> dict[Path, str]:
    """Path and text of the files that a source includes, or that strings in Python name from its folder on."""
    try:
        if path.suffix == ".py":
            return _named_files(tree, path.parent) if tree else {}
        return local_includes(source, path.parent, [])
    except (ValueError, UnknownInclude, OSError):
        return {}  # the build says what is wrong


def _named_files(tree: ast.AST, folder: Path) -> dict[Path, str]:
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    files: dict[Path, str] = {}
    for text in (value for value in constants if isinstance(value, str)):
        if "#include" in text:
            files |= local_includes(text, folder, [])
        elif text.endswith(_SOURCE_SUFFIXES) and "\n" not in text and (folder / text).is_file():
            path = (folder / text).resolve()
            files[path] = read_source(path)
            files |= local_includes(files[path], path.parent, [])
    return files


def own_texts(solution: Solution) -> list[str]:
    """Its source and those that it includes, names or imports from its own folders, as far as they can be read.

    Raises OSError where its own cannot.
    """
    path = solution.path
    if path.suffix == PREBUILT_SUFFIX:
        return []
    source = read_source(path)
    tree = _parsed(source) if path.suffix == ".py" else None
    texts = [source, *_taken_in(path, source, tree).values()]
    with contextlib.suppress(OSError):
        texts += [read_source(file) for file in _imported_files(tree, [path.parent, solution.root])] if tree else []
    return texts


def _imported_files(tree: ast.AST, folders: list[Path]) -> list[Path]:
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    files = [folder / f"{module.replace('.', '/')}.py" for module in sorted(modules) for folder in folders]
    return [file for file in files if file.is_file()]


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
