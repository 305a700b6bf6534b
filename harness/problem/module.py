"""Find, load and validate problem modules.

A problem module is data plus one ``nn.Module``. Two formats load here: ours
(``WORKLOADS``, ``get_flops``, functions that take the sizes of a workload) and
KernelBench's (``Model``, ``get_inputs``, ``get_init_inputs`` without arguments).

This module itself imports no torch, so that listing problems stays quick;
``load_problem`` does, because problem modules do. Drawing inputs and building
models is in ``draw``.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.problem.import_source import import_source
from harness.solution.helper_files import NOT_PYTHON
from harness.solution.includes import read_bytes

_LEVEL_FOLDER = re.compile(r"level[_-]?(\d{1,9})", re.IGNORECASE | re.ASCII)
_FIRST_CODE = re.compile(r"^(?:class|def|@)", re.MULTILINE)
_ID = re.compile(r"0{0,9}(\d{1,9})/0{0,9}(\d{1,9})", re.ASCII)  # of long text of others, at once
_PROBLEM_FILE = re.compile(r"0*(\d{1,9})_(\w+)\.py", re.ASCII)


# What a module may say of itself besides its functions and its Model.
FACTS = frozenset({
    "WORKLOADS", "DOMAIN", "EXPLOITS", "TOLERANCE", "INDEPENDENT", "FORGETS", "FEEDBACK", "ATTENTION", "RAISED",
    "CENTRED", "EVEN", "SQUARED", "TRIVIAL", "RANDOM",
})  # fmt: skip


class ProblemError(Exception):
    """A problem that cannot be used: which file, what is wrong, what to do."""


@dataclass(frozen=True, order=True)
class ProblemId:
    """``level/number``, written ``1/19``."""

    level: int
    number: int

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> ProblemId:
        match = _ID.fullmatch(text.strip())
        if not match:
            raise ValueError(f"'{text:.80}' is not a problem id; write LEVEL/NUMBER, for example 1/19")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class ProblemFile:
    """A problem on disk, not loaded yet."""

    id: ProblemId
    name: str
    path: Path

    @functools.cached_property
    def _said(self) -> tuple[str, list[str]]:
        """The first line of its docstring, and the names of its workloads, of which the syntax tree is not kept."""
        tree = self._syntax()
        return (ast.get_docstring(tree) or "").partition("\n")[0], self._names(tree)

    def _syntax(self) -> ast.Module:
        """The syntax tree of the module's head, for what can be known without importing it.

        Its code is left out, because parsing all of a suite would take as long
        as everything else that a listing does. Raises ProblemError for what is no source.
        """
        try:
            source = read_bytes(self.path).decode()
        except OSError as error:
            raise ProblemError(f"{self.path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ProblemError(f"{self.path} is not Python source: {error}") from None
        head = _FIRST_CODE.split(source, maxsplit=1)[0]
        if "\nWORKLOADS" in source[len(head) :]:
            head = source
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # which would print lines of the file as they are
                return ast.parse(head, str(self.path))
        except NOT_PYTHON as error:
            raise ProblemError(f"{self.path} is not Python source: {error}") from error

    def summary(self) -> str:
        """First line of the module's docstring, or '' (KernelBench's modules have none)."""
        return self._said[0]

    def workload_names(self) -> list[str]:
        """Return the names that are written out. Raises ProblemError where the file is no source, or has none."""
        return self._said[1]

    def _names(self, tree: ast.Module) -> list[str]:
        for node in tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "WORKLOADS":
                # written as a dictionary display or as dict(name=...)
                keys = getattr(node.value, "keys", None) or getattr(node.value, "keywords", [])
                names = [key.value if isinstance(key, ast.Constant) else getattr(key, "arg", None) for key in keys]
                if not names or not all(isinstance(name, str) for name in names):
                    raise ProblemError(f"{self.path}: WORKLOADS must map workload names to dictionaries of sizes")
                return names
        return ["full"]

    def workload_name(self, name: str | None, device_type: str) -> str:
        """``name`` if the problem has it, without one its default for the device; ProblemError where there is none."""
        names = self.workload_names()
        if name is None:
            return default_workload_name(names, device_type)
        if name not in names:
            raise ProblemError(f"problem {self.id} has no workload '{name}'; it has: {', '.join(names)}")
        return name


def default_workload_name(names: Iterable[str], device_type: str) -> str:
    """``small`` on a CPU where there is one, else the first, which is the published."""
    return "small" if device_type == "cpu" and "small" in names else next(iter(names))


@dataclass(frozen=True)
class Problem:
    """A loaded problem module."""

    id: ProblemId
    name: str
    path: Path
    module: ModuleType = field(repr=False, compare=False)
    sha256: str = ""  # of the file

    @property
    def summary(self) -> str:
        """First line of the module's docstring; the name where there is no text in it."""
        return next(iter((self.module.__doc__ or "").strip().splitlines()), self.name)

    @property
    def workloads(self) -> dict[str, dict[str, Any]]:
        """Workload name -> sizes; KernelBench's modules have one, ``full``, without sizes."""
        return getattr(self.module, "WORKLOADS", {"full": {}})

    @property
    def keeps_dtypes(self) -> bool:
        """Return whether inputs keep the types that they are drawn with, at any precision (``KEEPS_DTYPES``)."""
        return getattr(self.module, "KEEPS_DTYPES", False)

    @property
    def overwrites_inputs(self) -> bool:
        """Return whether the reference writes into its inputs and returns them (``OVERWRITES_INPUTS``)."""
        return getattr(self.module, "OVERWRITES_INPUTS", False)

    @property
    def allclose(self) -> float | None:
        """Absolute and relative tolerance of a second criterion that is recorded, not applied (``ALLCLOSE``)."""
        return getattr(self.module, "ALLCLOSE", None)

    @property
    def forgets(self) -> bool:
        """Return whether its recurrent layers must forget the first steps, as they do initially (``FORGETS``)."""
        return getattr(self.module, "FORGETS", False)

    @property
    def feedback(self) -> tuple[str, str] | None:
        """Names of the sizes of input and state of a linear layer that is given its outputs again (``FEEDBACK``).

        The state comes last in what it is given. By its initial weights such a layer forgets within some ten steps.
        """
        return getattr(self.module, "FEEDBACK", None)

    @property
    def attention(self) -> tuple[str, float] | None:
        """Name of the size of what a linear layer makes queries, keys and values of, and a factor (``ATTENTION``).

        With hardened weights its queries and keys are larger by the factor: by initial ones scores are nearly equal.
        """
        return getattr(self.module, "ATTENTION", None)

    @property
    def raised(self) -> float:
        """By how much biases of convolutions are larger with hardened weights (``RAISED``).

        With initial ones minima of many channels are so far below zero that an activation makes zeros of all.
        """
        return getattr(self.module, "RAISED", 0.0)

    @property
    def centred(self) -> float:
        """By how much weights of linear layers and convolutions are larger, and centred, if hardened (``CENTRED``).

        With initial ones some units are alike for all inputs: clamped by large biases, or by a mean that inputs share.
        """
        return getattr(self.module, "CENTRED", 0.0)

    @property
    def even(self) -> float:
        """By how much at most sizes of what the model itself draws differ with hardened weights, if not 0 (``EVEN``).

        Where the largest of several products with drawn factors counts, those with small factors never are.
        """
        return getattr(self.module, "EVEN", 0.0)

    @property
    def squared(self) -> bool:
        """Return whether squares of all elements are summed (``SQUARED``): rare ones then outweigh the rest little.

        Beside larger ones all others would give zeros, whatever their sum is.
        """
        return getattr(self.module, "SQUARED", False)

    @property
    def independent(self) -> tuple[int, ...]:
        """Dimensions of an output along which parts do not depend on one another (``INDEPENDENT``).

        A part may be much smaller than another one, and is compared by its own size: beside the root mean square of
        all it could be left out.
        """
        return getattr(self.module, "INDEPENDENT", ())

    def workload(self, name: str) -> Workload:
        if name not in self.workloads:
            known = ", ".join(self.workloads)
            raise ProblemError(f"problem {self.id} has no workload '{name}'; it has: {known}")
        return Workload(name, self.workloads[name], self)

    def workload_for(self, name: str | None, device_type: str) -> Workload:
        """The workload ``name``; without one the default for the device."""
        return self.workload(name) if name else self.default_workload(device_type)

    def default_workload(self, device_type: str) -> Workload:
        """``full`` on a GPU; ``small`` on a CPU where the problem declares one."""
        return self.workload(default_workload_name(self.workloads, device_type))


@dataclass(frozen=True)
class Workload:
    """One set of sizes of one problem."""

    name: str
    sizes: dict[str, Any]
    problem: Problem = field(repr=False)
    changed: dict[str, Any] = field(default_factory=dict)  # of its sizes, where they are not the ones under this name

    def __hash__(self) -> int:
        return hash((self.name, repr(self.sizes), self.problem))

    def with_sizes(self, changed: dict[str, Any]) -> Workload:
        """Return this workload with some sizes changed: arguments of the module's functions, or its constants."""
        return Workload(self.name, {**self.sizes, **changed}, self.problem, {**self.changed, **changed})

    @property
    def is_timed(self) -> bool:
        """Return whether it is timed, or checked only (``UNTIMED``, a list of names)."""
        return self.name not in getattr(self.problem.module, "UNTIMED", ())

    @property
    def flops(self) -> int | None:
        """Floating-point operations of one forward; None where the module does not say."""
        return self._optional("get_flops")

    @property
    def declared_bytes(self) -> int | None:
        """Bytes of one forward where the module overrides the derived traffic, else None."""
        return self._optional("get_bytes")

    def get_inputs(self) -> list:
        return self._call("get_inputs")

    def get_init_inputs(self) -> list:
        return self._call("get_init_inputs")

    def _optional(self, name: str) -> int | None:
        return self._call(name) if hasattr(self.problem.module, name) else None

    def _call(self, name: str) -> Any:
        function: Callable = getattr(self.problem.module, name)
        module = self.problem.module
        try:
            if self.sizes and not hasattr(module, "WORKLOADS"):
                with _constants(module, self.sizes):
                    return function()
            return function(**self.sizes)
        except TypeError as error:
            sizes = ", ".join(f"{key}={value}" for key, value in self.sizes.items())
            raise ProblemError(f"{self.problem.path}: {name}({sizes}) failed: {error}") from error


@contextlib.contextmanager
def _constants(module: ModuleType, values: dict[str, Any]) -> Iterator[None]:
    """Give a module's constants other values for a while: in KernelBench's format they are its sizes."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def find_problems(root: Path) -> list[ProblemFile]:
    """Return all ``level{L}/{number}_{name}.py`` below ``root``, in order of their ids.

    Raises ProblemError where there is none, or where two files claim one id.
    """
    found: dict[ProblemId, ProblemFile] = {}
    for path in sorted(root.resolve().glob("*/*.py")):  # a worker has another working directory
        level = _LEVEL_FOLDER.fullmatch(path.parent.name)
        stem = _PROBLEM_FILE.fullmatch(path.name)
        if not (level and stem):
            continue
        problem = ProblemFile(ProblemId(int(level[1]), int(stem[1])), stem[2].rstrip("_"), path)
        if problem.id in found:
            raise ProblemError(f"two files for problem {problem.id}: {found[problem.id].path} and {path}")
        found[problem.id] = problem
    if not found:
        raise ProblemError(f"no problems in {root}: expected files such as level1/019_relu.py")
    return [found[key] for key in sorted(found)]


def load_problem(file: ProblemFile) -> Problem:
    """Import a problem module and check that it keeps the contract.

    Raises ProblemError with the file and the reason.
    """
    try:
        source = read_bytes(file.path)
    except OSError as error:
        raise ProblemError(f"{file.path} cannot be read: {error.strerror}") from None
    try:
        module = import_source(file.path, f"kb_problem_{file.id.level}_{file.id.number}", source)
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{file.path} does not load: {type(error).__name__}: {error}") from error
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(getattr(module, name, None)):
            raise ProblemError(f"{file.path} defines no {name}; a problem needs Model, get_inputs and get_init_inputs")
    workloads = getattr(module, "WORKLOADS", {"full": {}})
    if not workloads or not all(isinstance(sizes, dict) for sizes in workloads.values()):
        raise ProblemError(f"{file.path}: WORKLOADS must map workload names to dictionaries of sizes")
    return Problem(file.id, file.name, file.path, module, hashlib.sha256(source).hexdigest())
