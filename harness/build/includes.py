"""The local files that a C++ or CUDA source includes: they decide what it compiles to as much as the source does."""

from __future__ import annotations

import re
from pathlib import Path

_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:(?P<open>["<])(?P<name>[^">\n]+)[">]|(?P<computed>\w+))', re.MULTILINE
)


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
            found[path] = path.read_text(errors="replace")
            pending.append((found[path], path.parent))
    return found
