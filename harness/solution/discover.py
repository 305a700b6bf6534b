"""Discover solution files, tell their kind, map each to a problem and a sample number.

Nothing here runs a candidate: Python sources are parsed, never imported.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.isolated_call import ApartError, TooMuch, apart
from harness.limits import HEAD_BYTES, MAX_LIBRARY_BYTES, MAX_NAME_CHARACTERS, MAX_SOURCE_BYTES
from harness.problem.module import ProblemId
from harness.result import escape, printable
from harness.solution.entries import entries_of
from harness.solution.includes import digest_of, read_head, real_path, too_large
from harness.solution.links import and_their_links, of_other_folders, real_or_none
from harness.solution.naming import NoProblem, SolutionError, by_name, clashes, mapping, said_in

SUFFIXES = (".py", ".cu", ".cpp", ".dsl")
PREBUILT_SUFFIX = ".so"

_BLANKS = re.compile(r"\A +|(?<= ) +| +\Z")
_ESCAPED = re.compile(r"\\(?:[\\nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_DEVICES = ("any", "cpu", "cuda")
_OF_SUFFIX = {".py": ("pytorch", "any"), ".cpp": ("cpp", "cpu")} | dict.fromkeys((".cu", ".dsl", ".so"), ("cuda",) * 2)


@dataclass(frozen=True)
class Solution:
    """One file that solves one problem.

    ``device`` is the kind of device that the solution is for: ``cpu``, ``cuda``
    or ``any``. ``language`` is what its kernels are written in: ``cuda``, ``cpp``, ``pytorch``
    or one of ``harness.solution.languages``. ``sha256`` is of the file; of one that is too large, of its
    beginning and its size. ``taken_in`` are real paths and digests of the files that it takes in, as far as it names
    them; one that is there under another name, too, has '' for its digest.
    """

    path: Path
    name: str
    problem: ProblemId
    sample: int
    kind: str
    language: str
    device: str
    sha256: str
    taken_in: tuple[tuple[Path, str], ...] = ()
    refused: str = ""  # why it is not even built
    by_comment: bool = False  # whether its comment alone says what kind of device it is for
    neighbours: frozenset[Path] = field(default=frozenset(), compare=False, repr=False)  # real, of all in its directory

    def runs_on(self, device_type: str) -> bool:
        return self.device in ("any", device_type)

    def lacks(self, device_type: str) -> str:
        """Return what a device of another kind than the solution is for lacks; '' where it runs on it."""
        if self.runs_on(device_type):
            return ""
        needs = "a GPU" if self.device == "cuda" else "host memory: use --device cpu"
        return f"{self.language} solution, needs {needs}"

    @property
    def helper_files(self) -> list[tuple[Path, str]]:
        """Real paths and digests of the files that it takes in, but for its neighbours."""
        return [(file, digest) for file, digest in self.taken_in if digest and file not in self.neighbours]

    @property
    def helpers(self) -> str:
        """Digest of its helper files; empty where there are none."""
        return digest_of_helpers(digest for _, digest in self.helper_files)

    @property
    def root(self) -> Path:
        """The directory of solutions that it belongs to: helper files may lie anywhere in it."""
        return self.path.parents[self.name.count("/")]


@dataclass(frozen=True)
class Discovery:
    """Content of a solution directory: solutions, and files that map to no problem with the reason.

    ``clashes`` are those of ``unmapped`` whose problem and sample another file has or claims, too.
    """

    solutions: tuple[Solution, ...]
    unmapped: tuple[tuple[Path, str], ...]
    root: Path  # the directory
    clashes: tuple[tuple[Path, str], ...] = ()


def discover(
    root: Path,
    prebuilt: bool = False,
    problem: ProblemId | None = None,
    names: Mapping[str, ProblemId] = MappingProxyType({}),
) -> Discovery:
    """Return all solutions below ``root``, sorted by problem and sample; ``.so`` files only with ``prebuilt``.

    ``root`` may also be one file, and ``problem`` then what it solves. ``names`` are problems that a file may be
    named after alone, as in ``matmul_kernel.py`` or ``matmul_kernel_s2.py``. A file that a solution
    imports, includes or names belongs to that solution, and is none of its own.
    Of two files for the same problem and sample at most one is a solution: see ``naming.clashes``.
    Raises SolutionError where the directory is missing, or holds no candidate file at all.
    """
    suffixes = (*SUFFIXES, PREBUILT_SUFFIX) if prebuilt else SUFFIXES
    if root.is_file():
        if root.suffix not in suffixes:
            raise SolutionError(f"{root} is no solution: expected a file ending in {', '.join(suffixes)}")
        return Discovery((read_file(root, problem, names),), (), root.parent)
    if not root.exists():
        raise SolutionError(f"no such directory or file: {root}")
    if problem:
        raise SolutionError(f"{root} is a directory: a problem can be named for one file only")
    entries, left_out = entries_of(root)
    paths = sorted(path for path in entries if path.suffix in suffixes and _is_candidate(path, root))
    if not paths:
        raise SolutionError(f"no solutions in {root}: expected files ending in {', '.join(suffixes)}")

    found: dict[Path, Solution] = {}
    nameless = set()
    unmapped = sorted(one for one in left_out if _is_shown(one[0], root))
    for path in paths:
        try:
            found[path] = read_solution(path, root, names=names)
        except (SolutionError, OSError) as error:
            unmapped.append((path, _reason(error)))
            nameless |= {path} if isinstance(error, NoProblem) else set()
    taken_in = {path: [file for file, _ in solution.taken_in] for path, solution in found.items()}
    for path, reason in of_other_folders(taken_in, entries).items():
        del found[path]
        unmapped.append((path, reason))
    out = clashes(((path, one.name, (one.problem, one.sample)) for path, one in found.items()), names)
    # some are no solutions for what else is wrong; the file of a link is another's, or has a name of its own
    named = (path for path in paths if path not in nameless and not os.path.islink(path))
    everyone = and_their_links(frozenset(filter(None, map(real_or_none, named))), entries)
    kept = (replace(solution, neighbours=everyone) for path, solution in found.items() if path not in out)
    ordered = sorted(kept, key=lambda s: (s.problem, s.sample))
    if unmapped:
        helpers = {file for solution in ordered for file, _ in solution.taken_in}
        helpers = {path for path in nameless if Path(os.path.realpath(path)) in helpers}
        unmapped = [(path, reason) for path, reason in unmapped if path not in helpers]
    return Discovery(tuple(ordered), (*unmapped, *out.items()), root, tuple(out.items()))


def read_file(
    path: Path, problem: ProblemId | None = None, names: Mapping[str, ProblemId] = MappingProxyType({})
) -> Solution:
    """The solution in one file, for a person who named it; raises SolutionError with the path.

    Its neighbours are the files beside it that ``names`` know: nothing in these says that they are solutions.
    """
    try:
        solution = read_solution(path, problem=problem, names=names)
        return replace(solution, neighbours=named_as_problems(path.parent, names))
    except OSError as error:
        raise SolutionError(f"{path} cannot be read: {error.strerror or error}") from error
    except SolutionError as error:
        raise SolutionError(f"{path} {error}, or say what it solves with --problem 1/19") from error


def digest_of_helpers(digests: Iterable[str]) -> str:
    """Return the digest of helper files from their own; empty where there are none."""
    together = "".join(digests)
    return hashlib.sha256(together.encode()).hexdigest() if together else ""


def named_as_problems(folder: Path, names: Mapping[str, ProblemId]) -> frozenset[Path]:
    """Return the real paths of the files in ``folder`` whose names stand for problems; none without such names."""
    entries = entries_of(folder)[0] if names else []
    named = (path for path in entries if path.suffix in SUFFIXES and by_name(path, names) and not os.path.islink(path))
    return frozenset(Path(os.path.realpath(path)) for path in named)


def read_solution(
    path: Path,
    root: Path | None = None,
    problem: ProblemId | None = None,
    settings: bool = True,
    names: Mapping[str, ProblemId] = MappingProxyType({}),
) -> Solution:
    """The solution in one file; ``problem`` overrides what name and comment say, ``names`` are as in ``discover``.

    Without ``settings`` its ``kb:`` comment is ignored: the author of the source has no say there.

    Raises SolutionError where the file maps to no problem, or is a link below ``root``.
    """
    if path.suffix not in _OF_SUFFIX:
        raise SolutionError(f"is no source of a solution: it ends in none of {', '.join(_OF_SUFFIX)}")
    if root and os.path.islink(path):
        raise SolutionError("is a link, to another solution or outside of the directory: put the file itself there")
    name = readable(path.relative_to(root).as_posix() if root else path.name)
    if root and len(name) > MAX_NAME_CHARACTERS:
        raise SolutionError(f"its path has more than {MAX_NAME_CHARACTERS} characters: put it nearer to the directory")
    top = Path(os.path.realpath(root)) if root else real_path(path).parent  # of a link the file's own folder
    real = top / path.relative_to(root) if root else real_path(path)
    sha256, head, refused = beginning(real)
    said = said_in(head) if settings else {}
    mapped, sample = mapping(path, said, problem, names)
    facts = {} if refused else _facts(real, top)
    language, by_kind = _OF_SUFFIX[path.suffix]
    by_kind = facts.get("device", by_kind)
    device = said.get("device", by_kind)
    if device not in _DEVICES:
        raise SolutionError(f"kb: device={device:.80} is not one of {', '.join(_DEVICES)}")
    return Solution(
        path=real,
        name=name,
        problem=mapped,
        sample=sample,
        kind=path.suffix.removeprefix("."),
        language=facts.get("language", language),
        device=device,
        sha256=sha256,
        taken_in=tuple((Path(file), digest) for file, digest in facts.get("taken_in", {}).items()),
        refused=refused or facts.get("refused", ""),
        by_comment=device != by_kind,
    )


def beginning(path: Path) -> tuple[str, bytes, str]:
    """Digest of a file, its first bytes (none of a library), and why it is refused, if it is too large; OSError."""
    if path.suffix == PREBUILT_SUFFIX:
        read_head(path, 0, in_place=True)
        if (size := path.stat().st_size) > MAX_LIBRARY_BYTES:
            return hashlib.sha256(str(size).encode()).hexdigest(), b"", too_large(size, MAX_LIBRARY_BYTES)
        return digest_of(path), b"", ""
    data, size = read_head(path, MAX_SOURCE_BYTES, in_place=True)
    if size > MAX_SOURCE_BYTES:
        digest = hashlib.sha256(data + str(size).encode()).hexdigest()
        return digest, data[:HEAD_BYTES], too_large(size, MAX_SOURCE_BYTES)
    return hashlib.sha256(data).hexdigest(), data[:HEAD_BYTES], ""


def _facts(path: Path, root: Path) -> dict[str, Any]:
    """Return its facts, of ``source_facts``; where reading fails, why it is ``refused``. Raise OSError."""
    which = "libraries" if path.suffix == PREBUILT_SUFFIX else "facts"
    try:
        return apart(f"harness.solution.source_facts:{which}", str(path), str(root))
    except (TooMuch, ApartError) as error:
        return {"refused": why_unread(error)}


def why_unread(error: TooMuch | ApartError) -> str:
    """Return why a source could not be read apart, for its author."""
    if isinstance(error, TooMuch):
        return f"to read it takes {error}"
    return f"it cannot be read: {str(error).strip().splitlines()[-1]}"


def _reason(error: SolutionError | OSError) -> str:
    return str(error) if isinstance(error, SolutionError) else f"cannot be read: {error.strerror or error}"


def readable(name: str | Path) -> str:
    """Return a file's name as text that no other name has: it may hold bytes that are no text, or drive terminals.

    A byte that is no text is shown as a lone surrogate, ``\\udc85``: ``\\x85`` is a character. Tables take away blanks
    at the ends, and pages all of several but one. One letter that is written in several ways looks the same in each.
    """
    text = os.fsencode(name).replace(b"\\", rb"\\").decode("utf-8", errors="surrogateescape")
    if unicodedata.normalize("NFC", text) != text:
        text = "".join(c if c.isascii() else escape(c) for c in text)
    text = printable(text)
    return _BLANKS.sub(lambda found: r"\x20" * len(found[0]), text.replace("\n", "\\n").replace("\t", "\\t"))


def name_shown(text: str) -> str:
    """Return the file's name that ``readable`` shows as this text."""
    name = _ESCAPED.sub(lambda found: found[0].encode().decode("unicode_escape"), text)
    return os.fsdecode(name.encode("utf-8", errors="surrogateescape"))


def _is_candidate(path: Path, root: Path) -> bool:
    """Return whether it is a file or a link; so it is where the system cannot say, as of a path that is too long."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return False
    except OSError:
        kind = stat.S_IFREG
    return (stat.S_ISREG(kind) or stat.S_ISLNK(kind)) and _is_shown(path, root) and path.name != "__init__.py"


def _is_shown(path: Path, root: Path) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(root).parts)


def files_of(path: Path, root: Path) -> set[Path]:
    """The files below ``root`` that the source at ``path`` takes in by name; without those that cannot be read."""
    if path.suffix == PREBUILT_SUFFIX:
        return set()
    try:
        return set(map(Path, apart("harness.solution.source_facts:files", str(path), str(root))))
    except (TooMuch, ApartError):
        return set()


def is_solution(path: Path) -> bool:
    """Return whether a file is a candidate of its own: it maps to a problem."""
    if path.suffix not in (*SUFFIXES, PREBUILT_SUFFIX):
        return False
    try:
        problem_of(path)
    except NoProblem:
        return False
    except SolutionError:  # it says which, and what it says is wrong
        return True
    return True


def problem_of(path: Path) -> ProblemId:
    """Return the problem that a file's name or comment says; raises SolutionError where neither does, OSError."""
    head, _ = read_head(path, 0 if path.suffix == PREBUILT_SUFFIX else HEAD_BYTES)
    mapped, _ = mapping(path, said_in(head), None)
    return mapped
