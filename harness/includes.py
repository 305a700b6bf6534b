"""The local files that a C++ or CUDA source includes: they decide what it compiles to as much as the source does."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:(?P<open>["<])(?P<name>[^">\n]+)[">]|(?P<computed>\w+))', re.MULTILINE
)


_MAX_SOURCE_BYTES = 64 << 20


class UnknownInclude(Exception):
    """An include whose file only the compiler can tell, such as ``#include MACRO``."""


def local_includes(source: str, folder: Path | None, search: list[Path]) -> dict[Path, str]:
    """Path and text of every file that ``source`` can reach through its includes.

    Looked for beside the including file (``folder`` for the source itself) and in
    the folders of ``search``; what is in neither is the toolchain's. Branches of
    the preprocessor are not evaluated, so this may be more than is compiled.

    Raises UnknownInclude.
    """
    found: dict[Path, str] = {}
    pending = [(source, folder)]
    while pending:
        text, beside = pending.pop()
        for match in _INCLUDE.finditer(text):
            if match["computed"]:
                raise UnknownInclude(f"#include {match['computed']}")
            places = [*([beside] if match["open"] == '"' and beside else []), *search]
            path = next((place / match["name"] for place in places if (place / match["name"]).is_file()), None)
            if path is None and Path(match["name"]).is_absolute() and Path(match["name"]).is_file():
                path = Path(match["name"])
            if path is None or (path := path.resolve()) in found:
                continue
            found[path] = read_source(path)
            pending.append((found[path], path.parent))
    return found


def read_source(path: Path) -> str:
    """The text of a source file that a candidate names; OSError for what is no plain file or too large to be source.

    A pipe would keep us waiting, a device would never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a plain file")
        data = file.read(_MAX_SOURCE_BYTES + 1)
    if len(data) > _MAX_SOURCE_BYTES:
        raise OSError(f"{path} is larger than {_MAX_SOURCE_BYTES >> 20} MiB")
    return data.decode(errors="replace")
