"""The files that a compiler says it has read.

The solution's own are in the key of what is built; the system's are checked whenever it is used.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from harness.process.sandbox.import_path import private_places
from harness.process.sandbox.landlock import system_paths
from harness.solution.includes import Lookups, digest_of, reached, read_source, real_path

_MOST_FILES = 20_000
_WORD = re.compile(r"(?:\\.|[^\s\\])+", re.ASCII)  # compilers mask no other spaces in names
_NO_SOURCES = [Path("/proc"), Path("/sys")]


class UnforeseenFile(Exception):
    """A file that was compiled in, though no line of the sources names it in a way that can be seen."""


def listed_in(depfile: Path) -> list[str]:
    """The files in a list that a compiler wrote for make, at a real path; none where there is no list."""
    try:
        rules = read_source(depfile, in_place=True).replace("\\\n", " ").partition(": ")[2]
    except OSError:
        return []
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in _WORD.findall(rules)]


def is_the_systems(path: Path) -> bool:
    """Return whether a file belongs to the system or to this Python: not to a candidate."""
    return _lies_in(path, system_folders())


def system_folders() -> list[Path]:
    """The folders of the system and this Python, as they are now: reading them is not for free."""
    folders = map(Path, system_paths(private_places()))
    return [folder for folder in folders if not _lies_in(folder, _NO_SOURCES)]


def _lies_in(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def of_the_system(
    read: Iterable[str], own: Iterable[Path], root: Path, generated: Path, headers: Iterable[Path] = (),
    scratch: Iterable[Path] = (),
) -> dict[str, str]:  # fmt: skip
    """Path and digest of the system's files among those ``read``.

    ``own`` are those in the key, and below ``generated`` lies what the build made; ``headers`` count as the system's.
    Nothing is looked at but what lies there, below ``root``, or below folders of ``scratch``, which a candidate fills.
    Raises UnforeseenFile for any other: nobody would notice when it changes. And for one of ``own`` that was read by a
    link below ``root``: the key does not tell which of them has which name. And where they are too many, or take the
    processor long: who builds may have written the list.
    """
    own, names, lookups = set(own), list(dict.fromkeys(read)), Lookups()
    others = [generated, root, *scratch]  # as a compiler was given them, and as they are
    root, generated = root.resolve(), generated.resolve()
    others += [generated, root]
    if len(names) > _MOST_FILES:
        raise UnforeseenFile(f"a build may read {_MOST_FILES:,} files, and this one has read {len(names):,}")
    folders = [*system_folders(), *(Path(os.path.realpath(folder)) for folder in headers)]
    found: dict[str, str] = {}
    for name in names:
        try:
            lookups.no_longer()
            path = _found(generated / name, folders, others)
        except ValueError:
            raise UnforeseenFile(f"{name!r:.80} is not the name of a file") from None
        except OSError as error:
            raise UnforeseenFile(error.strerror if error.errno == errno.E2BIG else _unforeseen(name)) from None
        if path in own and path.is_relative_to(root):
            place = path.relative_to(root).parts
            if Path(os.path.normpath(generated / name)).parts[-len(place) :] != place:
                raise UnforeseenFile(f"{os.path.basename(name)} is read by a link: put the file itself there")
        if path in own or path.is_relative_to(generated) or str(path) in found:
            continue
        if not _lies_in(path, folders):
            raise UnforeseenFile(_unforeseen(name))
        found[str(path)] = _digest(path, name)
    return found


def _digest(path: Path, name: str) -> str:
    """Return the digest of a file of the system's; UnforeseenFile for one that is none or cannot be read."""
    try:
        if path.is_file():
            return digest_of(path)
    except OSError as error:  # the candidate's doing, as it names the file: no fault of the machine
        raise UnforeseenFile(f"{os.path.basename(name):.80} cannot be read: {error.strerror}") from None
    raise UnforeseenFile(_unforeseen(name))


def _found(place: Path, systems: list[Path], others: list[Path]) -> Path:
    """Return the real path of one that a build names: by links of the system alone, or by none that leads out."""
    in_system = _lies_in(Path(os.path.normpath(place)), systems)
    return found_in_system(place, systems) if in_system else reached(place, others)[0]


def found_in_system(path: Path, systems: list[Path]) -> Path:
    """Return the real path of one that lies in folders of the system by its parts. Raises OSError.

    It leads by links of the system alone; behind one of them ``..`` may be anywhere.
    """
    return reached(path, systems)[0] if ".." in path.parts else real_path(path)


def _unforeseen(name: str) -> str:
    name = os.path.basename(name)
    return (
        f"{name:.80} is included in a way that only the compiler understands: "
        f'write #include "{name:.80}", so that a change of it is noticed'
    )
