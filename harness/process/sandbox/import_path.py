"""Places of installed packages: of ``sys.path`` what is neither a script's own folder nor where somebody works.

Python puts the folder of a script, or the working directory, in front of it, and others add theirs. All that lies
there would be open to candidates, so the places are told by what they are.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable
from pathlib import Path

WORK = "KERNELBENCH_WORK"  # tells a server where the process that it serves was started
_PACKAGES = ("site-packages", "dist-packages")  # names of folders that installers make


def import_path() -> list[str]:
    """Return the entries of ``sys.path`` that a candidate's process gets too.

    These are Python's own, folders of installed packages, what their .pth files name, and what PYTHONPATH names, unless
    the working directory lies there.
    """
    if sys.flags.isolated:
        return list(filter(None, sys.path))  # of a process that was started with these
    roots = [os.path.realpath(prefix) for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}]
    named = {*_of_variable(), *_of_files(path for path in sys.path if _holds_packages(path))}
    return [
        path
        for path in filter(None, sys.path)
        if path in named or _holds_packages(path) or any(Path(os.path.realpath(path)).is_relative_to(r) for r in roots)
    ]


def _holds_packages(path: str) -> bool:
    return os.path.basename(path) in _PACKAGES or path == site.getusersitepackages()


def private_places() -> list[str]:
    """Return folders that no candidate reads as a whole, wherever they lie.

    These are the working directories of this process and of the one whose servers it is of, the user's home, the folder
    of temporary files and the cache of builds.
    """
    named = [os.environ.get(name) for name in (WORK, "HOME", "TMPDIR", "KERNELBENCH_CACHE", "XDG_CACHE_HOME")]
    return [working_directory(), "/tmp", *filter(None, named)]


def working_directory() -> str:
    """Return it also where it has been removed."""
    return os.path.realpath("/proc/self/cwd")


def _of_variable() -> list[str]:
    work = Path(working_directory())
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return [path for path in map(os.path.abspath, entries) if not work.is_relative_to(os.path.realpath(path))]


def _of_files(folders: Iterable[str]) -> list[str]:
    """Return the folders that .pth files name: https://docs.python.org/3/library/site.html."""
    found = []
    for folder in folders:
        for file in Path(folder).glob("*.pth"):
            try:
                lines = file.read_text(errors="replace").splitlines()
            except OSError:
                continue
            names = (line.strip() for line in lines if not line.startswith(("#", "import ", "import\t")))
            found += [os.path.abspath(os.path.join(folder, name)) for name in names if name]
    return found
